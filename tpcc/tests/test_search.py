"""The search for a rate, on servers whose behaviour is a formula."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.tpcc.window.latency import NO_LATENCY
from hotset.tpcc.window.record import Arrived, RunOptions, RunResult
from hotset.tpcc.window.search import LOWEST_SHARE, RESOLUTION, find_rate, missed

OPTIONS = RunOptions(users=8, warehouses=1, rampup_s=0, duration_s=10)


class Server:
    """One that does at most `most` a second, with latency 1 / (most - rate)."""

    def __init__(self, most: float) -> None:
        self.most = most
        self.rates: list[float | None] = []

    def run(self, options: RunOptions) -> RunResult:
        self.rates.append(options.rate_per_s)
        rate = options.rate_per_s or self.most
        done = min(rate, self.most)
        late_ms = 1e3 / (self.most - rate) if rate < self.most else math.inf
        due = round(rate * options.duration_s)
        skipped = round((rate - done) * options.duration_s)
        return RunResult(
            options=options,
            window_start=0,
            window_end=options.duration_s,
            nopm=done * 27,
            tpm=done * 60,
            nopm_by_district=None,
            kinds={},
            latency_ms=replace(NO_LATENCY, p95=late_ms),
            failed=0,
            series=[],
            arrived=None if options.rate_per_s is None else Arrived(due, 0, skipped),
        )


def below(limit_ms: float):  # noqa: ANN201
    def judge(result: RunResult) -> str:
        p95 = result.latency_ms.p95
        assert p95 is not None
        return "" if p95 < limit_ms else f"p95 {p95}"

    return judge


@given(st.floats(50, 1e5), st.floats(0.02, 0.95))
def test_the_rate_found_is_the_highest_that_holds(most: float, share: float) -> None:
    """A limit that holds exactly below `share` of the highest throughput."""
    limit_ms = 1e3 / (most * (1 - share))
    found = find_rate(Server(most).run, OPTIONS, below(limit_ms))
    assert found.highest_per_s == pytest.approx(most)
    if found.highest is None:
        assert share <= 2 * LOWEST_SHARE
        return
    rate = found.highest.rate_per_s
    assert share * most / (1 + RESOLUTION) * 0.999 <= rate <= share * most * 1.001
    assert all(trial.holds == (trial.rate_per_s <= rate) for trial in found.trials)
    assert len(found.trials) < 14


def test_a_limit_that_never_holds_ends_the_search() -> None:
    seen: list[object] = []
    found = find_rate(Server(1000).run, OPTIONS, below(0.0), seen.append)
    assert found.highest is None
    assert found.trials == seen
    assert found.trials[-1].missed.startswith("p95")


def test_what_is_skipped_or_left_undone_does_not_hold() -> None:
    server = Server(100)
    over = server.run(replace(OPTIONS, rate_per_s=150))
    assert missed(over, lambda _: "") == "500 of 1,500 transactions skipped"
    behind = replace(over, arrived=Arrived(1500, 0, 0))
    assert missed(behind, lambda _: "") == "100.0/s of the 150.0/s due were done"
    with pytest.raises(ValueError, match="no rate"):
        missed(server.run(OPTIONS), lambda _: "")
