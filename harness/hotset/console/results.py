"""What a benchmark came to, in the words and tables that the command line prints of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.errors import HotsetError
from hotset.core.record import record_of
from hotset.core.words import plural
from hotset.reports.model.document import RunDocument


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence. ``doubt``: of what does not hold, or makes values doubtful."""

    text: str
    strong: bool = False
    doubt: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """``figure``: it holds numbers."""

    name: str
    figure: bool


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first cell of a row names it."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def caption(self) -> str:
        """What its rows are of: the head of their names."""
        return self.columns[0].name


Part = Line | Grid


@dataclass(frozen=True, slots=True)
class Told:
    """A result as a page shows it.

    :ivar judged: whether what was asked for holds: conditions, thresholds.
    :ivar measured: the values, and what makes them doubtful.
    :ivar more: what one may open, by its title.
    """

    judged: Sequence[Part]
    measured: Sequence[Part]
    more: Sequence[tuple[str, Sequence[Part]]] = ()


class UnreadableError(HotsetError):
    """A result that this hotset cannot read; the message says why."""


def tell(operation: str, document: object) -> Told | None:
    """
    :param document: the result of a job, as JSON has it.
    :return: None: nobody tells results of this operation, or there is none.
    :raises UnreadableError: it is not as this hotset writes it.
    """
    teller = _TELLERS.get(operation)
    if teller is None or document is None:
        return None
    try:
        return teller(document)
    except ValueError as error:
        raise UnreadableError(f"it was written by another hotset: {error}") from None


def parts(renderables: Iterable[RenderableType]) -> list[Part]:
    """Texts and tables for a terminal as what a page shows.

    >>> parts([Group(Text("two rows", style="bold"))])
    [Line(text='two rows', strong=True, doubt=False)]
    """
    return [part for one in renderables for part in _parts(one)]


def _parts(one: RenderableType) -> list[Part]:
    from hotset.bench.window_report import DOUBT

    if isinstance(one, Group):
        return parts(one.renderables)
    if isinstance(one, Table):
        return [_grid(one)]
    if isinstance(one, Text):
        return [Line(one.plain, one.style == "bold", one.style == DOUBT)]
    raise TypeError(f"a {type(one).__name__} is neither text nor table")


def _grid(table: Table) -> Grid:
    columns = tuple(Column(_plain(one.header), one.justify == "right") for one in table.columns)
    cells = ([_plain(cell) for cell in one.cells] for one in table.columns)
    return Grid(columns, tuple(zip(*cells, strict=True)))


def _plain(cell: RenderableType) -> str:
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _windows(document: object) -> Told:
    from hotset.bench import tpcc_report, window_report

    found = record_of(RunDocument, document)
    windows = window_report.find_windows(found)
    more = [
        (plural(one.users or 0, "user"), parts(window_report.show_window(found, one)))
        for one in (windows if len(windows) > 1 else ())
    ]
    conditions = window_report.find_conditions(found)
    if conditions:
        table = tpcc_report.conditions_table(conditions)
        more.append((f"The {len(conditions)} conditions", parts([table])))
    judged, measured = window_report.show_verdicts(found), window_report.show_results(found)
    return Told(parts(judged), parts(measured), more)


def _tpch_run(document: object) -> Told:
    from hotset.bench import tpch_report
    from hotset.bench.tpch_report import TpchRun

    found = record_of(TpchRun, document)
    return Told(parts(tpch_report.judged(found)), parts(tpch_report.measured(found)))


def _tpcc_check(document: object) -> Told:
    from hotset.bench import tpcc_report
    from hotset.bench.tpcc_report import TpccConditions

    found = record_of(TpccConditions, document)
    table = tpcc_report.conditions_table(found.conditions)
    return Told(parts([tpcc_report.consistency(found.conditions)]), parts([table]))


def _tpch_check(document: object) -> Told:
    from hotset.bench import tpch_report
    from hotset.bench.tpch_report import TpchCheck

    return Told((), parts([tpch_report.check_table(record_of(TpchCheck, document))]))


_TELLERS: Mapping[str, Callable[[object], Told]] = {
    "tpcc run": _windows,
    "tpcc check": _tpcc_check,
    "tpch run": _tpch_run,
    "tpch check": _tpch_check,
    "sql run": _windows,
}
