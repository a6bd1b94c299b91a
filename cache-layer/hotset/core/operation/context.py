"""What an operation may use beside its request."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import HotsetError, RequestError
from ..paths import through_links, write_whole

if TYPE_CHECKING:
    from ..progress import Reporter
    from .result import Result


class OutputError(HotsetError):
    """A file could not be written once there was something to write.

    :ivar output: the file.
    """

    def __init__(self, output: Path, error: OSError) -> None:
        super().__init__(f"{output} could not be written: {error.strerror or error}")
        self.output = output


def check_output(output: Path | None, field: str = "output") -> None:
    """See that a file can be written, and leave it as it is.

    :raises RequestError: it cannot; the message says why.
    """
    if output is None:
        return
    try:
        place = through_links(output)
        if place.is_dir() or not place.parent.is_dir():
            raise RequestError(f"{output} is not a file in a folder", field=field)
        if place.is_file():
            place.open("ab").close()
        elif not place.exists():  # to open and close a pipe would end it for who reads
            tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise RequestError(f"{output} cannot be written: {error.strerror}", field=field) from None


def _silent() -> Reporter:
    from ..progress import Reporter

    return Reporter(quiet=True)


def _nobody(*texts: str) -> None:
    """Nobody listens, or can be asked."""


def _nobody_minds(texts: Iterable[str], field: str) -> None:
    """The command line may name any file."""


def _nobody_measures(wanted: int, field: str) -> None:
    """The command line may fill the disk."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where progress goes.

    :ivar report: long work says here how far it is.
    :ivar message: takes a sentence for who called: what was done, or is worth knowing.
    :ivar require_files: refuses the files that another one names, of the field that is given, where
        who asks may not name them.
    :ivar unwritten: what `write` could not write; whoever shows the result says so afterwards.
    :ivar require_room: refuses to make files of so many bytes here, for the field that is given,
        where who asks has to leave room.
    :ivar ask_for_name: has the name typed of what is about to be overwritten, which is described:
        of those who can be asked. It raises where another one is typed.
    """

    report: Reporter = field(default_factory=_silent)
    message: Callable[[str], None] = _nobody
    ask_for_name: Callable[[str, str], None] = _nobody
    require_files: Callable[[Iterable[str], str], None] = _nobody_minds
    require_room: Callable[[int, str], None] = _nobody_measures
    unwritten: list[HotsetError] = field(default_factory=list)

    def write(self, output: Path | None, text: str) -> None:
        """Write a file beside the result, where one was asked for. One that cannot be written costs
        nobody the result: see ``unwritten``."""
        self.unwritten[:] = [
            one
            for one in self.unwritten
            if not (isinstance(one, OutputError) and one.output == output)
        ]
        if output is not None:
            try:
                write_whole(output, text)
            except OSError as error:
                self.unwritten.append(OutputError(output, error))

    def outcome(self, result: Result) -> None:
        """
        :raises Exception: what a result that was shown amounts to, or the file that lacks it.
        """
        failure = result.failure()
        found: list[Exception] = [*self.unwritten]
        found = found if failure is None else [failure, *found]
        for other in found[1:]:
            found[0].add_note(str(other))
        if found:
            raise found[0]

    def note(self, text: str) -> None:
        """What is worth knowing beside the result."""
        self.message(f"note: {text}")
