"""No counter overflows within a year of a million new orders a minute on one warehouse."""

import re
from typing import get_args

import numpy as np
import pytest

from hotset.core.sql import EngineName
from hotset.load.streams import stream
from hotset.tpcc.data.nurand import nurand, shares
from hotset.tpcc.schema import (
    CUSTOMERS,
    DISTRICTS,
    ITEMS,
    PROCEDURES,
    TABLES,
    batches,
)

ORDERS = 1e6 * 60 * 24 * 365
PAYMENTS = ORDERS * 43 / 45
PAID = (1 + 5000) / 2
"""The mean payment, clause 2.5.1.3."""
LINES, QUANTITY = 10, 5.5
"""Means of clauses 2.4.1.3 and 2.4.1.5."""
ITEM = shares(8191, 1, ITEMS).max()
CUSTOMER = shares(1023, 1, CUSTOMERS).max() / DISTRICTS
NAMESAKE = shares(255, 0, 999).max() / DISTRICTS
"""Of the middle one of those with the most popular last name."""
PAYER = 0.4 * CUSTOMER + 0.6 * NAMESAKE
AFTER_A_YEAR = {
    "w_ytd": PAYMENTS * PAID,
    "d_ytd": PAYMENTS * PAID / DISTRICTS,
    "c_ytd_payment": PAYMENTS * PAYER * PAID,
    # Payments and deliveries pull to either side; nothing is taken off for that.
    "c_balance": PAYMENTS * PAYER * PAID + ORDERS * CUSTOMER * LINES * QUANTITY * 50.5,
    "c_payment_cnt": PAYMENTS * PAYER,
    "c_delivery_cnt": ORDERS * CUSTOMER,
    "s_order_cnt": ORDERS * LINES * ITEM,
    "s_ytd": ORDERS * LINES * ITEM * QUANTITY,
    # All of another warehouse's remote lines, as with two warehouses that are equally busy.
    "s_remote_cnt": ORDERS * LINES * ITEM * 0.01,
}
HOLDS = {"smallint": 2**15, "int": 2**31, "integer": 2**31, "bigint": 2**63}


def capacity(kind: str) -> float:
    digits = re.fullmatch(r"(?:numeric|decimal)\((\d+), (\d+)\)", kind)
    return 10.0 ** (int(digits[1]) - int(digits[2])) if digits else HOLDS[kind]


def growing(engine: str) -> set[str]:
    """Columns to which a procedure adds, as the SQL says."""
    texts = [one for name in PROCEDURES for one in batches(engine, f"procedures/{name}")]
    return {one for text in texts for one in re.findall(r"\b([a-z]_\w+) = \1 [+-]", text)}


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_every_counter_holds_a_year(engine: str) -> None:
    # Order numbers end with the space: 2**31 orders of each district fill more than 25 TB.
    assert growing(engine) - {"d_next_o_id"} == set(AFTER_A_YEAR)
    per_order = sum(TABLES[one].bytes_per_row for one in ("orders", "new_order"))
    per_order += LINES * TABLES["order_line"].bytes_per_row
    assert 2**31 * DISTRICTS * per_order > 25e12
    (schema,) = batches(engine, "schema")
    for column, most in AFTER_A_YEAR.items():
        kind = re.search(rf"^ +{column} +(.*?) +NOT NULL", schema, re.MULTILINE)
        assert kind is not None
        assert capacity(kind[1]) > 1.5 * most, (column, kind[1])


@pytest.mark.parametrize(("a", "low", "high"), [(255, 0, 999), (1023, 1, 3000), (15, 1, 100)])
def test_the_shares_are_those_of_all_pairs(a: int, low: int, high: int) -> None:
    span = high - low + 1
    pairs = np.arange(a + 1)[:, None] | np.arange(low, high + 1)[None, :]
    counted = np.bincount(pairs.ravel() % span, minlength=span) / pairs.size
    assert shares(a, low, high) == pytest.approx(counted)


def test_what_is_drawn_has_these_shares() -> None:
    random = stream(5, "shares").random
    drawn = np.bincount([nurand(random, 15, 7, 1, 100) - 1 for _ in range(50_000)], minlength=100)
    assert drawn / 50_000 == pytest.approx(np.roll(shares(15, 1, 100), 7), abs=0.004)
