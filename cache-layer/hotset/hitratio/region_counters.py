"""Who counts the regions of a disk: the kernel its own tiers', the cache engine its own."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import assert_never

from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.hitratio import tracepoints
from hotset.hitratio.tracepoints import NotCountedError, RegionCounters
from hotset.tier.base import Tier
from hotset.tier.engine import control as engine
from hotset.tier.regions import BcacheRegions, EngineRegions, NoRegions, RemapRegions

from .heat import Grid, Reading, Tally

_LAB = "lab"


def find_counters(tier: Tier, disk: str = _LAB) -> RegionCounters:
    """Return the region counters of a tier.

    :param disk: the disk's name, which its tracing instance takes; a lab's is on no flash device.
    :raises ValueError: its device is not what was recorded for it.
    """
    machine, regions = tier.machine, tier.regions
    match regions:
        case EngineRegions():
            return EngineCounters(machine, regions.control)
        case RemapRegions():
            return tracepoints.dm_cache(machine, disk, regions.device)
        case BcacheRegions():
            return tracepoints.bcache(machine, disk, regions.device, regions.region)
        case NoRegions():
            return _NoCounters(regions.why)
        case other:
            assert_never(other)


class _NoCounters:
    """Counters of a kind whose regions cannot be counted."""

    def __init__(self, why: str) -> None:
        self._why = why

    def start(self) -> bool:
        raise NotCountedError(self._why)

    def stop(self) -> bool:
        return False

    def read(self) -> Reading:
        raise NotCountedError(self._why)


class EngineCounters:
    """Counters of ``hotset-engine tier``, which counts from its start on and cannot do without."""

    def __init__(self, machine: Machine, control: PurePosixPath) -> None:
        """:param control: the engine's socket on the machine."""
        self._machine = machine
        self._control = control

    def start(self) -> bool:
        return False

    def stop(self) -> bool:
        return False

    def read(self) -> Reading:
        return reading_of(engine.look(self._machine, self._control, {"regions": {}}))


def reading_of(reply: engine.Answer) -> Reading:
    """The engine's answer.

    :raises OtherVersionError: a field is missing.
    """
    grid = Grid(Bytes(reply["origin_bytes"]), Bytes(reply["region_bytes"]))
    tallies = {
        number: Tally(rh + rm, wh + wm, rh, rm, wh, wm, None)
        for number, rh, rm, wh, wm, *_ in reply["regions"]
    }
    return Reading(grid, f"engine {reply['begun']:.3f}", reply["begun"], tallies)
