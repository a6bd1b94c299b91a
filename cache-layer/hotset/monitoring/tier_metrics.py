"""The counters of all accelerated disks of a machine as OpenMetrics families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotset.core.machines.base import Machine
from hotset.disk import flash_devices
from hotset.disk.flash_devices import AttachedDisk, Disk
from hotset.hitratio.heatstore import open_store, store_path
from hotset.tier.base import Counters, TierFailedError

from .metrics import Family, Sample


@dataclass(frozen=True, slots=True)
class Measured:
    """A disk and its counters; None where its tier has none to give."""

    disk: Disk
    counters: Counters | None


Value = Callable[[Counters, int], float | None]
_BYTES: tuple[tuple[str, str, Value], ...] = (
    ("dirty", "Bytes in the cache that the origin does not have.", lambda c, b: c.dirty * b),
    ("used", "Bytes of the cache in use.", lambda c, b: c.used * b),
    ("size", "Bytes that the cache has room for.", lambda c, b: c.total * b),
)
_COUNTERS: tuple[tuple[str, str, Value], ...] = (
    ("promotions", "Blocks copied into the cache.", lambda c, _: c.promotions),
    ("demotions", "Blocks that left the cache.", lambda c, _: c.demotions),
    ("bypassed", "Requests that bypassed the cache.", lambda c, _: c.bypassed),
)


def measure(machine: Machine) -> list[Measured]:
    """The counters of every accelerated disk now."""
    return flash_devices.of_each(flash_devices.list_disks(machine), _measure)


def _measure(disk: AttachedDisk) -> Measured:
    try:
        return Measured(disk.disk, disk.tier.counters())
    except TierFailedError:
        return Measured(disk.disk, None)


def keep(machine: str, measured: Sequence[Measured]) -> None:
    """Add the readings to the disks' time series, which `report hit-ratio --since` reads.

    :param machine: as ``--machine`` names it.
    """
    for state in measured:
        if state.counters is not None and not state.counters.stale:
            path = store_path(machine, state.disk.name, state.disk.identity)
            with open_store(path) as store:
                store.keep_sample(state.counters, store.now())


def families(measured: Sequence[Measured]) -> list[Family]:
    """Names as `hotset_cache_hits_total`; labels `disk`, `tier` and `op`."""
    up = tuple(Sample(_labels(state.disk), float(state.counters is not None)) for state in measured)
    asked = [(state.disk, state.counters) for state in measured if state.counters is not None]
    by_op = {
        what: tuple(
            Sample({**_labels(disk), "op": op}, getattr(counters, f"{op}_{what}"))
            for disk, counters in asked
            # Left out for a while, and no fall that a server would take for a new count.
            if not counters.stale
            for op in ("read", "write")
        )
        for what in ("hits", "misses")
    }

    def each(value: Value) -> tuple[Sample, ...]:
        return tuple(Sample(_labels(d), value(c, int(d.spec.block))) for d, c in asked)

    return [
        Family("hotset_tier_up", "gauge", "Whether the tier's counters could be read.", up),
        Family("hotset_cache_hits", "counter", "Requests the flash served.", by_op["hits"]),
        Family("hotset_cache_misses", "counter", "Requests the origin served.", by_op["misses"]),
        Family(
            "hotset_hit_ratio",
            "gauge",
            "Hits / (hits + misses) of what is counted, since the"
            " counters started, bypassed requests left out; 0 to 1.",
            each(lambda c, _: c.hits.ratio),
        ),
        *(
            Family(f"hotset_cache_{name}", "counter", text, each(value))
            for name, text, value in _COUNTERS
        ),
        *(
            Family(f"hotset_cache_{name}_bytes", "gauge", text, each(value), "bytes")
            for name, text, value in _BYTES
        ),
    ]


def _labels(disk: Disk) -> dict[str, str]:
    return {"disk": disk.name, "tier": disk.kind}
