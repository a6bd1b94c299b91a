"""Whole runs against a real server, and the ways they end."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.local import start_time
from hotset.core.sql import Aborted, SetupError
from hotset.databases.postgres.product import PostgresDatabase
from hotset.load.latency import Latencies
from hotset.load.record import NotServed, Phase, RunFailed, Tick
from hotset.load.worker import RETRIES
from hotset.reports.model.windows import Repeat
from hotset.tpcc.data.consistency import check
from hotset.tpcc.database import Database, Session
from hotset.tpcc.driver import run
from hotset.tpcc.native import PROGRAM
from hotset.tpcc.record import RunOptions
from hotset.tpcc.schema import batches, create
from hotset.tpcc.transactions import Kind
from tests.postgres_cluster import Cluster, children
from tests.without_libpq import WithoutLibpq

pytestmark = pytest.mark.database


OPTIONS = RunOptions(users=4, warehouses=2, rampup_s=1, duration_s=3)
SECONDS = int(OPTIONS.duration_s)


def driven(database: PostgresDatabase, driver: str) -> Database:
    return database if driver == "compiled" else WithoutLibpq(database)


both_drivers = pytest.mark.parametrize("driver", ["compiled", "python"])


@pytest.fixture(scope="module", params=["compiled", "python"])
def finished(
    request: pytest.FixtureRequest, loaded: tuple[PostgresDatabase, object]
) -> tuple[Repeat, list[Tick | Phase]]:
    """One run by each driver, for several tests, and what its observer saw."""
    seen: list[Tick | Phase] = []
    return run(driven(loaded[0], request.param), OPTIONS, seen.append), seen


def workers(parent: int) -> list[int]:
    """A process's living children that are users of a run, by either driver."""
    found = []
    for pid in children(parent):
        with suppress(OSError):
            argv = Path(f"/proc/{pid}/cmdline").read_bytes()
            if PROGRAM.encode() in argv or b"multiprocessing.spawn" in argv:
                found.append(pid)
    return found


Finished = tuple[Repeat, list[Tick | Phase]]


def test_mix_and_rollbacks(finished: Finished) -> None:
    kinds = finished[0].transactions
    total = sum(kind.committed + kind.rolled_back for kind in kinds.values())
    assert total > 200
    for kind, percent in zip(Kind, (45, 43, 4, 4, 4), strict=True):
        share = (kinds[kind.label].committed + kinds[kind.label].rolled_back) / total
        assert share * 100 == pytest.approx(percent, abs=1 + 1000 / total)
    new_order = kinds["new_order"]
    rolled_back = new_order.rolled_back / (new_order.committed + new_order.rolled_back)
    assert 0 < rolled_back < 0.04
    assert finished[0].failed == 0


def test_totals_agree(finished: Finished) -> None:
    result = finished[0]
    minutes = OPTIONS.duration_s / 60
    committed = sum(kind.committed for kind in result.transactions.values())
    assert len(result.series) == SECONDS
    assert sum(second.tpm for second in result.series) == committed * 60
    new_orders = result.transactions["new_order"].committed
    assert sum(second.nopm or 0 for second in result.series) == new_orders * 60
    assert result.tpm * minutes == pytest.approx(committed)
    assert result.nopm * minutes == pytest.approx(result.transactions["new_order"].committed)
    assert result.duration_s == pytest.approx(OPTIONS.duration_s)
    assert abs(result.span[1] - time.time()) < 60


def test_the_server_counts_the_same_orders(finished: Finished) -> None:
    result = finished[0]
    # The two are not counted at the same moment: on a busy computer a tenth of the window's three
    # seconds lies between.
    assert result.nopm_by_district == pytest.approx(result.nopm, rel=0.05)


def test_the_age_of_the_database_is_what_runs_added(finished: Finished) -> None:
    before = finished[0].orders_before
    assert before is not None
    assert 0 < before < 1_000_000


def test_latencies_are_ordered(finished: Finished) -> None:
    kinds = finished[0].transactions.values()
    for latency in (finished[0].latency_ms, *(kind.latency_ms for kind in kinds)):
        assert latency is not None
        found = (latency.p50, latency.p95, latency.p99, latency.max)
        numbers = [value for value in found if value is not None]
        assert len(numbers) == 4
        assert numbers == sorted(numbers)
        assert 0 < numbers[0] < numbers[3] < 5000


def test_observer_sees_phases_in_order_and_every_second(finished: Finished) -> None:
    result, seen = finished
    assert [event.name for event in seen if isinstance(event, Phase)] == [
        "rampup",
        "measure",
        "done",
    ]
    ticks = [event for event in seen if isinstance(event, Tick)]
    assert [tick.second for tick in ticks] == list(range(SECONDS + 1))
    assert [tick.phase for tick in ticks] == ["rampup"] + ["measure"] * SECONDS
    # What a busy computer reports after the last second's tick is in the result alone.
    measured, whole = sum(tick.transactions for tick in ticks[1:]), result.series
    assert sum(one.tpm for one in whole[:-1]) <= measured * 60
    assert measured * 60 <= sum(one.tpm for one in whole)


@pytest.mark.usefixtures("finished")
def test_database_is_consistent_after_the_run(database: PostgresDatabase) -> None:
    with closing(database.session()) as session:
        assert [result for result in check(database, session) if not result.holds] == []


@pytest.mark.usefixtures("finished")
def test_no_process_is_left() -> None:
    assert workers(os.getpid()) == []


def test_users_at_home_with_think_times_are_slow(database: PostgresDatabase) -> None:
    options = replace(OPTIONS, all_warehouses=False, think_time=True, rampup_s=0, duration_s=1)
    with pytest.raises(NotServed, match="no transaction got through in the window") as failure:
        run(database, options)
    assert failure.value.partial is not None
    assert failure.value.partial.tpm == 0
    assert failure.value.partial.latency_ms is None


@both_drivers
def test_a_rate_is_kept_and_counted(driver: str, database: PostgresDatabase) -> None:
    options = replace(OPTIONS, rate_per_s=100.0, duration_s=4)
    result = run(driven(database, driver), options)
    assert result.arrived is not None
    assert result.arrived.due == pytest.approx(400, abs=6 * 400**0.5)
    done = result.tpm * 4 / 60 + result.transactions["new_order"].rolled_back
    # What a busy computer does after the window, or has left from before it, waited for a user.
    few = OPTIONS.users + 1 + result.arrived.late
    assert done == pytest.approx(result.arrived.due, abs=few)
    assert result.arrived.skipped == 0


@both_drivers
def test_what_was_due_is_done_after_the_window(driver: str, database: PostgresDatabase) -> None:
    """All stands still as the window closes: what was due then waits, and is neither skipped nor
    left out of the latencies."""

    def stop(event: Tick | Phase) -> None:
        if isinstance(event, Tick) and event.second == 0:
            lock_all(session)
        if event == Phase("done"):
            time.sleep(0.5)
            session.script("COMMIT")

    options = replace(OPTIONS, rate_per_s=50.0, rampup_s=0, duration_s=2)
    with closing(database.session()) as session:
        result = run(driven(database, driver), options, stop)
    arrived, latency = result.arrived, result.latency_ms
    assert latency is not None
    assert arrived is not None
    assert arrived.skipped == 0
    assert arrived.growth > 10
    assert latency.histogram is not None
    rolled_back = result.transactions["new_order"].rolled_back
    assert arrived.due - rolled_back - 2 <= len(Latencies(latency.histogram)) <= arrived.due
    assert latency.max is not None
    assert latency.max > 900


@both_drivers
def test_what_a_standstill_holds_up_to_the_end_and_beyond_is_told(
    driver: str, database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a rate, too: every user has one under way from before the window to its end."""
    monkeypatch.setattr("hotset.tpcc.native.DRAIN_S", 1.0)

    def stop(event: Tick | Phase) -> None:
        if event == Phase("rampup"):
            lock_all(session)

    options = replace(OPTIONS, rampup_s=2, duration_s=1, stall_s=60)
    with (
        closing(database.session()) as session,
        pytest.raises(NotServed, match="4 had not ended") as failure,
    ):
        run(driven(database, driver), options, stop)
    assert failure.value.partial is not None
    assert failure.value.partial.unfinished is not None
    assert failure.value.partial.unfinished.count == 4
    # With what they had waited for when they were given up: the window's second and more.
    assert failure.value.partial.latency_ms is not None
    assert (failure.value.partial.latency_ms.max or 0) > 1900


def lock_all(session: Session) -> None:
    """Take every table at once: one after the other could end in a deadlock with the users."""
    names = ("warehouse", "customer", "stock", "district", "orders")
    tables = ", ".join(f"hotset_tpcc.{name}" for name in names)
    while True:
        try:
            session.script(f"BEGIN; LOCK TABLE {tables} NOWAIT")
        except Aborted:
            session.script("ROLLBACK")
        else:
            return


@both_drivers
def test_a_standstill_shows_in_the_latency_of_all_that_were_due(
    driver: str, database: PostgresDatabase
) -> None:
    """For a second nothing can be done. By the times when transactions were due (50 a second),
    about half of 2 s' worth waited; counted from when a user came round there were four."""
    holder = closing(database.session())

    def stop(event: Tick | Phase) -> None:
        if event == Phase("measure"):
            lock_all(session)
            time.sleep(1)
            session.script("COMMIT")

    options = replace(OPTIONS, rate_per_s=50.0, rampup_s=0, duration_s=2)
    with holder as session:
        result = run(driven(database, driver), options, stop)
    assert result.arrived is not None
    assert result.arrived.late > 25
    latency = result.latency_ms
    assert latency is not None
    assert latency.p50 is not None
    assert latency.p90 is not None
    assert latency.max is not None
    assert latency.p90 > 600
    assert latency.max > 900


@both_drivers
def test_a_rate_beyond_reach_is_counted_as_skipped(driver: str, database: PostgresDatabase) -> None:
    options = replace(
        OPTIONS, users=1, rate_per_s=50_000.0, rampup_s=0, duration_s=1, patience_s=0.1
    )
    result = run(driven(database, driver), options)
    assert result.arrived is not None
    assert result.arrived.due == pytest.approx(50_000, rel=0.1)
    assert result.arrived.skipped > 0.5 * result.arrived.due
    assert 0 < result.tpm / 60 < 50_000


def test_too_few_warehouses(database: PostgresDatabase) -> None:
    with pytest.raises(SetupError, match="has 2 warehouses, the run needs 3"):
        run(database, replace(OPTIONS, warehouses=3))


def test_a_load_that_was_killed_before_its_end_is_named(empty: PostgresDatabase) -> None:
    """Its rows may all be there, and without their keys a run is slow and says not why."""
    with closing(empty.session()) as session:
        create(empty, session)
        session.script("INSERT INTO hotset_tpcc.warehouse SELECT 1, 0, 0, '', '', '', '', '', ''")
        with pytest.raises(SetupError, match=r"load was not finished: customer, .* warehouse have"):
            run(empty, replace(OPTIONS, warehouses=1))
        session.script(";".join(batches("postgres", "indexes")))
        session.script("ALTER TABLE hotset_tpcc.stock DROP CONSTRAINT stock_pkey")
        with pytest.raises(SetupError, match="load was not finished: stock has no primary key"):
            run(empty, replace(OPTIONS, warehouses=1))


def test_unloaded_database(empty: PostgresDatabase) -> None:
    with pytest.raises(SetupError, match="load the database first"):
        run(empty, OPTIONS)


def test_a_stall_fails_the_run_and_keeps_what_was_measured(database: PostgresDatabase) -> None:
    def lock(event: Tick | Phase) -> None:
        if isinstance(event, Tick) and event.second == 0:
            holder.script("BEGIN; LOCK TABLE hotset_tpcc.district")

    options = replace(OPTIONS, rampup_s=0, duration_s=30, stall_s=2)
    with (
        closing(database.session()) as holder,
        pytest.raises(RunFailed, match="no transaction completed for 2 s") as failure,
    ):
        run(database, options, lock)
    assert failure.value.partial is not None
    assert failure.value.partial.series[0].tpm > 0
    assert failure.value.partial.series[-1].tpm == 0
    assert workers(os.getpid()) == []


@both_drivers
def test_refused_transactions_are_counted_with_their_cause(
    driver: str, database: PostgresDatabase
) -> None:
    """One kind fails every time; the others go on, and the run is none."""
    options = replace(OPTIONS, rampup_s=0, duration_s=1.5)
    with closing(database.session()) as session:
        session.script(
            "ALTER TABLE hotset_tpcc.history ADD CONSTRAINT full_up CHECK (false) NOT VALID"
        )
        try:
            with pytest.raises(NotServed, match=r"payment: none of .* got through") as failure:
                run(driven(database, driver), options)
        finally:
            session.script("ALTER TABLE hotset_tpcc.history DROP CONSTRAINT full_up")
    result = failure.value.partial
    assert isinstance(result, Repeat)
    assert result.nopm > 0
    assert result.failed == sum(second.failed for second in result.series) > 0
    cause = 'error 23514: new row for relation "history" violates check constraint "full_up"'
    assert set(result.transactions["payment"].failed) == {cause}
    assert cause in failure.value.cause
    assert [second.second for second in result.series] == [0, 1]


@both_drivers
def test_a_server_that_turns_read_only_fails_the_run(
    driver: str, database: PostgresDatabase
) -> None:
    """1.4 % of the transactions of such a run failed, and it ended with code 0 and its NOPM."""

    def turn(event: Tick | Phase) -> None:
        if isinstance(event, Tick) and event.second == OPTIONS.rampup_s:
            session.script("ALTER SYSTEM SET default_transaction_read_only = on")
            session.script("SELECT pg_reload_conf()")

    cause = "the server cannot go on: read-only: cannot execute .* in a read-only transaction"
    with closing(database.session()) as session:
        try:
            with pytest.raises(RunFailed, match=cause) as failure:
                run(driven(database, driver), replace(OPTIONS, duration_s=60), turn)
        finally:
            session.script("SET default_transaction_read_only = off")
            session.script("ALTER SYSTEM RESET default_transaction_read_only")
            session.script("SELECT pg_reload_conf()")
    assert failure.value.partial is not None
    assert 0 < failure.value.partial.duration_s < 30


@both_drivers
@pytest.mark.parametrize("state", ["58030", "XX001"], ids=["I/O error", "damaged data"])
def test_a_device_that_fails_a_server_fails_the_run(
    state: str, driver: str, database: PostgresDatabase
) -> None:
    """In PostgreSQL's words: some went on, and some transactions got through."""

    def turn(event: Tick | Phase) -> None:
        if isinstance(event, Tick) and event.second == OPTIONS.rampup_s:
            session.script(
                "CREATE FUNCTION worn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                " IF random() < 0.2 THEN RAISE EXCEPTION 'could not extend file'"
                f" USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$;"
                " CREATE TRIGGER worn BEFORE INSERT ON hotset_tpcc.history FOR EACH ROW"
                " EXECUTE FUNCTION worn()"
            )

    with closing(database.session()) as session:
        try:
            with pytest.raises(RunFailed, match=r"the server cannot go on: .*could not extend"):
                run(driven(database, driver), replace(OPTIONS, duration_s=60), turn)
        finally:
            session.script("DROP TRIGGER worn ON hotset_tpcc.history; DROP FUNCTION worn()")


def test_sessions_that_may_not_write_are_refused(database: PostgresDatabase) -> None:
    with closing(database.session()) as session:
        session.script("ALTER ROLE tester SET default_transaction_read_only = on")
        try:
            with pytest.raises(SetupError, match="sessions of tester are read-only here"):
                run(database, OPTIONS)
        finally:
            session.script("SET default_transaction_read_only = off")
            session.script("ALTER ROLE tester RESET default_transaction_read_only")


@both_drivers
def test_aborted_transactions_are_repeated_counted_and_given_up(
    driver: str, database: PostgresDatabase
) -> None:
    """Payments to a locked warehouse time out again and again; the other warehouse's go through."""
    with closing(database.session()) as holder:
        holder.script("ALTER ROLE tester SET lock_timeout = '5ms'")
        try:
            holder.script("BEGIN; UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd WHERE w_id = 1")
            with pytest.raises(NotServed, match=r"payment: .* failed, more than 2%") as failure:
                run(driven(database, driver), replace(OPTIONS, rampup_s=0, duration_s=2))
        finally:
            holder.script("ROLLBACK; ALTER ROLE tester RESET lock_timeout")
    result = failure.value.partial
    assert result is not None
    payment = result.transactions["payment"]
    assert set(payment.retry_causes) == {"lock timeout"}
    # Waiters queue: when one gives up, the next is given the lock, and where its own time runs out
    # at that moment PostgreSQL calls it "cancelled" (57014), which is not repeated.
    given_up = "lock timeout: canceling statement due to lock timeout"
    others = set(payment.failed) - {given_up}
    assert all(one.startswith("error 57014") for one in others)
    # What the window's end overtook is repeated after it, where repetitions no longer count.
    in_window = payment.failed[given_up] - OPTIONS.users
    assert payment.retries >= RETRIES * in_window > 0
    assert payment.committed > 0
    assert result.transactions["new_order"].failed == {}


SCRIPT = """
import signal
import sys
from hotset.databases.postgres.product import PostgresDatabase
from hotset.tpcc.driver import run
from hotset.load.record import Phase
from hotset.tpcc.record import RunOptions
from tests.without_libpq import WithoutLibpq

def tell(event):
    if event == Phase("measure"):
        print("measured", flush=True)

if __name__ == "__main__":
    # A shell's background job inherits an ignored SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    driver, host, port, user, password, dbname = sys.argv[1:]
    database = PostgresDatabase(host, int(port), user, password, dbname)
    if driver == "python":
        database = WithoutLibpq(database)
    run(database, RunOptions(users=4, warehouses=2, rampup_s=0.5, duration_s=60), tell)
"""


@both_drivers
@pytest.mark.parametrize("death", [signal.SIGINT, signal.SIGKILL])
def test_workers_do_not_outlive_their_parent(
    driver: str, death: signal.Signals, database: PostgresDatabase, tmp_path: Path
) -> None:
    script = tmp_path / "parent.py"
    script.write_text(SCRIPT)
    where = (
        database.host,
        str(database.port),
        database.user,
        database.password,
        database.dbname,
    )
    parent = subprocess.Popen(
        [sys.executable, str(script), driver, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        assert parent.stdout.readline() == b"measured\n"
        left = workers(parent.pid)
        assert left
        parent.send_signal(death)
        parent.wait(timeout=30)
        if death == signal.SIGINT:
            assert b"RunInterrupted" in parent.stderr.read()
    assert wait_until(lambda: not any(map(start_time, left)), 30), "a worker outlived its parent"


@both_drivers
def test_a_killed_server_fails_the_run_at_once(
    driver: str, cluster: Cluster, database: PostgresDatabase
) -> None:
    killed_at = 0.0

    def kill(event: Tick | Phase) -> None:
        nonlocal killed_at
        if isinstance(event, Tick) and event.second == 1:
            cluster.kill()
            killed_at = time.monotonic()

    try:
        with pytest.raises(RunFailed) as failure:
            run(driven(database, driver), replace(OPTIONS, duration_s=60), kill)
        assert time.monotonic() - killed_at < 30, "of the 60 s it was to run"
        assert failure.value.partial is not None
        assert failure.value.partial.tpm > 0
        assert workers(os.getpid()) == []
    finally:
        cluster.start()


def test_a_server_shut_down_fails_the_run_with_its_words(
    cluster: Cluster, database: PostgresDatabase
) -> None:
    def stop(event: Tick | Phase) -> None:
        if event == Phase("measure"):
            cluster.stop()

    try:
        with pytest.raises(RunFailed, match=r"terminating connection|closed the connection"):
            run(database, replace(OPTIONS, duration_s=60), stop)
    finally:
        cluster.start()


@both_drivers
def test_a_killed_worker_fails_the_run(driver: str, database: PostgresDatabase) -> None:
    def kill(event: Tick | Phase) -> None:
        if event == Phase("measure"):
            os.kill(workers(os.getpid())[0], signal.SIGKILL)

    with pytest.raises(RunFailed, match="ended with exit code -9"):
        run(driven(database, driver), replace(OPTIONS, duration_s=60), kill)
    assert workers(os.getpid()) == []
