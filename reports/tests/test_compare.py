"""Runs side by side: what is compared, what is refused, and how it is said."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hotset.reports.analysis import stats
from hotset.reports.analysis.comparison import compare, pool
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import PowerRun, Repeat
from hotset.reports.render import terminal
from tests import documents
from tests.test_terminal import pinned, text_of

FIRST = documents.with_queries(repeats=3)
BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def other(spec: dict[str, Any] | None = None, **changes: object) -> RunDocument:
    """The same run once more, with changes."""
    experiment = FIRST.experiment.model_copy(update={"spec": FIRST.experiment.spec | (spec or {})})
    return FIRST.model_copy(update={"run": "second", "experiment": experiment, **changes})


def faster(times: float) -> RunDocument:
    """All of TPC-C so many times faster."""

    def fast(arm: ArmName, one: Repeat) -> dict[str, object]:
        return dict(documents.repeat(arm, one.repeat, documents.LEVELS[arm] * times))

    return other(arms=documents.with_windows(FIRST, fast).arms)


def test_a_run_beside_itself_is_no_different() -> None:
    lines = compare.lines([FIRST, other()])
    assert {(line.workload, line.arm) for line in lines} == {
        *(("tpcc", arm.name) for arm in FIRST.arms),
        *(("tpch", arm.name) for arm in FIRST.power_arms),
    }
    assert {line.verdict for line in lines} == {"not significant"}
    assert all(line.speed_ratio == 1 for line in lines)
    compare.require_same(FIRST, other())


@pytest.mark.parametrize(("times", "verdict"), [(2.0, "faster"), (0.5, "slower")])
def test_what_became_faster_or_slower(times: float, verdict: str) -> None:
    lines = [one for one in compare.lines([FIRST, faster(times)]) if one.workload == "tpcc"]
    assert lines
    for line in lines:
        assert line.verdict == verdict
        assert line.speed_ratio == pytest.approx(times, rel=0.1)
        assert line.ci_low is not None
        assert line.ci_low <= (line.speed_ratio or 0)
        assert line.value == pytest.approx(line.value_against * times, rel=0.1)


def test_fewer_seconds_are_faster() -> None:
    arms = tuple(
        arm.model_copy(update={"repeats": tuple(halved(run) for run in arm.repeats)})
        for arm in FIRST.power_arms
    )
    changed = other(power_arms=arms)
    lines = [one for one in compare.lines([FIRST, changed]) if one.workload == "tpch"]
    assert lines
    assert all(line.speed_ratio == pytest.approx(2) for line in lines)
    assert all(line.verdict == "faster" for line in lines)


def halved(run: PowerRun) -> PowerRun:
    queries = [one.model_copy(update={"seconds": one.seconds / 2}) for one in run.queries]
    return run.model_copy(update={"queries": tuple(queries)})


def test_the_highest_rates_are_compared() -> None:
    first = documents.with_sql()
    rates = tuple(documents.highest_rate(number, 80.0) for number in (1, 2, 3))
    arms = tuple(arm.model_copy(update={"rates": rates}) for arm in first.arms)
    second = first.model_copy(update={"run": "second", "arms": arms})
    lines = {
        line.arm: line
        for line in compare.lines([first, second])
        if line.figure == "highest rate, TPS"
    }
    assert set(lines) == {arm.name for arm in first.arms}
    slow = lines["baseline"]
    before = documents.LEVELS["baseline"] / 10
    assert (slow.value_against, slow.value) == (pytest.approx(before), 80.0)
    assert slow.speed_ratio == pytest.approx(80 / before)
    assert slow.verdict == "faster"


def test_a_rate_that_only_one_run_has_sought_is_left_out() -> None:
    first = documents.with_sql()
    arms = tuple(arm.model_copy(update={"rates": ()}) for arm in first.arms)
    lines = compare.lines([first, first.model_copy(update={"run": "second", "arms": arms})])
    assert {line.figure for line in lines} == {"TPS"}


def test_no_rate_held_is_said() -> None:
    first = documents.with_sql()
    none = documents.highest_rate(1, 80.0).model_copy(update={"rate_per_s": None})
    arms = tuple(arm.model_copy(update={"rates": (none,)}) for arm in first.arms)
    second = first.model_copy(update={"run": "second", "arms": arms})
    lines = [line for line in compare.lines([first, second]) if line.figure != "TPS"]
    assert lines
    for line in lines:
        assert (line.value, line.verdict) == (0.0, "no ratio")
        assert "no rate meets the limits" in line.note


def test_at_a_rate_the_latencies_are_compared() -> None:
    first = documents.at_a_rate()

    def quicker(_: ArmName, one: Repeat) -> dict[str, object]:
        assert one.latency_ms is not None
        return {"latency_ms": one.latency_ms.model_copy(update={"p95": one.latency_ms.p95 / 2})}

    second = documents.with_windows(first, quicker).model_copy(update={"run": "second"})
    lines = compare.lines([first, second])
    of_latency = [line for line in lines if line.figure == "p95, ms"]
    assert [line.arm for line in of_latency] == [line.arm for line in lines if line.figure == "TPS"]
    for line in of_latency:
        assert line.value == pytest.approx(line.value_against / 2)
        assert (line.speed_ratio, line.verdict) == (pytest.approx(2), "faster")
    closed = compare.lines([FIRST, other()])
    assert "p95, ms" not in {line.figure for line in closed}


def test_an_arm_that_one_run_lacks_is_left_out() -> None:
    lines = compare.lines([FIRST, other(arms=FIRST.arms[:1], power_arms=())])
    assert [line.arm for line in lines] == [FIRST.arms[0].name]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (other({"tpcc": {"users": 99}}), ["tpcc.users: 16 / 99"]),
        (other({"new": True}), ["new: – / True"]),
        (other(hotset_version="0.0.1"), ["hotset: "]),
    ],
)
def test_different_set_ups_are_named_and_refused(changed: RunDocument, words: list[str]) -> None:
    with pytest.raises(compare.SetUpsDiffer) as refused:
        compare.require_same(FIRST, changed)
    assert [word for word in words if word not in str(refused.value)] == []


def test_repeats_arms_and_titles_are_no_set_up() -> None:
    compare.require_same(FIRST, other({"repeats": 9, "title": "x", "arms": ["baseline"]}))


def test_how_it_is_said() -> None:
    used = Console(file=io.StringIO(), width=100, no_color=True, force_terminal=False)
    changed = faster(2.0)
    spec = {**changed.experiment.spec, "repeats": 1, "database": {"buffers": "1 GiB"}}
    experiment = changed.experiment.model_copy(update={"spec": spec})
    changed = changed.model_copy(update={"experiment": experiment})
    terminal.comparison(compare.lines([FIRST, changed]), compare.differences(FIRST, changed), used)
    pinned("compared.txt", text_of(used))


def test_sizes_are_told_in_units_unless_that_hides_the_difference() -> None:
    def with_cache(run: RunDocument, size: int) -> RunDocument:
        experiment = run.experiment.model_copy(update={"spec": {"tier": {"cache": size}}})
        return run.model_copy(update={"experiment": experiment})

    gib = 2**30
    first = with_cache(FIRST, gib)
    (larger,) = compare.differences(first, with_cache(FIRST, 3 * gib))
    assert str(larger) == "tier.cache: 1 GiB / 3 GiB"
    (little,) = compare.differences(first, with_cache(FIRST, gib + 1))
    assert str(little) == f"tier.cache: {gib} / {gib + 1}"


SPREADS = (0.0, 0.04, 0.08)


@pytest.mark.parametrize("days", SPREADS)
def test_two_days_of_one_set_up_are_seldom_a_difference(days: float) -> None:
    """Three runs on each: with days that differ by 8 % half of such pairs were told as one."""
    random = np.random.default_rng(20261129)
    false = 0
    for _ in range(400):
        each = [
            [
                float(one)
                for one in 4200 * np.exp(random.normal(0, days) + random.normal(0, 0.03, 3))
            ]
            for _ in range(2)
        ]
        line = compare._ratio_line(
            *(FIRST, FIRST, ("tpcc", "measured", "NOPM"), (1.0, 1.0)),
            stats.ratio_of_means(*each),
            "",
        )
        false += compare._with_days(line, "").verdict in ("faster", "slower")
    assert false <= 0.05 * 400


def test_what_was_measured_in_turn_needs_no_allowance_for_days() -> None:
    """A B A B A B; before, which ones were interleaved made no difference."""

    def at(hours: Sequence[int], times: float) -> RunDocument:
        document = faster(times)
        arms = [
            arm.model_copy(
                update={
                    "repeats": tuple(
                        repeat.model_copy(
                            update={"opened_at": BEGUN + timedelta(hours=hour), "repeat": number}
                        )
                        for number, (repeat, hour) in enumerate(
                            zip(cycle(arm.repeats), hours, strict=False), 1
                        )
                    )
                }
            )
            for arm in document.arms[:1]
        ]
        return document.model_copy(update={"arms": tuple(arms)})

    def verdict(first: RunDocument, other: RunDocument) -> tuple[str, str]:
        line = next(one for one in compare.lines([first, other]) if one.workload == "tpcc")
        return line.verdict, line.note

    assert verdict(at((0, 2, 4), 1.0), at((1, 3, 5), 1.2)) == ("faster", "")
    told, note = verdict(at((0, 1, 2), 1.0), at((24, 25, 26), 1.2))
    assert (told, note) == ("not known", "not known: days alone make as much")
    assert verdict(at((0, 1, 2), 1.0), at((24, 25, 26), 2.0))[0] == "faster"
    assert verdict(at((0, 2, 4), 1.0), at((0, 2, 4), 1.2))[0] == "not known", "of one instant"
    # Three days before, three after, and then once in turn: days are in it all the same.
    mixed = at((0, 1, 24), 1.0), at((2, 3, 25), 1.2)
    assert verdict(*mixed)[0] == "faster"
    mixed = at((0, 1, 2, 30, 32, 34), 1.0), at((20, 21, 22, 31, 33, 35), 1.2)
    assert verdict(*mixed)[0] == "not known"
    # Two a day, and the other two the day after: days told one in five pairs of them apart.
    assert verdict(at((0, 1, 48, 49), 1.0), at((24, 25, 72, 73), 1.2))[0] == "not known"
    assert verdict(at((0, 3, 24, 27), 1.0), at((1, 2, 25, 26), 1.2))[0] == "faster", "A B B A"


def test_sittings_of_an_experiment_are_repeats_of_each_of_its_arms() -> None:
    sitting = documents.complete()
    pooled = pool.pool("sittings", [sitting, sitting])
    assert [arm.name for arm in pooled.arms] == [arm.name for arm in sitting.arms]
    for arm, before in zip(pooled.arms, sitting.arms, strict=True):
        assert len(arm.repeats) == 2 * len(before.repeats)
    base, fast = pooled.arm("baseline"), pooled.arm("accelerated")
    assert base is not None
    assert fast is not None
    assert pooled.factor() == stats.factor(fast, base, pooled.arm("all-flash"))
