"""What became hot, and whether another size or policy would do better: on heat of a formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hotset.block.extents import Extent
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.disk.flash_devices import AttachedDisk
from hotset.health import heat_now
from hotset.health.findings import Ask
from hotset.health.heat_now import Heat
from hotset.hitratio import attribution, heat_ratios
from hotset.hitratio.attribution import Owner
from hotset.hitratio.heat import Grid, Tally
from hotset.hitratio.heatstore import CounterDelta
from hotset.hitratio.hit_report import Target
from tests.support.hit_counters import DISK, FLASH, NOW, counters

MIB = 1024**2
GRID = Grid(Bytes(256 * MIB), Bytes(MIB), Bytes(0))
ASK = Ask("local", "erp", "size and policy")
DAY_S = 86_400.0


def tally(requests: int, ratio: float) -> Tally:
    hits = round(requests * ratio)
    return Tally(requests, 0, hits, requests - hits, 0, 0, 0)


def heat(
    recent: dict[int, int],
    earlier: dict[int, float],
    ratio: float = 0.5,
    days: float = 7,
    since: float = 1,
) -> Heat:
    tallies = {number: tally(asked, ratio) for number, asked in recent.items()}
    delta = CounterDelta(GRID, NOW - since * DAY_S, NOW, tallies, 0)
    heats = {number: float(asked) for number, asked in recent.items()}
    return Heat(GRID, heats, delta, earlier, days * DAY_S, 0.0)


def target(cache: int) -> Target:
    spec = replace(DISK.spec, cache=Bytes(cache * MIB))
    return Target("local", AttachedDisk(Local(), FLASH, replace(DISK, spec=spec)))


FULL = replace(counters(1), used=Blocks(1024), total=Blocks(1024))
EVEN = dict.fromkeys(range(128), 1000)


def test_two_models_of_a_cache_agree_where_all_is_asked_alike() -> None:
    """Whatever of 128 equal regions a cache holds, it hits that share: C / 128."""
    for size in (16, 64, 127):
        for model in (heat_ratios.lru_ratio, heat_ratios.best_ratio):
            found = model(dict.fromkeys(range(128), 1.0), GRID, Bytes(size * MIB))
            assert found == pytest.approx(size / 128)
    assert heat_ratios.lru_ratio({1: 1.0}, GRID, Bytes(2 * MIB)) == 1.0


def test_lrus_formula_is_what_an_lru_comes_to() -> None:
    """Beside one that is simulated: 200 blocks of Zipf's popularity, a cache of 40."""
    weights = 1 / np.arange(1, 201)
    grid = Grid(Bytes(200 * 4096), Bytes(4096), Bytes(0))
    expected = heat_ratios.lru_ratio(dict(enumerate(weights)), grid, Bytes(40 * 4096))
    drawn = np.random.default_rng(5).choice(200, size=60_000, p=weights / weights.sum())
    cache: dict[int, None] = {}
    hits = 0
    for at, block in enumerate(drawn.tolist()):
        hits += at >= 10_000 and block in cache
        cache.pop(block, None)
        cache[block] = None
        if len(cache) > 40:
            del cache[next(iter(cache))]
    assert hits / 50_000 == pytest.approx(expected, abs=0.015)
    best = heat_ratios.best_ratio(dict(enumerate(weights)), grid, Bytes(40 * 4096))
    assert best == pytest.approx(weights[:40].sum() / weights.sum())
    assert best > expected


def test_twice_the_cache_is_advised_where_both_models_say_so() -> None:
    (found,) = heat_now.outlook(ASK, heat(EVEN, {}, 0.5), target(64), FULL)
    assert (found.state, found.remedies[0].operation) == ("advice", "whatif flash")
    assert "should hit 50.0 % to 50.0 % more" in found.text


def test_no_more_is_promised_than_there_are_misses() -> None:
    (found,) = heat_now.outlook(ASK, heat(EVEN, {}, 0.9), target(64), FULL)
    assert "should hit 10.0 % to 10.0 % more" in found.text
    (fine,) = heat_now.outlook(ASK, heat(EVEN, {}, 0.96), target(64), FULL)
    assert fine.state == "ok"


def test_a_policy_below_a_plain_lru_is_told_with_how_to_compare_policies() -> None:
    found = heat_now.outlook(ASK, heat(EVEN, {}, 0.7), target(128), FULL)
    (policy,) = [one for one in found if "plain LRU" in one.text]
    assert [one.operation for one in policy.remedies] == ["whatif record", "whatif simulate"]


@pytest.mark.parametrize(
    ("seen", "now"),
    [
        (heat({1: 9_000}, {}), FULL),
        (heat(EVEN, {}), replace(FULL, used=Blocks(900))),
        (heat({}, {}), FULL),
    ],
    ids=["few requests", "still being filled", "none"],
)
def test_too_little_heat_is_no_advice_and_no_approval(seen: Heat, now: object) -> None:
    (found,) = heat_now.outlook(ASK, seen, target(64), now)  # type: ignore[arg-type]
    assert found.state == "unknown"


def owner(name: str, first: int, count: int) -> Owner:
    return Owner(name, (Extent(Bytes(first * MIB), Bytes(count * MIB)),))


def became_hot(
    monkeypatch: pytest.MonkeyPatch,
    recent: dict[int, int],
    earlier: dict[int, float],
    newer: set[str] | None = frozenset(),  # type: ignore[assignment]
    **more: float,
) -> list[tuple[str, str]]:
    found = [owner("/db/orders", 0, 10), owner("/db/stock", 10, 10)]
    monkeypatch.setattr(attribution, "files", lambda _, __: found)
    monkeypatch.setattr(attribution, "newer", lambda *_: newer)
    seen = heat_now.became_hot(ASK, heat(recent, earlier, **more), target(64), None)
    return [(one.state, one.text.partition(" became")[0]) for one in seen]


def test_a_file_that_is_asked_for_far_more_than_before_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {1: 700_000.0, 12: 30_000.0}
    assert became_hot(monkeypatch, {1: 60_000, 12: 40_000}, before) == [("advice", "/db/stock")]
    # What only grew with all the rest did not become hot, nor what is a small part.
    fine = [("ok", "no file")]
    assert became_hot(monkeypatch, {1: 700_000, 12: 30_000}, before) == fine
    assert became_hot(monkeypatch, {1: 92_000, 12: 8_000}, {1: 700_000.0}) == fine


@pytest.mark.parametrize("newer", [{"/db/stock"}, None])
def test_of_a_file_that_came_to_be_meanwhile_it_is_not_known(
    monkeypatch: pytest.MonkeyPatch, newer: set[str] | None
) -> None:
    """Whether it, or what lay at its places before."""
    before = {1: 700_000.0, 12: 30_000.0}
    found = became_hot(monkeypatch, {1: 60_000, 12: 40_000}, before, newer)
    assert found == [("unknown", "whether /db/stock")]


@pytest.mark.parametrize(
    ("recent", "earlier", "days"),
    [
        ({1: 9_000}, {1: 700_000.0}, 7.0),
        ({1: 60_000}, {}, 0.0),
        ({1: 60_000}, {1: 700_000.0}, 0.9),
        ({1: 60_000}, {1: 700.0}, 7.0),
    ],
    ids=["few now", "nothing before", "less than a day before", "few before"],
)
def test_what_became_hot_is_not_known_without_a_before(
    monkeypatch: pytest.MonkeyPatch, recent: dict[int, int], earlier: dict[int, float], days: float
) -> None:
    found = became_hot(monkeypatch, recent, earlier, days=days)
    assert [state for state, _ in found] == ["unknown"]


def test_heat_since_last_week_is_not_taken_for_that_of_the_last_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine counts by itself: the first look finds all that it counted since it started."""
    before = {1: 700_000.0, 12: 30_000.0}
    found = became_hot(monkeypatch, {1: 60_000, 12: 40_000}, before, since=6)
    assert [state for state, _ in found] == ["unknown"]
