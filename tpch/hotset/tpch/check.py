"""Does a database hold TPC-H whole, and does it answer as another engine does?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.core.errors import ThresholdError
from hotset.core.record import Versioned, derived
from hotset.core.sql import Refused, Row, TimedOut
from hotset.core.words import csv_text

from . import answers, data, load, queries, reference, schema
from .answers import Comparison
from .database import Database, Session
from .record import LoadProgress

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.reports.render.page import Page


@dataclass(frozen=True, slots=True)
class TableCheck:
    """Rows that a table holds, and rows that were generated for it (clause 4.2.5)."""

    name: str
    rows: int
    expected: int

    @property
    def title(self) -> str:
        """Subject of the check."""
        return self.name

    @property
    def holds(self) -> bool:
        return self.rows == self.expected


@dataclass(frozen=True, slots=True)
class ReferenceCheck:
    """Rows whose foreign key (clause 1.4.2.3) finds nothing."""

    name: str
    orphans: int

    @property
    def title(self) -> str:
        """Subject of the check."""
        return self.name

    @property
    def holds(self) -> bool:
        return self.orphans == 0


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """One query's answer, with the validation parameters, beside DuckDB's."""

    number: int
    seconds: float
    rows: int
    comparison: Comparison

    @property
    def title(self) -> str:
        """Subject of the check."""
        return f"query {self.number}"

    @property
    def holds(self) -> bool:
        return self.comparison.verdict in ("equal", "within tolerance")


@dataclass(frozen=True)
class TpchCheck(Versioned):
    """All that was looked at."""

    scale: float
    tables: tuple[TableCheck, ...]
    references: tuple[ReferenceCheck, ...]
    answers: tuple[AnswerCheck, ...]

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.result(self.page(), console)

    def page(self) -> Page:
        """A line for each thing that was checked, and how many are wrong."""
        from hotset.reports.render.page import Table, of_table

        rows = list(self._rows())
        wrong = [row for row in rows if row[2] in ("wrong", "different", "failed")]
        text = f"{len(wrong)} of {len(rows)} checks failed"
        table = Table(
            f"TPC-H at scale {self.scale:g}",
            ("", "found", "verdict", "detail"),
            tuple((what, f"{number:,}", verdict, detail) for what, number, verdict, detail in rows),
            sentences="detail",
        )
        judged = text if wrong else f"all {len(rows)} checks hold"
        return of_table(table, judged=((judged, not wrong),))

    def csv(self) -> str:
        """A line for each thing that was checked."""
        return csv_text(("what", "found", "verdict", "detail"), self._rows())

    def failure(self) -> Exception | None:
        return None if self.holds else ThresholdError("the database is not as TPC-H requires")

    def _rows(self) -> Iterator[tuple[str, int, str, str]]:
        for table in self.tables:
            detail = "" if table.holds else f"{table.expected:,} expected"
            yield f"rows of {table.name}", table.rows, "ok" if table.holds else "wrong", detail
        for orphans in self.references:
            verdict = "ok" if orphans.holds else "wrong"
            yield f"orphans {orphans.name}", orphans.orphans, verdict, ""
        for answer in self.answers:
            comparison = answer.comparison
            yield f"query {answer.number}", answer.rows, comparison.verdict, comparison.difference

    @derived
    def holds(self) -> bool:
        """Nothing is wrong."""
        return (
            all(table.holds for table in self.tables)
            and all(reference.holds for reference in self.references)
            and all(answer.holds for answer in self.answers)
        )


Part = TableCheck | ReferenceCheck | AnswerCheck


def check(
    database: Database,
    scale: float | None,
    folder: Path,
    *,
    numbers: Sequence[int] = queries.ALL,
    timeout_s: float | None = None,
    on_data: Callable[[LoadProgress], None] = lambda _: None,
    observe: Callable[[Part], None] = lambda _: None,
) -> TpchCheck:
    """Count rows, look for broken references, and compare answers on the same data.

    :param scale: what the database should hold; None: whatever it holds.
    :param folder: where `load` keeps the text files; made again when they are gone.
    :raises SetupError: the scale is not loaded. Also what `data.prepare` and a session raise.
    """
    with closing(database.session()) as session:
        made = data.prepare(folder, schema.require_scale(session, scale), on_data)
        rows = load.counts(database, session)
        tables = [TableCheck(name, rows[name], made.rows[name]) for name in schema.TABLES]
        for table in tables:
            observe(table)
        broken = session.query(schema.statement(database.engine, "integrity"), timeout_s)
        orphans = sorted((str(name), int(str(count))) for name, count in broken)
        references = [ReferenceCheck(name, count) for name, count in orphans]
        for result in references:
            observe(result)
        checks = []
        for number, expected in reference.answers(made, numbers):
            text = queries.text(database.engine, number, made.scale)
            checks.append(_answer(session, number, text, expected, timeout_s))
            observe(checks[-1])
    return TpchCheck(made.scale, tuple(tables), tuple(references), tuple(checks))


def _answer(
    session: Session, number: int, text: str, expected: list[Row], timeout_s: float | None
) -> AnswerCheck:
    started = time.monotonic()
    try:
        rows = session.query(text, timeout_s)
    except (Refused, TimedOut) as error:
        return AnswerCheck(number, time.monotonic() - started, 0, Comparison("failed", str(error)))
    seconds = time.monotonic() - started
    return AnswerCheck(number, seconds, len(rows), answers.compare(number, expected, rows))
