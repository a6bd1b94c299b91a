"""``hotset database`` on a PostgreSQL server of the tests' own (SQL Server's: test_engines)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.core.record import document_of
from hotset.databases import report
from hotset.databases.base import Counter, FileIo, Unavailable, Wait
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.report import Reading
from tests.cli_server import CommandLine, Done
from tests.tds_server import certificate, tds_server

MISTYPED = "sqlserver://u@h/d?encrpyt=yes"
NOWHERE = ("--engine", "sqlserver", "--dsn", "sqlserver://u@127.0.0.1:1/d")


def test_a_servers_words_do_not_steer_the_terminal(hotset: CommandLine, tmp_path: Path) -> None:
    with tds_server(certificate(tmp_path, "evil.example")) as server:
        server.refusals = ((18456, "\x1b]0;all is well\x07\u202eno"),)
        dsn = ("--engine", "sqlserver", "--dsn", server.dsn("trust=yes"))
        done = hotset("database", "show", *dsn, env={"HOTSET_PASSWORD": "x"})
    assert r"\x1b]0;all is well\x07\u202eno" in done.err


class Verbs:
    """`hotset database` on one database."""

    def __init__(self, hotset: CommandLine, database: PostgresDatabase) -> None:
        self._hotset, self._base = hotset, database

    def __call__(self, verb: str, *argv: str) -> Done:
        base = self._base
        dsn = f"host={base.host} port={base.port} user={base.user} dbname={base.dbname}"
        done = self._hotset(
            "database",
            verb,
            "--engine",
            "postgres",
            "--dsn",
            dsn,
            *argv,
            env={"HOTSET_PASSWORD": base.password},
        )
        assert base.password not in done.out + done.err
        return done


@pytest.fixture
def session(empty: PostgresDatabase) -> Iterator[PostgresSession]:
    """A superuser's, beside the verbs."""
    with closing(empty.session()) as opened:
        yield opened


@pytest.fixture
def verbs(hotset: CommandLine, empty: PostgresDatabase) -> Verbs:
    return Verbs(hotset, empty)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["show"], ["--engine"]),
        (["show", "--engine", "oracle", "--dsn", "x"], ["--engine", "oracle"]),
        (["show", "--engine", "sqlserver", "--dsn", MISTYPED], ["--dsn", "encrpyt", "encrypt"]),
        (["place", *NOWHERE, "--folder", "tempdb"], ["--folder", "'tempdb'", "full path"]),
        (["place", *NOWHERE, "--folder", "/v", "--log-size", "big"], ["--log-size", "'big'"]),
        (["memory", *NOWHERE, "--size", "-1"], ["--size", "-1"]),
        (["counters", *NOWHERE, "--interval", "-2"], ["--interval", "greater than or equal to 0"]),
    ],
)
def test_wrong_usage(hotset: CommandLine, argv: list[str], words: list[str]) -> None:
    done = hotset("database", *argv)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert [word for word in words if word not in done.err] == []


@pytest.mark.database
def test_show(verbs: Verbs) -> None:
    shown = verbs("show", "--format", "json")
    assert (shown.code, shown.err) == (0, "")
    document = json.loads(shown.out)
    assert document["schema_version"] == 1
    assert document["version"]["product"] == "PostgreSQL"
    assert "empty" in document["databases"]
    assert document["memory"]["cap"] == 256 * 1024**2
    assert document["memory"]["machine"] > document["memory"]["cap"]
    kinds = {file["name"]: file for file in document["files"]}
    assert kinds["pg_wal"]["kind"] == "log"
    assert kinds["pg_wal"]["size"] > 0
    assert kinds["pg_default"]["path"].startswith("/")
    rows = list(csv.DictReader(io.StringIO(verbs("show", "--format", "csv").out)))
    assert {row["name"] for row in rows} == set(kinds)
    sizes = {row["name"]: int(row["size"]) for row in rows if row["size"]}
    assert sizes == {name: file["size"] for name, file in kinds.items() if file["size"]}
    assert "cap 256 MiB" in verbs("show").out


@pytest.mark.database
def test_counters_are_what_the_interval_added(verbs: Verbs) -> None:
    done = verbs("counters", "--interval", "0.2", "--format", "json")
    assert done.code == 0
    assert "counting for 0.2 s" in done.err
    document = json.loads(done.out)
    assert document["interval_s"] == 0.2
    assert "pg_wait_sampling" in document["waits"]["unavailable"]
    commits = {one["name"]: one["value"] for one in document["counters"]}["commits"]
    ever = json.loads(verbs("counters", "--interval", "0", "--format", "json").out)
    assert commits < {one["name"]: one["value"] for one in ever["counters"]}["commits"]
    assert any(one["reads"] for one in ever["files"])


@pytest.mark.database
def test_nothing_changes_without_yes(verbs: Verbs, session: PostgresSession) -> None:
    pending = "SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"
    for argv in (["memory", "--size", "64MiB"], ["place", "--folder", "/nowhere"]):
        dry = verbs(*argv, "--dry-run")
        assert dry.code == 0
        assert dry.out.splitlines()
        assert "nothing was changed" in dry.err
        asked = verbs(*argv)
        assert (asked.code, asked.out) == (2, dry.out)
        assert "--yes" in asked.err
        assert session.query(pending) == [(0,)]


@pytest.mark.database
def test_memory_is_set_for_the_next_start(verbs: Verbs, session: PostgresSession) -> None:
    try:
        done = verbs("memory", "--size", "64MiB", "--yes")
        assert done.code == 0
        assert done.out == "ALTER SYSTEM SET shared_buffers = '64MB'\n"
        assert "restart" in done.err
        assert session.query(
            "SELECT setting FROM pg_file_settings WHERE name = 'shared_buffers'"
            " AND sourcefile LIKE '%auto.conf'"
        ) == [("64MB",)]
    finally:
        session.script("ALTER SYSTEM RESET shared_buffers")
    unsaid = verbs("memory", "--yes")
    assert unsaid.code == 3
    assert "name the size" in unsaid.err


@pytest.mark.database
def test_statistics_are_gathered_when_asked_for(verbs: Verbs, session: PostgresSession) -> None:
    session.script("CREATE TABLE counted AS SELECT generate_series(1, 1000) AS n")
    told = "SELECT reltuples::int FROM pg_class WHERE relname = 'counted'"
    try:
        dry = verbs("statistics", "--dry-run")
        assert (dry.code, dry.out) == (0, "ANALYZE\n")
        assert session.query(told) == [(-1,)]
        assert verbs("statistics", "--yes").code == 0
        assert session.query(told) == [(1000,)]
    finally:
        session.script("DROP TABLE counted")


@pytest.mark.database
def test_a_server_that_cannot_empty_its_buffers_says_so(verbs: Verbs) -> None:
    done = verbs("clear-cache", "--yes")
    assert (done.code, done.out) == (3, "")
    assert "restart it" in done.err


@pytest.mark.database
def test_what_a_server_refuses_ends_with_code_4(verbs: Verbs) -> None:
    done = verbs("place", "--folder", "/nowhere", "--yes")
    assert done.code == 4
    assert "/nowhere/hotset_temp" in done.err
    assert "Traceback" not in done.err


def test_what_is_unavailable_is_said_in_every_form() -> None:
    reading = Reading(
        [FileIo("/d/a.mdf", "data", 5, 40960, 1.5, None, None, None)],
        Unavailable("sys.dm_os_wait_stats: denied"),
        [Counter("Batch Requests", 12.0, gauge=False)],
    )
    found = report.DatabaseCounters.from_reading(reading, 10)
    table = found.to_text()
    assert "waits: unavailable: sys.dm_os_wait_stats: denied" in table
    assert "40,960" in table
    document = document_of(found)
    assert document["waits"] == {"unavailable": "sys.dm_os_wait_stats: denied"}
    rows = list(csv.reader(io.StringIO(found.csv())))
    assert ["waits", "unavailable: sys.dm_os_wait_stats: denied", ""] in rows
    assert ["files.read_bytes", "/d/a.mdf", "40960"] in rows
    assert ["counters.value", "Batch Requests", "12.0"] in rows


def test_a_table_shows_the_longest_waits_first() -> None:
    reading = Reading([], [Wait(f"W{n}", 1, float(n)) for n in range(30)], [])
    lines = report.DatabaseCounters.from_reading(reading, 1).to_text().splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("W")]
    assert shown[:2] == ["W29", "W28"]
    assert len(shown) == 15
