"""Does a database hold what a build by HammerDB should leave?"""

from __future__ import annotations

from contextlib import closing

from hotset.core.sql import Row
from hotset.core.sql.files import SqlFiles
from hotset.databases.product import SqlDatabase
from hotset.tpcc.schema import TABLES
from hotset.tpch import schema as tpch

from .process.failures import HammerdbFailed

_RANDOM = {"order_line": 0.1, "lineitem": 0.1}
"""Tables whose number of rows is random (5 to 15 lines an order, 1 to 7): the tolerance."""
SQL = SqlFiles("hotset.hammerdb", "HammerDB")


def tpcc_rows(warehouses: int) -> dict[str, int]:
    """How many rows each table of TPC-C starts with (clause 4.3.3.1)."""
    return {
        table.name: table.rows * (warehouses if table.per_warehouse else 1)
        for table in TABLES.values()
    }


def tpch_rows(scale: int) -> dict[str, int]:
    """How many rows each table of TPC-H has."""
    return {table.name: table.rows_at(scale) for table in tpch.TABLES.values()}


def read(connection: SqlDatabase, name: str) -> list[Row]:
    """The rows of `sql/<engine>/<name>.sql`; raises as `Session.query` does."""
    with closing(connection.looking().session()) as session:
        return session.query(SQL.statement(connection.engine, name))


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
