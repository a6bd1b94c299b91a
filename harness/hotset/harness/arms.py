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
from hotset.reports.document import ArmName

_ORIGIN_LOOK = PurePosixPath("/run/hotset/origin")


@dataclass(frozen=True, slots=True)
class Placed:
    """A running server on its arm; the tier under it and what filled it, where there is one."""

    server: PostgresServer
    tier: Tier | None = None
    warmed: Warmup | None = None


@contextmanager
def baseline(site: Site) -> Iterator[Placed]:
    """Everything on slow storage."""
    with site.takedown.part():
        site.storage.restore(site.saved.path, site.takedown)
        origin = site.storage.attach(site.takedown)
        mount(site.machine, site.takedown, origin, PLACE.data, "-o", "noatime")
        volume_on_data(site.machine, site.takedown)
        yield Placed(_started(site))


@contextmanager
def accelerated(site: Site) -> Iterator[Placed]:
    """Data on slow storage behind the warmed tier, log and temporary space on the flash volume."""
    with site.takedown.part():
        site.storage.restore(site.saved.path, site.takedown)
        tier = site.lab.ground.tier(site.tier, site.storage, site.takedown)
        warmed = _warm(site, tier)
        mount(site.machine, site.takedown, tier.create(), PLACE.data, "-o", "noatime")
        _flash_volume(site, tier.volume)
        yield Placed(_started(site), tier, warmed)


@contextmanager
def all_flash(site: Site) -> Iterator[Placed]:
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
        yield Placed(_started(site))


ARMS: dict[ArmName, Callable[[Site], AbstractContextManager[Placed]]] = {
    "baseline": baseline,
    "accelerated": accelerated,
    "all-flash": all_flash,
}


def _warm(site: Site, tier: Tier) -> Warmup:
    want = site.spec.warmup
    look = tier.prepare()
    runs = warmup.database_runs(tier, look, _ORIGIN_LOOK, PLACE.cluster.name)
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


def _started(site: Site) -> PostgresServer:
    site.lab.settle()
    server = site.server()
    log_size = Bytes(site.tier.volume // 2)
    server.start(run_settings(site.buffers, site.spec.tpcc.users, log_size))
    # Immediate: the arm's disks are thrown away, nothing has to be written back.
    site.takedown.call("stop the server", lambda: server.stop("immediate"))
    return server
