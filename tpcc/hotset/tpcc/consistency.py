"""The twelve consistency conditions of clause 3.3.2: did every transaction do all it should?

The specification asks for the first four; the others find what those miss, such as
a delivery that forgot the customer. The queries read whole tables: some seconds per
ten warehouses in memory, so check after a measurement, not within it.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from hotset.tpcc.database import Database, Row, Session
from hotset.tpcc.schema import batches

_TITLE = re.compile(r"^-- (\d+): (.+)$", re.MULTILINE)
_LIMIT = 3


@dataclass(frozen=True, slots=True)
class ConditionResult:
    """One condition: how many keys violate it, and the first of them with the differing values."""

    number: int
    title: str
    violations: int
    examples: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        """No row violates it."""
        return self.violations == 0


def check(
    database: Database, session: Session, numbers: Collection[int] = range(1, 13)
) -> list[ConditionResult]:
    """Check the conditions of `sql/<engine>/consistency.sql` (all twelve, or some), in order."""
    queries = batches(database.engine, "consistency")
    return [_condition(queries[number - 1], session) for number in sorted(numbers)]


def _condition(sql: str, session: Session) -> ConditionResult:
    title = _TITLE.search(sql)
    if title is None:
        raise ValueError(f"a consistency query lacks its title line: {sql[:80]!r}")
    rows = session.query(sql)
    return ConditionResult(int(title[1]), title[2], len(rows), tuple(rows[:_LIMIT]))
