"""Answers as texts, their checksums, and the tolerances of clause 2.1.3.5."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.sql import Row
from hotset.tpch.answers import checksum, compare, field

CENTS = st.decimals(-(10**12), 10**12, places=3)


@given(st.lists(st.tuples(CENTS, st.text("AB ", max_size=4)), max_size=8))
def test_a_checksum_knows_neither_types_nor_order_nor_padding(
    rows: list[tuple[Decimal, str]],
) -> None:
    # A double of so many digits is exact to far below the sixth decimal.
    other: list[Row] = [(float(number), text.ljust(9)) for number, text in reversed(rows)]
    longer: list[Row] = [(number.quantize(Decimal("1e-9")), text) for number, text in rows]
    assert checksum(rows) == checksum(other) == checksum(longer)


@given(st.lists(CENTS, min_size=1, max_size=5), st.integers(0, 4))
def test_a_cent_changes_a_checksum(numbers: list[Decimal], place: int) -> None:
    rows: list[Row] = [(number,) for number in numbers]
    changed = list(rows)
    changed[place % len(rows)] = (numbers[place % len(rows)] + Decimal("0.02"),)
    assert checksum(rows) != checksum(changed)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("1995"), "1995.00"),
        (1995, "1995.00"),
        (Decimal("-0.004"), "0.00"),
        (Decimal("-1.005"), "-1.01"),
        (0.05, "0.05"),
        (date(1995, 3, 5), "1995-03-05"),
        (datetime(1995, 3, 5), "1995-03-05"),
        (10**16 + 0.0, "10000000000000000.00"),
    ],
)
def test_fields(value: Decimal, text: str) -> None:
    assert field(value) == text


Q5: list[Row] = [("INDONESIA", Decimal("1000000.00")), ("JAPAN", Decimal("900.00"))]


@pytest.mark.parametrize(
    ("found", "verdict", "words"),
    [
        (Q5, "equal", ""),
        (list(reversed(Q5)), "equal", ""),
        ([("INDONESIA", 1000099.99), ("JAPAN", 900)], "within tolerance", ""),
        (
            [("INDONESIA", 1000100.01), ("JAPAN", 900)],
            "different",
            "column 2: 1000100.01, 1000000.00 expected",
        ),
        ([("INDONESIA", 1000000), ("CHINA", 900)], "different", "CHINA"),
        ([("INDONESIA", 1000000), ("JAPAN", None)], "different", "(null), 900.00 expected"),
        (Q5[:1], "different", "1 rows, 2 expected"),
        ([(*row, 1) for row in Q5], "different", "3 columns, 2 expected"),
    ],
)
def test_a_sum_may_be_off_by_a_hundred(found: list[Row], verdict: str, words: str) -> None:
    comparison = compare(5, Q5, found)
    assert comparison.verdict == verdict
    assert words in comparison.difference


def test_a_ratio_may_be_off_by_a_hundredth() -> None:
    assert compare(14, [(16.38,)], [(16.54,)]).verdict == "within tolerance"
    assert compare(14, [(16.38,)], [(16.56,)]).verdict == "different"


def test_a_count_may_not_be_off() -> None:
    assert compare(4, [("1-URGENT", 100000)], [("1-URGENT", 100001)]).verdict == "different"
