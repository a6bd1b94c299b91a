"""Does a database hold what a build by HammerDB should leave?"""

from __future__ import annotations

from contextlib import closing
from importlib.resources import files

from hotset.core.sql import Row
from hotset.databases.product import SqlDatabase
from hotset.tpcc.schema import TABLES

from .process.failures import HammerdbFailed

_RANDOM = {"order_line": 0.1, "lineitem": 0.1}
"""Tables whose number of rows is random (5 to 15 lines an order, 1 to 7): the tolerance."""
_TPCH = {
    "region": 5,
    "nation": 25,
    "supplier": 10_000,
    "customer": 150_000,
    "part": 200_000,
    "partsupp": 800_000,
    "orders": 1_500_000,
    "lineitem": 6_000_000,
}
"""Clause 4.2.5.1; all but the first two are per scale factor."""


def tpcc_rows(warehouses: int) -> dict[str, int]:
    """How many rows each table of TPC-C starts with (clause 4.3.3.1)."""
    return {
        table.name: table.rows * (warehouses if table.per_warehouse else 1)
        for table in TABLES.values()
    }


def tpch_rows(scale: int) -> dict[str, int]:
    """How many rows each table of TPC-H has."""
    return {name: rows * (1 if rows < 100 else scale) for name, rows in _TPCH.items()}


def statement(connection: SqlDatabase, name: str) -> str:
    """The text of `sql/<engine>/<name>.sql`; empty where the product has none."""
    file = files("hotset.hammerdb") / "sql" / connection.engine / f"{name}.sql"
    return file.read_text(encoding="utf-8") if file.is_file() else ""


def read(connection: SqlDatabase, name: str) -> list[Row]:
    """The rows of a statement; raises as `Session.query` does."""
    with closing(connection.looking().session()) as session:
        return session.query(statement(connection, name))


def check(connection: SqlDatabase, name: str, expected: dict[str, int]) -> dict[str, int]:
    """Count all rows of a database just built, a scan of each table; returns the counts.

    :raises HammerdbFailed: names the tables that are not whole.
    :raises DatabaseError: a table is missing, or the server gone.
    """
    counted = {str(table): int(str(rows)) for table, rows in read(connection, name)}
    wrong = [
        f"{table} {counted.get(table, 0):,} instead of {rows:,}"
        for table, rows in expected.items()
        if abs(counted.get(table, 0) - rows) > rows * _RANDOM.get(table, 0.0)
    ]
    if wrong:
        raise HammerdbFailed(f"HammerDB's build is incomplete, rows: {', '.join(wrong)}")
    return counted
