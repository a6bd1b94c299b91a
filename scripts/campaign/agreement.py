"""Our smq and bcache against the kernel's: one timed trace through the real cache and through ours.

The kernel replays it in real time, in a lab's machine, on an origin as fast as flash. Ours is
``flashdev simulate``, of the requests as that replay made them: a machine that wakes up some
milliseconds late makes several at once, and smq counts otherwise then. Of smq it is both the engine
on modelled devices in virtual time, the same state machine that serves a tier, and the simulation
in which data moves in no time; of bcache the latter.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from statistics import mean
from tempfile import NamedTemporaryFile, TemporaryDirectory
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
from hotset.tier.base import Counters, Hits, Tier, TierSpec, hits_between
from hotset.tier.bcache import tier as bcache
from hotset.tier.bcache.tier import Bcache
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache.tier import DmCache

_THERE = PurePosixPath("/run/hotset/trace")
_MADE = PurePosixPath("/run/hotset/made")
_REPLAY_LIMIT_S = 500.0
_BLOCK = Bytes(64 * 1024)
_PAGE = Bytes(8 * 1024)
_ORIGIN = "hotset-agreement"
_REPLAY_TASKS = 64
"""Threads of ``flashdev replay``, which take turns."""
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
class Replay:
    """One replay by the kernel, and ours of the same requests at the same times: of smq the
    engine's in virtual time, of bcache the simulation's."""

    kernel: Hits
    ours: Hits


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both made of one load: hit ratios by requests cut at the blocks.

    :ivar replays: no two are quite alike.
    :ivar at_once: of the load as it is written, the simulation in which data moves in no time
        (``hotset whatif simulate``).
    """

    load: str
    kind: KernelKind
    replays: tuple[Replay, ...]
    at_once: Hits

    def kernels(self, figure: Figure) -> list[float]:
        """A figure of each of the kernel's replays; none where it does not count that."""
        return [value for replay in self.replays if (value := figure(replay.kernel)) is not None]

    def ours(self, figure: Figure) -> list[float]:
        """As :meth:`kernels`."""
        return [value for replay in self.replays if (value := figure(replay.ours)) is not None]

    def points(self) -> dict[str, float]:
        """By kind of request, by how many percentage points our hit ratio is above the kernel's,
        on average of the replays."""
        return {
            name: 100 * (mean(ours) - mean(kernel))
            for name, figure in RATIOS.items()
            if (kernel := self.kernels(figure)) and (ours := self.ours(figure))
        }

    def migrations(self) -> dict[str, float]:
        """Our promotions and demotions by the kernel's, of all replays; a kind that the kernel had
        none of is left out."""
        return {
            name: sum(self.ours(figure)) / sum(kernel)
            for name, figure in MIGRATIONS.items()
            if any(kernel := self.kernels(figure))
        }

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "points": self.points(), "migrations": self.migrations()}


def flash_bytes(loads: list[Load]) -> Bytes:
    """What a lab's flash must have for these loads, origin and all."""

    def needed_blocks(load: Load) -> int:
        spec = load.spec()
        return spec.cache + spec.metadata + spec.volume

    return Bytes(max(map(needed_blocks, loads)) + 64 * 1024**2)


def on_kernel(lab: Lab, load: Load, made: Path) -> tuple[Hits, float]:
    """Replay on the kernel's, in the lab's machine; the origin is a slice of its fast disk. Returns
    also how old the cache was when that began, seconds.

    :param made: becomes a trace of when the requests were made.
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
        lab.machine.run(["mkdir", "-p", str(_THERE.parent)])
        lab.machine.put(load.trace, _THERE)
        flashdev.on(lab.machine)
        begun = time.monotonic()
        device = tier.create()
        before = tier.counters()
        age = time.monotonic() - begun
        hits = replay(lab.machine, tier, device, before)
        lab.machine.get(_MADE, made)
        return hits, age


def replay(machine: Machine, tier: Tier, device: PurePosixPath, before: Counters) -> Hits:
    """Hits and misses of a replay in real time.

    :param before: the counters now.
    :raises TooSlowError: it did not keep up.
    """
    argv = [flashdev.on(machine), "replay", "--overwrite", str(device)]
    argv += ["--trace", str(_THERE), "--made", str(_MADE)]
    result: dict[str, Any] = json.loads(machine.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    if result["late_ms_mean"] > LATE_MS_MAX:
        raise TooSlowError(f"the device did not keep up: {result}")
    time.sleep(tier.counting.lag_s)
    return hits_between(before, tier.counters(), tier.counting)


def simulate(local: Local, load: Load, age_s: float = 0.0, policy: str = "smq") -> Hits:
    """Our engine on the same trace, on modelled flash, in virtual time.

    :param age_s: how old the cache is when the trace begins. smq's periods of up to a minute are
        counted from the making of the kernel's; ours begin with a request that is made for that.
    """
    with NamedTemporaryFile("w", suffix=".trace") as trace:
        trace.write(f"0 R {int(load.disk - _BLOCK)} {int(_BLOCK)}\n")
        for line in load.trace.read_text().splitlines():
            at, rest = line.split(maxsplit=1)
            trace.write(f"{float(at) + age_s:.6f} {rest}\n")
        trace.flush()
        hits = _simulate(local, load, Path(trace.name), policy)
    return replace(hits, read_misses=hits.read_misses - 1)


def _simulate(local: Local, load: Load, trace: Path, policy: str) -> Hits:
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
    figures: dict[str, Any] = json.loads(local.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
    return Hits(*(int(figures[name]) for name in names))


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
    figures: dict[str, Any] = json.loads(local.run(argv, timeout_s=_REPLAY_LIMIT_S).stdout)
    writes, write_hits = int(figures["writes"]), int(figures["write_hits"])
    read_hits = int(figures["hits"]) - write_hits
    read_misses = int(figures["requests"]) - writes - read_hits
    if load.kind == "bcache":
        # The kernel counts reads alone.
        return Hits(read_hits, read_misses, None, None, None, None)
    moved = int(figures["promotions"]), int(figures["demotions"])
    return Hits(read_hits, read_misses, write_hits, writes - write_hits, *moved)


def agreement(lab: Lab, load: Load, replays: int = 1) -> Agreement:
    """One load on both, so many times."""
    replayed = tuple(_replay(lab, load) for _ in range(replays))
    return Agreement(load.name, load.kind, replayed, at_once(Local(), load))


def _replay(lab: Lab, load: Load) -> Replay:
    with TemporaryDirectory(prefix="hotset-agreement-") as name:
        made = replace(load, trace=Path(name) / "made")
        kernel, age_s = on_kernel(lab, load, made.trace)
        if load.kind == "bcache":
            return Replay(kernel, at_once(Local(), made))
        return Replay(kernel, simulate(Local(), made, age_s))
