"""Who counts the regions of a disk: the kernel its own tiers', the cache engine its own."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.tier.base import Tier, TierKind
from hotset.tier.dmcache.tier import DmCache
from hotset.tier.engine import control as engine
from hotset.tier.engine.service import control_of

from . import tracepoints
from .heat import Grid, Reading, Tally
from .tracepoints import RegionCounters

_BCACHE_REGION = Bytes(64 * 1024)
"""bcache has no block size: a region that a database's small reads share."""


class AcceleratedDisk(Protocol):
    """What the counters need to know of a disk."""

    @property
    def name(self) -> str:
        """The disk's name, which its tracing instance takes."""

    @property
    def kind(self) -> TierKind:
        """Whose events to count."""

    @property
    def device(self) -> PurePosixPath:
        """The accelerated device."""


@runtime_checkable
class SelfCountingTier(Protocol):
    """A tier whose own engine counts regions."""

    def region_counters(self) -> RegionCounters:
        """Those counters."""


def of(machine: Machine, disk: AcceleratedDisk) -> RegionCounters:
    """What counts the regions of an accelerated disk.

    :raises ValueError: its device is not what was recorded for it.
    """
    if disk.kind == "userspace":
        return EngineCounters(machine, control_of(disk.name))
    if disk.kind == "bcache":
        return tracepoints.bcache(machine, disk.name, disk.device, _BCACHE_REGION)
    return tracepoints.dm_cache(machine, disk.name, disk.device)


def of_tier(tier: Tier) -> RegionCounters:
    """What counts the regions of a lab's tier, which is on no card."""
    if isinstance(tier, SelfCountingTier):
        return tier.region_counters()
    assert isinstance(tier, DmCache), f"a lab has no {tier.kind}"
    return tracepoints.dm_cache(tier.machine, "lab", tier.path)


class EngineCounters:
    """Counters of ``flashdev tier``, which counts from its start on and cannot do without."""

    def __init__(self, machine: Machine, control: PurePosixPath) -> None:
        """:param control: the engine's socket on the machine."""
        self._machine = machine
        self._control = control

    def start(self) -> bool:
        return False

    def stop(self) -> bool:
        return False

    def read(self) -> Reading:
        return reading_of(engine.ask(self._machine, self._control, {"regions": {}})[-1])


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
