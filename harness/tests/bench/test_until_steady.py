"""Windows that are repeated until one is known to be steady."""

from __future__ import annotations

from typing import Any

import pytest

from hotset.bench.runs import Runs
from hotset.bench.window import Outcome
from hotset.core.progress import Reporter
from hotset.load.record import WindowOptions
from hotset.load.steady import Round, judge
from hotset.reports.model.windows import Repeat, Steadiness

OPTIONS = WindowOptions(users=1, rampup_s=5, duration_s=10)


def tpm(rounds: list[float], error: float) -> list[Steadiness]:
    return [judge("all", "tpm", [Round(one, error) for one in rounds], [0, 2, 4, 6, 8])]


STEADY = tpm([100.0] * 5, 0.1)
UNSTEADY = tpm([200.0, 100, 100, 100, 100], 0.1)
UNKNOWN = tpm([100.0] * 5, 30)
NOT_JUDGED: list[Steadiness] = []


class Given(Runs[WindowOptions]):
    """Windows as they are given, one after the other."""

    suite = "given"

    def __init__(self, windows: list[list[Steadiness]]) -> None:
        super().__init__(Reporter(quiet=True))
        self.windows = windows
        self.ran: list[WindowOptions] = []

    def drive(self, database: Any, options: WindowOptions, *_: object) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def title(self, options: WindowOptions) -> str:  # noqa: ARG002
        return "given"

    def limits(self, texts: Any) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def values(self, result: Any) -> Any:  # noqa: ANN401
        raise NotImplementedError

    def rate(self, result: Any) -> str:  # noqa: ANN401
        raise NotImplementedError

    def run(self, database: Any, options: WindowOptions) -> Any:  # noqa: ANN401, ARG002
        steadiness = self.windows[len(self.ran)]
        self.ran.append(options)
        return Outcome(
            Repeat(
                rampup_s=options.rampup_s,
                duration_s=options.duration_s,
                tpm=100,
                failed=0,
                retries=0,
                steadiness=tuple(steadiness),
            )
        )


def until_steady(windows: list[list[Steadiness]], limit_s: float) -> Given:
    runs, database = Given(windows), None
    outcome = runs.run_until_steady(database, OPTIONS, limit_s)  # type: ignore[arg-type]
    assert outcome.result is not None
    assert list(outcome.result.steadiness) == windows[len(runs.ran) - 1]
    return runs


def test_only_what_is_known_to_be_steady_ends_it() -> None:
    found = until_steady([UNKNOWN, NOT_JUDGED, UNSTEADY, STEADY], 3600)
    assert [one.duration_s for one in found.ran] == [10, 20, 40, 40], "longer to know more"
    assert [one.rampup_s for one in found.ran] == [5, 0, 0, 0]
    assert len(until_steady([STEADY], 3600).ran) == 1


@pytest.mark.parametrize("last", [UNKNOWN, UNSTEADY, NOT_JUDGED])
def test_the_limit_ends_it_and_the_last_window_is_as_it_is(last: list[Steadiness]) -> None:
    assert len(until_steady([last], OPTIONS.duration_s - 1).ran) == 1
