"""Progress of a long job: on a terminal a live line, elsewhere plain lines, and for a program that
runs hotset (HOTSET_PROGRESS=json) JSON, one object a line.

The objects have ``at``, seconds since the start, and one of ``say``, ``task``, ``figure``,
``error`` (text) and ``tick`` (a second of TPC-C). Figures and ticks have ``done``, ``total``,
``unit`` and ``eta_s`` where these are known. An error that hotset foresees has a ``message`` of its
own, the ``field`` it is about, or null, the HTTP ``status`` and the ``type`` it is, and
``remedies``.

Everything goes to standard error; standard output is for data.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from . import errors
from .errors import FAILED, HotsetError, field_of, remedies_of

if TYPE_CHECKING:
    from rich.status import Status

_PLAIN_INTERVAL_S = 5.0
_JSON_INTERVAL_S = 0.5
_BEGUN = time.monotonic()


def is_read_by_a_program() -> bool:
    """True if a program reads the messages."""
    return os.environ.get("HOTSET_PROGRESS") == "json"


def emit(**fields: Any) -> None:  # noqa: ANN401 - what JSON has
    """Say one thing, at once."""
    line = json.dumps({"at": round(time.monotonic() - _BEGUN, 1), **fields}, ensure_ascii=False)
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def emit_error(error: BaseException) -> int:
    """Say why it failed; returns the exit code."""
    if isinstance(error, ExceptionGroup):
        for exception in error.exceptions:
            emit(error=f"{error.message}: {exception}")
        return FAILED
    if not isinstance(error, HotsetError):
        emit(error=f"unexpected {type(error).__name__}: {error}")
        return FAILED
    emit(
        error=errors.of_api(error),
        message=str(error),
        field=field_of(error),
        status=error.http_status,
        type=errors.type_of(error),
        remedies=[asdict(remedy) for remedy in remedies_of(error)],
    )
    for note in getattr(error, "__notes__", ()):
        emit(error=str(note))
    return error.exit_code


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a step is.

    :ivar total: in the same ``unit`` as ``done``.
    :ivar eta_s: seconds that it will still take.
    """

    done: float | None = None
    total: float | None = None
    unit: str | None = None
    eta_s: float | None = None

    @classmethod
    def by_rate(cls, done: float, total: float, unit: str, seconds: float) -> Self:
        """By the rate until now.

        >>> Measured.by_rate(25, 100, "bytes", 10.0)
        Measured(done=25, total=100, unit='bytes', eta_s=30.0)
        """
        left = seconds * (total - done) / done if done > 0 else None
        return cls(done, total, unit, None if left is None else round(max(0.0, left), 1))

    @property
    def left(self) -> str:
        """How long it will still take, to be said after what is done; empty where nobody knows.

        >>> Measured.by_rate(25, 100, "bytes", 10.0).left
        ', ETA 30 s'
        """
        return "" if self.eta_s is None else f", ETA {self.eta_s:.0f} s"

    def as_dict(self) -> dict[str, Any]:
        """Without what is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Step(Protocol):
    """How far long work is, or a part of it that is done."""

    def show(self, report: Reporter) -> None:
        """Tell it."""


class Reporter:
    """Says what happens; chosen once as quiet, live, plain or for a program."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self.json = is_read_by_a_program() and not quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.live = self.console.is_terminal and not quiet and not self.json
        self._begun = time.monotonic()
        self._status: Status | None = None
        self._last_plain = 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._begun

    def say(self, text: str) -> None:
        """One line that stays, with the seconds since the start."""
        if self.json:
            emit(say=text)
            return
        self.console.print(f"[dim]{self.seconds:6.1f} s[/dim]  ", end="")
        self.console.print(text, markup=False)

    def warn(self, text: str) -> None:
        """Print a warning, even where messages are switched off."""
        if is_read_by_a_program():
            emit(say=text)
        else:
            from rich.console import Console

            Console(stderr=True, highlight=False, soft_wrap=True).print(
                f"warning: {text}", markup=False
            )

    @contextmanager
    def task(self, text: str) -> Iterator[None]:
        """A step that takes a while: live figures on a terminal until it ends."""
        if self.json:
            emit(task=text)
            yield
            return
        self.say(text)
        if not self.live:
            yield
            return
        with self.console.status(text) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def figure(self, text: str, measured: Measured | None = None) -> None:
        """The running figure of the task at hand, and how far it is, where that is known."""
        if self._status is not None:
            self._status.update(text)
            return
        interval_s = _JSON_INTERVAL_S if self.json else _PLAIN_INTERVAL_S
        if self.live or time.monotonic() - self._last_plain < interval_s:
            return
        self._last_plain = time.monotonic()
        if self.json:
            emit(figure=text, **(measured or Measured()).as_dict())
        else:
            self.console.print(f"progress: {text}", markup=False)

    def on_step(self, step: Step) -> None:
        """A step of long work, as an observer of it."""
        step.show(self)


def to_stdout(text: str) -> None:
    """Data, as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
