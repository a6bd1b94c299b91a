"""The rows of a freshly populated database (clause 4.3.3.1), table by table.

Numbers come from numpy in blocks; strings are slices, of random place and length,
of one long random text. That gives every string the lengths the specification
asks for at about 0.1 µs each. Each table of each warehouse has its own random
stream: the data depend on the seed alone, not on who loads what.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import repeat

import numpy as np

from hotset.core.sql import Row
from hotset.load.streams import vector_stream

from ..schema import CUSTOMERS, DISTRICTS, FIRST_UNDELIVERED, ITEMS
from .nurand import C_LAST_LOAD, LAST_NAMES, nurand_vector

_BLOCK = 10_000
_TEXT = 1 << 20
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_DIGITS = b"0123456789"
_ZERO = Decimal("0.00")
_TEN = Decimal("10.00")


def table_rows(table: str, warehouse: int, seed: int, now: datetime) -> Iterator[Row]:
    """All rows of one table for one warehouse, in key order, columns as in `schema.TABLES`.

    `warehouse` is 0 for `item`, which belongs to none. `now` is the load's time stamp.
    """
    return _GENERATORS[table](_Columns(table, warehouse, seed), warehouse, now)


@cache
def _text(seed: int, alphabet: bytes) -> str:
    """One long random text to cut strings from."""
    random = vector_stream(seed, "text", len(alphabet))
    letters = np.frombuffer(alphabet, dtype=np.uint8)
    return str(letters[random.integers(0, len(alphabet), _TEXT)].tobytes(), "ascii")


@cache
def _fractions(highest: int) -> list[Decimal]:
    """0.0000 to highest / 10,000: taxes and discounts."""
    return [Decimal(n).scaleb(-4) for n in range(highest + 1)]


def _cents(amounts: list[int]) -> list[Decimal]:
    return [Decimal(n).scaleb(-2) for n in amounts]


class _Columns:
    """The random stream of one table of one warehouse; each method draws one column."""

    def __init__(self, table: str, warehouse: int, seed: int) -> None:
        self.seed = seed
        self.random = vector_stream(seed, table, warehouse)
        self._letters = _text(seed, _LETTERS)
        self._digits = _text(seed, _DIGITS)

    def integers(self, low: int, high: int, count: int) -> list[int]:
        """Uniform integers in [low .. high]."""
        drawn: list[int] = self.random.integers(low, high, count, endpoint=True).tolist()
        return drawn

    def permutation(self, count: int) -> list[int]:
        """0 to count - 1, shuffled."""
        shuffled: list[int] = self.random.permutation(count).tolist()
        return shuffled

    def a_strings(self, low: int, high: int, count: int) -> list[str]:
        """Random a-strings [low .. high] (clause 4.3.2.2)."""
        text = self._letters
        starts = self.integers(0, _TEXT - high, count)
        if low == high:
            return [text[at : at + low] for at in starts]
        lengths = self.integers(low, high, count)
        return [text[at : at + n] for at, n in zip(starts, lengths, strict=True)]

    def n_strings(self, length: int, count: int) -> list[str]:
        """Random n-strings of one length (clause 4.3.2.2)."""
        text = self._digits
        return [text[at : at + length] for at in self.integers(0, _TEXT - length, count)]

    def fractions(self, highest: int, count: int) -> list[Decimal]:
        """Uniform in [0.0000 .. highest / 10,000]."""
        pool = _fractions(highest)
        return [pool[n] for n in self.integers(0, highest, count)]

    def data(self, count: int) -> list[str]:
        """I_DATA and S_DATA: a-strings [26 .. 50], a tenth with ORIGINAL somewhere inside."""
        data = self.a_strings(26, 50, count)
        tenth = self.permutation(count)[: count // 10]
        for row, place in zip(tenth, self.random.random(len(tenth)).tolist(), strict=True):
            text = data[row]
            at = int(place * (len(text) - 7))
            data[row] = f"{text[:at]}ORIGINAL{text[at + 8 :]}"
        return data

    def address(self, count: int) -> tuple[list[str], ...]:
        """Two streets, city, state, and a zip code of four digits and 11111 (clause 4.3.2.7)."""
        return (
            self.a_strings(10, 20, count),
            self.a_strings(10, 20, count),
            self.a_strings(10, 20, count),
            self.a_strings(2, 2, count),
            [digits + "11111" for digits in self.n_strings(4, count)],
        )


def _item(columns: _Columns, _warehouse: int, _now: datetime) -> Iterator[Row]:
    for first in range(1, ITEMS + 1, _BLOCK):
        yield from zip(
            range(first, first + _BLOCK),
            columns.integers(1, 10_000, _BLOCK),
            _cents(columns.integers(100, 10_000, _BLOCK)),
            columns.a_strings(14, 24, _BLOCK),
            columns.data(_BLOCK),
            strict=True,
        )


def _warehouse(columns: _Columns, warehouse: int, _now: datetime) -> Iterator[Row]:
    yield from zip(
        [warehouse],
        [Decimal("300000.00")],
        columns.fractions(2000, 1),
        columns.a_strings(6, 10, 1),
        *columns.address(1),
        strict=True,
    )


def _district(columns: _Columns, warehouse: int, _now: datetime) -> Iterator[Row]:
    yield from zip(
        repeat(warehouse, DISTRICTS),
        range(1, DISTRICTS + 1),
        repeat(CUSTOMERS + 1, DISTRICTS),
        repeat(Decimal("30000.00"), DISTRICTS),
        columns.fractions(2000, DISTRICTS),
        columns.a_strings(6, 10, DISTRICTS),
        *columns.address(DISTRICTS),
        strict=True,
    )


def _customer(columns: _Columns, warehouse: int, now: datetime) -> Iterator[Row]:
    count = CUSTOMERS
    for district in range(1, DISTRICTS + 1):
        # Each of the 1,000 names once, then by NURand: no name is without a customer.
        others = nurand_vector(columns.random, 255, C_LAST_LOAD, 0, 999, count - 1000)
        names = [*range(1000), *others.tolist()]
        bad_credit = set(columns.permutation(count)[: count // 10])
        yield from zip(
            repeat(warehouse, count),
            repeat(district, count),
            range(1, count + 1),
            repeat(1, count),
            repeat(0, count),
            repeat(now, count),
            ["BC" if row in bad_credit else "GC" for row in range(count)],
            repeat(Decimal("50000.00"), count),
            columns.fractions(5000, count),
            repeat(-_TEN, count),
            repeat(_TEN, count),
            columns.a_strings(8, 16, count),
            repeat("OE", count),
            [LAST_NAMES[n] for n in names],
            *columns.address(count),
            columns.n_strings(16, count),
            columns.a_strings(300, 500, count),
            strict=True,
        )


def _history(columns: _Columns, warehouse: int, now: datetime) -> Iterator[Row]:
    count = CUSTOMERS
    for district in range(1, DISTRICTS + 1):
        yield from zip(
            range(1, count + 1),
            repeat(warehouse, count),
            repeat(district, count),
            repeat(warehouse, count),
            repeat(district, count),
            repeat(now, count),
            repeat(_TEN, count),
            columns.a_strings(12, 24, count),
            strict=True,
        )


def _line_counts(seed: int, warehouse: int, district: int) -> list[int]:
    """O_OL_CNT of each order of a district: `orders` and `order_line` must agree on it."""
    drawn = vector_stream(seed, "line counts", warehouse, district)
    counts: list[int] = drawn.integers(5, 15, CUSTOMERS, endpoint=True).tolist()
    return counts


def _orders(columns: _Columns, warehouse: int, now: datetime) -> Iterator[Row]:
    count = CUSTOMERS
    delivered = FIRST_UNDELIVERED - 1
    for district in range(1, DISTRICTS + 1):
        carriers: list[int | None] = [*columns.integers(1, 10, delivered)]
        yield from zip(
            repeat(warehouse, count),
            repeat(district, count),
            range(1, count + 1),
            [customer + 1 for customer in columns.permutation(count)],
            carriers + [None] * (count - delivered),
            _line_counts(columns.seed, warehouse, district),
            repeat(1, count),
            repeat(now, count),
            strict=True,
        )


def _new_order(_columns: _Columns, warehouse: int, _now: datetime) -> Iterator[Row]:
    for district in range(1, DISTRICTS + 1):
        for order in range(FIRST_UNDELIVERED, CUSTOMERS + 1):
            yield warehouse, district, order


def _order_line(columns: _Columns, warehouse: int, now: datetime) -> Iterator[Row]:
    for district in range(1, DISTRICTS + 1):
        counts = _line_counts(columns.seed, warehouse, district)
        delivered = sum(counts[: FIRST_UNDELIVERED - 1])
        open_lines = sum(counts) - delivered
        count = delivered + open_lines
        dates: list[datetime | None] = [now] * delivered
        yield from zip(
            repeat(warehouse, count),
            repeat(district, count),
            [order for order, lines in enumerate(counts, 1) for _ in range(lines)],
            [number for lines in counts for number in range(1, lines + 1)],
            repeat(5, count),
            columns.integers(1, ITEMS, count),
            repeat(warehouse, count),
            dates + [None] * open_lines,
            [_ZERO] * delivered + _cents(columns.integers(1, 999_999, open_lines)),
            columns.a_strings(24, 24, count),
            strict=True,
        )


def _stock(columns: _Columns, warehouse: int, _now: datetime) -> Iterator[Row]:
    for first in range(1, ITEMS + 1, _BLOCK):
        yield from zip(
            repeat(warehouse, _BLOCK),
            range(first, first + _BLOCK),
            columns.integers(10, 100, _BLOCK),
            repeat(0, _BLOCK),
            repeat(0, _BLOCK),
            repeat(0, _BLOCK),
            *(columns.a_strings(24, 24, _BLOCK) for _ in range(DISTRICTS)),
            columns.data(_BLOCK),
            strict=True,
        )


_GENERATORS: dict[str, Callable[[_Columns, int, datetime], Iterator[Row]]] = {
    "item": _item,
    "warehouse": _warehouse,
    "district": _district,
    "customer": _customer,
    "history": _history,
    "orders": _orders,
    "new_order": _new_order,
    "order_line": _order_line,
    "stock": _stock,
}
