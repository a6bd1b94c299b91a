"""From samples to figures: windows, seconds, percentiles, outcomes."""

import json
from dataclasses import asdict, replace

import pytest

from hotset.tpcc.record import RunOptions, Tick
from hotset.tpcc.samples import Event, Recorder, RunLog, joined
from hotset.tpcc.transactions import Kind

OPTIONS = RunOptions(users=1, warehouses=1, rampup_s=2, duration_s=3)
START = 1000.0
EPOCH = 5000.0


def log_of(recorder: Recorder) -> RunLog:
    log = RunLog(OPTIONS, START, EPOCH)
    log.add(recorder.collect(), START + 5)
    return log


def test_only_the_window_counts() -> None:
    recorder = Recorder()
    for end in (START + 1.9, START + 2.0, START + 3.5, START + 4.999, START + 5.0):
        recorder.commit(Kind.NEW_ORDER, end, 0.010)
    result = log_of(recorder).result(None)
    assert (result.window_start, result.window_end) == (EPOCH + START + 2, EPOCH + START + 5)
    assert result.kinds["new_order"].committed == 3
    assert result.nopm == result.tpm == 60
    assert [second.transactions for second in result.series] == [1, 1, 1]


def test_percentiles_are_exact_and_in_milliseconds() -> None:
    recorder = Recorder()
    for n in range(101):
        recorder.commit(Kind.PAYMENT, START + 3, n / 1000)
    latency = log_of(recorder).result(None).kinds["payment"].latency_ms
    assert latency.mean == pytest.approx(50)
    assert latency.p50 == pytest.approx(50)
    assert latency.p95 == pytest.approx(95)
    assert latency.p99 == pytest.approx(99)
    assert latency.max == pytest.approx(100)


def test_outcomes_are_counted_by_type_and_cause() -> None:
    recorder = Recorder()
    for end in (START + 2.5, START + 4.5, START + 99):
        recorder.event(Event(end, Kind.NEW_ORDER, "rolled back"))
        recorder.event(Event(end, Kind.PAYMENT, "retry", "deadlock"))
        recorder.event(Event(end, Kind.DELIVERY, "failed", "error 53100"))
    result = log_of(recorder).result(None)
    assert result.kinds["new_order"].rolled_back == 2
    assert result.kinds["payment"].retries == {"deadlock": 2}
    assert result.kinds["delivery"].failed == {"error 53100": 2}
    assert result.failed == 2
    assert [second.failed for second in result.series] == [1, 0, 1]
    assert result.kinds["delivery"].latency_ms.mean is None


def test_a_window_cut_short_has_rates_of_its_own_length() -> None:
    recorder = Recorder()
    for n in range(10):
        recorder.commit(Kind.NEW_ORDER, START + 2 + n * 0.1, 0.001)
    partial = log_of(recorder).result(None, until=START + 3.5)
    assert partial.tpm == pytest.approx(10 / 1.5 * 60)
    assert [second.transactions for second in partial.series] == [10, 0]


def test_ticks_count_from_the_start() -> None:
    recorder = Recorder()
    recorder.commit(Kind.NEW_ORDER, START + 1.5, 0.004)
    recorder.commit(Kind.STOCK_LEVEL, START + 1.6, 0.004)
    tick = log_of(recorder).tick(1, "rampup")
    assert replace(tick, latency_ms_mean=None, latency_ms_p95=None) == Tick(
        1, "rampup", 1, 2, 0, None, None
    )
    assert tick.latency_ms_mean == pytest.approx(4)
    assert tick.latency_ms_p95 == pytest.approx(4)
    assert log_of(recorder).tick(2, "measure").latency_ms_mean is None


def test_result_is_json() -> None:
    recorder = Recorder()
    recorder.commit(Kind.DELIVERY, START + 3, 0.004)
    document = json.loads(json.dumps(asdict(log_of(recorder).result(12.0))))
    assert document["options"]["users"] == 1
    assert document["kinds"]["delivery"]["latency_ms"]["p99"] == pytest.approx(4)


def test_collecting_takes_everything_once() -> None:
    recorder = Recorder()
    recorder.commit(Kind.PAYMENT, START, 0.5)
    assert len(joined([recorder.collect(), recorder.collect()]).kinds) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("users", 0), ("warehouses", 0), ("duration_s", 0), ("stall_s", 1)]
)
def test_impossible_options_are_refused_by_name(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=field):
        RunOptions(**(asdict(OPTIONS) | {field: value}))
