"""The arms: where data, log and temporary space lie, each from the same database image.

============  =====================  ============================  ================
arm           data                   log and temporary space       server's buffers
============  =====================  ============================  ================
baseline      slow storage           slow storage                  the asked share
split-disks   several slow disks     slow storage                  the asked share
in-memory     slow storage           slow storage                  all of it
flash-volume  slow storage           flash volume                  the asked share
accelerated   tier over slow storage flash volume                  the asked share
all-flash     flash                  flash volume                  the asked share
============  =====================  ============================  ================

"Slow storage" for log and temporary space is the data's own disk, or a slow one of theirs
(``storage.log_model``).

Every arm is a ``with`` block that hands out the running server; at its end everything is taken
down without writing back, because the next arm starts from the image again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

from hotset.cachelayer import filesystem, warmup
from hotset.cachelayer.ground import SavedDisk
from hotset.cachelayer.tier import Tier, Warmup
from hotset.cachelayer.units import Bytes
from hotset.harness.engines.postgres_server import PostgresServer, log_size, run_settings
from hotset.harness.site import (
    PLACE,
    VOLUME_IN_DATA,
    Site,
    mount,
    slow_disk,
    volume_on_data,
)
from hotset.harness.spec import IN_MEMORY_ROOM
from hotset.reports.document import ArmName, Workload

Workloads: TypeAlias = Sequence[Workload]
"""What will be run on one placement, and so what the cache is filled with first."""

_WORTH_MOVING = 1024**2
_ORIGIN_LOOK = PurePosixPath("/run/hotset/origin")


@dataclass(frozen=True, slots=True)
class Placed:
    """A running server on its arm; the tier under it and what filled it, where there is one."""

    server: PostgresServer
    tier: Tier | None = None
    warmed: Warmup | None = None


@contextmanager
def baseline(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on slow storage."""
    with site.takedown.part():
        _slow_data(site)
        _slow_volume(site)
        yield Placed(_started(site, site.buffers(workloads)))


@contextmanager
def split_disks(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """The databases' files shared out over several slow disks."""
    with site.takedown.part():
        want = site.spec.storage
        devices: Sequence[str | None] = want.split_devices or [None] * want.split_disks
        disks = [
            slow_disk(site.lab, device, want.split_model, want.size, site.storage.time_scale,
                      f"slow{number}")
            for number, device in enumerate(devices, 1)
        ]  # fmt: skip
        disks[0].restore(site.saved.path, site.takedown)
        first, *others = (disk.attach(site.takedown) for disk in disks)
        mount(site.machine, site.takedown, first, PLACE.data, "-o", "noatime")
        for number, device in enumerate(others, 2):
            filesystem.make(site.machine, device, site.spec.database.filesystem)
            mount(site.machine, site.takedown, device, _split_mount(number), "-o", "noatime")
        _share_out(site, [_split_mount(number) for number in range(2, len(disks) + 1)])
        _slow_volume(site)
        yield Placed(_started(site, site.buffers(workloads)))


@contextmanager
def in_memory(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on slow storage, and read into buffers that hold all of it."""
    with site.takedown.part():
        _slow_data(site)
        _slow_volume(site)
        server = _started(site, Bytes(int(site.saved.size(workloads) * IN_MEMORY_ROOM)))
        with site.report.task("reading the databases into memory"):
            for workload in workloads:
                server.prewarm(workload)
        yield Placed(server)


@contextmanager
def flash_volume(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Data on slow storage, log and temporary space on the flash volume, no cache."""
    with site.takedown.part():
        _slow_data(site)
        volume = site.lab.ground.flash_volume(
            site.tier.volume, site.storage.time_scale, site.takedown
        )
        _own_volume(site, volume)
        yield Placed(_started(site, site.buffers(workloads)))


@contextmanager
def accelerated(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Data on slow storage behind the warmed tier, log and temporary space on the flash volume."""
    with site.takedown.part():
        tier = _tier(site)
        warmed = _warm(site, tier, workloads)
        yield Placed(_on_tier(site, tier, workloads), tier, warmed)


@contextmanager
def cold(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """As `accelerated`, the cache empty."""
    with site.takedown.part():
        tier = _tier(site)
        tier.prepare()
        yield Placed(_on_tier(site, tier, workloads), tier)


@contextmanager
def all_flash(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on flash: the ceiling."""
    with site.takedown.part():
        assert site.lab.saved is not None, "the lab was raised without the saved image"
        saved = SavedDisk(site.saved.path, site.lab.saved)
        flat = site.lab.ground.all_flash(
            saved, site.spec.storage.size, site.tier.volume, site.storage.time_scale,
            site.takedown,
        )  # fmt: skip
        mount(site.machine, site.takedown, flat.data, PLACE.data, "-o", "noatime")
        _own_volume(site, flat.volume)
        yield Placed(_started(site, site.buffers(workloads)))


ARMS: dict[ArmName, Callable[[Site, Workloads], AbstractContextManager[Placed]]] = {
    "baseline": baseline,
    "split-disks": split_disks,
    "in-memory": in_memory,
    "flash-volume": flash_volume,
    "accelerated": accelerated,
    "all-flash": all_flash,
}


def _split_mount(number: int) -> PurePosixPath:
    return PLACE.data.with_name(f"data{number}")


def _share_out(site: Site, others: Sequence[PurePosixPath]) -> None:
    """Move tables' and indexes' files to the other disks, so that all hold about as much, and leave
    links: the server opens a file by its path, wherever it leads."""
    machine = site.machine
    find = ["find", str(PLACE.cluster / "base"), "-type", "f", "-printf", r"%s %p\0"]
    listed = [line.partition(" ") for line in machine.run(find).stdout.split("\0") if line]
    held = dict.fromkeys((PLACE.data, *others), 0)
    for size, _, path in sorted(listed, key=lambda line: int(line[0]), reverse=True):
        to = min(held, key=lambda disk: held[disk])
        held[to] += int(size)
        if to == PLACE.data or int(size) < _WORTH_MOVING:
            continue
        moved = to / path.removeprefix(f"{PLACE.cluster}/").replace("/", "-")
        machine.run(["cp", "-a", path, str(moved)], timeout_s=3600)
        machine.run(["ln", "-sf", str(moved), path])


def _slow_volume(site: Site) -> None:
    """Log and temporary space beside the data, or on a slow disk of their own."""
    device, model = site.spec.storage.log_device, site.spec.storage.log_model
    if device is None and model is None:
        volume_on_data(site.machine, site.takedown)
        return
    disk = slow_disk(site.lab, device, model, site.tier.volume, site.storage.time_scale,
                     "log")  # fmt: skip
    _own_volume(site, disk.attach(site.takedown))


def _slow_data(site: Site) -> None:
    """The slow disk with the databases, mounted."""
    site.storage.restore(site.saved.path, site.takedown)
    origin = site.storage.attach(site.takedown)
    mount(site.machine, site.takedown, origin, PLACE.data, "-o", "noatime")


def _tier(site: Site) -> Tier:
    """The tier over the slow disk with the databases; nothing of it stands yet."""
    site.storage.restore(site.saved.path, site.takedown)
    return site.lab.ground.tier(site.tier, site.storage, site.takedown)


def _on_tier(site: Site, tier: Tier, workloads: Workloads) -> PostgresServer:
    """The server, with its data on the tier and its log on the volume."""
    mount(site.machine, site.takedown, tier.create(), PLACE.data, "-o", "noatime")
    _own_volume(site, tier.volume)
    return _started(site, site.buffers(workloads))


def _warm(site: Site, tier: Tier, workloads: Workloads) -> Warmup:
    want = site.spec.warmup
    look = tier.prepare()
    first = [site.saved.databases[workload].folder for workload in workloads]
    runs = warmup.database_runs(tier, look, _ORIGIN_LOOK, PLACE.cluster.name, first,
                                  site.hottest)  # fmt: skip
    with site.report.task(f"warm-up ({want.method})"):
        if want.method == "fill":
            return tier.warm(runs, want.samples, site.report.on_warmup)
        return warmup.by_reading(tier, runs, want.passes, site.report.on_warmup)


def _own_volume(site: Site, volume: PurePosixPath) -> None:
    """A fresh file system on a device, with the log and temporary space moved to it."""
    filesystem.make(site.machine, volume, site.spec.database.filesystem)
    mount(site.machine, site.takedown, volume, PLACE.volume, "-o", "noatime")
    source = f"{PLACE.data / VOLUME_IN_DATA}/."
    site.machine.run(["cp", "-a", source, str(PLACE.volume)], timeout_s=600)


def _started(site: Site, buffers: Bytes) -> PostgresServer:
    site.lab.settle()
    server = site.server()
    log_room = log_size(site.tier.volume)
    server.start(run_settings(buffers, site.spec.tpcc.users, log_room))
    # Immediate: the arm's disks are thrown away, nothing has to be written back.
    site.takedown.call("stop the server", lambda: server.stop("immediate"))
    return server
