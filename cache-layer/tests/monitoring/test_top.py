"""`hotset top`: what its lines say, and the whole of it in a real terminal over a real tier."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from hotset.core.machines.cleanup import Cleanup, exclusive
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.databases.base import Counter, FileIo, Unavailable, Wait
from hotset.databases.report import Reading
from hotset.lab import lab as labs
from hotset.monitoring import top, top_view, watch
from hotset.monitoring.top import DiskReading, DiskView, Load, Picture
from hotset.operations import activity, run
from hotset.operations.jobs import store as jobs
from hotset.reports.archive import Archive
from hotset.tier.base import Counters, Counting
from tests import documents
from tests.silent_server import silent_server

HOTSET = Path(sys.executable).with_name("hotset")
MIB = 2**20
BLOCK = Bytes(65536)
LOAD = Load(812.0, 1200.0, 2.1, 300.0, None, (("IO: DataFileRead", 96.0),), ())


def counters(hits: int, misses: int, dirty: int = 4) -> Counters:
    return Counters(hits, misses, 10, 0, 5, 1, Blocks(dirty), Blocks(32), Blocks(64))


def disk(name: str, hits: int, misses: int, dirty: int = 4) -> DiskView:
    """A disk that was asked so often in its last second; 50 of 100 reads hit before that."""
    now = counters(50 + hits, 50 + misses, dirty)
    line = watch.line(counters(50, 50), now, 0.0, 1.0, Counting(32), BLOCK)
    ratios = (0.5, None, line.hit_ratio)
    return DiskView(DiskReading(name, "dm-cache", "writeback, oltp", BLOCK, now), line, ratios)


def shown(
    *disks: DiskView,
    order: top_view.Order = "name",
    width: int = 100,
    height: int = 24,
    load: Load | None = None,
    running: tuple[str, ...] = (),
) -> list[str]:
    picture = Picture(0.0, disks, load, (100.0, 200.0), running)
    return top_view.screen(picture, order, "local", width, height, False).plain.splitlines()


def test_a_disk_the_database_and_a_job() -> None:
    lines = shown(disk("shop", 90, 10), load=LOAD, running=("tpcc run  12.0 s, 800 tps",))
    text = "\n".join(lines)
    assert "shop  dm-cache, writeback, oltp  reads 100/s  writes 0/s" in lines[2]
    assert lines[3].startswith("hits       90.0 % ▕██████████████▍ ▏ now  71.4 % since start  ▄ ")
    assert "▕████████        ▏ of 4 MiB  dirty 256 KiB ▕█               ▏" in lines[4]
    assert "transactions 812/s  ▄█" in text
    assert "I/O  reads 1,200/s at 2.1 ms  writes 300/s" in text
    assert "waits  IO: DataFileRead 96 ms/s" in text
    assert "running  tpcc run  12.0 s, 800 tps" in text
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("name", ["a", "b", "c"]),
        ("hit ratio", ["b", "a", "c"]),
        ("requests", ["a", "b", "c"]),
        ("dirty", ["b", "a", "c"]),
    ],
)
def test_the_disks_in_order(order: top_view.Order, names: list[str]) -> None:
    silent = DiskView(DiskReading("c", "bcache", "writeback, oltp", BLOCK, None), None, ())
    lines = shown(silent, disk("a", 99, 1, 7), disk("b", 5, 5, 9), order=order)
    assert [line.split()[0] for line in lines[2::4]][:3] == names
    assert any("counters cannot be read" in line for line in lines)


@pytest.mark.parametrize(("width", "height"), [(40, 8), (60, 12), (200, 50)])
def test_it_fits_every_window(width: int, height: int) -> None:
    disks = [disk(f"disk{number}", number, 5) for number in range(8)]
    lines = shown(*disks, width=width, height=height, load=LOAD)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert any("more: make the window higher" in line[:60] for line in lines) == (height < 40)


def test_no_disk_says_how_to_make_one() -> None:
    assert "hotset tier create" in "\n".join(shown())


def test_rates_of_a_server_and_what_it_does_not_show() -> None:
    files = [
        FileIo("relation", "data", 100, 0, 250.0, 40, 0, 20.0),
        FileIo("temp", "temp", 0, 0, 0.0, 0, 0, 0.0),
    ]
    counted = [Counter("commits", 600.0, False), Counter("deadlocks", 0.0, False)]
    load = top.load_of(Reading(files, [Wait("a", 1, 4.0), Wait("b", 9, 8.0)], counted), 2.0)
    assert load == Load(300.0, 50.0, 2.5, 20.0, 0.5, (("b", 4.0), ("a", 2.0)), ())
    dark = top.load_of(Reading(*(Unavailable("not allowed") for _ in range(3))), 1.0)
    assert (dark.commits, dark.reads, dark.missing[0]) == (None, None, "not allowed")


def test_a_running_job_is_shown_until_it_ends() -> None:
    with silent_server() as dsn:
        job = run.start("tpcc check", {"dsn": dsn})
        assert [line.partition("  ")[0] for line in activity.running()] == ["tpcc check"]
        deadline = time.monotonic() + 20
        while jobs.find(job.id).running:
            jobs.cancel(job.id)
            assert time.monotonic() < deadline, "the job does not end"
            time.sleep(0.1)
    assert activity.running() == ()


def test_an_experiment_that_runs_here_is_shown() -> None:
    phase = {"name": "baseline 2", "state": "done", "seconds": 9}
    document = documents.changed(documents.interrupted(), phases=[phase], failure=None)
    archive = Archive.default()
    archive.new("demo", document.started_at)
    archive.save(document)
    folder = labs.lab_folder()
    with exclusive(folder), archive.hold(document.run):
        Cleanup(folder, Local()).owner("experiment demo")
        (line,) = activity.running()
    nopm = document.arms[0].repeats[-1].nopm
    said = f"run {document.run}: baseline 2 done, baseline {nopm:,.0f} NOPM"
    assert line == f"experiment demo  {said}"
