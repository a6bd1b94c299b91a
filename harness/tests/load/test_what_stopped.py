"""What stopped half-way did not go well, and what never ended counts."""

from __future__ import annotations

import math

import pytest

from hotset.load.record import WindowOptions
from hotset.load.samples import Recorder, RunLog
from hotset.load.served import shortfall

OPTIONS = WindowOptions(users=4, rampup_s=0, duration_s=40)
KINDS = ("new_order", "delivery")


def log_of(recorder: Recorder) -> RunLog:
    log = RunLog(OPTIONS, KINDS, 0.0, 0.0)
    log.add(recorder.collect())
    return log


def recorder() -> Recorder:
    found = Recorder(len(KINDS))
    found.begin(0.0, OPTIONS.duration_s)
    return found


@pytest.mark.parametrize("rate", [1, 2])
def test_a_kind_that_ended_in_the_midst_of_a_window_fails_it(rate: int) -> None:
    """Beyond chance alone: 30 s at 1 a second are 10 in the last 10 s, at one in two seconds 5."""
    users = recorder()
    for second in range(40):
        users.commit(0, second + 0.1, second + 0.2)
        if second < 30 and second % (3 - rate) == 0:
            users.commit(1, second + 0.3, second + 0.4)
    log = log_of(users)
    told = shortfall(log.result(), log.ended_kinds())
    assert told == ("delivery: 30 in the first 30 s, none in the last 10 s" if rate == 2 else "")


def test_a_state_that_does_not_pass_is_told_at_its_first_failure() -> None:
    users = recorder()
    users.record_failure(0, 1.0, 1.1, "deadlock", "")
    assert log_of(users).lasting is None
    users.record_failure(0, 1.0, 1.1, "read-only", "cannot execute INSERT")
    assert log_of(users).lasting == "read-only: cannot execute INSERT"


def test_what_has_not_ended_counts_with_its_age() -> None:
    """Four that hung for 16 s were left out: `max<1s` was met by 936 ms."""
    users = recorder()
    for second in range(40):
        users.commit(0, second + 0.1, second + 0.2)
    users.record_unfinished(0, 34.0, 50.0)
    users.record_unfinished(0, -5.0, 50.0)
    result = log_of(users).result()
    assert result.latency_ms is not None
    assert result.latency_ms.max == pytest.approx(55_000, rel=1e-3)
    assert result.latency_ms.p99 == pytest.approx(55_000, rel=1e-3)
    assert result.transactions["new_order"].committed == 40
    assert result.unfinished is not None
    assert result.unfinished.count == 2


def test_seconds_without_a_commit_are_told_where_chance_leaves_none() -> None:
    users = recorder()
    for second in range(40):
        for number in range(0 if second in (7, 8) else 20):
            at = second + number / 20
            users.commit(0, at, at + 0.001)
    assert log_of(users).result().idle_seconds == [7, 8]
    few = recorder()
    for second in range(0, 40, 2):
        few.commit(0, second, second + 0.1)
    assert log_of(few).result().idle_seconds == []
    assert math.isclose(log_of(recorder()).result().tpm, 0)
