"""hotset's own cache engine as a tier: ``flashdev tier``, where the kernel has no dm-cache.

The engine serves two files, the accelerated disk and the flash volume, with the timing of a slow
disk model behind a flash model; loop devices show them to the machine. Its control socket is
asked through ``flashdev ask``, so that everything here is a command, as with the kernel's tiers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from ..block import extents, flashdev, loop
from ..block.extents import Run
from ..block.flashdev import Model
from ..block.io_counters import Readings
from ..block.transfer import Progress
from ..common.units import Blocks, Bytes, mb_per_s
from ..hosts.base import Machine
from ..hosts.cleanup import Cleanup
from ..hosts.local import Local
from ..stats.region_counters import EngineCounters
from ..tiers import engine
from ..tiers.base import (
    Counters,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
    WarmupFailedError,
    sample,
)
from ..tiers.engine import Serving
from .slow_disk import ModelledStorage

CONTROL = "tier.sock"
_RATE_PROBE = Bytes(48 * 1024**2)


class Emulated:
    """A tier whose engine runs on this computer."""

    kind: TierKind = "emulated"
    counter_bits = engine.COUNTER_BITS

    def __init__(
        self,
        local: Local,
        machine: Machine,
        spec: TierSpec,
        origin: ModelledStorage,
        flash: Path,
        flash_model: Model,
        folder: Path,
        cleanup: Cleanup,
    ) -> None:
        """:param flash: the file that stands for the flash device."""
        self.machine = machine
        self.spec = spec
        self.origin = origin
        self.control = folder / CONTROL
        self._local = local
        self._flash = flash
        self._flash_model = flash_model
        self._folder = folder
        self._cleanup = cleanup
        self._mark = cleanup.mark()
        self._devices: tuple[PurePosixPath, PurePosixPath] | None = None

    def prepare(self) -> PurePosixPath:
        """An empty cache; the accelerated disk itself shows the origin's files."""
        return self._start("--discard")

    def create(self) -> PurePosixPath:
        return self._devices[0] if self._devices else self._start()

    @property
    def volume(self) -> PurePosixPath:
        assert self._devices is not None, "the tier was not created"
        return self._devices[1]

    def _start(self, *more: str) -> PurePosixPath:
        mount, log = self._folder / "tier", self._folder / "tier.log"
        flashdev.serve(self._local, [*self.argv(), *more], mount, log, self._cleanup, "tier")
        data = loop.attach(self._local, mount / "data", self._cleanup)
        volume = loop.attach(self._local, mount / "volume", self._cleanup)
        self._devices = data, volume
        return data

    def argv(self) -> list[str]:
        """The serving command, its mount left out."""
        spec = self.spec
        sizes = {
            "metadata": spec.metadata,
            "cache": spec.cache,
            "volume": spec.volume,
            "block": spec.block,
        }
        flash_model = flashdev.model_argument(self._flash_model, self._folder, "flash")
        return [
            "tier",
            *self.origin.model_words("--origin-model"),
            "--origin",
            str(self.origin.lay_out(self._cleanup)),
            "--flash",
            str(self._flash),
            "--flash-model",
            flash_model,
            *(word for name, size in sizes.items() for word in (f"--{name}", str(int(size)))),
            "--policy",
            spec.policy,
            "--mode",
            spec.mode,
            "--control",
            str(self.control),
            "--volatile",
        ]

    def insert(
        self, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
    ) -> Warmup:
        begun = time.monotonic()
        self.create()
        origin_rate = self._origin_rate()
        total = extents.count(runs).bytes(self.spec.block)
        copy_begun = time.monotonic()

        def on_reply(reply: dict[str, Any]) -> None:
            if "total" in reply:
                done = Bytes(reply["bytes"])
                on_progress(Progress(done, total, time.monotonic() - copy_begun))

        wanted = {"warm": {"runs": [[int(run.start), int(run.count)] for run in runs]}}
        done = self._ask(wanted, on_reply)[-1]
        sampled, differing = self._compare(runs, samples)
        if differing or done["blocks"] + done["skipped"] < extents.count(runs):
            raise WarmupFailedError(
                f"{differing} of {sampled} sampled blocks differ between origin and cache,"
                f" {done['blocks']} of {int(extents.count(runs))} blocks were inserted: discard"
                " the cache and warm it up again"
            )
        spent = time.monotonic() - begun
        return Warmup(
            "insert", Bytes(done["bytes"]), done["seconds"], spent, origin_rate, sampled, differing
        )

    def _origin_rate(self) -> float:
        """The origin's sequential read rate in MB/s, past the cache."""
        done = self._ask({"read_origin": {"bytes": min(_RATE_PROBE, self.origin.size)}})[-1]
        return mb_per_s(Bytes(done["bytes"]), done["seconds"])

    def _compare(self, runs: Sequence[Run], samples: int) -> tuple[int, int]:
        """Read sampled blocks through the tier and beside it: how many, and how many differ.

        The tier is clean and nobody writes, so the origin's own file is the truth.
        """
        block, data = int(self.spec.block), self._folder / "tier" / "data"
        chosen, differing = sample(runs, samples), 0
        for _, at in chosen:
            skip = f"--ignore-initial={at * block}"
            argv = ["cmp", "--quiet", f"--bytes={block}", skip, str(data), str(self.origin.backing)]
            differing += self._local.run(argv, check=False).rc != 0
        return len(chosen), differing

    def status_argv(self) -> list[str]:
        return engine.counters_argv(flashdev.on(self.machine), PurePosixPath(self.control))

    def parse(self, line: str) -> Counters:
        """Read the engine's counters.

        :raises TierFailedError: it answered with an error, or not at all.
        :raises ValueError: a field is missing or unknown.
        """
        return engine.parse_serving(line).counters

    def devices(self) -> dict[str, PurePosixPath]:
        return {}  # the engine counts them

    def parse_devices(self, line: str) -> Readings:
        return engine.parse_devices(line)

    def counters(self) -> Counters:
        return self.parse(self.machine.run(self.status_argv()).stdout)

    def resident(self) -> list[Run]:
        return engine.resident(self._local, PurePosixPath(self.control)).runs

    def flush(
        self,
        progress: Callable[[Blocks], None] = lambda _: None,
        *,
        final: bool = False,  # noqa: ARG002 - the engine flushes without any other change
    ) -> int:
        return engine.flush(self._local, PurePosixPath(self.control), progress)

    def region_counters(self) -> EngineCounters:
        """The engine counts regions from its start on."""
        return EngineCounters(self.machine, PurePosixPath(self.control))

    def destroy(self) -> None:
        if self._devices is not None:
            self.flush()
        self.discard()

    def discard(self) -> None:
        self._devices = None
        self._cleanup.undo(self._mark)

    def _ask(
        self, what: dict[str, Any], on_reply: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> list[dict[str, Any]]:
        """Ask the engine; returns all it answers."""
        return engine.ask(self._local, PurePosixPath(self.control), what, on_reply)


def serving(machine: Machine, folder: Path) -> Serving | None:
    """The engine whose control socket lies in a folder; None where none answers."""
    if not (folder / CONTROL).exists():
        return None
    try:
        return engine.serving(machine, PurePosixPath(folder / CONTROL))
    except TierFailedError:
        return None
