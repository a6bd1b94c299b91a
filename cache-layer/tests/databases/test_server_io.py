"""What the server itself counted: by version, by permission, of a real server."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from hotset.bench.server.time_use import TimeSampler, between
from hotset.core.sql import Aborted, Row
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.postgres.readings import PostgresIo
from hotset.databases.readings import COUNTED as NAMES
from hotset.databases.sqlserver.readings import SqlServerIo
from hotset.reports.model.windows import ServerIo


class Canned:
    """Answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: list[Row] | Aborted) -> None:
        self._answers = iter(answers)
        self.asked: list[str] = []

    def script(self, sql: str) -> None: ...

    def query(self, sql: str) -> list[Row]:
        self.asked.append(sql)
        answer = next(self._answers)
        if isinstance(answer, Aborted):
            raise answer
        return answer

    def close(self) -> None: ...


def rows(**counts: int | None) -> list[Row]:
    return [(name, counts.get(name, 0)) for name in NAMES]


@pytest.mark.parametrize(
    ("version", "asks", "missing"),
    [
        (130013, None, "PostgreSQL 13 does not count what it writes to its log: 14 does"),
        (140009, "pg_stat_bgwriter", "14 does not count syncs of data files: 16 does"),
        (150017, "pg_stat_bgwriter", "15 does not count syncs of data files: 16 does"),
        (170006, "sum(reads * op_bytes)", ""),
        (180001, "object = 'wal'", ""),
    ],
)
def test_each_version_is_asked_for_what_it_counts(
    version: int, asks: str | None, missing: str
) -> None:
    connection = Canned([("x", version)], rows(reads=3))
    io = PostgresIo(connection)
    counts = io.read()
    assert (counts is None) == (asks is None)
    assert asks is None or asks in connection.asked[-1]
    assert missing in io.missing
    assert bool(missing) == bool(io.missing)


def test_sqlserver_without_permission_names_the_grant_and_asks_no_more() -> None:
    connection = Canned(Aborted("error 42000", False, "VIEW SERVER STATE permission was denied"))
    io = SqlServerIo(connection)
    assert io.read() is None
    assert "GRANT VIEW SERVER STATE" in io.missing
    assert io.read() is None
    assert len(connection.asked) == 1


def test_what_sqlserver_does_not_count_is_none() -> None:
    io = SqlServerIo(Canned([("reads", 7), ("log_bytes", 512)]))
    counts = io.read()
    assert counts is not None
    assert (counts["reads"], counts["log_bytes"], counts["log_syncs"]) == (7, 512, None)


def test_what_was_added() -> None:
    first = dict.fromkeys(NAMES, 10) | {"fsyncs": None}
    last = dict.fromkeys(NAMES, 10) | {"fsyncs": None, "reads": 25, "log_bytes": 1010}
    found = between(first, last, 5)
    assert found == ServerIo(
        **{**dict.fromkeys(NAMES, 0), "reads": 15, "log_bytes": 1000, "fsyncs": None}, seconds=5
    )
    assert between(last, first, 5) is None, "the counters restarted"
    assert between(first, last, 0) is None


@pytest.mark.database
def test_a_real_server_counts_pages_and_log(empty: PostgresDatabase) -> None:
    """Rows of some MB are written: their log is counted, within a second of their commit."""
    with TimeSampler(empty.readings()) as sampler, closing(empty.session()) as session:
        start = time.time()
        deadline = start + 60
        session.script(
            "CREATE TABLE filled AS SELECT n, repeat('x', 500) AS text"
            " FROM generate_series(1, 10000) AS n"
        )
        while True:
            # A backend tells its counts when it next does something, at most once a second.
            session.script("SELECT 1")
            found = sampler.io_window(start, time.time())
            if found is not None and (found.log_bytes or 0) >= 5_000_000:
                break
            assert time.time() < deadline, found
            time.sleep(0.2)
        session.script("DROP TABLE filled")
    assert found.log_syncs is not None
    assert found.reads is not None
    assert found.writes is not None
