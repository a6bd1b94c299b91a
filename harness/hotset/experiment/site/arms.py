"""The arms: where data, log and temporary space lie, each from the same database image.

============  =====================  ============================  ================
arm           data                   log and temporary space       server's buffers
============  =====================  ============================  ================
baseline      slow storage           slow storage                  the asked share
split-disks   several slow disks     slow storage                  the asked share
in-memory     slow storage           slow storage                  all of it
flash-volume  slow storage           flash volume                  the asked share
accelerated   tier over slow storage flash volume                  the asked share
hotset, smq … the same, with this policy of hotset's own engine
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
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeAlias

from hotset.block import filesystem
from hotset.block.io_counters import LOG, ORIGIN, KernelDevice, Source
from hotset.core.units import Bytes
from hotset.databases.postgres.server import PostgresServer, log_size, run_settings
from hotset.lab.backend import SavedDisk
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import Workload
from hotset.tier.base import Tier, Warmup
from hotset.tier.policies import POLICIES, Policy
from hotset.warmup import plan as database_blocks
from hotset.warmup.fill import fill, fill_by_reading

from ..file.spec import IN_MEMORY_ROOM
from .context import FOLDER, PLACE, VOLUME_IN_DATA, Site, mount, slow_disk, volume_on_data

Workloads: TypeAlias = Sequence[Workload]
"""Workloads to run on one placement; the cache is filled with their data first."""

_WORTH_MOVING = 1024**2
_ORIGIN_LOOK = FOLDER / "origin"


@dataclass(frozen=True, slots=True)
class Placed:
    """A running server on its arm, with what counts the requests to its devices; the tier under it
    and what filled it, where there is one."""

    server: PostgresServer
    devices: tuple[Source, ...]
    tier: Tier | None = None
    warmed: Warmup | None = None


@contextmanager
def baseline(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on slow storage."""
    with site.cleanup.part():
        devices = (_slow_data(site), *_slow_volume(site))
        yield Placed(_start(site, site.buffers(workloads)), devices)


@contextmanager
def split_disks(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """The databases' files shared out over several slow disks."""
    with site.cleanup.part():
        want = site.spec.storage
        named: Sequence[str | None] = want.split_devices or [None] * want.split_disks
        disks = [
            slow_disk(site.lab, device, want.split_model, want.size, f"slow{number}")
            for number, device in enumerate(named, 1)
        ]
        disks[0].restore(site.saved.path, site.cleanup)
        first, *others = (disk.attach(site.cleanup) for disk in disks)
        mount(site.machine, site.cleanup, first, PLACE.data, "-o", "noatime")
        for number, device in enumerate(others, 2):
            filesystem.make(site.machine, device, site.spec.database.filesystem)
            mount(site.machine, site.cleanup, device, _split_mount(number), "-o", "noatime")
        _share_out(site, [_split_mount(number) for number in range(2, len(disks) + 1)])
        counted = [
            disk.counter_source(site.machine, f"{ORIGIN} {number}")
            for number, disk in enumerate(disks, 1)
        ]
        devices = (*counted, *_slow_volume(site))
        yield Placed(_start(site, site.buffers(workloads)), devices)


@contextmanager
def in_memory(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on slow storage, and read into buffers that hold all of it."""
    with site.cleanup.part():
        devices = (_slow_data(site), *_slow_volume(site))
        server = _start(site, Bytes(int(site.saved.size(workloads) * IN_MEMORY_ROOM)))
        with site.report.task("reading the databases into memory"):
            for workload in workloads:
                server.prewarm(workload)
        yield Placed(server, devices)


@contextmanager
def flash_volume(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Data on slow storage, log and temporary space on the flash volume, no cache."""
    with site.cleanup.part():
        origin = _slow_data(site)
        volume = site.lab.backend.flash_volume(site.tier.volume, site.cleanup)
        _own_volume(site, volume.path)
        yield Placed(_start(site, site.buffers(workloads)), (origin, volume.counted))


@contextmanager
def place_accelerated(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Data on slow storage behind the warmed tier, log and temporary space on the flash volume."""
    with site.cleanup.part():
        tier = _tier(site)
        warmed = _warm(site, tier, workloads)
        server = _on_tier(site, tier, workloads)
        yield Placed(server, _below(site, tier), tier, warmed)


def _with_policy(policy: Policy) -> Callable[[Site, Workloads], AbstractContextManager[Placed]]:
    """The arm of a policy."""

    def arm(site: Site, workloads: Workloads) -> AbstractContextManager[Placed]:
        return place_accelerated(replace(site, tier=replace(site.tier, policy=policy)), workloads)

    return arm


@contextmanager
def cold(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Set up as `accelerated` does, with an empty cache."""
    with site.cleanup.part():
        tier = _tier(site)
        tier.prepare()
        server = _on_tier(site, tier, workloads)
        yield Placed(server, _below(site, tier), tier)


@contextmanager
def all_flash(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on flash: the ceiling."""
    with site.cleanup.part():
        assert site.lab.saved is not None, "the lab was started without the saved image"
        saved = SavedDisk(site.saved.path, site.lab.saved)
        flat = site.lab.backend.all_flash(
            saved, site.spec.storage.size, site.tier.volume, site.cleanup
        )
        mount(site.machine, site.cleanup, flat.data, PLACE.data, "-o", "noatime")
        _own_volume(site, flat.volume)
        yield Placed(_start(site, site.buffers(workloads)), flat.counted)


ARMS: dict[ArmName, Callable[[Site, Workloads], AbstractContextManager[Placed]]] = {
    "baseline": baseline,
    "split-disks": split_disks,
    "in-memory": in_memory,
    "flash-volume": flash_volume,
    "accelerated": place_accelerated,
    **{policy: _with_policy(policy) for policy in POLICIES},
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


def _slow_volume(site: Site) -> tuple[Source, ...]:
    """Log and temporary space beside the data, or on a slow disk of their own, whose counters are
    returned."""
    device, model = site.spec.storage.log_device, site.spec.storage.log_model
    if device is None and model is None:
        volume_on_data(site.machine, site.cleanup)
        return ()
    disk = slow_disk(site.lab, device, model, site.tier.volume, "log")
    _own_volume(site, disk.attach(site.cleanup))
    return (disk.counter_source(site.machine, LOG),)


def _slow_data(site: Site) -> Source:
    """The slow disk with the databases, mounted; returns where its counters come from."""
    site.storage.restore(site.saved.path, site.cleanup)
    origin = site.storage.attach(site.cleanup)
    mount(site.machine, site.cleanup, origin, PLACE.data, "-o", "noatime")
    return site.storage.counter_source(site.machine, ORIGIN)


def _below(site: Site, tier: Tier) -> tuple[Source, ...]:
    """The tier's devices, but for those that it counts itself."""
    machine = site.machine
    return tuple(
        KernelDevice.find(machine, name, device) for name, device in tier.devices().items()
    )


def _tier(site: Site) -> Tier:
    """The tier over the slow disk with the databases; nothing of it stands yet."""
    site.storage.restore(site.saved.path, site.cleanup)
    return site.lab.backend.tier(site.tier, site.storage, site.cleanup)


def _on_tier(site: Site, tier: Tier, workloads: Workloads) -> PostgresServer:
    """The server, with its data on the tier and its log on the volume."""
    mount(site.machine, site.cleanup, tier.create(), PLACE.data, "-o", "noatime")
    _own_volume(site, tier.volume)
    return _start(site, site.buffers(workloads))


def _warm(site: Site, tier: Tier, workloads: Workloads) -> Warmup:
    want = site.spec.warmup
    inspect = tier.prepare()
    first = [site.saved.databases[workload].folder for workload in workloads]
    runs = database_blocks.database_runs(
        tier, inspect, _ORIGIN_LOOK, PLACE.cluster.name, first, site.hottest
    )
    with site.report.task(f"warm-up ({want.method})"):
        if want.method == "fill":
            return fill(tier, runs, want.samples, site.report.on_step)
        return fill_by_reading(tier, runs, want.passes, site.report.on_step)


def _own_volume(site: Site, volume: PurePosixPath) -> None:
    """A fresh file system on a device, with the log and temporary space moved to it."""
    filesystem.make(site.machine, volume, site.spec.database.filesystem)
    mount(site.machine, site.cleanup, volume, PLACE.volume, "-o", "noatime")
    source = f"{PLACE.data / VOLUME_IN_DATA}/."
    site.machine.run(["cp", "-a", source, str(PLACE.volume)], timeout_s=600)


def _start(site: Site, buffers: Bytes) -> PostgresServer:
    site.lab.settle()
    server = site.server()
    log_room = log_size(site.tier.volume)
    server.start(run_settings(buffers, site.spec.connections, log_room))
    # Immediate: the arm's disks are thrown away, nothing has to be written back.
    site.cleanup.call("stop the server", lambda: server.stop("immediate"))
    return server
