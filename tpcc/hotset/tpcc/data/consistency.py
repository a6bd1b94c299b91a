"""The twelve consistency conditions of clause 3.3.2: did every transaction do all it should?

The specification asks for the first four; the others find what those miss, such as
a delivery that forgot the customer. The queries read whole tables: some seconds per
ten warehouses in memory, so check after a measurement, not within it.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from hotset.core.errors import HotsetError
from hotset.core.sql import Row

from ..database import Database, Session
from ..schema import batches

_TITLE = re.compile(r"^-- (\d+): (.+)$", re.MULTILINE)
_LIMIT = 3


ALL = tuple(range(1, 13))
"""The conditions of clause 3.3.2."""


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

    def __str__(self) -> str:
        """One line, with an example where there is one."""
        if self.holds:
            return f"condition {self.number} holds ({self.title})"
        example = ", ".join(str(value) for value in self.examples[0])
        times = f"{self.violations:,} violation{'s' if self.violations > 1 else ''}"
        return f"condition {self.number} ({self.title}): {times}, such as ({example})"


class Violated(HotsetError):
    """Conditions do not hold: a transaction did not do all it should, or somebody else wrote."""

    def __init__(self, broken: list[ConditionResult]) -> None:
        super().__init__("")
        self.args = (broken,)
        self.broken = broken

    def __str__(self) -> str:
        return "the database is inconsistent: " + "; ".join(map(str, self.broken))


def check(
    database: Database,
    session: Session,
    numbers: Collection[int] = ALL,
    observe: Callable[[ConditionResult], None] = lambda _: None,
) -> list[ConditionResult]:
    """Check the conditions of `sql/<engine>/consistency.sql` (all twelve, or some), in order.

    They cover every warehouse of the database. `observe` is told of each as it is checked.
    """
    queries = batches(database.engine, "consistency")
    results = []
    for number in sorted(numbers):
        results.append(_condition(queries[number - 1], session))
        observe(results[-1])
    return results


def require(results: list[ConditionResult]) -> None:
    """Raise Violated unless all hold."""
    broken = [result for result in results if not result.holds]
    if broken:
        raise Violated(broken)


def _condition(sql: str, session: Session) -> ConditionResult:
    title = _TITLE.search(sql)
    if title is None:
        raise ValueError(f"a consistency query lacks its title line: {sql[:80]!r}")
    rows = session.query(sql)
    return ConditionResult(int(title[1]), title[2], len(rows), tuple(rows[:_LIMIT]))
