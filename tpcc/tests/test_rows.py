"""The initial population of clause 4.3.3.1, before any database sees it."""

from collections import Counter, defaultdict
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from hotset.tpcc.data.rows import table_rows
from hotset.tpcc.schema import TABLES, Table, estimate_bytes

NOW = datetime(2026, 1, 2, 3, 4, 5)


def rows(table: str, warehouse: int = 1, seed: int = 1) -> list[dict[str, Any]]:
    names = TABLES[table].columns
    return [dict(zip(names, row, strict=True)) for row in table_rows(table, warehouse, seed, NOW)]


@pytest.mark.parametrize("table", [t for t in TABLES.values() if t.name != "order_line"])
def test_row_counts(table: Table) -> None:
    count = sum(1 for _ in table_rows(table.name, 1, 1, NOW))
    assert count == table.rows


def test_rows_depend_on_seed_and_warehouse_alone() -> None:
    assert rows("customer", 3)[:50] == rows("customer", 3)[:50]
    assert rows("customer", 3)[0]["c_data"] != rows("customer", 4)[0]["c_data"]
    assert rows("customer", 3, seed=2)[0]["c_data"] != rows("customer", 3)[0]["c_data"]


@pytest.mark.parametrize(("table", "column"), [("item", "i_data"), ("stock", "s_data")])
def test_a_tenth_is_original(table: str, column: str) -> None:
    data = [row[column] for row in rows(table)]
    assert {len(text) for text in data} == set(range(26, 51))
    assert sum("ORIGINAL" in text for text in data) == len(data) // 10


def test_stock_and_items() -> None:
    stock = rows("stock")
    assert {row["s_quantity"] for row in stock} == set(range(10, 101))
    assert {len(row[f"s_dist_{d:02d}"]) for row in stock[:1000] for d in range(1, 11)} == {24}
    prices = [row["i_price"] for row in rows("item")]
    assert Decimal("1.00") <= min(prices) < max(prices) <= Decimal("100.00")


def test_customers() -> None:
    customers = rows("customer")
    names = defaultdict(set)
    for row in customers:
        names[row["c_d_id"]].add(row["c_last"])
    assert {len(found) for found in names.values()} == {1000}
    assert Counter(row["c_credit"] for row in customers) == {"BC": 3000, "GC": 27_000}
    assert {len(row["c_data"]) for row in customers} == set(range(300, 501))
    assert {len(row["c_first"]) for row in customers} == set(range(8, 17))
    assert all(row["c_zip"].endswith("11111") and len(row["c_zip"]) == 9 for row in customers)
    assert all(len(row["c_phone"]) == 16 and row["c_phone"].isdigit() for row in customers)
    assert max(row["c_discount"] for row in customers) <= Decimal("0.5")


def test_orders_and_their_lines_agree() -> None:
    orders = rows("orders")
    lines: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for line in rows("order_line"):
        lines[line["ol_d_id"], line["ol_o_id"]].append(line)
    for district in range(1, 11):
        customers = [row["o_c_id"] for row in orders if row["o_d_id"] == district]
        assert sorted(customers) == list(range(1, 3001))
    for order in orders:
        found = lines[order["o_d_id"], order["o_id"]]
        delivered = order["o_id"] < 2101
        assert [line["ol_number"] for line in found] == list(range(1, order["o_ol_cnt"] + 1))
        assert (order["o_carrier_id"] is not None) == delivered
        assert all((line["ol_delivery_d"] is not None) == delivered for line in found)
        assert all((line["ol_amount"] == 0) == delivered for line in found)
    assert {row["o_ol_cnt"] for row in orders} == set(range(5, 16))


def test_estimated_bytes_grow_by_about_110_mb_per_warehouse() -> None:
    assert 100e6 < estimate_bytes(2) - estimate_bytes(1) < 130e6
