"""What a cache itself has the slow storage do: counted, assumed, and what it does to throughput."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Counters, DeviceUse, DirectionUse, Repeat
from hotset.whatif.demands import ORIGIN, Demands, SetUp, background, solve_network, throughput_of
from hotset.whatif.prediction import rates
from hotset.whatif.traffic import CacheKind, Moved, Traffic, assume_traffic, count_traffic

from .held import HOTSET, SMQ
from .published import FOLDER, NAS, published

DEMANDS = Demands(1.5e-3, 1.0, 1e-4, 0.0, 24.0, 24.0, 0.0, 0.35)
KIND = CacheKind("hotset", "writeback", 65536)
QUIET = Traffic(KIND, write_through=False, cost=0.0, points=(Moved(1.0, 0.0, 0.0),))


def rate(found: Traffic | None, hit_ratio: float, users: int = 16) -> float:
    return throughput_of(DEMANDS, SetUp(users, 2, rates(NAS, users), found), hit_ratio)


def windows(name: str) -> tuple[Repeat, ...]:
    arm = published(name).arm("accelerated")
    assert arm
    return arm.repeats


def test_each_way_of_moving_blocks_costs_throughput() -> None:
    promoting = replace(QUIET, cost=1.0, points=(Moved(1.0, 1.0, 0.0),))
    writing = replace(QUIET, cost=1.0, points=(Moved(1.0, 0.0, 1.0),))
    through = replace(QUIET, write_through=True)
    for hit_ratio in (0.5, 0.9, 0.95):
        best = rate(QUIET, hit_ratio)
        assert best == rate(None, hit_ratio)
        # Each miss reads twice; each write that hits comes to the disk; users wait for the latter.
        assert rate(promoting, hit_ratio) == pytest.approx(best / 2, rel=0.1)
        assert rate(through, hit_ratio) < rate(writing, hit_ratio) < 0.8 * best


def test_what_is_done_and_what_that_has_the_storage_do_agree() -> None:
    """Users get what the background leaves, and the background is as much as the users make."""
    found = replace(QUIET, cost=1.0, points=(Moved(1.0, 0.7, 0.2),))
    for users in (1, 16, 64):
        setup = SetUp(users, 2, rates(NAS, users), found)
        done = rate(found, 0.9, users)
        left = 1 - done * background(DEMANDS, setup, 0.9) / max(setup.iops)
        slower = SetUp(users, 2, tuple(one * left for one in setup.iops))
        assert throughput_of(DEMANDS, slower, 0.9) == pytest.approx(done, rel=0.002)
        assert solve_network(DEMANDS, setup, 0.9).throughput == done


def test_a_storage_that_only_writes_back_still_has_a_limit() -> None:
    writing = replace(QUIET, cost=8.0, points=(Moved(1.0, 0.0, 1.0),))
    most = max(rates(NAS, 16)) / (24.0 * 0.35 * 8.0)
    assert rate(writing, 1.0) == pytest.approx(most, rel=0.001)
    loads = solve_network(DEMANDS, SetUp(16, 2, rates(NAS, 16), writing), 1.0).loads
    assert max((one.present, one.name) for one in loads)[1] == ORIGIN


def test_nothing_cached_is_without_a_cache() -> None:
    assert rate(replace(QUIET, write_through=True, cost=9.0), 0.0) == rate(None, 0.0)


def test_a_run_counts_its_own_write_backs() -> None:
    """The disk wrote 0.07 to 0.08 blocks for each transaction and some 900 became dirty; 8.4 writes
    hit: 8 of 1,000 left the flash while the window lasted, or will."""
    found = count_traffic(KIND, windows(HOTSET))
    assert found.measured == ("written_back",)
    assert found.at(1.0).written_back == pytest.approx(0.016, abs=0.002)
    # At other hit ratios that run says nothing.
    assert found.at(0.5) == assume_traffic(KIND).at(0.5)


def test_without_the_disks_own_writes_they_are_assumed() -> None:
    kind = CacheKind("smq", "writeback", 65536)
    assert count_traffic(kind, windows(SMQ)) == assume_traffic(kind)


def test_enough_misses_tell_what_is_promoted() -> None:
    def window(misses: int) -> Repeat:
        counters = Counters(
            read_hits=misses * 9,
            read_misses=misses,
            write_hits=0,
            write_misses=0,
            promotions=misses // 4,
            demotions=0,
            dirty_blocks=0,
            used_blocks=0,
            bypassed=0,
        )
        return windows(SMQ)[0].model_copy(update={"hit_ratio": 0.9, "counters": counters})

    kind = replace(KIND, policy="smq")
    assert count_traffic(kind, [window(999)]) == assume_traffic(kind)
    found = count_traffic(kind, [window(4000)])
    assert found.measured == ("promoted",)
    assert found.at(0.9).promoted == 0.25
    # hotset's miss has read the block by then.
    assert count_traffic(KIND, [window(4000)]) == assume_traffic(KIND)


def test_a_write_that_missed_is_no_write_back() -> None:
    still = DirectionUse(iops=0, mb_per_s=0, queue=0)
    device = DeviceUse(
        name="origin",
        counted_by="kernel",
        read=still,
        write=still.model_copy(update={"iops": 100.0}),
        utilisation=1,
    )
    counters = Counters(
        read_hits=0,
        read_misses=0,
        write_hits=1000,
        write_misses=200,
        promotions=0,
        demotions=0,
        dirty_blocks=50,
        used_blocks=0,
        bypassed=0,
    )
    update = {"hit_ratio": 0.8, "counters": counters, "devices": (device,), "duration_s": 10.0}
    found = count_traffic(KIND, [windows(SMQ)[0].model_copy(update=update)])
    assert found.at(0.8).written_back == pytest.approx((1000 - 200 + 50) / 1000)


def test_other_policies_blocks_and_modes() -> None:
    def of(policy: str, mode: str = "writeback", block: int = 65536) -> Traffic:
        return assume_traffic(CacheKind(policy, mode, block))

    assert of("sieve").points == of("arc").points
    assert (
        of("hotset", block=32768).cost == of("hotset").cost == of("hotset", block=131072).cost / 2
    )
    for once in ("bcache", "hotset"):
        assert {one.promoted for one in of(once).points} == {0.0}
    assert of("bcache").cost == of("arc").cost
    for mode in ("writethrough", "writearound"):
        found = of("smq", mode)
        assert found.write_through
        assert {one.written_back for one in found.points} == {0.0}


def test_between_and_beyond_the_simulated_caches() -> None:
    found = replace(QUIET, points=(Moved(0.2, 0.4, 1.0), Moved(0.6, 0.8, 0.5)))
    assert found.at(0.1) == Moved(0.2, 0.4, 1.0)
    assert found.at(0.4) == Moved(0.4, pytest.approx(0.6), pytest.approx(0.75))  # type: ignore[arg-type]
    assert found.at(0.9) == Moved(0.6, 0.8, 0.5)
    assert assume_traffic(KIND).at(1.0).written_back == 0.0


def test_a_promotion_of_hotsets_reads_nothing_again() -> None:
    """Of the main run's windows: reading again, there would be nearly two reads for each miss."""
    files = sorted((FOLDER / "part-cached").glob("*-userspace-*.json"))
    assert len(files) >= 4
    for file in files:
        arm = RunDocument.model_validate_json(file.read_text()).arm("accelerated")
        assert arm
        for window in arm.repeats:
            counted = window.counters
            assert counted
            missed = counted.read_misses + (counted.write_misses or 0)
            (origin,) = (one for one in window.devices if one.name == "origin")
            assert (counted.promotions or 0) > 0.9 * missed
            assert origin.read.iops * window.duration_s < 1.02 * missed
