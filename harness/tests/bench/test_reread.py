"""What is read again: a disk's own gain is told from that of the page cache."""

import os

import pytest

from hotset.bench.disks import raffle, reread
from hotset.bench.disks.mounted_model import RootError
from hotset.bench.disks.reread import DiskRereads, summarize
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.reports.model.disks import RaffleDraw, RafflePass
from tests.support.marks import needs_root


def drawn(*seconds: float, memory: float = 0.0) -> RafflePass:
    """One file, read as often as there are times."""
    draws = (
        RaffleDraw(name="a", seconds=one, bytes=1_000_000, in_memory=memory, major_faults=0)
        for one in seconds
    )
    return raffle.summarize(0, True, tuple(draws))


def test_the_first_read_is_held_against_all_that_come_after_it() -> None:
    one = summarize("hybrid", (drawn(0.1, 0.05), drawn(0.05)), drawn(0.05, 0.001, memory=1.0))
    assert one.first_mb_per_s == pytest.approx(10)
    assert one.again_mb_per_s == pytest.approx(20)
    assert one.gain == pytest.approx(2)
    assert one.seeming_gain == pytest.approx(100)
    assert one.keeps


def test_a_plain_disk_gains_nothing_whatever_the_page_cache_shows() -> None:
    one = summarize("hdd", (drawn(0.1, 0.1),), drawn(0.1, 0.001, memory=1.0))
    assert not one.keeps
    assert one.seeming_gain == pytest.approx(100)
    assert "hdd,10.0,10.0,1.0,1000.0,100.0" in DiskRereads((one,)).csv()


def test_without_root_it_says_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(RootError, match="root"):
        list(reread.hold(Local(), ["hdd-7200"], Bytes(4096), 1, 1, (), Reporter(quiet=True)))


@needs_root
@pytest.mark.night
def test_a_hybrid_disk_serves_from_its_flash_what_it_has_read() -> None:
    disks, size = ["wd3200bekt", "hybrid-disk-2014"], Bytes(8 * 1024**2)
    plain, hybrid = reread.hold(Local(), disks, size, 1, 1, (), Reporter(quiet=True))
    # Cold reads are the disk's, each of them; with the page cache most are not.
    assert {one.served_by for one in plain.cold} == {"device"}
    assert plain.warm.served_by == "both"
    (cold,) = hybrid.cold
    # What a disk has just read it copies to its flash after the answer: a file that is drawn twice
    # in a row may come from both.
    first = {draw.name: draw for draw in reversed(cold.draws)}
    last = {draw.name: draw for draw in cold.draws}
    # Readahead goes past the end of a file.
    assert {name: draw.from_flash for name, draw in first.items()} == pytest.approx(
        dict.fromkeys(raffle.WEIGHTS, 0), abs=0.05
    )
    assert {name: draw.from_flash for name, draw in last.items()} == pytest.approx(
        dict.fromkeys(raffle.WEIGHTS, 1), abs=0.05
    )
