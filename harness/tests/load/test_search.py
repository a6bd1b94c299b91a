"""The search for a rate, on servers whose behaviour is a formula."""

from dataclasses import replace
from heapq import heapreplace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.load.arrivals import LATE_S, Arrivals
from hotset.load.record import NotServed
from hotset.load.samples import Recorder, RunLog
from hotset.load.search import LOWEST_SHARE, RESOLUTION, FoundRate, Limits, explain_miss, find_rate
from hotset.reports.model.windows import Arrived, Latency, Repeat, Unfinished
from hotset.tpcc.record import RunOptions

OPTIONS = RunOptions(users=8, warehouses=1, rampup_s=0, duration_s=10)


class Server:
    """One that does at most `most` a second, with latency 1 / (most - rate)."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.rates: list[float | None] = []

    def run(self, options: RunOptions) -> Repeat:
        self.rates.append(options.rate_per_s)
        rate = options.rate_per_s or self.most
        done = min(rate, self.most)
        late_ms = 1e3 / (self.most - rate) if rate < self.most else 1e9
        due = round(rate * options.duration_s)
        skipped = round((rate - done) * options.duration_s)
        return Repeat(
            rampup_s=0,
            duration_s=options.duration_s,
            nopm=done * 27,
            tpm=done * 60,
            latency_ms=Latency(p95=late_ms),
            failed=0,
            retries=0,
            arrived=None
            if options.rate_per_s is None
            else arrived(rate, due, skipped, due - done * 10),
        )


def arrived(rate_per_s: float, due: int, skipped: int, growth: float) -> Arrived:
    return Arrived(rate_per_s=rate_per_s, due=due, late=0, skipped=skipped, growth=growth)


def below(limit_ms: float) -> Limits:
    def judge(result: Repeat) -> str:
        assert result.latency_ms is not None
        p95 = result.latency_ms.p95
        assert p95 is not None
        return "" if p95 < limit_ms else f"p95 {p95}"

    return Limits((f"p95<{limit_ms}ms",), judge)


ANY = Limits((), lambda _: "")


@given(st.floats(50, 1e5), st.floats(0.02, 0.95))
def test_the_rate_found_is_the_highest_that_holds(most: float, share: float) -> None:
    """A limit that holds exactly below `share` of the highest throughput."""
    limit_ms = 1e3 / (most * (1 - share))
    found = find_rate(Server(most).run, OPTIONS, below(limit_ms))
    record, rate = found.record, found.record.rate_per_s
    assert record.unpaced_per_s == pytest.approx(most)
    if rate is None:
        assert found.window is None
        assert share <= 2 * LOWEST_SHARE
        return
    assert share * most / (1 + RESOLUTION) * 0.999 <= rate <= share * most * 1.001
    assert all(bool(trial.missed) == (trial.rate_per_s > rate) for trial in record.trials)
    assert len(record.trials) < 14
    assert found.window is not None
    assert found.window.arrived is not None
    assert found.window.arrived.rate_per_s == rate


def test_a_limit_that_never_holds_ends_the_search() -> None:
    seen: list[FoundRate] = []
    found = find_rate(Server(1000).run, OPTIONS, below(0.0), seen.append)
    assert (found.window, found.record.rate_per_s) == (None, None)
    assert found.record.trials == tuple(one.record.trials[-1] for one in seen)
    assert found.record.trials[-1].missed.startswith("p95")
    assert found.record.failed_per_s == found.record.trials[-1].rate_per_s


def test_what_is_skipped_or_left_undone_does_not_hold() -> None:
    server = Server(100)
    over = server.run(replace(OPTIONS, rate_per_s=150))
    assert explain_miss(over, lambda _: "") == "500 of 1,500 transactions skipped"
    behind = over.model_copy(update={"arrived": arrived(150, 1500, 0, 500)})
    assert explain_miss(behind, lambda _: "") == "the queue grew by 500 of 1,500 transactions due"
    unfinished = Unfinished(count=3, oldest_s=2.0)
    stuck = behind.model_copy(update={"unfinished": unfinished})
    assert explain_miss(stuck, lambda _: "") == "3 of 1,500 transactions did not end"
    with pytest.raises(ValueError, match="no rate"):
        explain_miss(server.run(OPTIONS), lambda _: "")


def test_each_trial_has_a_seed_of_its_own() -> None:
    seeds: list[int] = []
    server = Server(1000)

    def run(options: RunOptions) -> Repeat:
        seeds.append(options.seed)
        return server.run(options)

    trials = find_rate(run, OPTIONS, below(10)).record.trials
    assert len(set(seeds)) == len(seeds) == len(trials) + 1
    assert [trial.seed for trial in trials] == seeds[1:]


def test_a_rate_at_which_the_server_refuses_does_not_hold() -> None:
    server = Server(1000)

    def run(options: RunOptions) -> Repeat:
        result = server.run(options)
        if (options.rate_per_s or 0) > 600:
            raise NotServed("payment: none of 20 got through", result)
        return result

    record = find_rate(run, OPTIONS, ANY).record
    assert record.rate_per_s == pytest.approx(600, rel=RESOLUTION)
    assert "payment: none of 20 got through" in [trial.missed for trial in record.trials]


class Queue:
    """One queue and several users, as a run with a rate has them: an M/M/c system, whose windows
    are recorded and judged by the code that records and judges real ones."""

    SERVICE_S = 0.050

    def __init__(self, users: int) -> None:
        self.options = RunOptions(users=users, warehouses=1, rampup_s=2, duration_s=10)

    def window(self, load: float, seed: int) -> Repeat:
        """:param load: share of what the users can serve."""
        options = replace(self.options, rate_per_s=load * self.options.users / self.SERVICE_S)
        assert options.rate_per_s is not None
        recorder, log = Recorder(1), RunLog(options, ["one"], 0.0, 0.0)
        opens, closes = log.window
        recorder.begin(opens, closes)
        arrivals = Arrivals(seed, 0, options.rate_per_s)
        arrivals.begin(0.0, closes)
        draw, free = Random(seed), [0.0] * options.users
        while (due := arrivals.take(now := free[0], recorder.record_skip)) is not None:
            start = max(now, due)
            end = start + draw.expovariate(1 / self.SERVICE_S)
            recorder.record_start(due, late=start - due > LATE_S)
            recorder.event(0, end, "rolled back")
            heapreplace(free, end)
        log.add(recorder.collect())
        return log.result()

    def refused(self, load: float, trials: int) -> list[str]:
        """Why windows at this load do not hold, of so many."""
        found = [explain_miss(self.window(load, seed), lambda _: "") for seed in range(trials)]
        return [one for one in found if one]


@pytest.mark.parametrize(("users", "load"), [(4, 0.8), (16, 0.9), (16, 0.95)])
def test_a_queue_that_comes_and_goes_is_no_overload(users: int, load: float) -> None:
    refused = Queue(users).refused(load, 40)
    assert len(refused) <= 2, refused


@pytest.mark.parametrize(("users", "load"), [(4, 1.3), (16, 1.1)])
def test_a_queue_that_grows_is_found_though_no_limit_is_missed(users: int, load: float) -> None:
    refused = Queue(users).refused(load, 20)
    assert len(refused) >= 19
    assert all("the queue grew" in one for one in refused)
