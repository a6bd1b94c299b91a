"""What a walk found: a row a step, with what was due and whether it came so."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from hotset.core.errors import HotsetError


class UnmetError(Exception):
    """What a step came to is not what was due; the message says what it was."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``found``: what it came to, in words."""

    part: str
    what: str
    due: str
    found: str
    met: bool
    seconds: float


@dataclass(slots=True)
class Record:
    """The steps until now; each is told on standard error as well.

    :ivar part: of the walk, to which the next steps belong.
    """

    steps: list[Step] = field(default_factory=list)
    part: str = ""
    _found: list[str] = field(default_factory=list)

    def note(self, found: str) -> None:
        """Say what the step that runs has come to."""
        self._found.append(found)

    @contextmanager
    def step(self, what: str, due: str) -> Iterator[None]:
        """A step, which comes to what :meth:`note` is told within it. One that fails does not end
        the walk."""
        found, begun, met = self._found, time.monotonic(), True
        found.clear()
        try:
            yield
        except (UnmetError, AssertionError, HotsetError, OSError, ValueError) as error:
            found.append(f"{type(error).__name__}: {error}" if str(error) else repr(error))
            met = False
        text = "; ".join(found) or "so it is"
        step = Step(self.part, what, due, text, met, time.monotonic() - begun)
        self.steps.append(step)
        mark = "met" if met else "UNMET"
        print(f"{mark:5} {step.seconds:6.1f} s  {what}: {text}", file=sys.stderr, flush=True)

    @contextmanager
    def in_part(self, name: str) -> Iterator[None]:
        """A part of the walk; one that cannot go on is a step that is not met."""
        self.part = name
        try:
            yield
        except (UnmetError, AssertionError, HotsetError) as error:
            with self.step("the rest of this part", "walked"):
                raise UnmetError(str(error)) from None

    @property
    def all_met(self) -> bool:
        return bool(self.steps) and all(step.met for step in self.steps)


def table(steps: Sequence[Step]) -> str:
    """The steps as Markdown."""
    lines = ["| | step | due | found | |", "|---|---|---|---|---|"]
    part = ""
    for step in steps:
        shown = [
            step.part if step.part != part else "",
            step.what,
            step.due,
            _cell(step.found),
            "met" if step.met else "**unmet**",
        ]
        lines.append(f"| {' | '.join(shown)} |")
        part = step.part
    return "\n".join(lines)


def _cell(text: str) -> str:
    one = " ".join(text.split()).replace("|", "\\|")
    return one if len(one) <= 300 else f"{one[:299]}…"
