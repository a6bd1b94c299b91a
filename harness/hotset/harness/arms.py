"""The three arms: where data, log and temporary space lie, each from the same database image.

============  =====================  ==============================
arm           data                   log and temporary space
============  =====================  ==============================
baseline      slow storage           slow storage
accelerated   tier over slow storage flash volume
all-flash     flash                  flash volume
============  =====================  ==============================

Every arm is a ``with`` block that hands out the running server; at its end everything is taken
down without writing back, because the next arm starts from the image again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer import storage, warmup
from hotset.cachelayer.dmcache import VOLUME, DmCache
from hotset.cachelayer.flash import PREFIX, Slice, mapper_path, remove, split
from hotset.cachelayer.units import Bytes
from hotset.cachelayer.warmup import Warmup
from hotset.harness.engines.postgres_server import PostgresServer, run_settings
from hotset.harness.site import (
    PLACE,
    VOLUME_IN_DATA,
    Site,
    make_file_system,
    mount,
    volume_on_data,
)
from hotset.reports.document import ArmName

_FLAT = f"{PREFIX}flat"
_ORIGIN_LOOK = PurePosixPath("/run/hotset/origin")


@dataclass(frozen=True, slots=True)
class Placed:
    """A running server on its arm; ``warmed`` is what filled the cache, where there is one."""

    server: PostgresServer
    warmed: Warmup | None = None


@contextmanager
def baseline(site: Site) -> Iterator[Placed]:
    """Everything on slow storage."""
    with site.takedown.part():
        origin = _restored_origin(site)
        mount(site.machine, site.takedown, origin, PLACE.data, "-o", "noatime")
        volume_on_data(site.machine, site.takedown)
        yield Placed(_started(site))


@contextmanager
def accelerated(site: Site) -> Iterator[Placed]:
    """Data on slow storage behind the warmed tier, log and temporary space on the flash volume."""
    with site.takedown.part():
        origin = _restored_origin(site)
        tier = DmCache(site.machine, site.tier, site.lab.flash, origin)
        site.takedown.call("remove the tier", tier.discard)
        tier.split_flash()
        warmed = _warm(site, tier)
        mount(site.machine, site.takedown, tier.path, PLACE.data, "-o", "noatime")
        _flash_volume(site, tier.volume)
        yield Placed(_started(site), warmed)


@contextmanager
def all_flash(site: Site) -> Iterator[Placed]:
    """Everything on flash: the ceiling."""
    with site.takedown.part():
        machine, saved = site.machine, site.lab.saved
        site.takedown.call("remove the flash slices", lambda: remove(machine, (VOLUME, _FLAT)))
        slices = (Slice(_FLAT, site.spec.storage.size), Slice(VOLUME, site.tier.volume))
        split(machine, site.lab.flash, slices)
        flat = mapper_path(_FLAT)
        storage.copy(machine, ["--from", str(saved), "--to", str(flat)])
        mount(machine, site.takedown, flat, PLACE.data, "-o", "noatime")
        _flash_volume(site, mapper_path(VOLUME))
        yield Placed(_started(site))


ARMS: dict[ArmName, Callable[[Site], AbstractContextManager[Placed]]] = {
    "baseline": baseline,
    "accelerated": accelerated,
    "all-flash": all_flash,
}


def _restored_origin(site: Site) -> PurePosixPath:
    site.storage.restore(site.saved.path)
    return site.storage.attach(site.takedown)


def _warm(site: Site, tier: DmCache) -> Warmup:
    want = site.spec.warmup
    runs = warmup.database_runs(tier, _ORIGIN_LOOK, PLACE.cluster.name)
    with site.report.task(f"warm-up ({want.method})"):
        if want.method == "offline":
            return warmup.fill_offline(tier, runs, want.samples, site.report.on_warmup)
        return warmup.fill_by_reading(tier, runs, want.passes, site.report.on_warmup)


def _flash_volume(site: Site, volume: PurePosixPath) -> None:
    """A fresh file system on the flash volume, with the log and temporary space moved to it."""
    make_file_system(site.machine, volume)
    mount(site.machine, site.takedown, volume, PLACE.volume, "-o", "noatime")
    source = f"{PLACE.data / VOLUME_IN_DATA}/."
    site.machine.run(["cp", "-a", source, str(PLACE.volume)], timeout_s=600)


def _started(site: Site) -> PostgresServer:
    server = site.server()
    log_size = Bytes(site.tier.volume // 2)
    server.start(run_settings(site.buffers, site.spec.tpcc.users, log_size))
    # Immediate: the arm's disks are thrown away, nothing has to be written back.
    site.takedown.call("stop the server", lambda: server.stop("immediate"))
    return server
