"""The arms: where data, log and temporary space lie, each from the same database image.

============  =====================  ============================  ================
arm           data                   log and temporary space       server's buffers
============  =====================  ============================  ================
baseline      slow storage           slow storage                  the asked share
in-memory     slow storage           slow storage                  all of it
flash-volume  slow storage           flash volume                  the asked share
accelerated   tier over slow storage flash volume                  the asked share
all-flash     flash                  flash volume                  the asked share
============  =====================  ============================  ================

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
from hotset.harness.engines.postgres_server import PostgresServer, run_settings
from hotset.harness.site import (
    PLACE,
    VOLUME_IN_DATA,
    Site,
    mount,
    volume_on_data,
)
from hotset.harness.spec import IN_MEMORY_ROOM
from hotset.reports.document import ArmName, Workload

Workloads: TypeAlias = Sequence[Workload]
"""What will be run on one placement, and so what the cache is filled with first."""

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
        volume_on_data(site.machine, site.takedown)
        yield Placed(_started(site, site.buffers(workloads)))


@contextmanager
def in_memory(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Everything on slow storage, and read into buffers that hold all of it."""
    with site.takedown.part():
        _slow_data(site)
        volume_on_data(site.machine, site.takedown)
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
        _flash_volume(site, volume)
        yield Placed(_started(site, site.buffers(workloads)))


@contextmanager
def accelerated(site: Site, workloads: Workloads) -> Iterator[Placed]:
    """Data on slow storage behind the warmed tier, log and temporary space on the flash volume."""
    with site.takedown.part():
        site.storage.restore(site.saved.path, site.takedown)
        tier = site.lab.ground.tier(site.tier, site.storage, site.takedown)
        warmed = _warm(site, tier, workloads)
        mount(site.machine, site.takedown, tier.create(), PLACE.data, "-o", "noatime")
        _flash_volume(site, tier.volume)
        yield Placed(_started(site, site.buffers(workloads)), tier, warmed)


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
        _flash_volume(site, flat.volume)
        yield Placed(_started(site, site.buffers(workloads)))


ARMS: dict[ArmName, Callable[[Site, Workloads], AbstractContextManager[Placed]]] = {
    "baseline": baseline,
    "in-memory": in_memory,
    "flash-volume": flash_volume,
    "accelerated": accelerated,
    "all-flash": all_flash,
}


def _slow_data(site: Site) -> None:
    """The slow disk with the databases, mounted."""
    site.storage.restore(site.saved.path, site.takedown)
    origin = site.storage.attach(site.takedown)
    mount(site.machine, site.takedown, origin, PLACE.data, "-o", "noatime")


def _warm(site: Site, tier: Tier, workloads: Workloads) -> Warmup:
    want = site.spec.warmup
    look = tier.prepare()
    first = [site.saved.databases[workload].folder for workload in workloads]
    runs = warmup.database_runs(tier, look, _ORIGIN_LOOK, PLACE.cluster.name, first)
    with site.report.task(f"warm-up ({want.method})"):
        if want.method == "fill":
            return tier.warm(runs, want.samples, site.report.on_warmup)
        return warmup.by_reading(tier, runs, want.passes, site.report.on_warmup)


def _flash_volume(site: Site, volume: PurePosixPath) -> None:
    """A fresh file system on the flash volume, with the log and temporary space moved to it."""
    filesystem.make(site.machine, volume, site.spec.database.filesystem)
    mount(site.machine, site.takedown, volume, PLACE.volume, "-o", "noatime")
    source = f"{PLACE.data / VOLUME_IN_DATA}/."
    site.machine.run(["cp", "-a", source, str(PLACE.volume)], timeout_s=600)


def _started(site: Site, buffers: Bytes) -> PostgresServer:
    site.lab.settle()
    server = site.server()
    log_size = Bytes(site.tier.volume // 2)
    server.start(run_settings(buffers, site.spec.tpcc.users, log_size))
    # Immediate: the arm's disks are thrown away, nothing has to be written back.
    site.takedown.call("stop the server", lambda: server.stop("immediate"))
    return server
