"""Every verb of a tier's life, cut short at each of its steps, alone or with the power.

After a kill the verb's next command is a user's. After a power cut the server boots, with systemd
and the unit that ``create`` installed; what it mounts is written to, as by a database; then comes
what a user would do next. Every file has to be there afterwards, through the tier and, once it is
detached, on the origin alone, and nothing of hotset's on the server.

Verbs that work on a mounted tier are killed with a writer at work, too, who writes records with
fsync all the while: through the kill and what comes next, or until the power cut. Every record that
was acknowledged has to be there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from hotset.tier.base import TierKind

from .bench import Bench, Verb, boot_fresh
from .mortal import CutOff, KillableMachine, Killed, cut_power_after, kill_after
from .systemd import Server

Ending = Literal["kill", "kill within", "reboot", "power cut", "power cut within"]
"""``reboot``: a kill, and an orderly shutdown and boot after it."""
ON_LINE: tuple[Verb, ...] = ("flush", "grow", "shrink", "set")
"""Those that work on a tier that is mounted."""
MENDED: tuple[TierKind, ...] = ("dm-cache",)
"""Whose metadata ``repair`` can mend with writes on the flash; a cache that was clean begins empty,
of every kind (``repair clean``)."""
KINDS: tuple[TierKind, ...] = get_args(TierKind)
ENDINGS: tuple[Ending, ...] = get_args(Ending)
_WITHIN: tuple[Ending, ...] = ("kill within", "power cut within")


@dataclass(slots=True)
class Outcome:
    """What came of one verb, killed at every step that was tried.

    :ivar amid: how many of the kills hit a command before it ended.
    :ivar mounted: after how many the boot mounted the file system.
    :ivar records: how many a writer had acknowledged, in all kills; None: there was no writer.
    """

    kind: TierKind
    verb: Verb
    ending: Ending
    steps: int = 0
    tried: list[int] = field(default_factory=list)
    amid: int = 0
    mounted: int = 0
    failures: list[str] = field(default_factory=list)
    records: int | None = None

    def line(self) -> str:
        text = "all files as written" if not self.failures else f"{len(self.failures)} FAILED"
        if self.records is not None:
            text += f" ({self.records} records by a writer at work)"
        # After a step, or before the first.
        moments = self.steps if self.ending in _WITHIN else self.steps + 1
        amid = f" ({self.amid} amid a command)" if self.ending in _WITHIN else ""
        return (
            f"{self.kind:9}  {self.verb:12}  {self.ending:16}  cut short at {len(self.tried):3} of"
            f" {moments:3} moments{amid}: {text}"
        )


def run(
    server: Server,
    kinds: Sequence[TierKind],
    verbs: Sequence[Verb],
    endings: Sequence[Ending],
    chosen: Callable[[int], Sequence[int]],
    say: Callable[[str], None],
    follow: Callable[[str], None] = lambda _: None,
    *,
    writers: bool = False,
) -> Iterator[Outcome]:
    """
    :param server: of :func:`.bench.server`; off before and after.
    :param writers: have one at work; only for verbs of ``ON_LINE``.
    :param chosen: of so many steps, those to be killed after.
    :param say: gets a line a verb, and one a failure.
    :param follow: gets a line a kill.
    """
    for kind in kinds:
        for verb in verbs:
            if verb == "repair" and kind not in MENDED:
                continue
            for ending in endings:
                outcome = Outcome(kind, verb, ending, records=0 if writers else None)
                _verb(server, outcome, chosen, follow)
                say(outcome.line())
                for failure in outcome.failures:
                    say(f"    {failure}")
                yield outcome


def _verb(
    server: Server,
    outcome: Outcome,
    chosen: Callable[[int], Sequence[int]],
    follow: Callable[[str], None],
) -> None:
    seconds, failure = _uncut(server, outcome)
    outcome.steps = len(seconds)
    if failure:
        outcome.failures.append(f"without a kill: {failure}")
    for step in chosen(outcome.steps):
        if outcome.ending in _WITHIN and step == outcome.steps:
            continue
        begun = time.monotonic()
        cut_off = _cut_off(server, outcome, seconds[step]) if outcome.ending in _WITHIN else None
        mortal, failure = _kill(server, outcome, step, cut_off)
        outcome.tried.append(step)
        outcome.amid += mortal.amid is not None
        last = mortal.ran[-1] if mortal.ran else "(nothing)"
        where = f"after step {step}, `{last}`"
        if mortal.amid:
            where += f", amid `{mortal.amid}`"
        spent = time.monotonic() - begun
        head = f"{outcome.kind} {outcome.verb} {outcome.ending}"
        follow(f"{head} {where}: {failure or 'as written'} ({spent:.1f} s)")
        if failure:
            outcome.failures.append(f"{where}: {failure}")


def _uncut(server: Server, which: Outcome) -> tuple[list[float], str | None]:
    """How long each step of the verb takes, and what is wrong after all of them."""
    bench = _fresh(server, which)
    try:
        before = bench.prepare()
        writer = bench.writer() if which.records is not None else None
        alive = KillableMachine(server.machine, None)
        bench.perform(alive)
        return alive.seconds, bench.verdict(before, writer)
    finally:
        server.power_cut()


def _kill(
    server: Server, which: Outcome, step: int, cut_off: CutOff | None
) -> tuple[KillableMachine, str | None]:
    """One kill, and what is wrong after it."""
    bench = _fresh(server, which)
    try:
        before = bench.prepare()
        writer = bench.writer() if which.records is not None else None
        mortal = KillableMachine(server.machine, step, cut_off)
        with suppress(Killed):
            bench.perform(mortal)
        if which.ending not in ("kill", "kill within"):
            _reboot(server, which)
            if writer is not None:
                writer.end()
            later = bench.use()
            which.mounted += bool(later)
            before |= later
        failure = bench.verdict(before, writer)
        if writer is not None:
            which.records = (which.records or 0) + writer.acknowledged
        return mortal, failure
    finally:
        server.power_cut()


def _fresh(server: Server, which: Outcome) -> Bench:
    boot_fresh(server)
    return Bench(server, which.kind, which.verb)


def _reboot(server: Server, which: Outcome) -> None:
    if which.ending == "reboot":
        server.shut_down()
    else:
        server.power_cut()
    server.boot()


def _cut_off(server: Server, which: Outcome, usual_s: float) -> CutOff:
    """At a moment that is the same in every campaign, as far as the machine is as fast."""
    drawn = random.Random(f"{which.kind} {which.verb} {len(which.tried)}")
    after_s = usual_s * drawn.random()
    if which.ending == "kill within":
        return kill_after(after_s)
    return cut_power_after(server.guest, after_s)
