"""Counter differences, hit ratios, and the sampler behind them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block.io_counters import KernelDevice, ServedDevice
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.hitratio import sampler as hits
from hotset.hitratio.sampler import Cpu, Sample, Sampler, between, parse_cpu
from hotset.tier.base import (
    Counters,
    Counting,
    Hits,
    TierFailedError,
    TierSpec,
    counters_restarted,
    hits_between,
)
from tests.fake_machine import FakeMachine, dm_cache

NAMES = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
COUNTS = st.integers(0, 2**32 - 1)


def counted(*counts: int) -> Counters:
    read_hits, read_misses, write_hits, write_misses, promotions, demotions = counts
    return Counters(
        read_hits,
        read_misses,
        write_hits,
        write_misses,
        promotions,
        demotions,
        dirty=Blocks(0),
        used=Blocks(0),
        total=Blocks(16),
    )


ZERO = counted(0, 0, 0, 0, 0, 0)


def line(read_hits: int, read_misses: int) -> str:
    return (
        f"0 3145728 cache 8 27/4096 128 5/16 {read_hits} {read_misses} 0 0 0 0 0"
        " 2 metadata2 writeback 2 migration_threshold 2048 smq 0 rw -"
    )


@given(st.tuples(*[COUNTS] * 6), st.tuples(*[st.integers(0, 2**31 - 1)] * 6))
def test_differences_survive_a_wrap_around(start: tuple[int, ...], grown: tuple[int, ...]) -> None:
    end = ((at + more) % 2**32 for at, more in zip(start, grown, strict=True))
    found = hits_between(counted(*start), counted(*end), Counting(32))
    assert tuple(getattr(found, name) for name in NAMES) == grown


@pytest.mark.parametrize("bits", [32, 64])
def test_a_tier_that_began_anew_counts_from_zero(bits: int) -> None:
    found = hits_between(replace(ZERO, read_hits=100), replace(ZERO, read_hits=5), Counting(bits))
    assert found.read_hits == 5, "not four thousand million"


def test_whether_counters_began_anew_is_told_as_it_is_counted() -> None:
    """Not of one that wrapped around, nor of read hits that fall a little while reads go on."""
    first = replace(ZERO, read_hits=100, read_misses=50)
    assert counters_restarted(first, replace(first, read_hits=5), Counting(32))
    assert counters_restarted(replace(ZERO, write_hits=9), ZERO, Counting(32))
    assert not counters_restarted(first, first, Counting(32))
    assert not counters_restarted(
        replace(ZERO, read_hits=2**32 - 1), replace(ZERO, read_hits=4), Counting(32)
    )
    assert not counters_restarted(first, replace(first, read_hits=99, read_misses=51), Counting(32))
    assert not counters_restarted(replace(ZERO, write_hits=None), ZERO, Counting(32)), (
        "not counted, then counted"
    )


def test_levels_are_no_events() -> None:
    first = replace(ZERO, dirty=Blocks(9), used=Blocks(3))
    assert hits_between(first, ZERO, Counting(32)) == Hits(0, 0, 0, 0, 0, 0, None)


def test_the_width_is_the_kinds() -> None:
    found = hits_between(
        replace(ZERO, read_hits=2**32 - 1), replace(ZERO, read_hits=4), Counting(32)
    )
    assert found.read_hits == 5
    found = hits_between(
        replace(ZERO, read_hits=2**64 - 1), replace(ZERO, read_hits=4), Counting(64)
    )
    assert found.read_hits == 5


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(None, None, None), (None, 3, None), (3, None, None), (3, 10, 7)],
)
def test_bypassed(before: int | None, after: int | None, expected: int | None) -> None:
    found = hits_between(
        replace(ZERO, bypassed=before), replace(ZERO, bypassed=after), Counting(32)
    )
    assert found.bypassed == expected


def test_ratios_name_their_denominators() -> None:
    counted = Hits(
        read_hits=30, read_misses=10, write_hits=8, write_misses=2, promotions=1, demotions=1
    )
    assert counted.ratio == 38 / 50
    assert counted.read_ratio == 0.75
    assert counted.write_ratio == 0.8


def test_no_ratio_when_nothing_was_asked() -> None:
    nothing = Hits(0, 0, 0, 0, 5, 5)
    assert (nothing.ratio, nothing.read_ratio, nothing.write_ratio) == (None, None, None)
    reads = Hits(0, 4, 0, 0, 0, 0)
    assert (reads.ratio, reads.read_ratio, reads.write_ratio) == (0.0, 0.0, None)


@given(st.tuples(*[st.integers(0, 10**6)] * 4))
def test_a_ratio_is_a_share(counts: tuple[int, int, int, int]) -> None:
    ratio = Hits(*counts, promotions=0, demotions=0).ratio
    assert ratio is None or 0 <= ratio <= 1
    assert (ratio is None) == (sum(counts) == 0)


def test_cpu_counts_guest_time_once() -> None:
    #                        user nice system idle iowait irq softirq steal guest guest_nice
    cpu = parse_cpu("cpu  100 20 30 800 40 5 3 2 60 10")
    assert cpu == Cpu(busy=160, user=120, system=38, iowait=40, steal=2, total=1000)


@pytest.mark.parametrize("text", ["", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8"])
def test_not_the_cpu_line(text: str) -> None:
    with pytest.raises(ValueError, match="not the cpu line"):
        parse_cpu(text)


def sample(at: float, busy: int, iowait: int = 0, reads: int | None = None) -> Sample:
    counters = None if reads is None else replace(ZERO, read_hits=reads)
    return Sample(at, Cpu(busy, busy, 0, iowait, 0, int(at * 100)), counters)


def test_stolen_time_is_a_share_of_its_own_and_busy() -> None:
    first, last = (
        Sample(at, parse_cpu(f"cpu {user} 0 0 {idle} 0 0 0 {steal} 0 0"), None)
        for at, user, idle, steal in ((1.0, 10, 90, 0), (2.0, 40, 130, 30))
    )
    window = between(first, last, Counting(32))
    assert (window.steal, window.cpu) == (0.3, 0.6)


def test_work_with_rest_around_it_is_counted_whole() -> None:
    sampler = Sampler(FakeMachine(), None)
    sampler._thread = SimpleNamespace(is_alive=lambda: False)  # type: ignore[assignment]
    sampler.samples = [sample(float(at), busy) for at, busy in ((1, 0), (2, 0), (3, 60), (4, 90))]
    # From 2.1 to 3.4: the samples at 2 and 4, whichever others are nearer.
    assert sampler.around(2.1, 3.4).cpu == 90 / 200
    assert sampler.around(2.1, 9.0).cpu == 90 / 200


def test_between_two_samples() -> None:
    window = between(sample(10, 100, 50, 7), sample(20, 600, 150, 9), Counting(32))
    assert (window.seconds, window.cpu, window.iowait) == (10, 0.5, 0.1)
    assert window.hits is not None
    assert window.hits.read_hits == 2


def test_iowait_that_runs_backwards_is_none() -> None:
    assert between(sample(10, 0, 50), sample(20, 0, 49), Counting(32)).iowait == 0


def test_no_hits_without_a_tier_at_both_ends() -> None:
    assert between(sample(1, 0), sample(2, 0, reads=5), Counting(32)).hits is None
    assert between(sample(1, 0, reads=5), sample(2, 0), Counting(32)).hits is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples arrive at 100.0, 101.0, 102.0, …; the clock is set once the sampler is there."""
    times: Iterator[float] = chain([99.0], repeat(5000.0))
    ticks: Iterator[float] = map(float, count(7))
    clocks = SimpleNamespace(time=lambda: next(times), monotonic=lambda: next(ticks))
    monkeypatch.setattr(hits, "time", clocks)


SPEC = TierSpec("writeback", "smq", *(Bytes(n * 2**20) for n in (1, 5, 16, 16)))


def sampled(*lines: str, tiered: bool = True) -> Sampler:
    machine = FakeMachine(lines=lines)
    tier = dm_cache(machine, SPEC)
    with Sampler(machine, tier if tiered else None) as sampler:
        pass
    assert machine.calls[0].argv[0] == "sh"
    tail = machine.calls[0].argv[3:]
    asked = ("dmsetup status hotset-data --noflush",) if tiered else ()
    assert tail == ("hotset-sampler", *asked)
    return sampler


def seconds(*read_hits: int) -> list[str]:
    """One CPU line and one status line a second; the CPU is half busy."""
    return [
        text
        for at, count in enumerate(read_hits)
        for text in (f"cpu {50 * at} 0 0 {50 * at} 0 0 0 0 0 0", line(count, 0))
    ]


@pytest.mark.usefixtures("clock")
def test_the_samples_nearest_to_the_edges_are_taken() -> None:
    sampler = sampled(*seconds(0, 1, 3, 7, 15, 31))
    for start, end, expected in (
        (101.4, 103.6, 15 - 1),
        (101.6, 103.4, 7 - 3),
        (0, 9999, 31),
        (101.0, 102.0, 2),
    ):
        window = sampler.window(start, end)
        assert window.hits is not None
        assert window.hits.read_hits == expected
        assert window.cpu == 0.5
    assert sampler.window(101.4, 103.6).seconds == 3


@pytest.mark.usefixtures("clock")
def test_each_second() -> None:
    windows = sampled(*seconds(0, 1, 3, 7)).each_second(100.2, 5)
    found = [window.hits.read_hits if window and window.hits else None for window in windows]
    # The middles of the seconds lie at 100.7, 101.7, …; the last two have no sample behind them.
    assert found == [1, 2, 4, None, None]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("word", ["Fail", "Error"])
def test_a_failure_of_the_tier_surfaces(word: str) -> None:
    sampler = sampled(
        *seconds(0, 1, 2), "cpu 1 1 1 1 1 1 1 1", f"0 3145728 cache {word}", *seconds(3)
    )
    with pytest.raises(TierFailedError, match=word):
        sampler.window(100, 102)


@pytest.mark.usefixtures("clock")
def test_a_tier_that_cannot_be_asked_is_a_failure() -> None:
    with pytest.raises(TierFailedError, match="Fail"):
        sampled(*seconds(0, 1), "cpu 1 1 1 1 1 1 1 1", "Fail").window(100, 102)


@pytest.mark.usefixtures("clock")
def test_a_status_nobody_understands_surfaces() -> None:
    sampler = sampled(*seconds(0, 1), "cpu 1 1 1 1 1 1 1 1", line(0, 0) + " surprise")
    with pytest.raises(ValueError, match="surprise"):
        sampler.window(100, 102)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("lines", [[], seconds(5), [*seconds(5), "cpu 1 1 1 1 1 1 1 1"]])
def test_fewer_than_two_samples_are_no_window(lines: list[str]) -> None:
    with pytest.raises(RuntimeError, match="could not be sampled"):
        sampled(*lines).window(100, 101)


@pytest.mark.usefixtures("clock")
def test_a_machine_without_the_tier_has_cpu_only() -> None:
    window = sampled("cpu 0 0 0 0 0 0 0 0", "cpu 30 0 0 60 10 0 0 0", tiered=False).window(100, 101)
    assert window.hits is None
    assert (window.cpu, window.iowait) == (0.3, 0.1)


DEVICE = KernelDevice("log", PurePosixPath("/sys/dev/block/8:16/stat"))


def stat(reads: int) -> str:
    return f"{reads} 0 {16 * reads} {5 * reads} 0 0 0 0 0 {4 * reads} 0"


@pytest.mark.usefixtures("clock")
def test_devices_are_sampled_beside_the_tier() -> None:
    lines = [
        text
        for at, cpu_and_status in enumerate(zip(*[iter(seconds(0, 1, 3))] * 2, strict=True))
        for text in (*cpu_and_status, stat(100 * at) if at != 1 else "Fail")
    ]
    machine = FakeMachine(lines=lines)
    with Sampler(machine, dm_cache(machine, SPEC), [DEVICE]) as sampler:
        pass
    assert machine.calls[0].argv[4:] == ("dmsetup status hotset-data --noflush", DEVICE.command)
    (use,) = sampler.window(100, 102).devices
    assert (use.name, use.read.iops, use.read.latency_ms_mean) == ("log", 100, 5)
    assert use.utilisation == 0.4
    # The device was not there in the second sample; the tier was.
    assert [window and window.devices for window in sampler.each_second(100, 2)] == [(), ()]
    assert sampler.each_second(100, 2)[0] is not None


def test_the_program_frames_every_command_s_line(tmp_path: Path) -> None:
    """One that fails, one that prints nothing and one whose path needs quotes."""
    there = tmp_path / "a b"
    there.write_text(stat(7) + "\n")
    gone = KernelDevice("gone", PurePosixPath(tmp_path / "gone"))
    here = KernelDevice("here", PurePosixPath(there))
    begun = time.time()
    with Sampler(Local(), None, [gone, here]) as sampler:
        while len(sampler.samples) < 2 and time.time() < begun + 10:
            time.sleep(0.02)
    window = sampler.window(begun, time.time())
    assert [use.name for use in window.devices] == ["here"]
    assert window.last.devices["here"].read.requests == 7


def test_an_engine_that_hangs_holds_up_no_other_reading(tmp_path: Path) -> None:
    """It listens, and answers nobody."""
    control = tmp_path / "control"
    (tmp_path / "stat").write_text(stat(7) + "\n")
    here = KernelDevice("here", PurePosixPath(tmp_path / "stat"))
    hanging = ServedDevice.ask(Local(), "hanging", PurePosixPath(control))
    begun = time.time()
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(control))
        engine.listen()
        with Sampler(Local(), None, [hanging, here]) as sampler:
            while len(sampler.samples) < 2 and time.time() < begun + 60:
                time.sleep(0.02)
    assert [set(one.devices) for one in sampler.samples[:2]] == [{"here"}, {"here"}]


@pytest.mark.usefixtures("clock")
def test_counters_that_did_not_come_are_not_known() -> None:
    """They are neither those before nor none."""
    lines = seconds(0, 1, 3, 7, 15)
    lines[5] = "Late"
    sampler = sampled(*lines)
    assert sampler.window(100, 102).hits is None
    assert sampler.window(100, 102).cpu == 0.5
    whole = sampler.window(100, 104).hits
    assert whole is not None
    assert whole.read_hits == 15
    windows = sampler.each_second(100, 4)
    found = [window.hits.read_hits if window and window.hits else None for window in windows]
    assert found == [1, None, None, 8]


LATE = Counting(64, lag_s=14)


def bcache_at(at: int, asked: int) -> Sample:
    """Each second half of the requests missed; all are added up at 3, 17, 31, …"""
    counted = asked * ((at - 3) // 14 * 14 + 3) // 2
    counters = replace(ZERO, read_hits=counted, read_misses=counted)
    return Sample(at, Cpu(at, at, 0, 0, 0, 2 * at), counters)


def counting_late(samples: list[Sample]) -> Sampler:
    sampler = Sampler(FakeMachine(), None)
    sampler._thread = SimpleNamespace(is_alive=lambda: False)  # type: ignore[assignment]
    sampler._counting, sampler.samples = LATE, samples
    return sampler


def test_hits_of_a_window_are_of_when_a_tier_that_counts_late_had_counted() -> None:
    sampler = counting_late([bcache_at(at, 10) for at in range(3, 100)])
    window = sampler.window(40, 52)
    # Between the samples at 31 and 59.
    assert window.hits is not None
    assert (window.hits.read_hits, window.hits.read_misses) == (140, 140)
    assert (window.seconds, window.cpu) == (12, 0.5), "of the window itself"
    assert sampler.around(40, 52).hits == window.hits
    # A single second tells nothing of what was asked in it.
    assert [one and one.hits for one in sampler.each_second(40, 12)] == [None] * 12


def test_where_nothing_missed_all_that_was_asked_until_the_end_is_in_a_window() -> None:
    """Work from 40 to 52, rest before and after, counted at 45 and 59."""
    samples = [sample(float(at), 0, reads=(at >= 45) * 60 + (at >= 59) * 70) for at in range(80)]
    hits = counting_late(samples).window(40, 52).hits
    assert hits is not None
    assert (hits.read_hits, hits.read_misses) == (130, 0)


def test_this_computers_cpu_is_sampled_each_second() -> None:
    begun = time.time()
    with Sampler(Local(), None) as sampler:
        while len(sampler.samples) < 2 and time.time() < begun + 10:
            time.sleep(0.02)
    window = sampler.window(begun, time.time())
    assert 0.9 < window.seconds < 30
    assert window.last.cpu.total > window.first.cpu.total
    assert 0 <= window.cpu <= 1
    assert window.hits is None


def test_how_busy_a_machine_is() -> None:
    """38 of 100 ticks: user, nice, system, irq, softirq and steal; neither idle nor iowait."""
    lines = "cpu 100 0 50 800 50 0 0 0 0 0\ncpu 120 1 60 850 62 1 2 4 0 0\n"
    machine = FakeMachine({"sh -c": lines})
    assert hits.busy(machine, 0.5) == pytest.approx(38 / 100)
    assert "sleep 0.5" in machine.calls[0].line
    assert 0 <= hits.busy(Local(), 0.05) <= 1


def test_a_count_that_began_at_another_time_is_another_count() -> None:
    """Whatever its figures: a new one may have risen above the one before."""
    first = replace(ZERO, read_hits=100, read_misses=7, begun=1.0)
    later = replace(ZERO, read_hits=900, read_misses=9, begun=2.0)
    assert counters_restarted(first, later, Counting(64))
    found = hits_between(first, later, Counting(64))
    assert (found.read_hits, found.read_misses) == (900, 9)
    same = replace(later, begun=1.0)
    assert not counters_restarted(first, same, Counting(64))
    assert hits_between(first, same, Counting(64)).read_hits == 800


def test_where_one_counter_began_anew_all_did() -> None:
    first = replace(ZERO, read_hits=100, read_misses=7)
    found = hits_between(first, replace(ZERO, read_hits=5, read_misses=9), Counting(64))
    assert (found.read_hits, found.read_misses) == (5, 9)


def test_a_window_in_which_the_counters_began_anew_has_no_hit_ratio() -> None:
    first, last = sample(10, 100, 50, 7), sample(20, 600, 150, 9)
    assert first.counters is not None
    assert last.counters is not None
    first = replace(first, counters=replace(first.counters, begun=1.0))
    last = replace(last, counters=replace(last.counters, begun=2.0))
    window = between(first, last, Counting(32))
    assert window.hits is None
    assert window.restarted
