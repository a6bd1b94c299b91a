"""One reader for all who watch, and none when nobody does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.console import sampler
from hotset.console.pages.overview import frame
from hotset.console.sampler import DiskSample, Reader, Sample, Sampler
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.units import Blocks, Bytes
from hotset.disk.cache_device import Disk
from hotset.monitoring import tier_metrics
from hotset.monitoring.tier_metrics import Measured
from hotset.monitoring.watch import Line
from hotset.operations import connect
from hotset.tier.base import Counters, TierSpec

SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n << 20) for n in (5, 64, 16)))
DISK = Disk("shop", "dm-cache", "oltp", PurePosixPath("/dev/disk/by-id/slow"), SPEC, (), ())
FIRST = Counters(90, 10, 30, 10, 5, 1, Blocks(33), Blocks(512), Blocks(1024))


class Source:
    """Counts how often it is read and closed."""

    def __init__(self) -> None:
        self.reads = self.closed = 0

    def read(self) -> Sample:
        self.reads += 1
        return Sample(float(self.reads), ())

    def close(self) -> None:
        self.closed += 1


async def take(frames: AsyncIterator[bytes | None], count: int) -> list[bytes | None]:
    async with aclosing(frames) as stream:  # type: ignore[type-var]
        return [await anext(stream) for _ in range(count)]


def test_fifty_watch_and_one_reads_and_encodes() -> None:
    source, encoded = Source(), []

    def encode(sample: Sample) -> bytes:
        encoded.append(sample)
        return str(sample.at).encode()

    async def watch() -> None:
        shared = Sampler(source.read, source.close, encode, interval_s=0.1)
        seen = await asyncio.gather(*(take(shared.frames(5), 4) for _ in range(50)))
        assert all(one == seen[0] for one in seen), "all see the same"
        assert len(set(seen[0])) == 4
        await asyncio.sleep(0.3)
        assert not shared.working
        assert source.reads <= 6
        assert len(encoded) == source.reads
        assert source.closed == 1, "the connection is given up"
        before = source.reads
        await asyncio.sleep(0.3)
        assert source.reads == before, "nobody watches, nobody reads"
        assert await take(shared.frames(5), 1) == [str(float(before + 1)).encode()]

    asyncio.run(watch())


def test_who_waits_for_a_slow_machine_is_not_left_without_a_sign() -> None:
    def slow() -> Sample:
        time.sleep(0.5)
        return Sample(1.0, ())

    async def watch() -> None:
        shared = Sampler(slow, lambda: None, lambda _: b"at last", interval_s=0.1)
        assert await take(shared.frames(0.2), 3) == [None, None, b"at last"]

    asyncio.run(watch())


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Counters | None]:
    """What the machine's one tier says next; the test fills it."""
    said: list[Counters | None] = []
    moved = iter(range(0, 100_000_000, 1_000_000))
    monkeypatch.setattr(
        tier_metrics, "measure", lambda _: [Measured(DISK, said.pop(0))] if said else []
    )
    monkeypatch.setattr(sampler, "_moved", lambda *_: (at := next(moved), at // 2))
    return said


def reader() -> Reader:
    ticks = iter(range(0, 1000))
    return Reader("local", lambda: float(next(ticks)))


def test_a_disk_in_an_interval(readings: list[Counters | None]) -> None:
    readings += [FIRST, replace(FIRST, read_hits=190, read_misses=10, write_misses=20)]
    source = reader()
    (begun,) = source.read().disks
    assert (begun.line, begun.minute_ratio) == (None, None), "one reading is no interval"
    assert (begun.made_ratio, begun.used_bytes) == (120 / 140, 512 * 65536)
    (now,) = source.read().disks
    # 100 reads, 10 writes, 2 s by this clock: a reading takes it twice.
    line = now.line
    assert line is not None
    assert (line.reads, line.writes) == (50, 5)
    assert (line.read_hit_ratio, line.write_hit_ratio, line.hit_ratio) == (1.0, 0.0, 100 / 110)
    assert now.minute_ratio == 100 / 110
    assert (now.read_bytes, now.written_bytes) == (500_000, 250_000)
    assert (now.dirty_bytes, now.cache_bytes) == (33 * 65536, 64 << 20)


def test_a_counter_that_began_anew_gives_no_false_figures(readings: list[Counters | None]) -> None:
    readings += [FIRST, Counters(5, 5, 0, 0, 0, 0, Blocks(0), Blocks(1), Blocks(1024))]
    source = reader()
    source.read()
    (now,) = source.read().disks
    assert now.line is not None
    assert (now.line.reads, now.line.hit_ratio) == (5, 0.5)


def test_a_tier_that_is_down_has_no_figures(readings: list[Counters | None]) -> None:
    readings += [FIRST, None, FIRST]
    source = reader()
    assert [source.read().disks[0].up for _ in range(3)] == [True, False, True]


def test_the_minute_is_a_minute(readings: list[Counters | None]) -> None:
    more = [replace(FIRST, read_hits=90 + 10 * n) for n in range(30)]
    readings += [*more, *[more[-1]] * 40]
    source = reader()
    samples = [source.read().disks[0] for _ in range(70)]
    assert samples[29].minute_ratio == 1.0
    last = samples[-1].line
    assert last is not None
    assert last.hit_ratio is None, "nothing was asked"
    assert samples[-1].minute_ratio is None, "nor in the last minute"
    assert samples[-1].made_ratio is not None


def test_a_machine_that_cannot_be_reached_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: str) -> None:
        raise PrerequisiteMissingError("no virtual machine is up; start one with `hotset lab up`")

    monkeypatch.setattr(connect, "open_machine", lacking)
    sample = reader().read()
    assert (sample.disks, "hotset lab up" in sample.error) == ((), True)
    assert b"The caches cannot be read" in frame(sample, "local")


def test_the_page_says_what_is_not_known() -> None:
    down = DiskSample("a", "bcache", "writeback, oltp", up=False)
    assert b"its cache cannot be read" in frame(Sample(1.0, (), (down,)), "local").lower()
    line = Line(1.0, 1.0, 1.0, None, 0.5, None, 0.5, None, None, None, 0, 0)
    uncounted = DiskSample("b", "bcache", "writeback, oltp", True, line, minute_ratio=0.5)
    text = frame(Sample(1.0, (), (uncounted,)), "local").decode()
    assert "50.0 %" in text
    assert "\\u2013" in text, "what the kind does not count is no 0"
