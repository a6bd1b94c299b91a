"""What a benchmark came to, in the words and tables that the command line prints of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.errors import HotsetError
from hotset.core.record import record_of
from hotset.core.words import plural


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


def _tpcc_run(document: object) -> Told:
    from hotset.bench import tpcc_report
    from hotset.bench.tpcc_report import TpccConditions, TpccRun

    found = record_of(TpccRun, document)
    more = _each(found.curve.points if found.curve else (), tpcc_report.run_parts)
    if found.conditions:
        table = tpcc_report.conditions_table(TpccConditions(found.conditions))
        more.append((f"The {len(found.conditions)} conditions", parts([table])))
    judged, measured = tpcc_report.judged(found), tpcc_report.measured(found)
    return Told(parts(judged), parts(measured), more)


def _sql_run(document: object) -> Told:
    from hotset.bench.sql import report
    from hotset.bench.sql.report import SqlRun

    found = record_of(SqlRun, document)
    more = _each(found.curve.points if found.curve else (), report.run_parts)
    return Told(parts(report.judged(found)), parts(report.measured(found)), more)


def _each(
    points: Iterable[Any], run: Callable[[Any], Iterable[RenderableType]]
) -> list[tuple[str, list[Part]]]:
    """Each number of users of a curve, as if it were a run of its own."""
    return [
        (plural(point.result.options.users, "user"), parts(run(point)))
        for point in points
        if point.result is not None
    ]


def _tpch_run(document: object) -> Told:
    from hotset.bench import tpch_report
    from hotset.bench.tpch_report import TpchRun

    found = record_of(TpchRun, document)
    return Told(parts(tpch_report.judged(found)), parts(tpch_report.measured(found)))


def _tpcc_check(document: object) -> Told:
    from hotset.bench import tpcc_report
    from hotset.bench.tpcc_report import TpccConditions

    found = record_of(TpccConditions, document)
    table = tpcc_report.conditions_table(found)
    return Told(parts([tpcc_report.consistency(found.conditions)]), parts([table]))


def _tpch_check(document: object) -> Told:
    from hotset.bench import tpch_report
    from hotset.bench.tpch_report import TpchCheck

    return Told((), parts([tpch_report.check_table(record_of(TpchCheck, document))]))


_TELLERS: Mapping[str, Callable[[object], Told]] = {
    "tpcc run": _tpcc_run,
    "tpcc check": _tpcc_check,
    "tpch run": _tpch_run,
    "tpch check": _tpch_check,
    "sql run": _sql_run,
}
