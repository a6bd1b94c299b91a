"""`hotset sql run` on a database that is not TPC's."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotset.databases.postgres.product import PostgresDatabase
from tests.cli_server import CommandLine, Done, plain_environment
from tests.postgres_cluster import PASSWORD, Cluster
from tests.pseudo_terminal import HOTSET

pytestmark = pytest.mark.database

SCHEMA = """
CREATE TABLE item (id integer PRIMARY KEY, price numeric NOT NULL, stock integer NOT NULL);
INSERT INTO item SELECT n, n % 20, 1000000 FROM generate_series(1, 1000) n;
CREATE TABLE sale (item integer NOT NULL, price numeric, at timestamptz NOT NULL DEFAULT now());
"""
CHECKOUT = r"""
\set item random_zipfian(1, :items, 1.2)
BEGIN;
SELECT price, price > 9 AS dear FROM item WHERE id = :item \gset it_
\if :it_dear
UPDATE item SET stock = stock - 1 WHERE id = :item;
\endif
INSERT INTO sale (item, price) VALUES (:item, :it_price);
COMMIT;
"""
SEARCH = "\\set low random(1, 900)\nSELECT count(*) FROM item WHERE id BETWEEN :low AND :low + 9;\n"
SHORT = ("--users", "2", "--rampup", "0", "--duration", "2")


class Sql:
    """`hotset sql run` in a shop of its own."""

    def __init__(self, hotset: CommandLine, database: PostgresDatabase, folder: Path) -> None:
        self._hotset = hotset
        self.database = database
        self.folder = folder

    def write(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(text)
        return str(file)

    def __call__(self, *options: str) -> Done:
        database = self.database
        dsn = f"host={database.host} port={database.port} user={database.user} dbname=shop"
        env = {"HOTSET_DSN": dsn, "HOTSET_PASSWORD": PASSWORD}
        return self._hotset("sql", "run", *options, env=env)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with closing(self.database.session()) as session:
            return list(session.query(query))


@pytest.fixture
def sql(hotset: CommandLine, cluster: Cluster, tmp_path: Path) -> Iterator[Sql]:
    with cluster.fresh("shop") as database:
        with closing(database.session()) as session:
            session.script(SCHEMA)
        yield Sql(hotset, database, tmp_path)


def refused(done: Done, code: int, *words: str) -> None:
    said = [line for line in done.err.splitlines() if line.startswith("hotset: ")]
    assert (done.code, len(said)) == (code, 1), done.err
    for word in words:
        assert word in said[0]


@pytest.fixture
def scripts(sql: Sql) -> tuple[str, ...]:
    checkout, search = sql.write("checkout.sql", CHECKOUT), sql.write("search.sql", SEARCH)
    return "--script", f"{checkout}@70", "--script", f"{search}@30", "-D", "items=1000"


def window_of(document: Any) -> Any:  # noqa: ANN401 - JSON
    """The one of a run."""
    ((window,),) = (arm["repeats"] for arm in document["arms"])
    return window


@pytest.mark.parametrize("protocol", ["prepared", "simple"])
@pytest.mark.night
def test_scripts_are_run_by_their_weights(
    sql: Sql, scripts: tuple[str, ...], tmp_path: Path, protocol: str
) -> None:
    file = tmp_path / "run.json"
    more = ("--protocol", protocol, "--format", "json", "--output", str(file))
    done = sql(*scripts, *SHORT, *more)
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found == json.loads(file.read_text())
    window = window_of(found)
    kinds = window["transactions"]
    checkouts, searches = kinds["checkout"]["committed"], kinds["search"]["committed"]
    assert checkouts / (checkouts + searches) == pytest.approx(0.7, abs=0.15)
    assert window["failed"] == 0
    assert window["tpm"] / 60 == pytest.approx((checkouts + searches) / 2)
    assert [one["weight"] for one in found["experiment"]["scripts"]] == [70, 30]
    assert window["time"]["sessions"] == pytest.approx(2, abs=1)
    # Some ended before the window and after it.
    ((sales, wrong),) = sql.rows(
        "SELECT count(*), count(*) FILTER (WHERE price <> item % 20) FROM sale"
    )
    assert checkouts <= int(str(sales))
    assert wrong == 0
    ((updates,),) = sql.rows("SELECT sum(1000000 - stock) FROM item")
    ((dear,),) = sql.rows("SELECT count(*) FROM sale WHERE price > 9")
    assert updates == dear


@pytest.mark.night
def test_a_run_as_a_table_with_thresholds_and_as_csv(
    sql: Sql, scripts: tuple[str, ...], tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    limits = ("--threshold", "tps>=1", "--threshold", "p99(search)<1us", "--junit", str(junit))
    done = sql(*scripts, *SHORT, *limits, "--rate", "50/s")
    refused(done, 5, "p99(search)<1us: missed, measured")
    for word in ("TPS", "checkout", "requested", "tps>=1: met", "users' time goes"):
        assert word in done.out
    assert 'classname="hotset.sql.run.2-users"' in junit.read_text()
    rows = sql(*scripts, *SHORT, "--format", "csv")
    assert [row["second"] for row in csv.DictReader(io.StringIO(rows.out))] == ["0", "1"]


@pytest.mark.night
def test_each_run_draws_other_rows_unless_it_is_given_a_seed(sql: Sql) -> None:
    """The same rows again would be in memory; which ones are popular stays."""
    script = sql.write(
        "draw.sql",
        "\\set n random(1, 1000000)\nINSERT INTO sale VALUES (:n, :default_seed);\n",
    )

    def rows(*more: str) -> tuple[int, list[tuple[object, ...]]]:
        with closing(sql.database.session()) as session:
            session.script("TRUNCATE sale")
        done = sql("--script", script, *SHORT, *more, "--users", "1", "--format", "json")
        assert done.code == 0, done.err
        kept = sql.rows("SELECT item, price::bigint FROM sale ORDER BY at LIMIT 20")
        return window_of(json.loads(done.out))["seed"], kept

    first, second = rows(), rows()
    assert first[0] != second[0]
    assert {item for item, _ in first[1]} != {item for item, _ in second[1]}
    assert {popular for _, popular in first[1] + second[1]} == {1}
    again = rows("--seed", str(first[0]))
    assert [item for item, _ in again[1]] == [item for item, _ in first[1]]
    assert {popular for _, popular in again[1]} == {first[0]}


@pytest.mark.night
def test_several_numbers_of_users_give_a_curve(sql: Sql, scripts: tuple[str, ...]) -> None:
    done = sql(*scripts, *SHORT, "--users", "1,2", "--duration", "1", "--fresh")
    assert done.code == 0, done.err
    assert "peak: " in done.out
    assert "TPS" in done.out
    assert sql.rows("SELECT count(*) FROM sale") == [(0,)]


@pytest.mark.night
def test_a_rate_is_found(sql: Sql, scripts: tuple[str, ...]) -> None:
    given = ("--find-rate", "p95<5s", "--duration", "1", "--format", "json")
    done = sql(*scripts, *SHORT, *given)
    assert done.code in (0, 5), done.err  # a busy computer may reach none
    assert json.loads(done.out)["arms"][0]["rates"][0]["trials"]


def test_what_pgbench_cannot_read_is_told_by_file_and_line_before_anything_runs(sql: Sql) -> None:
    script = sql.write("a.sql", "INSERT INTO sale (item) VALUES (1);\n\\set n random(1\n")
    refused(sql("--script", script, *SHORT), 2, "a.sql:2: syntax error in command")
    assert sql.rows("SELECT count(*) FROM sale") == [(0,)]
    script = sql.write("b.sql", "SELECT 1;\n\\shell rm\n")
    refused(sql("--script", script, *SHORT), 2, "b.sql:2: \\shell is not supported")


def test_a_script_that_fails_ends_the_run_with_the_servers_words(sql: Sql) -> None:
    bad = sql.write(
        "bad.sql", "INSERT INTO sale (item) VALUES (7);\nSELECT 1 / (:client_id * 0);\n"
    )
    done = sql("--script", bad, "--users", "1", "--duration", "300", "--threshold", "tps>=0")
    refused(done, 4, "bad.sql: client 0 script 0 aborted", "ERROR: division by zero")


@pytest.mark.night
def test_a_servers_limit_that_ends_statements_is_named(sql: Sql) -> None:
    with closing(sql.database.session()) as session:
        session.script("ALTER ROLE tester SET statement_timeout = 100")
    try:
        script = sql.write("slow.sql", "SELECT pg_sleep(1);\n")
        done = sql("--script", script, *SHORT)
    finally:
        lifted = replace(sql.database, more=(("options", "-c statement_timeout=0"),))
        with closing(lifted.session()) as session:
            session.script("ALTER ROLE tester RESET statement_timeout")
    whose = "statement_timeout is 100 ms, by the role's settings (ALTER ROLE): lift it"
    refused(done, 4, "slow.sql: ", "canceling statement due to statement timeout", whose)


def test_bad_options_are_refused_by_name(sql: Sql, scripts: tuple[str, ...]) -> None:
    refused(sql(*scripts, *SHORT, "--threshold", "nopm>=1"), 2, "no metric 'nopm'; there are tps")
    refused(sql(*scripts, "--users", "0"), 2, "users")
    refused(sql(*scripts, "--rate", "much"), 2, "rate 'much'")
    refused(sql(*scripts[:2], *scripts, *SHORT), 2, "two scripts are called checkout")
    refused(sql("--script", "none.sql@x", *SHORT), 2, "the weight behind @")


@pytest.mark.night
def test_a_byte_order_mark_is_no_sql(sql: Sql) -> None:
    script = sql.write("search.sql", "\ufeff" + SEARCH)
    done = sql("--script", script, *SHORT)
    assert done.code == 0, done.err


def test_ctrl_c_of_a_terminal_keeps_what_was_measured(sql: Sql, tmp_path: Path) -> None:
    """A terminal sends it to every process of the run, those of its users included."""
    file, said = tmp_path / "run.json", tmp_path / "said"
    script, database = sql.write("search.sql", SEARCH), sql.database
    dsn = f"host={database.host} port={database.port} user={database.user} dbname=shop"
    words = ("--users", "4", "--rampup", "0", "--duration", "300", "--output", str(file))
    with said.open("w") as err:
        program = subprocess.Popen(
            [HOTSET, "sql", "run", "--dsn", dsn, "--script", script, *words],
            env={**plain_environment(), "HOTSET_PASSWORD": PASSWORD},
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            start_new_session=True,
        )
        try:
            while "progress: " not in said.read_text() and program.poll() is None:
                time.sleep(0.1)
            os.killpg(program.pid, signal.SIGINT)
            out, _ = program.communicate()
        finally:
            program.kill()
    assert program.returncode == 130, said.read_text()
    assert "partial: " in out, said.read_text()
    assert json.loads(file.read_text())["state"] == "interrupted"
    assert "Traceback" not in said.read_text()
    assert "SpawnProcess" not in said.read_text()
