"""A report as it is shown: sections of sentences, tables and drawings, which each backend lays out
in its own way (terminal, Markdown, HTML)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:  # a list of runs does not wait for what draws
    from ..model.windows import Caveat
    from .vega import Spec

Group: TypeAlias = tuple[str, Sequence[tuple[str, str]]]
"""Its name, and each (what, figure)."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing, made where it is shown, and what it says in words."""

    key: str
    draw: Callable[[], Spec]
    alt: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """
    :ivar names: how many of the first columns hold text; those without a head do as well.
    :ivar sentences: the column whose cells are sentences.
    :ivar sums: the rows that sum up those above.
    :ivar wide: columns that a narrow terminal leaves out, the first one first.
    :ivar bars: of each row, which a terminal draws beside it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentences: str = ""
    names: int = 1
    sums: frozenset[int] = frozenset()
    wide: tuple[str, ...] = ()
    bars: tuple[float, ...] = ()

    def is_text(self, at: int) -> bool:
        """True if a column's cells are text."""
        name = self.columns[at]
        return at < self.names or not name or name == self.sentences


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what belongs below it.

    :ivar notes: sentences that hold for figures and drawings.
    :ivar reading: how the drawing is read.
    :ivar panels: they share a time axis if there are several.
    :ivar terminal: what of it a terminal shows.
    """

    key: str
    title: str
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    panels: tuple[Panel, ...] = ()
    reading: str = ""
    legend: tuple[str, ...] = ()
    terminal: Literal["all", "notes", "nothing"] = "all"


@dataclass(frozen=True, slots=True)
class Page:
    """
    :ivar about: what it is of, and when.
    :ivar state: the state of a run that is not complete.
    :ivar judged: what was to hold, in words, and whether it does.
    :ivar conditions: what all its figures were taken under.
    :ivar verdicts: what is to be said of the answer at once.
    :ivar gaps: what is missing.
    :ivar caveats: what limits the answer.
    :ivar notes: how it is to be read.
    :ivar setup: how it was measured.
    :ivar document: what it was made of.
    """

    title: str
    about: tuple[str, ...]
    headlines: tuple[str, ...]
    sections: tuple[Section, ...]
    document: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    state: str = ""
    judged: tuple[tuple[str, bool], ...] = ()
    verdicts: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    setup: tuple[Group, ...] = ()
    command: str = ""


def of_table(
    table: Table, notes: tuple[str, ...] = (), judged: tuple[tuple[str, bool], ...] = ()
) -> Page:
    """Make the page of a result that is a table."""
    section = Section("result", table.caption, notes, (table,))
    return Page("", (), (), (section,), {}, judged=judged)
