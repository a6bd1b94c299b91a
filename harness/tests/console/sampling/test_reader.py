"""What one reading of the machine comes to, as it is shown live and as it is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.console.pages.overview import frame
from hotset.console.sampling import reader as reading
from hotset.console.sampling.reader import DiskSample, Reader, Sample
from hotset.core.clock import Moment
from hotset.core.machines import names as connect
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.units import Blocks, Bytes
from hotset.disk.flash_devices import Disk
from hotset.monitoring import tier_metrics
from hotset.monitoring.tier_metrics import Measured
from hotset.monitoring.watch import Line
from hotset.tier.base import Counters, TierSpec
from tests.observations import device

SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n << 20) for n in (5, 64, 16)))
DISK = Disk("shop", "dm-cache", "oltp", PurePosixPath("/dev/disk/by-id/slow"), SPEC, (), ())
FIRST = Counters(90, 10, 30, 10, 5, 1, Blocks(33), Blocks(512), Blocks(1024))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[Counters | None]:
    """What the machine's one tier says next; the test fills it."""
    said: list[Counters | None] = []
    moved = iter(range(0, 10_000, 100))
    monkeypatch.setattr(
        tier_metrics, "measure", lambda _: [Measured(DISK, said.pop(0))] if said else []
    )
    monkeypatch.setattr(reading, "_device", lambda *_: device(next(moved)))
    return said


def reader() -> Reader:
    """One whose clocks are 2 s further with each reading."""
    ticks = iter(range(0, 1000, 2))
    return Reader("local", lambda: Moment(0.0, "boot", float(next(ticks))))


def test_a_disk_in_an_interval(readings: list[Counters | None]) -> None:
    readings += [FIRST, replace(FIRST, read_hits=190, read_misses=10, write_misses=20)]
    source = reader()
    (begun,) = source.read().disks
    assert (begun.line, begun.minute_ratio) == (None, None), "one reading is no interval"
    assert (begun.made_ratio, begun.used_bytes) == (120 / 140, 512 * 65536)
    (now,) = source.read().disks
    # 100 reads and 10 writes in 2 s.
    line = now.line
    assert line is not None
    assert (line.reads, line.writes) == (50, 5)
    assert (line.read_hit_ratio, line.write_hit_ratio, line.hit_ratio) == (1.0, 0.0, 100 / 110)
    assert now.minute_ratio == 100 / 110
    assert (now.read_bytes, now.written_bytes) == (50 * 8192, 50 * 8192)
    assert (now.dirty_bytes, now.cache_bytes) == (33 * 65536, 64 << 20)


def test_a_counter_that_began_anew_gives_no_false_figures(readings: list[Counters | None]) -> None:
    readings += [FIRST, Counters(5, 5, 0, 0, 0, 0, Blocks(0), Blocks(1), Blocks(1024))]
    source = reader()
    source.read()
    (now,) = source.read().disks
    assert now.line is not None
    assert (now.line.reads, now.line.hit_ratio) == (0, None), "nobody knows what came meanwhile"


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
    assert b"its cache cannot be read" in frame(Sample(Moment(1.0), (), (down,)), "local").lower()
    line = Line(1.0, 1.0, 1.0, None, 0.5, None, 0.5, None, None, None, 0, 0)
    uncounted = DiskSample("b", "bcache", "writeback, oltp", True, None, line, minute_ratio=0.5)
    text = frame(Sample(Moment(1.0), (), (uncounted,)), "local").decode()
    assert "50.0 %" in text
    assert "\\u2013" in text, "what the kind does not count is no 0"


def test_the_page_says_a_ratio_once_and_none_of_no_requests() -> None:
    """ "98.7 % … since its counters started / 98.7 % since its counters started", and "– hit"."""
    first = DiskSample("a", "userspace", "writeback, oltp", True, None, made_ratio=0.987)
    assert frame(Sample(Moment(1.0), (), (first,)), "local").decode().count("98.7 %") == 1
    line = Line(1.0, 1.0, 0.0, 0.0, None, None, None, None, None, None, 0, 0)
    idle = DiskSample("a", "userspace", "writeback, oltp", True, None, line, made_ratio=0.987)
    text = frame(Sample(Moment(1.0), (), (idle,)), "local").decode()
    assert "no requests in the last minute" in text
    assert " hit<" not in text
    unused = DiskSample("a", "userspace", "writeback, oltp", True, None)
    assert (
        "no requests since its counters started"
        in frame(Sample(Moment(1.0), (), (unused,)), "local").decode()
    )
