"""The answers of an engine of its own, DuckDB, on the same text files.

DuckDB runs the PostgreSQL files as they are: tables, queries and all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from hotset.core.sql import Row

from . import queries, schema
from .data import DataSet

if TYPE_CHECKING:
    import duckdb

_DIALECT = "postgres"


def answers(made: DataSet, numbers: Iterable[int] = queries.ALL) -> Iterator[tuple[int, list[Row]]]:
    """Each query's number and rows, with the validation parameters."""
    import duckdb

    with duckdb.connect(":memory:") as engine:
        engine.execute(f"CREATE SCHEMA {schema.SCHEMA}")
        for batch in schema.batches(_DIALECT, "schema"):
            engine.execute(batch)
        for table in made.files:
            _fill(engine, made, table)
        for number in numbers:
            text = queries.text(_DIALECT, number, made.scale)
            yield number, engine.execute(text).fetchall()


def _fill(engine: duckdb.DuckDBPyConnection, made: DataSet, table: str) -> None:
    columns = dict(
        engine.execute(
            "SELECT column_name, data_type FROM information_schema.columns"
            " WHERE table_name = ? ORDER BY ordinal_position",
            [table],
        ).fetchall()
    )
    # The `|` that ends each line makes one more column.
    engine.execute(
        f"INSERT INTO {schema.SCHEMA}.{table} SELECT {', '.join(columns)} FROM"
        " read_csv(?, delim = '|', header = false, quote = '', escape = '',"
        " auto_detect = false, columns = ?)",
        [[str(path) for path in made.files[table]], {**columns, "nothing": "VARCHAR"}],
    )
