"""Whole calls of HammerDB and the ways they go wrong, played by a stand-in; see test_hammerdb_live
for the real program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.core.clock import wait_until
from hotset.core.errors import FAILED, LACKS, USAGE, code_of
from hotset.core.progress import Reporter
from hotset.hammerdb import batch, jobs, release, server, settings, tpcc, tpch
from hotset.hammerdb.process import output, progress
from hotset.hammerdb.process.failures import HammerdbFailed, HammerdbRefused
from hotset.lab import doctor
from hotset.load.record import NotServed
from hotset.reports.model.windows import ServerErrors
from hotset.tpcc.record import RunOptions
from tests.support.hammerdb_database import PASSWORD, Connection

OPTIONS = RunOptions(users=3, warehouses=2, rampup_s=60, duration_s=120, stall_s=20)


@dataclass(frozen=True)
class Stage:
    """A stand-in with the settings of one engine and workload, and a folder for the run."""

    home: Path
    folder: Path
    patch: pytest.MonkeyPatch

    def play(self, name: str, asked: settings.Tpcc | settings.Tpch) -> release.Release:
        dictionary = settings.dictionary(Connection(), asked)
        (self.home / "dictionary.json").write_text(json.dumps(dictionary))
        self.patch.setenv("FAKE_HAMMERDB", name)
        return release.Release(self.home)

    def timed(self, name: str, options: RunOptions = OPTIONS) -> object:
        return tpcc.run(Connection(), options, self.folder, release=self.play(name, TPCC))


TPCC, TPCH = settings.Tpcc(2), settings.Tpch(1)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    home = tmp_path / "HammerDB-6.0"
    home.mkdir()
    source = Path(__file__).parents[1].joinpath("fake_hammerdb.py").read_text(encoding="utf-8")
    program = home / "hammerdbcli"
    program.write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
    program.chmod(0o755)
    return Stage(home, tmp_path / "run", monkeypatch)


# Good ends


def test_a_timed_run(stage: Stage) -> None:
    seen: list[output.Line] = []
    connection = Connection()
    result = tpcc.run(
        connection, OPTIONS, stage.folder, observe=seen.append, release=stage.play("good", TPCC)
    )
    assert result.seed is None
    assert (result.nopm, result.server_tpm) == (16115, 37590)
    # Counted at the server, and not HammerDB's own number again.
    first, *_, last = connection.asked_at
    orders = 600 * (len(connection.asked_at) - 1)
    assert result.nopm_by_district == pytest.approx(orders / (last - first) * 60, rel=0.5)
    assert result.orders_before == 7
    assert (result.isolation, result.items) == ("read committed", "uniform")
    assert result.transactions["new_order"].committed == 16115 * 2
    assert result.tpm == pytest.approx(16115 * 94 / 40)
    payment = result.transactions["payment"].latency_ms
    assert payment is not None
    assert payment.p99 == 16.0
    assert result.latency_ms is not None
    assert result.latency_ms.mean == pytest.approx((40 * 5 + 42 * 4 + 4 * 18) / 94)
    assert result.latency_ms.p95 is None
    assert [one.tpm for one in result.server_series][:2] == [36552, 37590]
    assert result.server_series[0].at == 1795267294.0  # 2026-11-21 13:21:34 UTC
    assert result.server_errors == ServerErrors(deadlocks=2, errors=5)
    assert result.failed == 0
    assert result.span[1] >= result.span[0] > time.time() - 60
    assert output.Counter(36552, "PostgreSQL", "tpm") in seen
    assert output.User(4, "success") in seen


def test_a_server_without_error_counters(stage: Stage) -> None:
    connection = Connection(has_counters=False)
    known = stage.play("good", TPCC)
    assert tpcc.run(connection, OPTIONS, stage.folder, release=known).server_errors is None


# What stopped half-way


def test_a_server_that_turns_read_only_fails_the_run_by_its_state(stage: Stage) -> None:
    """HammerDB drops the server's words, counts errors, and prints its result all the same."""
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "5")
    known = stage.play("good", TPCC)
    with pytest.raises(HammerdbFailed, match=r"the server cannot go on: .* read-only") as failed:
        tpcc.run(Connection(unable_from=3), OPTIONS, stage.folder, release=known)
    assert code_of(failed.value) == FAILED
    assert ours(stage.home) == []


def test_orders_that_end_in_the_midst_of_a_window_fail_it(stage: Stage) -> None:
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "5.5")
    known = stage.play("good", TPCC)
    connection = Connection(orders_each=lambda look: 600 if look < 4 else 0)
    with pytest.raises(
        NotServed, match=r"new_order: [0-9,]+ in the first 4 s, none in the last 1 s"
    ):
        tpcc.run(connection, OPTIONS, stage.folder, release=known)


def test_errors_that_go_on_to_the_end_of_a_window_fail_it(stage: Stage) -> None:
    """A disk that was full in the last second: three of a thousand failed."""
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "5.5")
    known = stage.play("some-errors", TPCC)
    connection = Connection(orders_each=lambda look: 600 if look < 5 else 0)
    with pytest.raises(NotServed, match="3 failed, and in the last second of the window none got"):
        tpcc.run(connection, OPTIONS, stage.folder, release=known)


def test_users_that_lost_their_sessions_fail_a_run(stage: Stage) -> None:
    """With think times a user without a connection fails some times a minute, and no more."""
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "3.5")
    known = stage.play("some-errors", TPCC)
    lost = Connection(ages=lambda look: [0.0] * (3 if look < 3 else 2))
    with pytest.raises(NotServed, match="1 of 3 users had lost their sessions"):
        tpcc.run(lost, OPTIONS, stage.folder, release=known)


def test_seconds_without_an_order_stand_in_the_result(stage: Stage) -> None:
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "5.5")
    connection = Connection(orders_each=lambda look: 0 if look in (2, 3) else 600)
    result = tpcc.run(connection, OPTIONS, stage.folder, release=stage.play("good", TPCC))
    assert len(result.idle_seconds) == 2
    assert len(result.series) == 5
    assert result.series[0].nopm == 600 * 60
    few = Connection(orders_each=lambda _: 3)
    known = stage.play("good", TPCC)
    slow = tpcc.run(few, OPTIONS, stage.folder / "slow", release=known)
    assert (slow.series, slow.idle_seconds) == ((), []), "chance alone leaves seconds without"


def test_what_has_not_ended_is_told(stage: Stage) -> None:
    stage.patch.setenv("FAKE_HAMMERDB_WINDOW_S", "2.5")
    stage.patch.setenv("FAKE_HAMMERDB_AFTER_S", "3")
    stage.patch.setattr(server, "DRAIN_S", 1.0)
    begun = time.monotonic()
    stuck = Connection(ages=lambda _: [0.0, time.monotonic() - begun + 30, 0.0])
    result = tpcc.run(stuck, OPTIONS, stage.folder, release=stage.play("good", TPCC))
    assert result.unfinished is not None
    assert result.unfinished.count == 1
    assert 30 < result.unfinished.oldest_s < 60


def test_failed_transactions_are_counted(stage: Stage) -> None:
    stage.play("some-errors", TPCC)
    result = tpcc.run(Connection(), OPTIONS, stage.folder, release=release.Release(stage.home))
    assert result.failed == 3


def test_a_power_run(stage: Stage) -> None:
    result = tpch.run(Connection(), 1, stage.folder, release=stage.play("good", TPCH))
    assert result.complete
    assert result.total_s == pytest.approx(sum(range(1, 23)) / 8)
    assert [query.number for query in result.queries] == list(range(22, 0, -1))
    assert result.refresh_s is None
    assert result.scale == 1
    assert result.duration_s > 0


def test_a_build_is_counted(stage: Stage) -> None:
    rows = {
        "item": 100_000,
        "warehouse": 2,
        "district": 20,
        "customer": 60_000,
        "history": 60_000,
        "orders": 60_000,
        "new_order": 18_000,
        "order_line": 601_234,
        "stock": 200_000,
    }
    known = stage.play("good", TPCC)
    result = tpcc.build(Connection(rows=rows), 2, stage.folder, users=2, release=known)
    assert result.rows == rows
    with pytest.raises(HammerdbFailed, match="stock 199,999 instead of 200,000"):
        tpcc.build(Connection(rows=rows | {"stock": 199_999}), 2, stage.folder / "b", release=known)


def test_what_is_kept_of_a_run(stage: Stage) -> None:
    stage.timed("good")
    assert sorted(one.name for one in stage.folder.iterdir()) == sorted(
        (batch.SCRIPT, batch.LOG, batch.RECORD)
    )
    assert "TEST RESULT" in (stage.folder / batch.LOG).read_text()
    assert jobs.read(stage.folder / batch.RECORD, "6B019BCC660C03E243536323").counts
    with pytest.raises(HammerdbRefused, match="is not empty"):
        stage.timed("good")


def test_a_folder_is_named_where_something_is_kept_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    said: list[str] = []
    report = Reporter(quiet=True)
    monkeypatch.setattr(report, "say", said.append)
    with pytest.raises(HammerdbRefused), progress.folder(report, "refused"):
        raise HammerdbRefused("warehouses 1: the database has 2")
    assert (said, [*tmp_path.rglob("*refused*")]) == ([], [])
    with progress.folder(report, "run") as made:
        (made / "script.tcl").touch()
    assert said == [f"HammerDB's script, output and record: {made}"]


# Bad ends


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        ("failed-user", "virtual user 4 failed"),
        ("missing-user", "4 virtual users were asked for, 4 started and 3 finished well"),
        ("incomplete", "did not report all virtual users complete"),
        ("die", "ended before its script did"),
        ("no-result", "0 test results instead of one"),
        ("two-results", "2 test results instead of one"),
        ("record-differs", "output and its record differ, first in TestResult"),
        ("broken-connection", "1000 transactions of virtual user 3 failed, the last one New Order"),
        ("no-settings", "6.0 does not print its settings: can't read tclreadline::version"),
        ("new-key", "HammerDB 6.0 has other settings .* tpcc:pg_new_in_seven is not set by hotset"),
        ("old-key", "HammerDB 6.0 has other settings .* tpcc:pg_timeprofile is unknown to it"),
    ],
)
def test_failures_are_told_in_one_line(stage: Stage, play: str, cause: str) -> None:
    with pytest.raises(HammerdbFailed, match=cause) as failed:
        stage.timed(play)
    assert code_of(failed.value) == FAILED
    assert "\n" not in str(failed.value)
    for note in getattr(failed.value, "__notes__", []):
        assert note == f"HammerDB's output: {stage.folder / 'output.log'}"
    assert "HammerDB CLI" in (stage.folder / "output.log").read_text()
    assert not (stage.folder / "tmp").exists()


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        ("short", "the 22 queries were asked for, 21 ran"),
        ("empty-query", r"not all 22 queries returned rows, HammerDB counts \[20\]"),
        ("other-scale", "holds scale factor 1, not the requested one"),
    ],
)
def test_power_runs_that_are_not_whole(stage: Stage, play: str, cause: str) -> None:
    known = stage.play(play, TPCH)
    with pytest.raises(HammerdbFailed, match=cause):
        tpch.run(Connection(), 1, stage.folder, release=known)


@pytest.mark.parametrize("play", ["hang", "idle"])
def test_stalls_end_the_whole_group(stage: Stage, play: str) -> None:
    options = RunOptions(users=3, warehouses=2, rampup_s=60, duration_s=60, stall_s=2)
    with pytest.raises(HammerdbFailed, match="stalled: no progress for"):
        stage.timed(play, options)
    assert ours(stage.home) == []


def test_secrets_that_hammerdb_quotes_are_struck_out(stage: Stage) -> None:
    with pytest.raises(HammerdbFailed, match=r"PWD=\*\*\*;ENCRYPT") as failed:
        stage.timed("leak")
    assert PASSWORD not in str(failed.value)
    for file in stage.folder.rglob("*"):
        assert PASSWORD.encode() not in file.read_bytes(), file
    assert b"could not be established" in (stage.folder / batch.RECORD).read_bytes()


@pytest.mark.parametrize("rampup_s", [90, 59.5])
def test_refusals_start_nothing(stage: Stage, rampup_s: float) -> None:
    options = RunOptions(users=3, warehouses=2, rampup_s=rampup_s, duration_s=60)
    with pytest.raises(HammerdbRefused, match="rampup_s") as refused:
        stage.timed("good", options)
    assert code_of(refused.value) == USAGE
    assert not stage.folder.exists()


def test_other_warehouses_than_there_are(stage: Stage) -> None:
    options = RunOptions(users=3, warehouses=1, rampup_s=60, duration_s=60)
    with pytest.raises(HammerdbRefused, match="warehouses 1: the database has 2"):
        stage.timed("good", options)


def test_scales_that_hammerdb_has_not(stage: Stage) -> None:
    with pytest.raises(HammerdbRefused, match="scale 2: HammerDB knows 1, 10, 30"):
        tpch.build(Connection(), 2, stage.folder, release=stage.play("good", TPCH))


# Nothing is left


RUN = """
import sys
from pathlib import Path
from tests.hammerdb.test_runs import Connection, OPTIONS
from hotset.hammerdb import release, tpcc
tpcc.run(Connection(), OPTIONS, Path(sys.argv[2]), release=release.Release(Path(sys.argv[1])),
         observe=lambda line: print(line, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_end_of_hotset_is_the_end_of_hammerdb(stage: Stage, number: int) -> None:
    stage.play("hang", TPCC)
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(stage.home), str(stage.folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
        text=True,
        start_new_session=True,
    ) as hotset:
        assert hotset.stdout is not None
        assert any("user=4, state='running'" in line for line in hotset.stdout)
        assert len(ours(stage.home)) >= 2  # the program under its guard, and what it started
        record = stage.folder / "tmp" / "hammer.DB"
        assert record.exists()
        hotset.send_signal(number)
        hotset.wait()
    assert wait_until(lambda: not ours(stage.home), 60), ours(stage.home)
    # It may quote the password, and nobody is left who would strike it out.
    assert wait_until(lambda: not record.parent.exists(), 60)


def ours(home: Path) -> list[str]:
    """Commands alive that have the stand-in on their line, or lie in its process group."""
    lines, groups = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, group = _state(folder)
            if state != "Z":
                lines[folder.name] = (folder / "cmdline").read_bytes().decode(errors="replace")
                groups[folder.name] = group
    program = str(home / "hammerdbcli")
    members = {groups[pid] for pid, line in lines.items() if program in line}
    return [line for pid, line in lines.items() if groups[pid] in members]


def _state(folder: Path) -> tuple[str, str]:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[2]


# The doctor


def test_the_doctor_knows_hammerdb(stage: Stage) -> None:
    stage.play("good", TPCC)
    stage.patch.setenv("HAMMERDB_HOME", str(stage.home))
    finding = doctor._hammerdb()
    assert finding.state == "ok"
    assert finding.detail == (
        f"optional; 6.0 in {stage.home}, for PostgreSQL;"
        " not for SQL Server (tdbc::odbc - can't find package tdbc::odbc 1.1.1)"
    )


def test_the_doctor_without_hammerdb_lacks_nothing(stage: Stage) -> None:
    stage.patch.delenv("HAMMERDB_HOME", raising=False)
    assert doctor._hammerdb().state == "note"
    stage.patch.setenv("HAMMERDB_HOME", str(stage.folder))
    assert "holds no program hammerdbcli" in doctor._hammerdb().detail
    (stage.home / "hammerdbcli").write_text("#!/bin/sh\necho broken: no tclsh9.0 >&2\nexit 1\n")
    stage.patch.setenv("HAMMERDB_HOME", str(stage.home))
    assert "does not start: broken: no tclsh9.0" in doctor._hammerdb().detail


def test_no_release_is_a_lack(stage: Stage) -> None:
    stage.patch.delenv("HAMMERDB_HOME", raising=False)
    with pytest.raises(Exception, match="HAMMERDB_HOME is not set") as lacks:
        tpcc.run(Connection(), OPTIONS, stage.folder)
    assert code_of(lacks.value) == LACKS
