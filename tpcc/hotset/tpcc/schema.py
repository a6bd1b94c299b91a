"""The nine tables in their schema: names, columns, sizes; and the SQL files that make them."""

from dataclasses import dataclass

from hotset.core.errors import Remedy
from hotset.core.sql import Aborted, NotLoadedError
from hotset.core.sql.files import SqlFiles

from .database import Database, Session

SCHEMA = "hotset_tpcc"
"""Where tables and procedures are; the SQL files spell it out."""
DISTRICTS = 10
"""Districts per warehouse (clause 1.2.1)."""
CUSTOMERS = 3000
"""Customers, and initial orders, per district."""
FIRST_ORDER = CUSTOMERS + 1
"""The order number that is free in a district after the load."""
ITEMS = 100_000
"""Items, and stock rows per warehouse."""
FIRST_UNDELIVERED = 2101
"""The last 900 orders of each district are loaded undelivered (clause 4.3.3.1)."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in load order and how large it starts.

    `rows` is per warehouse, of `order_line` on average. `bytes_per_row` is a measured estimate
    with row headers, free space and indexes, on PostgreSQL with this package's SQL.
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    bytes_per_row: int
    per_warehouse: bool = True


def _table(name: str, rows: int, bytes_per_row: int, columns: str, **flags: bool) -> Table:
    return Table(name, tuple(columns.split()), rows, bytes_per_row, **flags)


_STOCK_DISTRICTS = " ".join(f"s_dist_{d:02d}" for d in range(1, DISTRICTS + 1))

TABLES: dict[str, Table] = {
    t.name: t
    for t in (
        _table("item", ITEMS, 130, "i_id i_im_id i_price i_name i_data", per_warehouse=False),
        _table(
            "warehouse",
            1,
            28000,
            "w_id w_ytd w_tax w_name w_street_1 w_street_2 w_city w_state w_zip",
        ),
        _table(
            "district",
            DISTRICTS,
            4096,
            "d_w_id d_id d_next_o_id d_ytd d_tax d_name d_street_1 d_street_2 d_city d_state d_zip",
        ),
        _table(
            "customer",
            DISTRICTS * CUSTOMERS,
            770,
            "c_w_id c_d_id c_id c_payment_cnt c_delivery_cnt c_since c_credit c_credit_lim"
            " c_discount c_balance c_ytd_payment c_first c_middle c_last c_street_1 c_street_2"
            " c_city c_state c_zip c_phone c_data",
        ),
        _table(
            "history",
            DISTRICTS * CUSTOMERS,
            81,
            "h_c_id h_c_w_id h_c_d_id h_w_id h_d_id h_date h_amount h_data",
        ),
        _table(
            "orders",
            DISTRICTS * CUSTOMERS,
            132,
            "o_w_id o_d_id o_id o_c_id o_carrier_id o_ol_cnt o_all_local o_entry_d",
        ),
        _table(
            "new_order",
            DISTRICTS * (CUSTOMERS - FIRST_UNDELIVERED + 1),
            79,
            "no_w_id no_d_id no_o_id",
        ),
        _table(
            "order_line",
            DISTRICTS * CUSTOMERS * 10,
            141,
            "ol_w_id ol_d_id ol_o_id ol_number ol_quantity ol_i_id ol_supply_w_id"
            " ol_delivery_d ol_amount ol_dist_info",
        ),
        _table(
            "stock",
            ITEMS,
            413,
            f"s_w_id s_i_id s_quantity s_order_cnt s_remote_cnt s_ytd {_STOCK_DISTRICTS} s_data",
        ),
    )
}


def estimate_bytes(warehouses: int) -> int:
    """Bytes a freshly loaded database of so many warehouses takes, indexes included."""
    return sum(
        t.rows * t.bytes_per_row * (warehouses if t.per_warehouse else 1) for t in TABLES.values()
    )


SQL = SqlFiles("hotset.tpcc", "TPC-C")
batches, statement, has_statement = SQL.batches, SQL.statement, SQL.has


def unqualified(sql: str) -> str:
    """A statement for the tables in the session's own schema, where HammerDB makes its own."""
    return sql.replace(f"{SCHEMA}.", "")


PROCEDURES = ("neword", "payment", "ostat", "delivery", "slev")
"""New-order, payment, order-status, delivery, stock-level: SQL files and procedure names."""


def present(session: Session, *, by_hammerdb: bool = False) -> list[str]:
    """Which of the nine tables there are, of hotset's own or of HammerDB's."""

    def exists(table: str) -> bool:
        asked = f"SELECT count(*) FROM {SCHEMA}.{table} WHERE 1 = 0"
        try:
            session.query(unqualified(asked) if by_hammerdb else asked)
        except Aborted:
            return False
        return True

    return [name for name in TABLES if exists(name)]


def create(database: Database, session: Session) -> None:
    """Make the schema with the nine empty tables (keys come after the load) and the five
    procedures, all or none.

    Raises Aborted where there is such a schema already; nothing is made then.
    """
    procedures = (f"procedures/{procedure}" for procedure in PROCEDURES)
    SQL.run(database.engine, session, "marked_schema", "schema", *procedures)


def require_finished(database: Database, session: Session) -> None:
    """
    Raises SetupError where tables lack their primary keys, which a load makes last. Whether they do
    is not known where a compatible server lacks the view.
    """
    try:
        names = [str(name) for (name,) in session.query(statement(database.engine, "without_keys"))]
    except Aborted:
        return
    if names:
        have = "has" if len(names) == 1 else "have"
        raise NotLoadedError(
            f"the load was not finished: {', '.join(names)} {have} no primary key, without which"
            " transactions read whole tables",
            Remedy("load it again", "tpcc build", {"replace": True}),
        )


def drop(database: Database, session: Session) -> None:
    """Remove the schema with all that `create` made in it, or nothing.

    Raises Aborted where something else is in it or needs what is; the transaction stays open.
    """
    SQL.run(database.engine, session, "drop")
