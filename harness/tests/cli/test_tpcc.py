"""``hotset tpcc`` on a real server: what it prints, writes and refuses, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotset.bench import alone, ownership
from hotset.bench.live import View
from hotset.core.progress import Reporter
from hotset.core.record import SCHEMA_VERSION
from hotset.core.words import sparkline
from hotset.databases.postgres.client import PostgresSession, meaning
from hotset.databases.postgres.copies import _MARK
from hotset.databases.postgres.product import PostgresDatabase
from hotset.load.record import Phase, Tick
from hotset.tpcc.record import RunOptions
from hotset.tpcc.schema import create, statement
from tests.cli_server import CommandLine, Done, plain_environment
from tests.postgres_cluster import PASSWORD, Cluster
from tests.pseudo_terminal import HOTSET

database_needed = pytest.mark.database
SHORT = ("--users", "2", "--warehouses", "2", "--rampup", "0", "--duration", "2")


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


def windows(document: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """Those of a run, or of a curve."""
    (arm,) = document["arms"]
    return [*arm["curve"], *arm["repeats"]]


@database_needed
def test_a_run_prints_and_writes_everything(tpcc: Tpcc, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = tpcc("run", *SHORT, "--format", "json", "--output", str(file))
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    assert printed == json.loads(file.read_text())
    assert (printed["schema_version"], printed["state"]) == (SCHEMA_VERSION, "complete")
    (window,) = windows(printed)
    assert window["nopm"] > 0
    assert len(window["series"]) == 2
    # What it may be compared with.
    assert (window["isolation"], printed["database"]["driver"]) == ("read committed", "hotset")
    assert printed["experiment"]["spec"]["tpcc"]["home_warehouses"] is False
    assert window["hottest_fifth"] == pytest.approx(0.62, abs=0.01)
    assert [one["holds"] for one in window["conditions"]] == [True] * 12
    assert window["time_missing"] == ""
    assert window["settings"]["fsync"] == "off", "as the tests' server has it"
    assert window["time"]["sessions"] == pytest.approx(2, abs=0.6)


@database_needed
def test_the_server_is_sampled_beside_the_run(tpcc: Tpcc) -> None:
    """This computer is the server; what accelerated disks it has is its own business."""
    words = (*SHORT, "--duration=3", "--no-check")
    done = tpcc("run", *words, "--sample=local", "--format=json")
    assert done.code == 0, done.err
    (window,) = windows(json.loads(done.out))
    assert 0 < window["server_cpu"] <= 1
    assert len(window["series"]) >= 3
    assert any(one["server_cpu"] is not None for one in window["series"])
    wrong = tpcc("run", *words, "--sample=nowhere")
    assert wrong.code == 2
    assert "is not a machine" in wrong.err


@database_needed
@pytest.mark.night
def test_a_run_as_csv_is_the_window_second_by_second(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--format", "csv", "--no-check", "--home-warehouses")
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["second"] for row in rows] == ["0", "1"]
    assert all(int(row["transactions"]) > 0 for row in rows)
    assert "conditions" not in done.err


@database_needed
@pytest.mark.night
def test_a_run_as_a_table(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--no-check", "--quiet")
    assert (done.code, done.err) == (0, "")
    for word in ("NOPM", "TPM", "new-order", "stock-level", "p99", "users' time goes"):
        assert word in done.out


@database_needed
def test_thresholds_are_judged_printed_and_written(tpcc: Tpcc, tmp_path: Path) -> None:
    file, junit = tmp_path / "run.json", tmp_path / "junit.xml"
    given = ("--threshold", "nopm>=100", "--threshold", "p99.9(payment)<1us")
    written = ("--output", str(file), "--junit", str(junit))
    done = tpcc("run", *SHORT, *given, *written, "--no-check", "--rate", "200/s")
    one_line(done, 5, "p99.9(payment)<1us: missed, measured")
    assert "nopm>=100: met, measured" in done.out
    assert "requested" in done.out
    document = json.loads(file.read_text())
    assert [one["met"] for one in document["thresholds"]] == [True, False]
    assert windows(document)[0]["arrived"]["due"] > 200
    assert 'failures="1"' in junit.read_text()


@database_needed
@pytest.mark.night
def test_a_search_says_the_highest_rate_that_holds(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--find-rate", "p95<1s", "--no-check", "--format", "json")
    assert done.code == 0, done.err
    (found,) = json.loads(done.out)["arms"][0]["rates"]
    held = [one["rate_per_s"] for one in found["trials"] if not one["missed"]]
    assert found["rate_per_s"] == max(held) < found["unpaced_per_s"]
    assert "/s: holds" in done.err
    none = tpcc("run", *SHORT, "--duration", "1", "--find-rate", "p50<1us", "--no-check")
    one_line(none, 5, "no rate holds")
    # A computer that is busy otherwise skips some, which is a reason, too.
    assert re.search("p50<1us: missed, measured|transactions skipped", none.err)
    assert "no rate holds; users without pause get" in none.out


@database_needed
@pytest.mark.night
def test_several_numbers_of_users_give_a_curve(tpcc: Tpcc, tmp_path: Path) -> None:
    file, junit = tmp_path / "curve.json", tmp_path / "junit.xml"
    given = ("--users", "1,2,4", "--threshold", "failed<=5", "--junit", str(junit))
    done = tpcc("run", *SHORT, *given, "--output", str(file))
    assert done.code == 0, done.err
    assert "peak: " in done.out
    assert "4 users: failed<=5: met" in done.out
    assert "consistency: 12 of 12 conditions hold" in done.out
    written = json.loads(file.read_text())
    assert [one["users"] for one in windows(written)] == [1, 2, 4]
    assert [one["users"] for one in written["thresholds"]] == [1, 2, 4]
    checked = [one["conditions"] is not None for one in windows(written)]
    assert checked == [False, False, True]
    assert 'tests="3"' in junit.read_text()
    rows = list(csv.DictReader(io.StringIO(tpcc("run", *SHORT, *given, "-f", "csv").out)))
    assert [row["users"] for row in rows] == ["1", "2", "4"]
    shares = [float(row["cpu_share"]) for row in rows]
    # Of so few samples one point may have none on a CPU.
    assert all(0 <= share <= 1 for share in shares)
    assert any(shares)


def orders(database: PostgresDatabase) -> object:
    with closing(database.session()) as session:
        return session.query("SELECT count(*), sum(o_id) FROM hotset_tpcc.orders")


def copies(database: PostgresDatabase) -> list[str]:
    with closing(database.session()) as session:
        rows = session.query("SELECT datname FROM pg_database WHERE datname LIKE '%hotset_fresh'")
        return [str(row[0]) for row in rows]


@database_needed
def test_two_at_once_on_one_database_are_refused(tpcc: Tpcc, database: PostgresDatabase) -> None:
    """Whichever computer the other comes from; TPC-H beside it is somebody's purpose."""
    report = Reporter(quiet=True)
    with alone.on(database, ownership.TPCC, report), alone.on(database, ownership.TPCH, report):
        for verb in (("run", *SHORT), ("drop", "--yes"), ("build", "--replace", "--yes")):
            one_line(tpcc(*verb), 3, "(hotset: process", "TPC-C", "wait until it has ended")
    assert tpcc("run", *SHORT, "--no-check").code == 0, "nothing was dropped"


@database_needed
def test_nothing_is_removed_where_it_is_not_known_who_uses_it(
    database: PostgresDatabase, capfd: pytest.CaptureFixture[str]
) -> None:
    lock, report = "FUNCTION pg_try_advisory_lock(int, int)", Reporter()
    blind = replace(database, user="blind")
    with closing(database.session()) as owner:
        owner.script(f"CREATE ROLE blind LOGIN PASSWORD '{PASSWORD}'")
        owner.script(f"REVOKE EXECUTE ON {lock} FROM PUBLIC")
        try:
            with (
                pytest.raises(alone.DatabaseInUse, match=r"is not known: .*permission denied"),
                alone.on(blind, ownership.TPCC, report, removes=True),
            ):
                pytest.fail("it may be another's")
            with alone.on(blind, ownership.TPCC, report):
                pass  # a run removes nothing
            assert "is not known: " in capfd.readouterr().err
        finally:
            owner.script(f"GRANT EXECUTE ON {lock} TO PUBLIC; DROP ROLE blind")


@database_needed
def test_fresh_runs_begin_alike_and_leave_the_database_as_it_was(
    tpcc: Tpcc, database: PostgresDatabase
) -> None:
    before = orders(database)
    done = tpcc("run", *SHORT, "--users", "1,2", "--fresh", "--format", "json")
    assert done.code == 0, done.err
    first, second = windows(json.loads(done.out))
    # Other tests ran on this database, and a window may open a moment after its users have begun:
    # without a copy the second point would begin with every order that the first has added.
    added = first["nopm"] * first["duration_s"] / 60
    assert second["orders_before"] < first["orders_before"] + added, "each point began with a copy"
    assert all(one["holds"] for window in (first, second) for one in window["conditions"])
    assert (orders(database), copies(database)) == (before, [])


@database_needed
def test_what_a_killed_fresh_run_left_is_dropped_and_nothing_else(
    tpcc: Tpcc, database: PostgresDatabase
) -> None:
    name = f"{database.dbname}_hotset_fresh"
    with closing(database.session()) as session:
        session.script(f"CREATE DATABASE {name}")
    try:
        one_line(tpcc("run", *SHORT, "--fresh"), 4, name, "without the mark of hotset's copies")
        assert copies(database) == [name]
        with closing(database.session()) as session:
            session.script(f"COMMENT ON DATABASE {name} IS '{_MARK}'")
        assert tpcc("run", *SHORT, "--fresh", "--no-check").code == 0
        assert copies(database) == []
    finally:
        with closing(database.session()) as session:
            session.script(f"DROP DATABASE IF EXISTS {name}")


@database_needed
def test_a_database_that_others_use_is_not_copied(tpcc: Tpcc, database: PostgresDatabase) -> None:
    with closing(database.session()):
        one_line(tpcc("run", *SHORT, "--fresh"), 4, "others are connected to it", "disconnect")
    assert copies(database) == []


@database_needed
@pytest.mark.night
def test_a_curve_that_fails_keeps_what_it_measured(tpcc: Tpcc, tmp_path: Path) -> None:
    file = tmp_path / "curve.json"
    done = tpcc("run", *SHORT, "--users", "1,900", "--output", str(file))
    one_line(done, 4, "with 900 users: 900 users need 901", "max_connections")
    assert "NOPM" in done.out
    written = json.loads(file.read_text())
    assert written["state"] == "failed"
    assert [one["users"] for one in windows(written)] == [1]
    assert written["failure"]["text"].startswith("with 900 users: 900 users need 901")


@database_needed
@pytest.mark.night
def test_windows_are_repeated_until_one_is_steady_or_the_time_is_over(
    tpcc: Tpcc, database: PostgresDatabase
) -> None:
    """A standstill in the midst of the first window makes it unsteady."""
    given = ("--users", "2", "-w", "2", "--rampup", "0", "--duration", "10", "--no-check")
    blocked = threading.Event()

    def block() -> None:
        with closing(database.session()) as session:
            session.script("BEGIN; LOCK TABLE hotset_tpcc.warehouse")
            blocked.wait(3)
            session.script("COMMIT")

    timer = threading.Timer(4, block)
    timer.start()
    try:
        done = tpcc("run", *given, "--until-steady", "25s", "--format", "json")
    finally:
        blocked.set()
        timer.join()
    assert done.code == 0, done.err
    assert "not steady (" in done.err
    assert "; again, for at most" in done.err
    (result,) = windows(json.loads(done.out))
    assert {one["of"] for one in result["steadiness"]} >= {"all", "new_order", "payment"}
    assert result["orders_before"] > 0


@database_needed
def test_what_cannot_be_run_is_said_before_it_starts(tpcc: Tpcc, tmp_path: Path) -> None:
    one_line(tpcc("run", *SHORT, "--users", "900"), 4, "900 users need 901", "max_connections")
    one_line(tpcc("run", *SHORT, "--warehouses", "9"), 4, "has 2 warehouses, the run needs 9")
    done = tpcc("run", *SHORT, "--output", str(tmp_path))
    assert (done.code, "--output" in done.err) == (2, True)


@pytest.fixture(scope="module")
def locales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an 8-bit locale of its own."""
    folder = tmp_path_factory.mktemp("locales")
    made = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(folder / "de_DE")]
    subprocess.run(made, check=True, capture_output=True)
    return folder


@database_needed
@pytest.mark.night
def test_an_8_bit_locale_loses_nothing(tpcc: Tpcc, locales: Path) -> None:
    env = {"LC_ALL": "de_DE", "LOCPATH": str(locales), "PYTHONUTF8": "0"}
    done = tpcc("run", *SHORT, "--users", "1,2", "--no-check", env=env)
    assert done.code == 0, done.err
    assert "peak: " in done.out


@pytest.mark.parametrize("argv", [("doctor",), ("tpcc", "run", "--help"), ("disk", "models")])
def test_help_and_doctor_need_no_unicode(locales: Path, argv: tuple[str, ...]) -> None:
    locale = {"LC_ALL": "de_DE", "LOCPATH": str(locales), "PYTHONUTF8": "0"}
    env = {**plain_environment(), **locale}
    done = subprocess.run([HOTSET, *argv], env=env, capture_output=True, check=False)
    assert b"unexpected" not in done.stderr
    assert done.stdout


@database_needed
@pytest.mark.night
def test_a_narrow_terminal_cuts_no_number_off(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--no-check", env={"COLUMNS": "20"})
    assert done.code == 0, done.err
    assert "…" not in done.out


@database_needed
def test_a_home_that_cannot_be_written_is_named(tpcc: Tpcc) -> None:
    done = tpcc("check", env={"XDG_DATA_HOME": "/proc/nowhere"})
    one_line(done, 3, "/proc/nowhere/hotset", "set XDG_DATA_HOME to a folder")


@database_needed
def test_a_password_is_one_line_of_text(tpcc: Tpcc, tmp_path: Path) -> None:
    lines = tmp_path / "password"
    lines.write_text("one\ntwo\n")
    one_line(tpcc("check", "--password-file", str(lines)), 2, "has more than one line")
    latin = "M\udcfctze"  # what the environment makes of a byte that is not UTF-8
    one_line(tpcc("check", env={"HOTSET_PASSWORD": latin}), 2, "HOTSET_PASSWORD is not valid UTF-8")


@database_needed
def test_hidden_sessions_of_others_take_connections(database: PostgresDatabase) -> None:
    """A role that may not see what others' sessions are still counts them."""
    text = statement("postgres", "connections")
    with closing(database.session()) as owner:
        owner.script(f"CREATE ROLE plain LOGIN PASSWORD '{PASSWORD}'")
        try:
            with closing(replace(database, user="plain").session()) as session:
                ((_, _, free),) = session.query(text)
                with ExitStack() as others:
                    for _ in range(5):
                        others.enter_context(closing(database.session()))
                    ((_, _, fewer),) = session.query(text)
            assert int(str(free)) - int(str(fewer)) == 5
        finally:
            owner.script("DROP ROLE plain")


@database_needed
def test_a_wrong_password_is_not_echoed(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, env={"HOTSET_PASSWORD": "open-sesame"})
    one_line(done, 4, "password authentication failed")
    assert "open-sesame" not in done.err + done.out


def kill_while_it_runs(cluster: Cluster, database: PostgresDatabase) -> None:
    """Some seconds after the first new orders, however long the computer takes to come to them."""

    def orders(session: PostgresSession) -> int:
        return int(session.query("SELECT sum(d_next_o_id) FROM hotset_tpcc.district")[0][0])

    with closing(database.session()) as session:
        before, deadline = orders(session), time.monotonic() + 300
        while orders(session) < before + 5 and time.monotonic() < deadline:
            time.sleep(0.1)
    time.sleep(3)
    cluster.kill()


@database_needed
def test_a_server_that_dies_leaves_the_partial_series(
    tpcc: Tpcc, cluster: Cluster, database: PostgresDatabase, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    killer = threading.Thread(target=kill_while_it_runs, args=(cluster, database))
    killer.start()
    try:
        done = tpcc("run", *SHORT, "--duration", "60", "--output", str(file), "-f", "csv")
    finally:
        killer.join()
        cluster.start()
    one_line(done, 4)
    written = json.loads(file.read_text())
    assert written["state"] == "failed"
    assert written["failure"]["text"]
    (window,) = windows(written)
    assert window["conditions"] is None
    assert window["partial"]
    assert window["series"][0]["tpm"] > 0
    assert len(list(csv.reader(io.StringIO(done.out)))) == len(window["series"]) + 1


@database_needed
def test_a_copy_of_a_server_that_dies_costs_nobody_the_result(
    tpcc: Tpcc, cluster: Cluster, tmp_path: Path
) -> None:
    """The copy cannot be dropped then, which is said besides; the next run does it."""
    file = tmp_path / "run.json"
    long = ("--duration", "60", "--fresh", "--output", str(file))
    killer = threading.Timer(6, cluster.kill)
    killer.start()
    try:
        done = tpcc("run", *SHORT, *long)
    finally:
        killer.join()
        cluster.start()
    one_line(done, 4)
    assert "partial: " in done.out
    assert windows(json.loads(file.read_text()))[0]["series"]
    assert "hotset_fresh could not be dropped (" in done.err
    assert "cannot connect" not in done.err.partition("warning: ")[0]
    assert tpcc("run", *SHORT, "--fresh", "--no-check").code == 0


@database_needed
def test_an_interrupted_run_keeps_what_it_measured(tpcc: Tpcc, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = tpcc(
        *("run", *SHORT, "--duration", "60", "--fresh", "--output", str(file)),
        interrupt=("progress: ", signal.SIGINT),
    )
    one_line(done, 130, "interrupted")
    assert "partial: " in done.out
    written = json.loads(file.read_text())
    assert (written["state"], written["failure"]["text"]) == ("interrupted", "interrupted")
    assert windows(written)[0]["series"][0]["tpm"] > 0


@database_needed
def test_an_interrupt_before_the_window_leaves_nothing(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--rampup", "60", interrupt=("progress: ", signal.SIGINT))
    assert (done.code, done.out) == (130, "")


@database_needed
def test_a_file_that_cannot_be_written_costs_nobody_the_result(tpcc: Tpcc) -> None:
    done = tpcc("run", *SHORT, "--no-check", "--output", "/dev/full")
    one_line(done, 4, "/dev/full could not be written: No space left on device")
    assert "NOPM" in done.out
    refused = tpcc("run", *SHORT, "--duration", "60", "--junit", "/proc/x.xml")
    one_line(refused, 2, "--junit", "/proc/x.xml cannot be written")
    assert "NOPM" not in refused.out


@database_needed
def test_build_does_not_overwrite_unasked(tpcc: Tpcc, database: PostgresDatabase) -> None:
    one_line(tpcc("build", "-w", "1"), 2, "has hotset's TPC-C already", "--replace")
    with closing(database.session()) as session:
        assert session.query("SELECT count(*) FROM hotset_tpcc.warehouse") == [(2,)]


@database_needed
def test_check_names_what_is_violated(tpcc: Tpcc, database: PostgresDatabase) -> None:
    damage = "UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd {} 1 WHERE w_id = 2"
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
def test_a_check_of_a_load_that_was_killed_says_so(
    hotset: CommandLine, empty: PostgresDatabase
) -> None:
    with closing(empty.session()) as session:
        create(empty, session)
        session.script("INSERT INTO hotset_tpcc.warehouse SELECT 1, 0, 0, '', '', '', '', '', ''")
    words = ("the load was not finished", "hotset tpcc build --replace")
    one_line(Tpcc(hotset, empty)("check"), 4, *words)


@database_needed
def test_build_check_and_drop(hotset: CommandLine, empty: PostgresDatabase) -> None:
    tpcc = Tpcc(hotset, empty)
    one_line(tpcc("check"), 4, "not all TPC-C tables", "hotset tpcc build")
    one_line(tpcc("run", *SHORT), 4, "load the database first")
    built = tpcc("build", "-w", "1")
    assert built.code == 0, built.err
    assert "all 12 conditions hold" in built.err
    kept = tpcc("drop", stdin="n\n")
    assert (kept.code, "nothing was changed" in kept.err) == (1, True)
    assert "dropped stock, order_line" in tpcc("drop", "--yes").err
    assert "there was none" in tpcc("drop", "--yes").err


def test_where_is_no_database(hotset: CommandLine) -> None:
    with_password = hotset("tpcc", "check", "--dsn", "postgresql://me:open-sesame@nowhere/x")
    one_line(with_password, 2, "--dsn: the DSN holds a password", "HOTSET_PASSWORD")
    assert "open-sesame" not in with_password.err
    one_line(hotset("tpcc", "check", "--dsn", "nonsense"), 2, "--dsn: the DSN is neither")
    refused = hotset("tpcc", "run", "--dsn", "host=127.0.0.1 port=1 user=x dbname=x")
    one_line(refused, 4, "cannot connect", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (["--engine", "oracle"], "oracle"),
        (["--users", "0"], "--users"),
        (["--users", "4,2"], "such as 1,2,4,8"),
        (["--users", "1,x"], "such as 1,2,4,8"),
        (["--fresh", "--engine", "sqlserver"], "copies are made on PostgreSQL"),
        (["--users", "1,2", "--find-rate", "p95<1s"], "takes one number of users"),
        (["--until-steady", "1m", "--driver", "hammerdb"], "does not tell its run by seconds"),
        (["--duration", "0"], "--duration"),
        (["--format", "xml"], "xml"),
        (["--rate", "fast"], "give transactions per second, such as 500/s"),
        (["--rate", "1,5/s"], "such as 500/s, 1,500/s or 2.5/s"),
        (["--rate", "2,5,0/s"], "such as 500/s, 1,500/s or 2.5/s"),
        (["--rate", "1.500/s"], "such as 500/s, 1,500/s or 2.5/s"),
        (["--threshold", "nopm>=5,0"], "write METRIC, a comparison"),
        (["--rate", "0/s"], "must be above 0"),
        (["--rate", "5", "--think-time"], "exclude each other"),
        (["--rate", "5", "--find-rate", "p95<1s"], "leave rate and think times out"),
        (["--threshold", "speed>1"], "there are nopm, tpm"),
        (["--until-steady", "long"], "write for instance 90s, 30min"),
        (["--until-steady", "1m", "--duration", "5"], "shows from 10 s on"),
        (["--find-rate", "p95"], "write METRIC, a comparison"),
        (["--rate", "5", "--driver", "hammerdb"], "keep to no rate"),
        (["--duration", "30", "--driver", "hammerdb"], "HammerDB takes whole minutes"),
        ([], "--dsn"),
    ],
    ids=str,
)
def test_wrong_usage(hotset: CommandLine, argv: list[str], word: str) -> None:
    dsn = ["--dsn", "sqlserver://me@x/y" if "sqlserver" in argv else "host=x"] if argv else []
    done = hotset("tpcc", "run", *dsn, *argv)
    assert (done.code, done.out) == (2, "")
    assert word in done.err


def test_a_full_disk_is_called_that() -> None:
    assert str(meaning("53100", "could not extend file", broken=False)).startswith("disk full: ")


def test_the_live_view_shows_the_last_minute() -> None:
    view = View(RunOptions(users=2, warehouses=2, rampup_s=10, duration_s=90))
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
