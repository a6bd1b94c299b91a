"""pgbench: how it is found, what it refuses to read, and how its runs are told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hotset.bench.sql import driver, pgbench
from hotset.bench.sql.pgbench_log import record
from hotset.bench.sql.sources import Source
from hotset.bench.sql.workload import SqlWorkload
from hotset.core.clock import wait_until
from hotset.core.errors import RequestError
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.databases.postgres import pgbench as postgres
from hotset.databases.postgres.product import PostgresDatabase
from hotset.load.record import NotServed, Phase, RunFailed, Tick, WindowOptions
from hotset.load.samples import Recorder
from hotset.reports.model.windows import Repeat
from tests.postgres_cluster import PASSWORD, Cluster


def nothing(_: Tick | Phase) -> None:
    """No observer."""


def installed(folder: Path, version: str) -> Path:
    """A program that names a version of PostgreSQL, as pgbench does."""
    folder.mkdir(parents=True)
    program = folder / "pgbench"
    program.write_text(f"#!/bin/sh\necho 'pgbench (PostgreSQL) {version}'\n")
    program.chmod(0o755)
    return program


def test_the_newest_beside_a_servers_programs_is_taken(tmp_path: Path) -> None:
    elsewhere = installed(tmp_path / "bin", "16.1")
    path = {"PATH": str(elsewhere.parent)}
    assert postgres.find(path, tmp_path).program == elsewhere
    installed(tmp_path / "lib/postgresql/9/bin", "9.6")
    newest = installed(tmp_path / "lib/postgresql/17/bin", "17.2 (Debian 17.2-1)")
    assert postgres.find(path, tmp_path) == postgres.Pgbench(newest, "17.2")
    named = {**path, "PGBENCH": str(elsewhere)}
    assert postgres.find(named, tmp_path) == postgres.Pgbench(elsewhere, "16.1")


def test_what_is_missing_is_said_with_its_package(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteMissingError, match="apt-get install postgresql"):
        postgres.find({"PATH": str(tmp_path)}, tmp_path)
    old = installed(tmp_path / "old", "14.9")
    with pytest.raises(PrerequisiteMissingError, match=r"is of PostgreSQL 14\.9, and 15 or newer"):
        postgres.find({"PGBENCH": str(old)}, tmp_path)
    with pytest.raises(PrerequisiteMissingError, match="/nosuch does not start"):
        postgres.find({"PGBENCH": "/nosuch"}, tmp_path)
    with pytest.raises(PrerequisiteMissingError, match="names no version"):
        postgres.find({"PGBENCH": shutil.which("true") or ""}, tmp_path)


def sources(*texts: str) -> tuple[Source, ...]:
    names = "abc"[: len(texts)]
    return tuple(Source(n, f"x/{n}.sql", 1, text) for n, text in zip(names, texts, strict=True))


def test_scripts_are_read_before_anything_connects() -> None:
    program = postgres.find()
    pgbench.check(program, sources("SELECT 1;", "\\if true\n\\sleep 5 ms\nSELECT 2;\n\\endif\n"))
    for text, said in (
        ("SELECT 1;\n\\set n random(1,\n", r"^b\.sql:2: syntax error in command"),
        ("SELECT 1;\n\\nosuch\n", r"^b\.sql:2: invalid command in command"),
        ("\n", "empty command list"),
    ):
        with pytest.raises(RequestError, match=said):
            pgbench.check(program, sources("SELECT 1;", text))


def test_a_line_of_the_log_is_a_transaction() -> None:
    recorder = Recorder(2)
    recorder.begin(100.0, 110.0)
    for line in (
        "0 1 250000 1 101 500000 400",
        "0 2 9000000 0 110 500000 2000",
        "1 1 skipped 0 112 0 0",
        "1 2 deadlock 1 103 0 0",
    ):
        record(line, recorder, 10.0)
    first, second, failed = (one for one in recorder.collect() if one.second in (1, 2, 3))
    assert (first.committed, first.due, first.late) == ((0, 1), 2, 1)
    assert (first.histograms[0], second.skipped) != (None, 0), "begun in the window, ended after"
    assert second.due == 1
    assert failed.outcomes == ((1, "failed", "deadlock", "", 1),)


# On a real server


@pytest.fixture
def shop(cluster: Cluster) -> Iterator[PostgresDatabase]:
    with cluster.fresh("pgbench") as database:
        with closing(database.session()) as session:
            session.script("CREATE TABLE sale (item bigint, kind text)")
        yield database


def run(
    database: PostgresDatabase,
    *texts: str,
    observe: Callable[[Tick | Phase], None] = nothing,
    weights: tuple[int, ...] = (1, 1),
    **options: Any,  # noqa: ANN401 - of WindowOptions
) -> Repeat:
    scripts = tuple(
        Source(one.name, one.file, weight, one.text)
        for one, weight in zip(sources(*texts), weights, strict=False)
    )
    window = {"users": 2, "rampup_s": 0.0, "duration_s": 2.0, "seed": 7, **options}
    workload = SqlWorkload(database, scripts, WindowOptions(**window), {"items": 9})
    return driver.run(workload, observe)


def check(database: PostgresDatabase, *texts: str, **more: Any) -> None:  # noqa: ANN401
    defined = {"items": 9}
    driver.check(
        SqlWorkload(
            database,
            sources(*texts),
            WindowOptions(users=1, rampup_s=0, duration_s=1),
            defined,
            **more,
        )
    )


@pytest.mark.database
def test_the_server_describes_each_statement_before_a_window(shop: PostgresDatabase) -> None:
    """An unknown column ended a run when a user first came to it."""
    fine = (
        "\\set n random(1, :items)\nBEGIN;\nINSERT INTO sale VALUES (:n, 'a;b');\n"
        "SELECT count(*) AS all, now() - interval '12:30' FROM sale -- :no one\n\\gset s_\n"
        "\\if :s_all\nUPDATE sale SET kind = $$x;$$ WHERE item = :n;\n\\endif\nEND;\n"
    )
    check(shop, fine)
    check(shop, "SELECT 1 AS n\n  \\gset\nSELECT :n::int; SELECT E'a\\'b;c' /* a /* ; */ b */;")
    for text, line, said in (
        ("SELECT 1;\n\nSELECT colour FROM sale;", 3, 'column "colour" does not exist'),
        ("SELECT 1 FROM sales", 1, 'relation "sales" does not exist'),
        ("SELECT 1;\nSELEC 2;", 2, "syntax error"),
        ("INSERT INTO sale VALUES (1) ON CONFLICT DO NOTHING;\nSELECT hue FROM sale;", 2, "hue"),
        ("SELECT now() - ':items days'::interval;", 1, ":items stands in a string"),
    ):
        with pytest.raises(RequestError, match=re.escape(said)) as refused:
            check(shop, fine, text)
        assert str(refused.value).startswith(f"b.sql:{line}: ")
        with closing(shop.session()) as session:
            assert session.query("SELECT count(*) FROM sale") == [(0,)], "nothing was run"


@pytest.mark.database
def test_the_scripts_that_come_along_are_described(shop: PostgresDatabase) -> None:
    """The web shop's purchase added two parameters, of types that no server can tell, and ended
    each run of the experiment."""
    folder = Path(__file__).resolve().parents[4] / "experiments/shop"
    with closing(shop.session()) as session:
        session.script((folder / "load/1-tables.sql").read_text())
    scripts = tuple(
        Source(one.stem, str(one), 1, one.read_text()) for one in sorted(folder.glob("*.sql"))
    )
    options = WindowOptions(users=1, rampup_s=0, duration_s=1)
    defined = {"products": 9, "customers": 9}
    driver.check(SqlWorkload(shop, scripts, options, defined))


@pytest.mark.database
def test_a_script_that_makes_what_it_names_is_left_to_pgbench(shop: PostgresDatabase) -> None:
    check(shop, "CREATE TEMP TABLE IF NOT EXISTS mine (n int);", "SELECT n FROM mine;")
    check(shop, "SELECT * FROM :items;", protocol="simple")


@pytest.mark.database
def test_a_window_is_measured_between_ramp_up_and_end(shop: PostgresDatabase) -> None:
    events: list[Tick | Phase] = []
    script = "\\set n random_gaussian(1, :items, 2.5)\nINSERT INTO sale VALUES (:n, '{}');\n"
    result = run(
        shop,
        script.format("a"),
        script.format("b") + "SELECT pg_sleep(0.01);\n",
        observe=events.append,
        weights=(3, 1),
        rampup_s=1.0,
    )
    assert [one.name for one in events if isinstance(one, Phase)] == ["rampup", "measure", "done"]
    ticks = [one for one in events if isinstance(one, Tick)]
    assert [one.second for one in ticks] == [0, 1, 2]
    assert all(one.transactions for one in ticks)
    often, seldom = result.transactions["a"], result.transactions["b"]
    share = often.committed / (often.committed + seldom.committed)
    assert share == pytest.approx(0.75, abs=0.15)
    assert seldom.latency_ms is not None
    assert (seldom.latency_ms.p50 or 0) > 10
    assert sum(one.tpm / 60 for one in result.series) == often.committed + seldom.committed
    assert (result.failed, result.arrived, result.unfinished) == (0, None, None)
    with closing(shop.session()) as session:
        ((count, low, high),) = session.query("SELECT count(*), min(item), max(item) FROM sale")
    assert int(str(count)) > often.committed + seldom.committed, "the ramp-up's, too"
    assert 1 <= int(str(low)) <= int(str(high)) <= 9


@pytest.mark.night
@pytest.mark.database
def test_a_rate_is_kept_to_and_what_it_asks_too_much_waits(shop: PostgresDatabase) -> None:
    result = run(shop, "SELECT pg_sleep(0.001);\n", rate_per_s=20.0, users=4, duration_s=4.0)
    assert result.arrived is not None
    assert result.arrived.due == pytest.approx(80, abs=40)
    assert result.arrived.skipped == 0
    # Two users get 20 transactions a second done: of 160 in 4 s, half wait for two seconds or more.
    result = run(shop, "SELECT pg_sleep(0.1);\n", rate_per_s=40.0, duration_s=4.0, patience_s=2.0)
    assert result.arrived is not None
    assert result.arrived.due == pytest.approx(160, abs=60)
    assert result.arrived.skipped > 0
    assert result.arrived.late > 20
    assert result.latency_ms is not None
    assert (result.latency_ms.max or 0) > 1500


@pytest.mark.database
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT 1;\nSELECT 1 / (:client_id * 0);\n", r"^a\.sql: .* command 1 .*division by zero"),
        ("SELECT 1\nFORM x;\n", r"^a\.sql: ERROR: syntax error at or near \"x\"; LINE 2: FORM x"),
        ("SELECT 5 AS a \\gset\n\\set b :a / (:a - 5)\nSELECT 1;\n", r"^a\.sql: division by zero$"),
        ("SELECT 1 WHERE false \\gset\n", r"^a\.sql: .*expected one row, got 0"),
        ("BEGIN;\nSELECT 1;\n", "end of script reached without completing the last transaction"),
    ],
)
def test_a_script_that_fails_ends_the_run(shop: PostgresDatabase, text: str, said: str) -> None:
    begun = time.monotonic()
    with pytest.raises(RunFailed, match=said):
        run(shop, text, "SELECT pg_sleep(0.01);\n", duration_s=300.0)
    assert time.monotonic() - begun < 60


@pytest.mark.database
def test_a_deadlock_is_a_failed_transaction_and_too_many_end_the_run(
    shop: PostgresDatabase,
) -> None:
    with closing(shop.session()) as session:
        session.script("INSERT INTO sale VALUES (1, ''), (2, '')")
    update = "UPDATE sale SET kind = '' WHERE item = {};\n"
    one, other = (
        "BEGIN;\n"
        + update.format(first)
        + "SELECT pg_sleep(0.02);\n"
        + update.format(second)
        + "COMMIT;\n"
        for first, second in ((1, 2), (2, 1))
    )
    with pytest.raises(NotServed, match=r"deadlock \([0-9]+ times\)") as failed:
        run(shop, one, other, users=4, duration_s=4.0)
    assert failed.value.partial is not None
    assert failed.value.partial.failed > 0
    with pytest.raises(RunFailed, match="transactions failed, more than the 1 allowed"):
        run(shop, one, other, users=4, duration_s=300.0, max_errors=1)


@pytest.mark.night
@pytest.mark.database
def test_what_does_not_end_is_cancelled_and_counted(shop: PostgresDatabase) -> None:
    with pytest.raises(NotServed, match="2 had not ended 10 s after the window") as failed:
        run(shop, "SELECT pg_sleep(300);\n", duration_s=1.0)
    assert failed.value.partial is not None
    assert failed.value.partial.unfinished is not None
    assert failed.value.partial.unfinished.count == 2
    assert sessions(shop) == 0


def sessions(database: PostgresDatabase) -> int:
    with closing(database.session()) as session:
        text = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'hotset _%'"
        return int(str(session.query(text)[0][0]))


@pytest.mark.database
def test_an_observer_ends_a_run_and_nothing_of_it_is_left(
    shop: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log, its processes, its sessions; the password is in no command line."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[str] = []

    class Enough(Exception):
        pass

    def observe(event: Tick | Phase) -> None:
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                seen.append(one.read_bytes().replace(b"\0", b" ").decode())
        if isinstance(event, Tick):
            raise Enough

    with pytest.raises(Enough):
        run(shop, "SELECT pg_sleep(30);\n", observe=observe, duration_s=300.0)
    commands = [one for one in seen if str(tmp_path) in one or "--log-prefix" in one]
    assert commands
    assert [one for one in commands if PASSWORD in one] == []
    assert list(tmp_path.iterdir()) == []
    assert wait_until(lambda: sessions(shop) == 0, 10)


@pytest.mark.database
def test_a_server_that_dies_ends_the_run(cluster: Cluster, shop: PostgresDatabase) -> None:
    def observe(event: Tick | Phase) -> None:
        if isinstance(event, Tick) and event.second == 1:
            cluster.kill()

    try:
        with pytest.raises(RunFailed) as failed:
            run(shop, "SELECT pg_sleep(0.01);\n", observe=observe, duration_s=300.0)
    finally:
        cluster.start()
    assert "server closed the connection" in str(failed.value) or "aborted" in str(failed.value)
    assert failed.value.partial is not None
    assert failed.value.partial.transactions["a"].committed > 0


@pytest.mark.night
@pytest.mark.database
def test_pgbench_does_not_outlive_who_started_it(shop: PostgresDatabase, tmp_path: Path) -> None:
    program = f"""
import sys
from pathlib import Path
from hotset.bench.sql import driver
from hotset.bench.sql.sources import Source
from hotset.bench.sql.workload import SqlWorkload
from hotset.databases.postgres.product import PostgresDatabase
from hotset.load.record import WindowOptions
database = PostgresDatabase("{shop.host}", {shop.port}, "tester", "{PASSWORD}", "pgbench")
options = WindowOptions(users=2, rampup_s=0.0, duration_s=300.0)
script = Source("a", "a.sql", 1, "SELECT pg_sleep(0.01);")
workload = SqlWorkload(database, (script,), options, {{}})
driver.run(workload, lambda event: print(event, flush=True))
"""
    user = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert user.stdout is not None
        assert b"rampup" in user.stdout.readline()
    finally:
        user.kill()
        user.wait()
    assert wait_until(lambda: sessions(shop) == 0, 20)
    assert wait_until(lambda: list(tmp_path.iterdir()) == [], 20)
