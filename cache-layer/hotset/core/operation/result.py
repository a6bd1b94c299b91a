"""What operations return. A result has three forms: for programs, for spreadsheets, for people.

The first two come from its record, a dataclass (`hotset.core.record`): none writes JSON itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, final, get_args

from ..record import columns_of, document_of, types_of

if TYPE_CHECKING:
    from rich.console import Console

Found = TypeVar("Found")


class Result(ABC):
    """What an operation found or did."""

    __slots__ = ()
    rows: ClassVar[str] = ""
    """The list in the record whose entries are the lines of CSV; none: the record is the line."""

    @classmethod
    @abstractmethod
    def record(cls) -> type[Any]:
        """The dataclass or model that describes what :meth:`document` holds."""

    @abstractmethod
    def recorded(self) -> Any:  # noqa: ANN401 - of the type that record() tells
        """What was found, as a :meth:`record`."""

    @final
    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return document_of(self.recorded())

    @abstractmethod
    def show(self, console: Console) -> None:
        """Write it for people."""

    def csv(self) -> str:
        """Rows with a header: the single values of the record."""
        from ..text import csv_text

        found, kind = self.document(), self.record()
        lines = [found]
        if self.rows:
            lines, kind = found[self.rows], get_args(types_of(kind)[self.rows])[0]
        columns = [name for name in columns_of(kind) if name != "schema_version"]
        return csv_text(columns, ([_cell(line[name]) for name in columns] for line in lines))

    def failure(self) -> Exception | None:
        """What the result amounts to, where that is a failure although there is a result."""
        return None

    def figures(self) -> Mapping[str, str]:
        """The values that one asks for first, by their names, in words."""
        return {}


def _cell(value: object) -> object:
    return "; ".join(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Recorded(Result, Generic[Found]):
    """A result that is no more than its record, which belongs to its subject."""

    found: Found

    def recorded(self) -> Found:
        return self.found


@dataclass(frozen=True, slots=True)
class Lines(Result):
    """A text and nothing else, such as a script, a unit or the commands of a dry run; what was
    done was told by messages. It has one form only, and is its own record."""

    lines: tuple[str, ...] = ()

    @classmethod
    def record(cls) -> type[Lines]:
        return Lines

    def recorded(self) -> Lines:
        return Lines(self.lines)

    def show(self, console: Console) -> None:
        if self.lines:
            write(console, "\n".join(self.lines))

    def csv(self) -> str:
        return "\n".join(self.lines)


def write(console: Console, text: str) -> None:
    """A text as it is, whatever the console's width."""
    console.file.write(text if text.endswith("\n") else text + "\n")
