"""Answers of queries: one text per row whatever the engine, checksums, comparison.

Engines differ in types (an average is a decimal here, a double there, with more or fewer digits)
and in collation. So a number is rounded to the two decimals that clause 2.1.3.5 asks of averages
and ratios, half away from zero. It is first rounded to six, the fewest that an engine gives
(SQL Server's decimal division): a tie such as 25.505 then stays one where a double holds
25.504999999999999. Sums are exact decimals on all engines. Rows are sorted as texts, so that a
collation does not change a checksum; padding of CHAR columns is stripped. A query whose cut-off
(TOP 100) falls between rows of equal rank may rightly differ; at the validation parameters none
does.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Literal

from hotset.core.sql import Row, Value

from .queries import kinds

Verdict = Literal["equal", "within tolerance", "different", "failed"]

_SUM_TOLERANCE = Decimal(100)
_RATIO_TOLERANCE = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of comparing two answers; `difference` describes the first that counts."""

    verdict: Verdict
    difference: str = ""


def field(value: Value) -> str:
    """One value as text, alike on every engine.

    >>> field(7), field(Decimal("25.505")), field(25.504999999999999), field(-0.001)
    ('7.00', '25.51', '25.51', '0.00')
    >>> field("Brand#12  "), field(datetime(1995, 3, 5)), field(None)
    ('Brand#12', '1995-03-05', '(null)')
    """
    if value is None:
        return "(null)"
    if isinstance(value, str):
        return value.rstrip()
    if isinstance(value, date):
        return (value.date() if isinstance(value, datetime) else value).isoformat()
    with localcontext() as context:
        context.prec = 50
        context.rounding = ROUND_HALF_UP
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        rounded = exact.quantize(Decimal("1e-6")).quantize(Decimal("0.01"))
    return f"{abs(rounded) if rounded == 0 else rounded:f}"


def lines(rows: Sequence[Row]) -> list[str]:
    """All rows as texts, sorted."""
    return sorted("|".join(map(field, row)) for row in rows)


def checksum(rows: Sequence[Row]) -> str:
    """Sixteen hexadecimal digits that two answers share when their rows are alike."""
    return hashlib.sha256("\n".join(lines(rows)).encode()).hexdigest()[:16]


def compare(number: int, expected: Sequence[Row], actual: Sequence[Row]) -> Comparison:
    """Hold an answer of query `number` against the expected one, after clause 2.1.3.5.

    "equal": all texts are alike. "within tolerance": sums are within 100, averages and ratios
    within 1 %, everything else alike.
    """
    if len(expected) != len(actual):
        return Comparison("different", f"{len(actual)} rows, {len(expected)} expected")
    if lines(expected) == lines(actual):
        return Comparison("equal")
    how = kinds(number)
    for wanted, got in zip(_by_exact(how, expected), _by_exact(how, actual), strict=True):
        if len(got) != len(how):
            return Comparison("different", f"{len(got)} columns, {len(how)} expected")
        for place, kind in enumerate(how):
            if not _alike(kind, wanted[place], got[place]):
                return Comparison(
                    "different",
                    f"column {place + 1}: {field(got[place])}, {field(wanted[place])} expected"
                    f" (row of {field(wanted[0])})",
                )
    return Comparison("within tolerance")


def _by_exact(how: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    """Rows in the order of their exact columns, so that both answers' rows pair up."""
    exact = [place for place, kind in enumerate(how) if kind == "="]
    return sorted(rows, key=lambda row: [field(row[place]) for place in exact if place < len(row)])


def _alike(kind: str, wanted: Value, got: Value) -> bool:
    first, second = field(wanted), field(got)
    if first == second or kind == "=" or "(null)" in (first, second):
        return first == second
    expected, actual = Decimal(first), Decimal(second)
    if kind == "sum":
        return abs(actual - expected) <= _SUM_TOLERANCE
    return abs(actual - expected) <= abs(expected) * _RATIO_TOLERANCE
