"""Our smq and bcache against the kernel's: one timed trace through the real cache and through ours.

The kernel replays it in real time, in a lab's machine, on an origin as fast as flash. Ours is
``flashdev simulate``: of smq both the engine on modelled devices in virtual time, the same state
machine that serves a tier, and the simulation in which data moves in no time; of bcache the latter.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from statistics import mean
from tempfile import NamedTemporaryFile
from typing import Any
from uuid import uuid4

from hotset.block import flashdev
from hotset.block.devicemapper import make, mapper_path, remove
from hotset.core.errors import PrerequisiteError
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk.sizing import KernelKind
from hotset.lab import lab as labs
from hotset.lab.backend import VOLUME, alone
from hotset.lab.lab import Lab
from hotset.tier.base import Hits, Tier, TierSpec, hits_between
from hotset.tier.bcache import tier as bcache
from hotset.tier.bcache.tier import Bcache
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache.tier import DmCache

_THERE = PurePosixPath("/run/hotset/trace")
_REPLAY_LIMIT_S = 500.0
_BLOCK = Bytes(64 * 1024)
_PAGE = Bytes(8 * 1024)
_ORIGIN = "hotset-agreement"
_REPLAY_TASKS = 64
"""Threads of ``flashdev replay``, which take turns."""
_LEAD_S = 2.0
"""The kernel's cache is made some seconds before its first request, and smq's periods of up to a
minute are counted from there. Any more of them are alike."""
LATE_MS_MAX = 200.0
"""A replay whose requests were later on average shows another load than the trace."""


@dataclass(frozen=True, slots=True)
class Load:
    """A trace, and the cache that it is replayed on. ``disk``: size of the origin."""

    name: str
    trace: Path
    disk: Bytes
    cache: Bytes
    kind: KernelKind = "dm-cache"

    @property
    def block(self) -> Bytes:
        """The unit of hits. bcache counts requests, so a trace for it has requests of a page."""
        return _BLOCK if self.kind == "dm-cache" else _PAGE

    def spec(self) -> TierSpec:
        """The tier; what its volume lies on is the origin."""
        if self.kind == "bcache":
            size = bcache.BLOCK, bcache.HEADER, self.cache, self.disk
            return TierSpec("writeback", "lru", *size, Bytes(0))
        metadata = metadata_bytes(self.cache, _BLOCK)
        return TierSpec("writeback", "smq", _BLOCK, metadata, self.cache, self.disk)


class TooSlowError(PrerequisiteError):
    """The device did not keep up with the trace."""


Figure = Callable[[Hits], float | None]
RATIOS: dict[str, Figure] = {
    "read": lambda hits: hits.read_ratio,
    "write": lambda hits: hits.write_ratio,
    "all": lambda hits: hits.ratio,
}
MIGRATIONS: dict[str, Figure] = {
    "promotions": lambda hits: hits.promotions,
    "demotions": lambda hits: hits.demotions,
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both made of one load: hit ratios by requests cut at the blocks.

    :ivar kernel: of each replay, of which no two are quite alike.
    :ivar ours: of smq the engine's in virtual time, of bcache the simulation's.
    :ivar at_once: of the simulation in which data moves in no time (``hotset whatif simulate``).
    """

    load: str
    kind: KernelKind
    kernel: tuple[Hits, ...]
    ours: Hits
    at_once: Hits

    def kernels(self, figure: Figure) -> list[float]:
        """A figure of each of the kernel's replays; none where it does not count that."""
        return [found for one in self.kernel if (found := figure(one)) is not None]

    def points(self) -> dict[str, float]:
        """By kind of request, by how many percentage points our hit ratio is above the kernel's,
        of its replays on average."""
        return {
            name: 100 * (ours - mean(kernel))
            for name, figure in RATIOS.items()
            if (kernel := self.kernels(figure)) and (ours := figure(self.ours)) is not None
        }

    def migrations(self) -> dict[str, float]:
        """Our promotions and demotions by the kernel's, of its replays on average; a kind that the
        kernel had none of is left out."""
        return {
            name: (figure(self.ours) or 0) / mean(kernel)
            for name, figure in MIGRATIONS.items()
            if any(kernel := self.kernels(figure))
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "load": self.load,
            "kind": self.kind,
            "kernel": [asdict(one) for one in self.kernel],
            "ours": asdict(self.ours),
            "at_once": asdict(self.at_once),
            "points": self.points(),
            "migrations": self.migrations(),
        }


def flash_bytes(loads: list[Load]) -> Bytes:
    """What a lab's flash must have for these loads, origin and all."""

    def needed(load: Load) -> int:
        spec = load.spec()
        return spec.cache + spec.metadata + spec.volume

    return Bytes(max(map(needed, loads)) + 64 * 1024**2)


def on_kernel(lab: Lab, load: Load) -> Hits:
    """Replay on the kernel's, in the lab's machine; the origin is a slice of its fast disk.

    :raises TooSlowError: it did not keep up.
    """
    spec = load.spec()
    with lab.cleanup.part():
        place = alone(lab.machine, spec, labs.FLASH_DISK, mapper_path(_ORIGIN))
        make(lab.machine, _ORIGIN, place.volume.table(place.flash))
        lab.cleanup.call("remove the origin", lambda: remove(lab.machine, [_ORIGIN]))
        tier: DmCache | Bcache
        if load.kind == "bcache":
            tier = Bcache(lab.machine, spec, place, str(uuid4()))
        else:
            tier = DmCache(lab.machine, spec, place)
        lab.cleanup.call("remove the volume", lambda: remove(lab.machine, [VOLUME]))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        device = tier.create()
        lab.machine.run(["mkdir", "-p", str(_THERE.parent)])
        lab.machine.put(load.trace, _THERE)
        return replay(lab.machine, tier, device, str(_THERE))


def replay(machine: Machine, tier: Tier, device: PurePosixPath, trace: str) -> Hits:
    """Hits and misses of a replay in real time.

    :raises TooSlowError: it did not keep up.
    """
    before = tier.counters()
    argv = [flashdev.on(machine), "replay", "--overwrite", str(device), "--trace", trace]
    result: dict[str, Any] = json.loads(machine.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    if result["late_ms_mean"] > LATE_MS_MAX:
        raise TooSlowError(f"the device did not keep up with {trace}: {result}")
    return hits_between(before, tier.counters(), tier.counter_bits)


def simulated(local: Local, load: Load, policy: str = "smq") -> Hits:
    """Our engine on the same trace, on modelled flash, in virtual time."""
    with NamedTemporaryFile("w", suffix=".trace") as trace:
        for line in load.trace.read_text().splitlines():
            at, rest = line.split(maxsplit=1)
            trace.write(f"{float(at) + _LEAD_S:.6f} {rest}\n")
        trace.flush()
        return _simulated(local, load, Path(trace.name), policy)


def _simulated(local: Local, load: Load, trace: Path, policy: str) -> Hits:
    argv = [
        str(flashdev.program(local)),
        "simulate",
        *("--policy", policy),
        *("--cache-blocks", str(load.cache // _BLOCK)),
        *("--block", str(int(_BLOCK))),
        *("--origin-model", labs.FLASH_MODEL),
        *("--flash-model", labs.FLASH_MODEL),
        *("--origin-size", str(int(load.disk))),
        *("--trace", str(trace)),
        "--json",
    ]
    found: dict[str, Any] = json.loads(local.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
    return Hits(*(int(found[name]) for name in names))


def at_once(local: Local, load: Load) -> Hits:
    """The simulation in which data moves in no time."""
    argv = [
        str(flashdev.program(local)),
        "simulate",
        *("--policy", "smq" if load.kind == "dm-cache" else "bcache"),
        *("--cache-blocks", str(load.cache // load.block)),
        *("--block", str(int(load.block))),
        *("--bucket", str(int(bcache.bucket_bytes(load.cache))), "--sequential-cutoff", "0"),
        *("--tasks", str(_REPLAY_TASKS)),
        *("--trace", str(load.trace)),
        "--json",
    ]
    found: dict[str, Any] = json.loads(local.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    writes, write_hits = int(found["writes"]), int(found["write_hits"])
    read_hits = int(found["hits"]) - write_hits
    read_misses = int(found["requests"]) - writes - read_hits
    if load.kind == "bcache":
        # The kernel counts reads alone.
        return Hits(read_hits, read_misses, None, None, None, None)
    moved = int(found["promotions"]), int(found["demotions"])
    return Hits(read_hits, read_misses, write_hits, writes - write_hits, *moved)


def agreement(lab: Lab, load: Load, replays: int = 1) -> Agreement:
    """One load on both; the kernel's ``replays`` times."""
    kernel, instant = tuple(on_kernel(lab, load) for _ in range(replays)), at_once(Local(), load)
    ours = instant if load.kind == "bcache" else simulated(Local(), load)
    return Agreement(load.name, load.kind, kernel, ours, instant)
