"""The SQL files of both engines say the same; those for SQL Server are parsed, not run, unless
HOTSET_SQLSERVER_DSN names a server."""

import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlglot
from sqlglot import exp

from hotset.bench import ownership
from hotset.core.sql import EngineName
from hotset.databases import connect
from hotset.tpch import answers, data, load, queries, reference, schema

FILES = (
    "schema",
    "indexes",
    "foreign_keys",
    "statistics",
    "drop",
    "counts",
    "integrity",
    "refresh_delete",
    "finish",
)


def parsed(engine: str, number: int) -> Any:  # noqa: ANN401 - sqlglot's own kinds
    dialect = "tsql" if engine == "sqlserver" else engine
    text = queries.text(engine, number, 1)
    return sqlglot.parse_one(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)


def shape(tree: Any) -> dict[str, Any]:  # noqa: ANN401
    """What a query means as far as dialects do not come into it."""
    tables = sorted(table.sql() for table in tree.find_all(exp.Table))
    order = [
        (one.this.name, bool(one.args.get("desc")))
        for one in (tree.args["order"].expressions if tree.args.get("order") else ())
    ]
    groups = [sorted(one.name for one in group.expressions) for group in tree.find_all(exp.Group)]
    limit = tree.args.get("limit")
    return {
        "tables": tables,
        "columns": tree.named_selects,
        "order": order,
        "groups": groups,
        "limit": limit.expression.name if limit else None,
        "distinct": len(list(tree.find_all(exp.Distinct))),
        "subqueries": len(list(tree.find_all(exp.Select))),
        "aggregates": sorted(one.key for one in tree.find_all(exp.AggFunc)),
        "comparisons": sorted(one.key for one in tree.find_all(exp.Predicate)),
        "columns read": sorted(one.sql() for one in tree.find_all(exp.Column)),
        "words": sorted(
            one.name
            for one in tree.find_all(exp.Literal)
            if one.is_string
            and not one.find_ancestor(exp.Interval)
            and one.name != "1900-01-01"  # sqlglot's own way to write YEAR()
        ),
    }


def test_both_dialects_ask_the_same(subtests: pytest.Subtests) -> None:
    """Parsed only: that T-SQL answers alike is for a server to show."""
    for number in queries.ALL:
        with subtests.test(number=str(number)):
            ours, theirs = shape(parsed("postgres", number)), shape(parsed("sqlserver", number))
            assert len(ours["columns"]) == len(queries.kinds(number))
            assert theirs == ours


def test_sql_server_gets_none_of_what_it_lacks(subtests: pytest.Subtests) -> None:
    for number in queries.ALL:
        with subtests.test(number=str(number)):
            text = schema.statement("sqlserver", f"{number:02d}").lower()
            for word in ("limit ", "interval", "extract", "date '", "substring(c_phone from"):
                assert word not in text


def test_both_engines_have_the_same_batches(subtests: pytest.Subtests) -> None:
    for name in FILES:
        with subtests.test(name=str(name)):
            ours, theirs = schema.batches("postgres", name), schema.batches("sqlserver", name)
            assert len(ours) == len(theirs)
            for batch in theirs:
                assert sqlglot.parse(batch.replace(":1", "1"), read="tsql")


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_every_table_of_every_file_is_in_hotsets_schema(engine: str) -> None:
    names = (*(f"{number:02d}" for number in queries.ALL), *FILES, "marked_schema")
    for name in names:
        for batch in schema.batches(engine, name):
            text = re.sub(r"--.*|'[^']*'", "", batch)
            for table in (*schema.TABLES, "tpch_load"):
                kept = re.findall(rf"(?:FROM|JOIN|INTO|UPDATE|TABLE|ON) {table}\b", text)
                assert kept == [], name
    *_, mark = schema.batches(engine, "marked_schema")
    assert f"'{ownership.TPCH.mark}'" in mark


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_columns_stand_in_the_order_of_the_text_files(engine: str) -> None:
    (batch,) = schema.batches(engine, "schema")
    trees = sqlglot.parse(batch, read="tsql" if engine == "sqlserver" else engine)
    found = {
        tree.this.this.name: tuple(one.name for one in tree.this.expressions)
        for tree in trees
        if isinstance(tree, exp.Create)
    }
    assert found.pop("tpch_load") == ("scale_factor",)
    assert found == {one.name: one.columns for one in schema.TABLES.values()}


@pytest.mark.skipif(
    not os.environ.get("HOTSET_SQLSERVER_DSN"), reason="HOTSET_SQLSERVER_DSN names no server"
)
def test_sql_server_answers_as_duckdb_does(folder: Path) -> None:
    """Loads scale 0.01 into the database named, and drops it there afterwards."""
    dsn = os.environ["HOTSET_SQLSERVER_DSN"]
    engine: Any = "sqlserver"
    database = connect.database(engine, dsn).tpch()
    for kit in ownership.KITS:  # TPC-C's tests may have left theirs
        ownership.drop(connect.database(engine, dsn), kit)
    load.load(database, 0.01, folder, processes=1)
    try:
        with closing(database.session()) as session:
            for number, expected in reference.answers(data.prepare(folder, 0.01)):
                found = session.query(queries.text(database.engine, number, 0.01), 600)
                comparison = answers.compare(number, expected, found)
                assert comparison.verdict == "equal", (number, comparison.difference)
    finally:
        ownership.drop(connect.database(engine, dsn), ownership.TPCH)
