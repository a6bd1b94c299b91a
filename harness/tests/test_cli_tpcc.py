"""``hotset tpcc`` on a real server: what it prints, writes and refuses, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import signal
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from hotset.harness.engines.postgres import PostgresDatabase, _meaning
from hotset.harness.live import View, sparkline
from hotset.reports.document import SCHEMA_VERSION
from hotset.tpcc.record import Phase, RunOptions, Tick
from tests.cli_server import CommandLine, Done

database_needed = pytest.mark.database
SHORT = ("--users", "2", "--warehouses", "2", "--rampup", "0", "--duration", "2")


class Server(Protocol):
    """What a test does to the server of tests.postgres_cluster."""

    def kill(self) -> None: ...
    def start(self) -> None: ...


class Tpcc:
    """The verbs, on one database; the password travels in the environment."""

    def __init__(self, hotset: CommandLine, database: PostgresDatabase) -> None:
        self._hotset = hotset
        self._database = database

    def __call__(
        self,
        verb: str,
        *argv: str,
        env: Mapping[str, str] | None = None,
        **how: Any,  # noqa: ANN401
    ) -> Done:
        base = self._database
        dsn = f"host={base.host} port={base.port} user={base.user} dbname={base.dbname}"
        secrets = {"HOTSET_PASSWORD": base.password, **(env or {})}
        return self._hotset("tpcc", verb, "--dsn", dsn, *argv, env=secrets, **how)


@pytest.fixture
def tpcc(hotset: CommandLine, database: PostgresDatabase) -> Tpcc:
    """On two warehouses."""
    return Tpcc(hotset, database)


def one_line(done: Done, code: int, *words: str) -> None:
    """This code, and one line of hotset's that holds the words."""
    said = [line for line in done.err.splitlines() if line.startswith("hotset: ")]
    assert (done.code, len(said)) == (code, 1), done.err
    assert "hotset: unexpected" not in said[0]
    for word in words:
        assert word in said[0]


@database_needed
def test_a_run_prints_and_writes_everything(tpcc: Tpcc, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = tpcc("run", *SHORT, "--format", "json", "--output", str(file))
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    assert printed == json.loads(file.read_text())
    assert (printed["schema_version"], printed["state"]) == (SCHEMA_VERSION, "complete")
    assert printed["result"]["nopm"] > 100
    assert len(printed["result"]["series"]) == 2
    assert printed["result"]["options"]["all_warehouses"] is True
    assert [one["holds"] for one in printed["conditions"]] == [True] * 12


@database_needed
def test_a_run_as_csv_is_the_window_second_by_second(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--format", "csv", "--no-check", "--home-warehouses")
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["second"] for row in rows] == ["0", "1"]
    assert all(int(row["transactions"]) > 0 for row in rows)
    assert "conditions" not in done.err


@database_needed
def test_a_run_as_a_table(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--no-check", "--quiet")
    assert (done.code, done.err) == (0, "")
    for word in ("NOPM", "TPM", "new-order", "stock-level", "p99"):
        assert word in done.out


@database_needed
def test_what_cannot_be_run_is_said_before_it_starts(tpcc: Tpcc, tmp_path: Path) -> None:
    one_line(tpcc("run", *SHORT, "--users", "900"), 4, "900 users need 901", "max_connections")
    one_line(tpcc("run", *SHORT, "--warehouses", "9"), 4, "has 2 warehouses, the run asks for 9")
    done = tpcc("run", *SHORT, "--output", str(tmp_path))
    assert (done.code, "--output" in done.err) == (2, True)


@database_needed
def test_a_wrong_password_is_not_echoed(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, env={"HOTSET_PASSWORD": "open-sesame"})
    one_line(done, 4, "password authentication failed")
    assert "open-sesame" not in done.err + done.out


@database_needed
def test_a_server_that_dies_leaves_the_partial_series(
    tpcc: Tpcc, cluster: Server, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    killer = threading.Timer(3.5, cluster.kill)
    killer.start()
    try:
        done = tpcc("run", *SHORT, "--duration", "60", "--output", str(file), "-f", "csv")
    finally:
        killer.join()
        cluster.start()
    one_line(done, 4)
    written = json.loads(file.read_text())
    assert written["state"] == "failed"
    assert written["cause"]
    assert written["conditions"] is None
    assert written["result"]["series"][0]["transactions"] > 0
    assert len(list(csv.reader(io.StringIO(done.out)))) == len(written["result"]["series"]) + 1


@database_needed
def test_an_interrupted_run_ends_with_130(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--duration", "60", interrupt=("progress: ", signal.SIGINT))
    assert done.code == 130
    assert done.out == ""


@database_needed
def test_build_does_not_overwrite_unasked(tpcc: Tpcc, database: PostgresDatabase) -> None:
    one_line(tpcc("build", "-w", "1"), 2, "TPC-C tables already", "--replace")
    with closing(database.session()) as session:
        assert session.query("SELECT count(*) FROM warehouse") == [(2,)]


@database_needed
def test_check_names_what_is_violated(tpcc: Tpcc, database: PostgresDatabase) -> None:
    damage = "UPDATE warehouse SET w_ytd = w_ytd {} 1 WHERE w_id = 2"
    with closing(database.session()) as session:
        session.script(damage.format("+"))
        try:
            done = tpcc("check", "--format", "csv")
        finally:
            session.script(damage.format("-"))
    one_line(done, 4, "condition 1 (W_YTD = sum(D_YTD)): 1 violation, such as (2, ", "condition 8")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert {row["number"] for row in rows if row["violations"] != "0"} == {"1", "8"}


@database_needed
def test_build_check_and_drop(hotset: CommandLine, empty: PostgresDatabase) -> None:
    tpcc = Tpcc(hotset, empty)
    one_line(tpcc("check"), 4, "not all TPC-C tables", "hotset tpcc build")
    one_line(tpcc("run", *SHORT), 4, "load the database first")
    built = tpcc("build", "-w", "1")
    assert built.code == 0, built.err
    assert "all 12 conditions hold" in built.err
    kept = tpcc("drop", stdin="n\n")
    assert (kept.code, "nothing dropped" in kept.err) == (1, True)
    assert "dropped item, warehouse" in tpcc("drop", "--yes").err
    assert "there was none" in tpcc("drop", "--yes").err


def test_where_is_no_database(hotset: CommandLine) -> None:
    with_password = hotset("tpcc", "check", "--dsn", "postgresql://me:open-sesame@nowhere/x")
    one_line(with_password, 2, "--dsn holds a password", "HOTSET_PASSWORD")
    assert "open-sesame" not in with_password.err
    one_line(hotset("tpcc", "check", "--dsn", "nonsense"), 2, "--dsn is neither")
    refused = hotset("tpcc", "run", "--dsn", "host=127.0.0.1 port=1 user=x dbname=x")
    one_line(refused, 4, "cannot connect", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--engine", "oracle"], "oracle"),
        (["--users", "0"], "--users"),
        (["--duration", "0"], "--duration"),
        (["--format", "xml"], "xml"),
        ([], "--dsn"),
    ],
    ids=str,
)
def test_wrong_usage(hotset: CommandLine, argv: list[str], word: str) -> None:
    dsn = ["--dsn", "host=x"] if argv else []
    done = hotset("tpcc", "run", *dsn, *argv)
    assert (done.code, done.out) == (2, "")
    assert word in done.err


def test_a_full_disk_is_called_that() -> None:
    assert str(_meaning("53100", "could not extend file", broken=False)).startswith("disk full: ")


def test_the_live_view_shows_the_last_minute() -> None:
    view = View(RunOptions(2, 2, 10, 90))
    assert sparkline([0, 1, 4, 8]) == "▁▂▄█"
    view.take(Phase("measure"))
    for second in range(80):
        view.take(Tick(second, "measure", 10, second, second == 70, 1.0, 2.0))
    lines = [str(line) for line in view.render().renderables]
    assert "measure  80 of 100 s, 20 s left" in lines[0]
    assert "600" in lines[1]
    assert "4,740" in lines[2]
    assert len(lines[2].split()[-1]) == 60
    assert "failed 1" in lines[4]
