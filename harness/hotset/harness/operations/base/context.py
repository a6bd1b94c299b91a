"""What an operation may use beside its request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...terminal.progress import Reporter


def _silent() -> Reporter:
    from ...terminal.progress import Reporter

    return Reporter(quiet=True)


def _nobody(*texts: str) -> None:
    """Nobody listens, or can be asked."""


def _nobody_minds(texts: Iterable[str], field: str) -> None:
    """The command line may name any file."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where progress goes.

    :ivar report: long work says here how far it is.
    :ivar message: takes a sentence for who called: what was done, or is worth knowing.
    :ivar require_files: refuses the files that another one names, of the field that is given, where
        who asks may not name them.
    :ivar ask_for_name: has the name typed of what is about to be overwritten, which is described:
        of those who can be asked. It raises where another one is typed.
    """

    report: Reporter = field(default_factory=_silent)
    message: Callable[[str], None] = _nobody
    ask_for_name: Callable[[str, str], None] = _nobody
    require_files: Callable[[Iterable[str], str], None] = _nobody_minds

    def note(self, text: str) -> None:
        """What is worth knowing beside the result."""
        self.message(f"note: {text}")
