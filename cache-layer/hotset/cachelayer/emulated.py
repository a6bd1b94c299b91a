"""hotset's own cache engine as a tier: ``flashdev tier``, where the kernel has no dm-cache.

The engine serves two files, the accelerated disk and the flash volume, with the timing of a slow
disk model behind a flash model; loop devices show them to the machine. Its control socket is
asked through ``flashdev ask``, so that everything here is a command, as with the kernel's tiers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hotset.cachelayer import extents, flashdev, loop
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flashdev import Model
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.storage import ModelledStorage
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.tier import (
    Counters,
    Progress,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
    WarmupFailedError,
    sample,
)
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

COUNTER_BITS = 64
CONTROL = "tier.sock"
_WARM_TIMEOUT_S = 24 * 3600.0
_RATE_PROBE = Bytes(48 * 1024**2)
_EVENTS = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
_LEVELS = ("dirty", "used", "total")
_OTHERS = ("write_backs", "block_bytes", "policy", "mode", "state")


@dataclass(frozen=True, slots=True)
class Serving:
    """What a running engine says of itself."""

    counters: Counters
    block: Bytes
    policy: str
    mode: str


class Emulated:
    """A tier whose engine runs on this computer."""

    kind: TierKind = "emulated"
    counter_bits = COUNTER_BITS

    def __init__(
        self,
        local: Local,
        machine: Machine,
        spec: TierSpec,
        origin: ModelledStorage,
        flash: Path,
        flash_model: Model,
        folder: Path,
        takedown: Takedown,
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
        self._takedown = takedown
        self._mark = takedown.mark()
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
        flashdev.serve(self._local, [*self.argv(), *more], mount, log, self._takedown, "tier")
        data = loop.attach(self._local, mount / "data", self._takedown)
        volume = loop.attach(self._local, mount / "volume", self._takedown)
        self._devices = data, volume
        return data

    def argv(self) -> list[str]:
        """The serving command, its mount left out."""
        spec = self.spec
        sizes = {"metadata": spec.metadata, "cache": spec.cache, "volume": spec.volume,
                 "block": spec.block}  # fmt: skip
        flash_model = flashdev.model_argument(self._flash_model, self._folder, "flash")
        return [
            "tier", *self.origin.model_words("--origin-model"),
            "--origin", str(self.origin.lay_out(self._takedown)),
            "--flash", str(self._flash), "--flash-model", flash_model,
            *(word for name, size in sizes.items() for word in (f"--{name}", str(int(size)))),
            "--policy", spec.policy, "--mode", spec.mode, "--control", str(self.control),
            "--volatile",
        ]  # fmt: skip

    def warm(
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
        return Warmup("insert", Bytes(done["bytes"]), done["seconds"], spent, origin_rate,
                      sampled, differing)  # fmt: skip

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
        return _ask_counters(self.machine, self.control)

    def parse(self, line: str) -> Counters:
        """Read the engine's counters.

        :raises TierFailedError: it answered with an error, or not at all.
        :raises ValueError: a field is missing or unknown.
        """
        return _serving(line).counters

    def counters(self) -> Counters:
        return self.parse(self.machine.run(self.status_argv()).stdout)

    def resident(self) -> list[Run]:
        runs = self._ask({"resident": {}})[-1]["runs"]
        return [Run(Blocks(start), Blocks(count)) for start, count in runs]

    def flush(
        self,
        progress: Callable[[Blocks], None] = lambda _: None,
        *,
        going: bool = False,  # noqa: ARG002 - the engine flushes without any other change
    ) -> int:
        def on_reply(reply: dict[str, Any]) -> None:
            if "left" in reply:
                progress(Blocks(reply["left"]))

        flushed: int = self._ask({"flush": {}}, on_reply)[-1]["flushed"]
        return flushed

    def destroy(self) -> None:
        if self._devices is not None:
            self.flush()
        self.discard()

    def discard(self) -> None:
        self._devices = None
        self._takedown.undo(self._mark)

    def _ask(
        self, what: dict[str, Any], on_reply: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> list[dict[str, Any]]:
        """Ask the engine; returns all it answers."""
        replies: list[dict[str, Any]] = []

        def on_line(line: str) -> None:
            replies.append(_checked(line))
            on_reply(replies[-1])

        argv = [str(flashdev.program(self._local)), "ask", str(self.control), json.dumps(what)]
        self._local.run(argv, timeout_s=_WARM_TIMEOUT_S, on_line=on_line)
        return replies


def serving(machine: Machine, folder: Path) -> Serving | None:
    """The engine whose control socket lies in a folder; None where none answers."""
    if not (folder / CONTROL).exists():
        return None
    said = machine.run(_ask_counters(machine, folder / CONTROL), check=False)
    return _serving(said.stdout) if said.rc == 0 else None


def _ask_counters(machine: Machine, control: Path) -> list[str]:
    return [flashdev.on(machine), "ask", str(control), '{"counters": {}}']


def _serving(line: str) -> Serving:
    reply = _checked(line)
    wrong = {*_EVENTS, *_LEVELS, *_OTHERS}.symmetric_difference(reply)
    if wrong:
        raise ValueError(f"the tier's counters: {', '.join(sorted(wrong))} missing or unknown")
    levels = {name: Blocks(reply[name]) for name in _LEVELS}
    events = {name: reply[name] for name in _EVENTS}
    counters = Counters(**events, **levels)
    return Serving(counters, Bytes(reply["block_bytes"]), reply["policy"], reply["mode"])


def _checked(line: str) -> dict[str, Any]:
    if line.strip() == "Fail":
        raise TierFailedError("the tier's engine does not answer: is it gone?")
    try:
        reply: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        raise ValueError(f"not an answer of the tier's engine: {line!r}") from None
    if "error" in reply:
        raise TierFailedError(f"the tier's engine says: {reply['error']}")
    return reply
