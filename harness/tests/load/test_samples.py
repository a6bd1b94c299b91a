"""From samples to figures: windows, seconds, percentiles, outcomes."""

import json
from dataclasses import asdict, replace

import pytest

from hotset.core.record import document_of
from hotset.load.latency import Latencies
from hotset.load.record import Tick
from hotset.load.samples import Recorder, RunLog
from hotset.reports.model.windows import Unfinished
from hotset.tpcc.record import RunOptions
from hotset.tpcc.transactions import KINDS, Kind

OPTIONS = RunOptions(users=1, warehouses=1, rampup_s=2, duration_s=3)
START = 1000.0
EPOCH = 5000.0


def begun(options: RunOptions = OPTIONS) -> Recorder:
    recorder = Recorder(len(KINDS))
    opens = START + options.rampup_s
    recorder.begin(opens, opens + options.duration_s)
    return recorder


def log_of(recorder: Recorder, options: RunOptions = OPTIONS) -> RunLog:
    log = RunLog(options, KINDS, START, EPOCH)
    log.add(recorder.collect())
    return log


def test_only_the_window_counts() -> None:
    recorder = begun()
    for end in (START + 1.9, START + 2.0, START + 3.5, START + 4.999, START + 5.0):
        recorder.commit(Kind.NEW_ORDER, end - 0.010, end)
    result = log_of(recorder).result()
    assert result.span == (EPOCH + START + 2, EPOCH + START + 5)
    assert result.transactions["new_order"].committed == 3
    assert result.tpm == 60
    assert [second.tpm / 60 for second in result.series] == [1, 1, 1]


def test_percentiles_are_in_milliseconds() -> None:
    recorder = begun()
    for n in range(101):
        recorder.commit(Kind.PAYMENT, START + 3, START + 3 + n / 1000)
    latency = log_of(recorder).result().transactions["payment"].latency_ms
    found = (latency.mean, latency.p50, latency.p90, latency.p99, latency.p99_99, latency.max)
    assert found == pytest.approx((50, 50, 90, 99, 100, 100), rel=0.001)
    assert latency.histogram is not None
    assert len(Latencies(latency.histogram)) == 101


def test_outcomes_are_counted_by_type_and_cause() -> None:
    recorder = begun()
    for end in (START + 2.5, START + 4.5, START + 99):
        recorder.event(Kind.NEW_ORDER, end, "rolled back")
        recorder.event(Kind.PAYMENT, end, "retry", "deadlock")
        recorder.record_failure(Kind.DELIVERY, end - 0.1, end, "error 53100", "disk full")
    result = log_of(recorder).result()
    assert result.transactions["new_order"].rolled_back == 2
    assert result.transactions["payment"].retry_causes == {"deadlock": 2}
    assert result.transactions["delivery"].failed == {"error 53100: disk full": 2}
    assert result.failed == 2
    assert [second.failed for second in result.series] == [1, 0, 1]
    assert result.transactions["delivery"].latency_ms is None


def test_a_window_cut_short_has_rates_of_its_own_length() -> None:
    recorder = begun()
    for n in range(10):
        recorder.commit(Kind.NEW_ORDER, START + 2 + n * 0.1, START + 2.001 + n * 0.1)
    partial = log_of(recorder).result(until=START + 3.5)
    assert partial.tpm == pytest.approx(10 / 1.5 * 60)
    assert [second.tpm / 60 for second in partial.series] == [10, 0]


def test_ticks_count_from_the_start() -> None:
    recorder = begun()
    recorder.commit(Kind.NEW_ORDER, START + 1.5, START + 1.504)
    recorder.commit(Kind.STOCK_LEVEL, START + 1.6, START + 1.604)
    log = log_of(recorder)
    tick = log.tick(-1)
    names = [f"latency_ms_{name}" for name in ("mean", "p50", "p95", "p99")]
    assert replace(tick, **dict.fromkeys(names)) == Tick(1, "rampup", 1, 2, 0, None, None)
    assert [getattr(tick, name) for name in names] == pytest.approx([4] * 4, rel=0.001)
    assert log.tick(0) == Tick(2, "measure", 0, 0, 0, None, None)


def test_what_a_busy_computer_reports_late_is_told_with_the_next_second() -> None:
    """None of a window is lost, and what is late of the ramp-up is not of the window."""
    recorder, log = begun(), RunLog(OPTIONS, KINDS, START, EPOCH)
    for end in (START + 1.5, START + 2.5, START + 2.6, START + 3.5, START + 4.5):
        recorder.commit(Kind.PAYMENT, end - 0.004, end)
    assert [log.tick(second).transactions for second in (-1, 0)] == [0, 0]
    log.add(recorder.collect())
    assert [log.tick(second).transactions for second in (1, 2)] == [3, 1]
    assert [one.tpm / 60 for one in log.result().series] == [2, 1, 1]


def test_a_ramp_up_of_a_fraction_shifts_no_second_of_the_window() -> None:
    options = replace(OPTIONS, rampup_s=0.5)
    recorder = begun(options)
    for end in (START + 0.4, START + 0.6, START + 1.4, START + 1.6):
        recorder.commit(Kind.PAYMENT, end - 0.004, end)
    log = log_of(recorder, options)
    assert [log.tick(second).transactions for second in (-1, 0, 1)] == [1, 2, 1]
    assert [log.tick(second).second for second in (-1, 0, 1)] == [0, 1, 2]
    assert [one.tpm / 60 for one in log.result().series] == [2, 1, 0]


def test_the_tallies_of_several_processes_add_up() -> None:
    log = RunLog(OPTIONS, KINDS, START, EPOCH)
    for latency_s in (0.001, 0.003):
        recorder = begun()
        recorder.commit(Kind.PAYMENT, START + 2.5, START + 2.5 + latency_s)
        recorder.event(Kind.PAYMENT, START + 2.5, "retry", "deadlock")
        assert log.add(recorder.collect())
    result = log.result()
    assert result.transactions["payment"].retry_causes == {"deadlock": 2}
    assert result.series[0].tpm == 120
    assert result.series[0].latency_ms_mean == pytest.approx(2, rel=0.001)
    assert result.latency_ms.max == pytest.approx(3, rel=0.001)


def test_failures_alone_are_no_success_and_the_latest_is_remembered() -> None:
    recorder = begun()
    recorder.record_failure(Kind.PAYMENT, START + 3, START + 3.5, "later", "")
    recorder.record_failure(Kind.PAYMENT, START + 2, START + 2.5, "earlier", "")
    log = RunLog(OPTIONS, KINDS, START, EPOCH)
    assert not log.add(recorder.collect())
    assert log.last_failure() == "later"


def test_what_was_due_is_counted_where_it_was_due() -> None:
    options = replace(OPTIONS, rate_per_s=2.0)
    recorder = begun(options)
    recorder.record_start(START + 1.9, late=True)
    recorder.record_start(START + 2.1, late=False)
    recorder.record_start(START + 3.1, late=True)
    recorder.record_skip(START + 4.9)
    result = log_of(recorder, options).result()
    assert result.arrived is not None
    assert result.arrived.model_dump() == {
        "rate_per_s": 2.0, "due": 3, "late": 1, "skipped": 1, "growth": pytest.approx(3),
    }  # fmt: skip
    assert [(one.late, one.skipped) for one in result.series] == [(0, 0), (1, 0), (0, 1)]
    assert log_of(begun()).result().arrived is None


def test_what_ends_after_the_window_counts_in_its_latency_alone() -> None:
    recorder = begun()
    recorder.commit(Kind.DELIVERY, START + 3, START + 3.1)
    recorder.commit(Kind.DELIVERY, START + 4.9, START + 8.9)
    result = log_of(recorder).result()
    assert result.transactions["delivery"].committed == 1
    assert result.latency_ms.max == pytest.approx(4000, rel=0.001)
    assert [one.tpm / 60 for one in result.series] == [0, 1, 0]
    assert result.series[2].latency_ms_mean == pytest.approx(4000, rel=0.001)


def test_what_fails_after_the_window_has_failed() -> None:
    recorder = begun()
    recorder.record_failure(
        Kind.DELIVERY, START + 3.5, START + 9, "error 57014", "canceling statement"
    )
    assert log_of(recorder).result().series[1].failed == 1


def test_what_never_ends_is_told() -> None:
    recorder = begun()
    recorder.event(Kind.PAYMENT, START + 0.5, "unfinished")
    recorder.event(Kind.PAYMENT, START + 4.5, "unfinished")
    result = log_of(recorder).result()
    assert result.unfinished == Unfinished(count=2, oldest_s=5.0)
    assert result.transactions["payment"].unfinished == 1
    assert log_of(begun()).result().unfinished is None


def test_result_is_json() -> None:
    recorder = begun()
    recorder.commit(Kind.DELIVERY, START + 3, START + 3.004)
    document = json.loads(json.dumps(document_of(log_of(recorder).result())))
    assert document["users"] == 1
    assert document["transactions"]["delivery"]["latency_ms"]["p99"] == pytest.approx(4, rel=0.001)


def test_collecting_takes_everything_once() -> None:
    recorder = begun()
    recorder.commit(Kind.PAYMENT, START, START + 0.5)
    assert [tally.second for tally in recorder.collect()] == [-2]
    assert recorder.collect() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("users", 0),
        ("warehouses", 0),
        ("duration_s", 0),
        ("stall_s", 1),
        ("rate_per_s", 0),
        ("rate_per_s", 1e6),
    ],
)
def test_impossible_options_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        RunOptions(**(asdict(OPTIONS) | {field: value}))


def test_a_rate_and_think_times_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="exclude each other"):
        replace(OPTIONS, rate_per_s=10.0, think_time=True)
