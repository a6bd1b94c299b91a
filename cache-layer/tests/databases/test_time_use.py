"""Where the users' time goes: classes of waits, differences of readings, and a real server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench.server.time_use import CLASSES, Reading, TimeSampler
from hotset.core.sql import Aborted, Row
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.postgres.readings import (
    PostgresReadings,
    WaitSamplingReadings,
    postgres_class,
)
from hotset.databases.sqlserver.readings import SqlServerIo, SqlServerReadings


class Canned:
    """Answers the statements in turn, as a server would."""

    def __init__(self, *answers: list[Row] | Aborted) -> None:
        self._answers = iter(answers)

    def script(self, sql: str) -> None:
        assert "application_name" in sql

    def query(self, sql: str) -> list[Row]:  # noqa: ARG002
        answer = next(self._answers)
        if isinstance(answer, Aborted):
            raise answer
        return answer

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (("active", "IO", "DataFilePrefetch"), "data_read"),
        (("active", "IO", "DataFileExtend"), "data_write"),
        (("active", "IO", "SLRURead"), "data_read"),
        (("active", "IO", "BufFileWrite"), "data_write"),
        (("active", "IO", "WALWrite"), "log"),
        (("active", "IO", "WalSync"), "log"),
        (("active", "IPC", "BufferIO"), "data_read"),
        (("active", "IPC", "SyncRep"), "log"),
        (("active", "LWLock", "WALInsert"), "log"),
        (("active", "LWLock", "BufferContent"), "lock"),
        (("active", "BufferPin", "BufferPin"), "lock"),
        (("active", "Timeout", "PgSleep"), "other"),
        (("active", "Client", "ClientWrite"), "client"),
        (("idle in transaction", "Client", "ClientRead"), "client"),
    ],
    ids=str,
)
def test_classes_of_postgres(wait: tuple[str, str, str], expected: str) -> None:
    assert postgres_class(*wait) == expected


def test_each_session_counts_the_time_since_the_last_sample() -> None:
    rows: list[Row] = [("active", None, None, 3), ("idle", "Client", "ClientRead", 1)]
    reading = PostgresReadings(Canned(rows, rows, rows), "me")
    assert set(reading.read(10.0).values()) == {0.0}
    reading.read(10.5)
    assert reading.read(11.0) == {"cpu": 3.0, "client": 1.0}
    assert reading.missing == ""


def test_hidden_sessions_name_the_grant() -> None:
    rows: list[Row] = [(None, None, None, 4)]
    reading = PostgresReadings(Canned(rows), "me")
    assert reading.read(1.0) == {}
    assert reading.missing.endswith("GRANT pg_monitor TO me shows them")


def test_waits_of_sqlserver_are_differences_and_the_rest_is_the_client_s() -> None:
    first: list[Row] = [("PAGEIOLATCH_SH", 1000, 10), ("WRITELOG", 500, 0)]
    last: list[Row] = [("PAGEIOLATCH_SH", 3000, 110), ("WRITELOG", 1000, 0), ("LCK_M_X", 400, 0)]
    reading = SqlServerReadings(Canned(first, [(4, 100)], last, [(4, 1100)]))
    assert set(reading.read(50.0).values()) == {0.0}
    spent = reading.read(52.0)
    assert spent == pytest.approx(
        {
            "cpu": 1.1,
            "data_read": 2.0,
            "data_write": 0.0,
            "log": 0.5,
            "lock": 0.4,
            "client": 4.0,
            "other": 0.0,
        }
    )
    assert sum(spent.values()) == pytest.approx(4 * 2)


def test_sqlserver_without_permission_names_the_grant() -> None:
    refused = Aborted("error 42000", False, "VIEW SERVER STATE permission was denied")
    with TimeSampler(SqlServerReadings(Canned(refused))) as sampler:
        time.sleep(0.05)
    assert "GRANT VIEW SERVER STATE" in sampler.missing
    assert sampler.window(0, 1) is None


def test_sqlserver_that_has_no_such_view_is_told_in_its_words() -> None:
    """A permission would not bring it: a compatible server may lack it, and `sa` has them all."""
    lacks = Aborted("error 208", False, "relation sys.dm_os_wait_stats does not exist")
    with TimeSampler(SqlServerReadings(Canned(lacks))) as sampler:
        time.sleep(0.05)
    assert sampler.missing == (
        "waits are not seen: error 208: relation sys.dm_os_wait_stats does not exist"
    )
    counts = SqlServerIo(Canned(lacks))
    assert counts.read() is None
    assert "GRANT" not in counts.missing
    assert "sys.dm_os_wait_stats does not exist" in counts.missing


def profile(*rows: tuple[int, bool, str | None, str | None, int]) -> list[Row]:
    return list(rows)


def test_pg_wait_sampling_s_counts_are_differences_and_the_rest_is_cpu() -> None:
    """Two sessions that are somebody's, one that is idle for long, one that comes later."""
    first = profile(
        (1, True, "IO", "DataFileRead", 5000),
        (2, True, "Client", "ClientRead", 900),
        (3, False, "Client", "ClientRead", 70_000),
    )
    last = profile(
        (1, True, "IO", "DataFileRead", 6500),
        (1, True, "IO", "WALSync", 200),
        (2, True, "Client", "ClientRead", 1900),
        (3, False, "Client", "ClientRead", 72_000),
        (4, True, None, None, 0),
    )
    reading = WaitSamplingReadings(Canned(first, last), "")
    assert sum(reading.read(10.0).values()) == 0
    spent = reading.read(12.0)
    assert spent["data_read"] == pytest.approx(1.5)
    assert spent["log"] == pytest.approx(0.2)
    assert spent["client"] == pytest.approx(1.0)
    assert sum(spent.values()) == pytest.approx(3 * 2.0), "three sessions for two seconds"


def test_no_more_is_waited_than_there_was_time() -> None:
    first = profile((1, True, "IO", "DataFileRead", 0))
    last = profile((1, True, "IO", "DataFileRead", 1300))
    reading = WaitSamplingReadings(Canned(first, last), "")
    reading.read(10.0)
    assert reading.read(11.0) == {"data_read": pytest.approx(1.0), "cpu": 0}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (([],), PostgresReadings),
        (([("ext",)], Aborted("error 55000", False, "must be loaded via ...")), PostgresReadings),
        (([("ext",)], []), WaitSamplingReadings),
    ],
    ids=["not installed", "not loaded", "there"],
)
def test_pg_wait_sampling_is_taken_where_it_is(
    answers: tuple[list[Row] | Aborted, ...], expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = PostgresDatabase("127.0.0.1", 1, "me", "secret", "shop")
    monkeypatch.setattr(PostgresDatabase, "session", lambda _: Canned(*answers))
    assert type(database.readings()) is expected


def with_readings(times: Sequence[float], spent: Sequence[dict[str, float]]) -> TimeSampler:
    sampler = TimeSampler(PostgresReadings(Canned(), "me"))
    sampler.readings = [
        Reading(at, one)  # type: ignore[arg-type]
        for at, one in zip(times, spent, strict=True)
    ]
    return sampler


shares = st.lists(st.floats(0, 50), min_size=7, max_size=7)


@given(st.lists(shares, min_size=2, max_size=12))
def test_shares_of_a_window_add_up(gains: list[list[float]]) -> None:
    spent = [dict.fromkeys(CLASSES, 0.0)]
    for gain in gains:
        spent.append({name: spent[-1][name] + one for name, one in zip(CLASSES, gain, strict=True)})
    times = [100 + 0.1 * number for number in range(len(spent))]
    use = with_readings(times, spent).window(times[0], times[-1])
    if sum(map(sum, gains)) == 0:
        assert use is None
        return
    assert use is not None
    assert sum(getattr(use, name) for name in CLASSES) == pytest.approx(1, abs=0.001)
    assert use.sessions == pytest.approx(sum(map(sum, gains)) / (times[-1] - times[0]), abs=0.01)


def test_a_second_without_readings_has_no_shares() -> None:
    times = [100.0, 101.0, 110.0, 111.0]
    sampler = with_readings(times, [{"cpu": at - 100} for at in times])
    found = sampler.each_second(100.0, 11)
    assert [second for second, one in enumerate(found) if one is not None] == [0, 10]


@contextmanager
def busy(database: PostgresDatabase, *statements: str) -> Iterator[None]:
    """Sessions that do these again and again."""
    over = threading.Event()

    def work(statement: str) -> None:
        with closing(database.session()) as session:
            while not over.is_set():
                session.script(statement)

    threads = [threading.Thread(target=work, args=(one,)) for one in statements]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


@pytest.mark.database
def test_a_real_server_s_sessions(empty: PostgresDatabase) -> None:
    """Three that compute and one that sleeps: three quarters of the time are CPU."""
    # Long, and in memory: one series alone is written to a file, and its client asks ever again.
    compute = "SELECT count(*) FROM generate_series(1, 1000) a, generate_series(1, 2000) b"
    sampler = TimeSampler(empty.readings())
    with busy(empty, compute, compute, compute, "SELECT pg_sleep(0.5)"), sampler:
        start = time.time()
        time.sleep(3)
        end = time.time()
    use = sampler.window(start, end)
    assert use is not None
    assert sampler.missing == ""
    assert use.sessions == pytest.approx(4, abs=0.5)
    assert use.other == pytest.approx(0.25, abs=0.08)
    assert use.cpu > 0.5
    assert all(one is not None for one in sampler.each_second(start, 3))
    gaps = [after.at - before.at for before, after in pairwise(sampler.readings)]
    assert len(gaps) > 10


@pytest.mark.database
def test_locks_of_a_real_server(empty: PostgresDatabase) -> None:
    with closing(empty.session()) as holder, closing(empty.session()) as waiter:
        holder.script("CREATE TABLE one (n integer)")
        holder.script("BEGIN; LOCK TABLE one")
        thread = threading.Thread(target=waiter.script, args=("LOCK TABLE one",))
        # In a transaction of its own, or LOCK TABLE is refused.
        waiter.script("BEGIN")
        thread.start()
        with TimeSampler(empty.readings()) as sampler:
            start = time.time()
            time.sleep(1.5)
            end = time.time()
        holder.script("COMMIT")
        thread.join()
        waiter.script("COMMIT; DROP TABLE one")
    use = sampler.window(start, end)
    assert use is not None
    assert use.lock == pytest.approx(0.5, abs=0.1)  # the holder is idle in its transaction
    assert use.client == pytest.approx(0.5, abs=0.1)


@pytest.fixture
def stranger(empty: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """The same database, by a role that may log in and nothing else."""
    with closing(empty.session()) as session:
        session.script("CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
        try:
            yield replace(empty, user="stranger", password="stranger")  # noqa: S106
        finally:
            session.script("DROP ROLE stranger")


@pytest.mark.database
def test_sessions_of_another_role_are_hidden_and_the_grant_is_named(
    empty: PostgresDatabase, stranger: PostgresDatabase
) -> None:
    with busy(empty, "SELECT pg_sleep(0.2)"), TimeSampler(stranger.readings()) as sampler:
        time.sleep(0.5)
    assert f"GRANT pg_monitor TO {stranger.user}" in sampler.missing
