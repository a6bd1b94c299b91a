"""The eight tables in their schema: names, columns, sizes; and the SQL files that make them."""

from dataclasses import dataclass

from hotset.core.errors import Remedy
from hotset.core.sql import NotLoadedError, Refused
from hotset.core.sql.files import SqlFiles

from .database import Database, Session

SCHEMA = "hotset_tpch"
"""Where the tables are; the SQL files spell it out."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its columns in the order of clause 4.2.3, and its size at scale 1.

    `rows` of `lineitem` is an average. `text_bytes` is what the generator writes, `bytes` what
    PostgreSQL 15 takes with this package's keys and indexes; both measured at scale 1.
    """

    name: str
    columns: tuple[str, ...]
    rows: int
    text_bytes: int
    bytes: int
    fixed: bool = False

    def rows_at(self, scale: float) -> int:
        """Rows at a scale (clause 4.2.5); of `lineitem` the specification's figure, if it gives
        one, else about as many."""
        if self.name == "lineitem":
            return LINEITEM_ROWS.get(scale, round(self.rows * scale))
        return self.rows if self.fixed else round(self.rows * scale)


LINEITEM_ROWS: dict[float, int] = {
    1: 6_001_215,
    10: 59_986_052,
    30: 179_998_372,
    100: 600_037_902,
    300: 1_799_989_091,
    1000: 5_999_989_709,
    3000: 18_000_048_306,
    10000: 59_999_994_267,
    30000: 179_999_978_268,
    100000: 599_999_969_200,
}
"""Clause 4.2.5."""


def _table(
    name: str, rows: int, text_bytes: int, size: int, columns: str, fixed: bool = False
) -> Table:
    return Table(name, tuple(columns.split()), rows, text_bytes, size, fixed)


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _table("region", 5, 389, 57_344, "r_regionkey r_name r_comment", fixed=True),
        _table("nation", 25, 2_224, 57_344, "n_nationkey n_name n_regionkey n_comment", fixed=True),
        _table(
            "supplier",
            10_000,
            1_409_184,
            2_200_000,
            "s_suppkey s_name s_address s_nationkey s_phone s_acctbal s_comment",
        ),
        _table(
            "customer",
            150_000,
            24_346_144,
            33_900_000,
            "c_custkey c_name c_address c_nationkey c_phone c_acctbal c_mktsegment c_comment",
        ),
        _table(
            "part",
            200_000,
            24_135_125,
            38_100_000,
            "p_partkey p_name p_mfgr p_brand p_type p_size p_container p_retailprice p_comment",
        ),
        _table(
            "partsupp",
            800_000,
            118_984_616,
            166_500_000,
            "ps_partkey ps_suppkey ps_availqty ps_supplycost ps_comment",
        ),
        _table(
            "orders",
            1_500_000,
            171_952_161,
            277_600_000,
            "o_orderkey o_custkey o_orderstatus o_totalprice o_orderdate o_orderpriority o_clerk"
            " o_shippriority o_comment",
        ),
        _table(
            "lineitem",
            6_000_000,
            759_863_287,
            1_242_500_000,
            "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount"
            " l_tax l_returnflag l_linestatus l_shipdate l_commitdate l_receiptdate"
            " l_shipinstruct l_shipmode l_comment",
        ),
    )
}


def estimate_bytes(scale: float) -> int:
    """Bytes a freshly loaded PostgreSQL database of this scale takes, indexes included."""
    return round(sum(table.bytes * (1 if table.fixed else scale) for table in TABLES.values()))


SQL = SqlFiles("hotset.tpch", "TPC-H")
batches, statement = SQL.batches, SQL.statement


def create(database: Database, session: Session) -> None:
    """Make the schema with the empty tables, all or none, without keys: those come after the load.

    Raises Refused where there is such a schema already; nothing is made then.
    """
    SQL.run(database.engine, session, "marked_schema", "schema")


def drop(database: Database, session: Session) -> None:
    """Remove the schema with all that `create` made in it, or nothing.

    Raises Refused where something else is in it or needs what is; the transaction stays open.
    """
    SQL.run(database.engine, session, "drop")


def read_scale(session: Session) -> float:
    """The scale the database was loaded with.

    Raises SetupError when it holds none that was loaded to its end.
    """
    try:
        rows = session.query(f"SELECT scale_factor FROM {SCHEMA}.tpch_load")
    except Refused:
        rows = []
    if len(rows) != 1:
        raise NotLoadedError(
            "the database holds no TPC-H tables that were loaded to the end",
            Remedy("load them", "tpch build"),
        )
    return float(str(rows[0][0]))


def require_scale(session: Session, scale: float | None) -> float:
    """The scale that is loaded; raises SetupError unless it is the one asked for, if any."""
    loaded = read_scale(session)
    if scale is not None and scale != loaded:
        raise NotLoadedError(
            f"the database holds TPC-H at scale {loaded:g}, not {scale:g}: leave the scale out",
            Remedy("load the other", "tpch build", {"scale": scale, "replace": True}),
            field="scale",
        )
    return loaded
