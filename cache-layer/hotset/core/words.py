"""Figures as text, the same in the terminal and in the report."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from rich.console import Console

ABSENT = "–"
_BARS = "▁▂▃▄▅▆▇█"
LABEL_PATTERN = r"^[A-Za-z][A-Za-z0-9._-]*$"
"""Labels that a user gives measurements. A run's id begins with a digit: neither is the other."""


def factor(ratio: float | None) -> str:
    """
    >>> factor(9.84), factor(1.018), factor(131.4), factor(None)
    ('9.8×', '1.02×', '131×', '–')
    """
    return ABSENT if ratio is None else f"{_three_digits(ratio)}×"


def interval(low: float, high: float) -> str:
    """
    >>> interval(8.91, 10.64)
    '8.9–10.6'
    """
    return f"{_three_digits(low)}–{_three_digits(high)}"


def verdict(
    ratio: float, low: float | None, high: float | None
) -> Literal["faster", "slower", "not significant", "not known"]:
    """Judge a ratio by its 95 % interval. Without an interval (fewer than three repeats) it
    was not tested.

    >>> verdict(1.1, 0.9, 1.3), verdict(1.1, 1.05, 1.2), verdict(1.1, 1.1, 1.1)
    ('not significant', 'faster', 'not known')
    """
    if low is None or high is None or low == high:
        return "not known"
    if low <= 1 <= high:
        return "not significant"
    return "faster" if ratio > 1 else "slower"


def doubt(ratio: float, low: float | None, high: float | None) -> str | None:
    """The label that a ratio needs, or none.

    >>> doubt(1.1, 0.9, 1.3), doubt(1.1, 1.1, 1.1), doubt(1.1, 1.05, 1.2)
    ('not significant', 'no interval', None)
    """
    labels = {"not significant": "not significant", "not known": "no interval"}
    return labels.get(verdict(ratio, low, high))


def count(number: float | None) -> str:
    """
    >>> count(136232.4), count(8.25), count(None)
    ('136,232', '8.2', '–')
    """
    if number is None:
        return ABSENT
    return f"{number:.1f}" if 0 < number < 10 and number != int(number) else f"{number:,.0f}"


def total(number: int) -> str:
    """A sum in a row of means.

    >>> total(1203)
    'Σ 1,203'
    """
    return f"Σ {number:,}"


def percent(share: float | None, digits: int = 1) -> str:
    """
    >>> percent(0.9731), percent(1.012, 0), percent(None)
    ('97.3 %', '101 %', '–')
    """
    return ABSENT if share is None else f"{100 * share:.{digits}f} %"


def deviation(share: float | None, digits: int = 1) -> str:
    """How far something is off, with its sign.

    >>> deviation(0.052), deviation(-0.5, 0), deviation(None)
    ('+5.2 %', '-50 %', '–')
    """
    return ABSENT if share is None else f"{100 * share:+.{digits}f} %"


def part_of_all(share: float | None) -> str:
    """Format a share; less than everything is never shown as 100 %.

    >>> part_of_all(0.98765), part_of_all(1.0), part_of_all(0.99997), part_of_all(None)
    ('98.8 %', '100 %', '99.9 %', '–')
    """
    if share is None:
        return ABSENT
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"


def milliseconds(number: float | None) -> str:
    """
    >>> milliseconds(4.26), milliseconds(1381.2), milliseconds(None)
    ('4.3', '1,381', '–')
    """
    if number is None:
        return ABSENT
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"


PERCENTILES = {
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99_9": "p99.9",
    "p99_99": "p99.99",
}
"""Fields of a latency and their names."""


class Percentiles(Protocol):
    """Percentiles of latencies, in milliseconds; None: not known."""

    @property
    def p50(self) -> float | None: ...
    @property
    def p95(self) -> float | None: ...
    @property
    def p99(self) -> float | None: ...


def latencies(latency_ms: Percentiles | None) -> tuple[str, str, str]:
    """p50, p95 and p99."""
    if latency_ms is None:
        return (ABSENT,) * 3
    return (
        milliseconds(latency_ms.p50),
        milliseconds(latency_ms.p95),
        milliseconds(latency_ms.p99),
    )


def size(number_bytes: float | None) -> str:
    """
    >>> size(65536), size(1536 * 2**20), size(None)
    ('64 KiB', '1.5 GiB', '–')
    """
    from .units import Bytes  # it loads pydantic, and a list on the terminal needs none

    return ABSENT if number_bytes is None else str(Bytes(number_bytes))


def rate(mb_per_s: float | None) -> str:
    """
    >>> rate(98.44), rate(4.31), rate(None)
    ('98 MB/s', '4.3 MB/s', '–')
    """
    if mb_per_s is None:
        return ABSENT
    return f"{mb_per_s:.1f} MB/s" if mb_per_s < 20 else f"{mb_per_s:,.0f} MB/s"


def duration(seconds: float) -> str:
    """
    >>> duration(8.2), duration(95), duration(6183)
    ('8.2 s', '1 min 35 s', '1 h 43 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def plural(number: int, singular: str, many: str | None = None) -> str:
    """
    >>> plural(1, "repeat"), plural(3, "repeat")
    ('1 repeat', '3 repeats')
    """
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def money(amount: float | None) -> str:
    """
    >>> money(12345.6), money(3.256), money(0.01234), money(None)
    ('12,346', '3.26', '0.012', '–')
    >>> money(0.00002)
    'below 0.001'
    """
    if amount is None:
        return ABSENT
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount < 0.001:
        return "below 0.001"
    return f"{amount:.2f}" if amount >= 0.1 else f"{amount:.2g}"


def enumerate_words(items: list[str]) -> str:
    """
    >>> enumerate_words(["a"]), enumerate_words(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _three_digits(ratio: float) -> str:
    if ratio < 2:
        return f"{ratio:.2f}"
    return f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"


def sparkline(values: Sequence[float | None], top: float | None = None) -> str:
    """Values as bars between 0 and ``top``, if not given the highest; None is a gap.

    >>> sparkline([0, 1, 4, 8])
    '▁▂▄█'
    >>> sparkline([0.5, None, 1], 1)
    '▄ █'
    """
    top = top or max((value for value in values if value is not None), default=0) or 1
    return "".join(" " if value is None else _bar(value / top) for value in values)


def bars(values: Sequence[float], width: int = 24) -> list[str]:
    """A bar of characters for each value, the highest as long as ``width``.

    >>> bars([1, 0, 4], 4)
    ['█', '█', '████']
    """
    highest = max(values, default=0) or 1
    return ["█" * max(1, round(value / highest * width)) for value in values]


def _bar(share: float) -> str:
    return _BARS[round(share * 7 - 0.01)] if share > 0 else _BARS[0]


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV with a line of names; None is empty, truth values are `true` and `false`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if cell is None else _plain(cell) for cell in row])
    return text.getvalue()


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Plain columns: the first to the left, the others, figures, to the right. What a terminal
    would obey, as a line break in a table's name, is shown as its escape.

    >>> print(text_table(("file", "hits"), [("a", "1"), ("bc", "20")]))
    file  hits
    a        1
    bc      20
    """
    lines = [[printable(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def printable(text: str) -> str:
    r"""The text with what steers a terminal spelled out.

    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def print_table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Numbers are aligned right."""
    from rich.table import Table

    table = Table(title=title, box=None, title_justify="left")
    for number, name in enumerate(columns):
        left = all(isinstance(row[number], str) for row in rows)
        table.add_column(name, justify="left" if left else "right")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, str) else _number(cell) for cell in row))
    console.print(table)


def _number(value: object) -> str:
    """
    >>> [_number(one) for one in (None, 3, 0.346, 84.02, 66593.1)]
    ['', '3', '0.346', '84.0', '66,593']
    """
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def listing(
    name: str,
    version: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    form: str,
    none: str = "",
) -> str:
    """A list of records under a name, as a table, ``csv`` or ``json``.

    :param version: the ``schema_version`` of the JSON.
    :param none: what the table says instead where there are none.
    """
    if form == "csv":
        return csv_text(columns, rows)
    if form == "json":
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        return json.dumps({"schema_version": version, name: records}, indent=1)
    cells = [tuple("-" if cell in (None, "") else str(cell) for cell in row) for row in rows]
    return text_table(columns, cells) if rows or not none else none


def _plain(cell: object) -> object:
    return str(cell).lower() if isinstance(cell, bool) else cell
