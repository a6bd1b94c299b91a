"""A search for the highest rate that is cut short."""

from __future__ import annotations

from typing import Any

import pytest

from hotset.bench import window
from hotset.bench.runs import Runs
from hotset.core.errors import Interrupted
from hotset.core.progress import Reporter
from hotset.load.record import RunFailed, RunInterrupted, WindowOptions
from hotset.reports.model.windows import Arrived, Latency, Repeat

OPTIONS = WindowOptions(users=1, rampup_s=5, duration_s=10)


class CutShort(Runs[WindowOptions]):
    """Serves 100 a second, until the window that ends otherwise."""

    suite = "given"

    def __init__(self, good: int, end: BaseException) -> None:
        super().__init__(Reporter(quiet=True))
        self.good, self.end = good, end

    def drive(self, database: Any, options: WindowOptions, *_: object) -> Any:  # noqa: ANN401, ARG002
        if not self.good:
            raise self.end
        self.good -= 1
        rate = options.rate_per_s
        due = int((rate or 0) * 10)
        return Repeat(
            rampup_s=0,
            duration_s=options.duration_s,
            tpm=6000 if rate is None else rate * 60,
            latency_ms=Latency(p95=1.0),
            failed=0,
            retries=0,
            arrived=Arrived(rate_per_s=rate, due=due, late=0, skipped=0, growth=0)
            if rate
            else None,
        )

    def title(self, options: WindowOptions) -> str:  # noqa: ARG002
        return "given"

    def limits(self, texts: Any) -> Any:  # noqa: ANN401
        return list(texts)

    def values(self, result: Any) -> Any:  # noqa: ANN401
        return window.values(result)

    def rate(self, result: Any) -> str:  # noqa: ANN401
        raise NotImplementedError


def ended_by(why: str) -> RunInterrupted:
    """As a driver raises it."""
    try:
        try:
            raise KeyboardInterrupt(why)
        except KeyboardInterrupt:
            raise RunInterrupted(None) from None
    except RunInterrupted as ended:
        return ended


@pytest.mark.parametrize(
    ("end", "cause", "failure"),
    [
        (RunInterrupted(None), window.INTERRUPTED, Interrupted),
        (ended_by("no room is left"), "interrupted: no room is left", Interrupted),
        (RunFailed("the server went away", None), "the server went away", RunFailed),
    ],
)
def test_what_it_had_come_to_is_kept(
    end: BaseException, cause: str, failure: type[Exception]
) -> None:
    database: Any = None
    outcome = CutShort(3, end).find_rate(database, OPTIONS, [])
    assert outcome.cause == cause
    assert outcome.rate is not None
    assert [trial.rate_per_s for trial in outcome.rate.trials] == [50, 75]
    assert outcome.rate.rate_per_s == 75
    assert outcome.result is not None
    assert outcome.result.arrived is not None
    assert outcome.result.arrived.rate_per_s == 75
    assert outcome.state == ("interrupted" if failure is Interrupted else "failed")
    with pytest.raises(failure, match=cause):
        window.require(outcome)


def test_nothing_was_found_yet() -> None:
    database: Any = None
    with pytest.raises(RunInterrupted):
        CutShort(1, RunInterrupted(None)).find_rate(database, OPTIONS, [])
