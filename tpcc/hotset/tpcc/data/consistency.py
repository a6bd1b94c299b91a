"""The twelve consistency conditions of clause 3.3.2: did every transaction do all it should?

The specification asks for the first four; the others find what those miss, such as
a delivery that forgot the customer. The queries read whole tables: some seconds per
ten warehouses in memory, so check after a measurement, not within it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.core.errors import HotsetError
from hotset.core.record import Versioned
from hotset.reports.model.windows import Condition

from ..database import Database, Session
from ..schema import batches, unqualified

if TYPE_CHECKING:
    from rich.console import Console

_TITLE = re.compile(r"^-- (\d+): (.+)$", re.MULTILINE)
_LIMIT = 3


ALL = tuple(range(1, 13))
"""The conditions of clause 3.3.2."""


@dataclass(frozen=True)
class TpccConditions(Versioned):
    """The twelve conditions."""

    csv_rows = "conditions"

    conditions: tuple[Condition, ...]

    def show(self, console: Console) -> None:
        from hotset.reports.render import sections, terminal

        terminal.result(sections.of_conditions(self.conditions), console)

    def failure(self) -> Exception | None:
        broken = [condition for condition in self.conditions if not condition.holds]
        return Violated(broken) if broken else None


class Violated(HotsetError):
    """Conditions do not hold: a transaction did not do all it should, or somebody else wrote."""

    def __init__(self, broken: list[Condition]) -> None:
        super().__init__("")
        self.args = (broken,)
        self.broken = broken

    def __str__(self) -> str:
        return "the database is inconsistent: " + "; ".join(map(str, self.broken))


def check(
    database: Database,
    session: Session,
    numbers: Collection[int] = ALL,
    observe: Callable[[Condition], None] = lambda _: None,
    *,
    by_hammerdb: bool = False,
) -> list[Condition]:
    """Check the conditions of `sql/<engine>/consistency.sql` (all twelve, or some), in order, of
    hotset's own tables or of HammerDB's.

    They cover every warehouse of the database. `observe` is told of each as it is checked.
    """
    queries = batches(database.engine, "consistency")
    if by_hammerdb:
        queries = tuple(map(unqualified, queries))
    results = []
    for number in sorted(numbers):
        results.append(_condition(queries[number - 1], session))
        observe(results[-1])
    return results


def require(results: list[Condition]) -> None:
    """Raise Violated unless all hold."""
    broken = [result for result in results if not result.holds]
    if broken:
        raise Violated(broken)


def _condition(sql: str, session: Session) -> Condition:
    title = _TITLE.search(sql)
    if title is None:
        raise ValueError(f"a consistency query lacks its title line: {sql[:80]!r}")
    rows = session.query(sql)
    return Condition(
        number=int(title[1]),
        title=title[2],
        holds=not rows,
        violations=len(rows),
        examples=tuple(tuple(map(_scalar, row)) for row in rows[:_LIMIT]),
    )


def _scalar(value: object) -> int | float | str | None:
    return value if value is None or isinstance(value, int | float) else str(value)
