"""Base of every tier of hotset's own cache engine, wherever its engine came from: it is asked
through the control socket, by commands on the machine, as a kernel's tier is."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents, programs
from hotset.block.extents import Run
from hotset.block.io_counters import Readings
from hotset.block.transfer import Progress
from hotset.core.units import Blocks, Bytes, mb_per_s

from ..base import Counters, Tier, TierKind, Warmup, WarmupFailedError, sample
from ..filling import Filling
from ..regions import EngineRegions
from . import control as engine

_RATE_PROBE = Bytes(48 * 1024**2)


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Result of a fetch; ``skipped`` blocks were cached already, or are excluded.

    :ivar size: bytes.
    """

    size: int
    blocks: int
    skipped: int


class EngineTier(Tier):
    """A tier whose engine answers at ``control`` on its machine."""

    kind: TierKind = "userspace"
    counting = engine.COUNTING
    control: PurePosixPath

    @property
    @abstractmethod
    def path(self) -> PurePosixPath:
        """The accelerated device."""

    @property
    @abstractmethod
    def origin(self) -> PurePosixPath:
        """Device or file on the machine that holds the origin's bytes."""

    def status_argv(self) -> list[str]:
        return engine.counters_argv(programs.engine(self.machine), self.control)

    def parse(self, line: str) -> Counters:
        """Read the engine's counters.

        :raises TierFailedError: it answered with an error, or not at all, or lacks a field.
        """
        return engine.parse_serving(line).counters

    def devices(self) -> dict[str, PurePosixPath]:
        return {}  # the engine counts them

    def parse_devices(self, line: str) -> Readings:
        return engine.parse_devices(line)

    @property
    def regions(self) -> EngineRegions:
        return EngineRegions(self.control)

    def counters(self) -> Counters:
        return engine.serving(self.machine, self.control).counters

    def _patiently(self) -> Counters:
        """The same, for who works with it."""
        return engine.serving(self.machine, self.control, engine.PATIENCE_S).counters

    def resident(self) -> list[Run]:
        return engine.resident(self.machine, self.control).runs

    def flush(
        self,
        progress: Callable[[Blocks], None] = lambda _: None,
        *,
        final: bool = False,  # noqa: ARG002 - the engine flushes without any other change
        warn: Callable[[str], None] = lambda _: None,  # noqa: ARG002 - it does so under load, too
    ) -> int:
        return engine.flush(self.machine, self.control, progress)

    def fill(self, wanted: Filling) -> Warmup:
        """Implement `base.Tier.fill`, while the disk is in use. Blocks are compared with the origin
        where nobody uses the disk. All runs are requested, not only the missing: others
        make way for that, but not what is planned and cached."""
        begun, runs = time.monotonic(), wanted.runs
        self.create()
        origin_rate = self._origin_rate()
        copy_begun = time.monotonic()
        fetched = self._fetch(runs, wanted.on_progress, wanted.rate)
        seconds = time.monotonic() - copy_begun
        missing = extents.difference(runs, self.resident())
        came = fetched.blocks + fetched.skipped
        if came < extents.count(runs) or extents.count(missing) > fetched.skipped:
            raise WarmupFailedError(
                f"{int(extents.count(missing))} of {int(extents.count(runs))} blocks are not"
                " cached: look at the tier's state, then warm it up again"
            )
        sampled, differing = self._compare(runs, wanted.samples)
        if differing:
            raise WarmupFailedError(
                f"{differing} of {sampled} sampled blocks differ between origin and cache: detach"
                " the disk and create it again"
            )
        spent = time.monotonic() - begun
        return Warmup(
            "insert", Bytes(fetched.size), seconds, spent, origin_rate, sampled, differing
        )

    def _fetch(
        self, runs: Sequence[Run], on_progress: Callable[[Progress], None], rate: Bytes | None
    ) -> _Fetched:
        whole = extents.count(runs).bytes(self.spec.block)
        begun = time.monotonic()

        def on_reply(reply: engine.Answer) -> None:
            if "total" in reply:
                on_progress(Progress(Bytes(reply["bytes"]), whole, time.monotonic() - begun))

        wanted = {
            "runs": [[int(run.start), int(run.count)] for run in runs],
            **({} if rate is None else {"bytes_per_s": int(rate)}),
        }
        reply = engine.ask(self.machine, self.control, {"warm": wanted}, on_reply)[-1]
        on_progress(Progress(whole, whole, time.monotonic() - begun))
        return _Fetched(reply["bytes"], reply["blocks"], reply["skipped"])

    def _origin_rate(self) -> float:
        """The origin's sequential read rate in MB/s, past the cache."""
        wanted = {"read_origin": {"bytes": int(_RATE_PROBE)}}
        done = engine.ask(self.machine, self.control, wanted)[-1]
        return mb_per_s(Bytes(done["bytes"]), done["seconds"])

    def _compare(self, runs: Sequence[Run], samples: int) -> tuple[int, int]:
        """Read sampled blocks through the tier and beside it: how many, and how many differ.
        While somebody uses the disk, or blocks are dirty, they may differ rightly."""
        if programs.users(self.machine, self.path) or self._patiently().dirty:
            return 0, 0
        chosen, differing, block = sample(runs, samples), 0, int(self.spec.block)
        for _, at in chosen:
            skip = f"--ignore-initial={at * block}"
            argv = ["cmp", "--quiet", f"--bytes={block}", skip, str(self.path), str(self.origin)]
            differing += self.machine.run(argv, check=False).rc != 0
        return len(chosen), differing
