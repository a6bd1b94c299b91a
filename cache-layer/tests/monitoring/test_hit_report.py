"""The hit-ratio report: differences of counters, its text, and what it refuses to mix up."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import pytest

from hotset.block.extents import Extent
from hotset.core.clock import Moment
from hotset.core.machines.local import Local
from hotset.core.record import document_of
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.disk.flash_devices import AttachedDisk
from hotset.hitratio import attribution, hit_report, region_counters
from hotset.hitratio import report as hits
from hotset.hitratio.attribution import FILE_SYSTEM, UNOWNED, Owner
from hotset.hitratio.heat import Grid, Reading, Tally
from hotset.hitratio.hit_report import Target, of_disk, of_flash, of_parts, parse_since
from hotset.hitratio.report import moment
from hotset.monitoring import metrics, tier_metrics, watch
from hotset.monitoring.tier_metrics import Measured
from hotset.operations import table
from hotset.tier.base import Counters, Counting, hits_over
from tests.support.hit_counters import DISK, FLASH, MIB, NOW, SPEC, counters

GRID = Grid(Bytes(64 * MIB), Bytes(MIB))


class FakeTier:
    """A tier whose counters are what the test says."""

    kind = "dm-cache"
    counting = Counting(32)
    spec = SPEC

    def __init__(self, *readings: Counters) -> None:
        self.readings = list(readings)

    def is_active(self) -> bool:
        return True

    def has_ended(self) -> bool:
        return False

    def counters(self) -> Counters:
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    TIER[:] = [FakeTier()]
    monkeypatch.setattr(AttachedDisk, "tier", property(lambda _: TIER[0]))
    return Target("local", AttachedDisk(Local(), FLASH, DISK))


TIER: list[FakeTier] = []


@contextmanager
def tier(*readings: Counters) -> Iterator[None]:
    TIER[:] = [FakeTier(*readings)]
    yield
    TIER.clear()


# What the counters gained


def test_what_is_counted_is_a_difference() -> None:
    both = hits_over([counters(10, 5, 3, 1), counters(110, 5, 13, 3)], Counting(32))
    assert (both.read_hits, both.read_misses, both.write_hits, both.write_misses) == (100, 0, 10, 2)
    assert both.bypassed is None


def test_a_counter_that_falls_has_wrapped_or_begun_anew() -> None:
    high = 2**32 - 10
    assert hits_over([counters(high), counters(5)], Counting(32)).read_hits == 15
    fell = hits_over([counters(100), counters(5)], Counting(32))
    assert fell.read_hits == 5, "not four thousand million"
    restarted = [counters(1000), counters(1200), counters(7), counters(50)]
    assert hits_over(restarted, Counting(32)).read_hits == 200 + 7 + 43


def test_what_a_kind_does_not_count_is_not_zero() -> None:
    bcache = hits_over(
        [counters(0, 0, None, None, None, 0), counters(9, 1, None, None, None, 4)], Counting(64)
    )
    assert (bcache.write_hits, bcache.promotions, bcache.bypassed) == (None, None, 4)
    assert Tally.from_hits(bcache) == Tally(14, 0, 9, 1, None, None, 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boot", "boot"),
        ("last", "last"),
        ("90min", NOW - 5400),
        ("1.5 h", NOW - 5400),
        ("2d", NOW - 172800),
        ("2027-01-15T07:00:00+00:00", 1_799_996_400.0),
    ],
)
def test_times(text: str, expected: object) -> None:
    assert parse_since(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "25:00", "8 hours", "-2h", "2999-01-01"])
def test_a_wrong_time_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time|in the future"):
        parse_since(text, NOW)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("now", "text", "expected"),
    [
        ("2027-03-28T08:00+02:00", "01:00", "2027-03-28T01:00+01:00"),
        ("2026-10-25T08:00+01:00", "00:30", "2026-10-25T00:30+02:00"),
        ("2027-03-28T08:00+02:00", "2027-03-28T02:30+00:00", "2027-03-28T02:30+00:00"),
    ],
)
def test_a_time_of_day_on_which_clocks_are_set(now: str, text: str, expected: str) -> None:
    began = [datetime.fromisoformat(one).timestamp() for one in (now, expected)]
    assert parse_since(text, began[0]) == began[1]


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize("text", ["02:30", "2027-03-28T02:30"])
def test_a_time_that_never_was_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="never was"):
        parse_since(text, datetime.fromisoformat("2027-03-28T08:00+02:00").timestamp())


# The whole disk


def test_a_disk_since_its_counters_began_and_since_the_last_report(target: Target) -> None:
    with tier(counters(90, 10, 6, 4, 3)):
        first = of_disk(target, "boot", Moment(NOW), mark=True)
    assert (first.begun, first.total.hit_ratio, first.total.reads) == (None, 96 / 110, 100)
    assert (first.total.dirty_bytes, first.total.promotions) == (2 * 65536, 3)
    with tier(counters(190, 10, 6, 14, 5)):
        last = of_disk(target, "last", Moment(NOW + 60))
    assert (last.begun, last.ended) == (moment(NOW), moment(NOW + 60))
    assert (last.total.reads, last.total.writes, last.total.read_hit_ratio) == (100, 10, 1.0)
    assert (last.total.write_hit_ratio, last.total.promotions) == (0.0, 2)
    assert last.notes == ()


def test_a_time_of_which_no_reading_is_kept_is_said(target: Target) -> None:
    with tier(counters(90, 10)):
        report = of_disk(target, "last", Moment(NOW))
    assert report.begun is None
    assert "no earlier report was marked" in report.notes[0]


def test_a_look_does_not_move_what_last_counts_from(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looked at noon, on the console for instance, halved the report of the night."""
    with tier(counters(100)):
        of_disk(target, "boot", Moment(NOW), mark=True)
    for since in ("boot", "last", NOW - 5):
        parts(monkeypatch, {0: reads(10, 0)})
        with tier(counters(150)):
            of_disk(target, since, Moment(NOW + 30))
            of_parts(target, "file", str, since, Moment(NOW + 30))
    with tier(counters(200)):
        night = of_disk(target, "last", Moment(NOW + 60))
    assert (night.begun, night.total.reads) == (moment(NOW), 100)


def test_only_who_may_operate_moves_it() -> None:
    operation = table.find("report hit-ratio")
    wanted = {since: operation.parse({"since": since}) for since in ("boot", "last")}
    assert {operation.right_for(dict(one)) for one in wanted.values()} == {Right.READ}
    assert operation.right_for({"mark": True}) is Right.OPERATE


def test_since_a_time_counts_from_the_reading_before_it(target: Target) -> None:
    for at, read_hits in ((NOW, 100), (NOW + 100, 150), (NOW + 200, 175)):
        with tier(counters(read_hits)):
            of_disk(target, "boot", Moment(at))
    with tier(counters(200)):
        report = of_disk(target, NOW + 150, Moment(NOW + 300))
    assert (report.begun, report.total.reads) == (moment(NOW + 100), 50)


def test_a_flash_device_shows_its_disks_and_its_volume(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"readlink": "/dev/dm-3\n", "cat": "  120 0 960 5 77 0 616 9 0 1 2\n"}
    monkeypatch.setattr(target.machine, "run", lambda argv: Done(answers[argv[0]]))
    with tier(counters(90, 10, 5, 5)):
        report = of_flash(target, Moment(NOW))
    erp, volume = report.rows
    assert (erp.name, erp.hit_ratio) == ("erp", 95 / 110)
    assert (volume.name, volume.reads, volume.writes) == ("hotset-volume", 120, 77)
    assert (volume.hit_ratio, volume.used_bytes) == (None, 2 * MIB)
    assert report.total.reads == 100
    assert "no cache, no ratio" in report.notes[0]
    assert report.to_text().startswith(f"flash device {target.flash.name} (")


class Done:
    def __init__(self, stdout: str) -> None:
        self.stdout = stdout


# Its parts


def parts(
    monkeypatch: pytest.MonkeyPatch,
    tallies: dict[int, Tally],
    dropped: int = 0,
    newer: set[str] | None = frozenset(),  # type: ignore[assignment]
) -> None:
    reading = Reading(GRID, "a", NOW - 500, tallies, dropped)

    class Counter:
        def read(self) -> Reading:
            return reading

    found = [
        Owner("/d/base/5/1", (Extent(Bytes(0), Bytes(2 * MIB)),)),
        Owner("/d/base/5/2", (Extent(Bytes(2 * MIB), Bytes(MIB)),)),
        Owner(FILE_SYSTEM, (Extent(Bytes(60 * MIB), Bytes(MIB)),)),
    ]
    TIER[:] = [FakeTier(counters(0))]
    monkeypatch.setattr(region_counters, "find_counters", lambda *_: Counter())
    monkeypatch.setattr(attribution, "files", lambda *_: found)
    monkeypatch.setattr(attribution, "newer", lambda *_: newer)


def reads(hits: int, misses: int) -> Tally:
    return Tally(hits + misses, 0, hits, misses, 0, 0, None)


def test_files_add_up_to_their_total(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    tallies = {0: reads(10, 0), 1: reads(5, 5), 2: reads(0, 8), 40: reads(0, 1), 60: reads(1, 0)}
    parts(monkeypatch, tallies)
    report = of_parts(target, "file", str, "boot", Moment(NOW), mark=True)
    assert [(row.name, row.reads, row.hit_ratio) for row in report.rows] == [
        ("/d/base/5/1", 20, 0.75),
        ("/d/base/5/2", 8, 0.0),
        (FILE_SYSTEM, 1, 1.0),
        (UNOWNED, 1, 0.0),
    ]
    assert [row.system for row in report.rows] == [False, False, True, True]
    assert report.total.reads == sum(row.reads for row in report.rows) == 30
    assert (report.begun, report.ended) == (moment(NOW - 500), moment(NOW))
    parts(monkeypatch, {**tallies, 2: reads(4, 8)}, dropped=12)
    later = of_parts(
        target, "table", lambda path: "stock" if path[-1] == "2" else "x", "last", Moment(NOW + 50)
    )
    assert [(row.name, row.reads, row.hit_ratio) for row in later.rows] == [("stock", 4, 1.0)]
    assert later.begun == moment(NOW)
    assert "12 requests found no room" in later.notes[1]


def test_a_table_whose_files_are_new_may_have_counts_of_others(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM FULL: its blocks were another file's for most of the time."""
    parts(monkeypatch, {0: reads(10, 0), 2: reads(0, 8)}, newer={"/d/base/5/2"})
    report = of_parts(target, "file", str, "boot", Moment(NOW))
    (note,) = [note for note in report.notes if "came to be" in note]
    assert "/d/base/5/2" in note
    assert "/d/base/5/1" not in note
    parts(monkeypatch, {0: reads(10, 0)}, newer=None)
    report = of_parts(target, "file", str, "boot", Moment(NOW))
    assert [note for note in report.notes if "is not known" in note]


# Its text


ROW = hits.HitRow("erp", 1500, 20, 0.98765, None, 0.98, 0, 7, 8, 65536, 3 * MIB)
REPORT = hits.HitRatios(
    "erp",
    "dm-cache",
    "file",
    None,
    moment(NOW),
    "requests: read hits + read misses",
    (ROW, hits.HitRow("/a b", 1, 0, None, None, None, None)),
    ROW,
    ("a sentence",),
)


def test_the_table_says_what_its_ratios_are_a_share_of() -> None:
    lines = REPORT.to_text().splitlines()
    assert lines[0].startswith("disk erp (dm-cache), since the tier's counters started, until ")
    assert lines[1].split() == [
        "file",
        "reads",
        "writes",
        "read",
        "hits",
        "hits",
        "bypassed",
        "promotions",
        "demotions",
        "dirty",
        "used",
    ]
    assert lines[2].split() == [
        "erp",
        "1,500",
        "20",
        "98.8",
        "%",
        "98.0",
        "%",
        "0",
        "7",
        "8",
        "64",
        "KiB",
        "3",
        "MiB",
    ]
    assert lines[3].split() == ["/a", "b", "1", "0", "–", "–", "–", "–", "–", "–", "–"]
    assert lines[-2:] == ["ratios: requests: read hits + read misses", "a sentence"]
    assert "write hits" not in lines[1], "nothing is known of them"


def test_a_name_with_a_line_break_is_on_one_line_of_a_table() -> None:
    odd = replace(ROW, name='public."two\nlines\x1b[2J"')
    shown = replace(REPORT, rows=(odd, odd)).to_text()
    assert len(shown.splitlines()) == len(REPORT.to_text().splitlines())
    assert r'public."two\nlines\x1b[2J"' in shown


def test_json_and_csv_carry_raw_figures() -> None:
    plain = document_of(REPORT)
    assert plain["schema_version"] == 1
    assert plain["total"]["read_hit_ratio"] == 0.98765
    assert (plain["begun"], plain["rows"][1]["promotions"]) == (None, None)
    lines = REPORT.csv().splitlines()
    assert lines[0].startswith("disk,name,reads,writes,read_hit_ratio,")
    assert lines[2] == "erp,/a b,1,0,,,,,,,,,false"
    whole = replace(REPORT, by="total").csv().splitlines()
    assert len(whole) == 2, "the total once"


# Watching


def test_a_line_an_interval_without_drift() -> None:
    now, naps = [100.0], list[float]()

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        now[0] += seconds + 0.25  # each reading takes a while

    fake = FakeTier(counters(0), counters(10, 10), counters(10, 10), counters(40, 10, 5, 5, 2))
    lines = list(watch.lines(fake, 1.0, 3, lambda: now[0], sleep))  # type: ignore[arg-type]
    assert naps == [1.0, 0.75, 0.75], "lines come on a grid of seconds"
    assert [line.seconds for line in lines] == [1.25, 1.0, 1.0]
    assert (lines[0].reads, lines[0].hit_ratio) == (16.0, 0.5)
    assert (lines[1].reads, lines[1].hit_ratio) == (0.0, None)
    assert (lines[2].reads, lines[2].writes, lines[2].hit_ratio) == (30.0, 10.0, 35 / 40)
    assert lines[2].promotions == 2.0


def test_lines_stand_below_their_heads() -> None:
    fake = FakeTier(counters(0, 0, None, None, None, 0), counters(9, 1, None, None, None, 5))
    (line,) = watch.lines(fake, 0.0, 1, iter([0.0, 0.0, 2.0]).__next__, lambda _: None)  # type: ignore[arg-type]
    text, head = watch.as_text(line), watch.header()
    assert len(text) == len(head)
    assert text.split()[1:] == [
        "8",
        "90.0",
        "%",
        "–",
        "–",
        "90.0",
        "%",
        "2",
        "–",
        "–",
        "128",
        "KiB",
        "320",
        "KiB",
    ]
    plain = json.loads(watch.as_json(line))
    assert (plain["writes"], plain["bypassed"], plain["schema_version"]) == (None, 2.5, 1)
    assert len(watch.values(line)) == len(watch.FIELDS)


# Metrics


def test_metrics_in_openmetrics_names() -> None:
    other = replace(DISK, name='we"ird\n', kind="bcache")
    gone = replace(DISK, name="gone")
    text = metrics.text(
        tier_metrics.families(
            [
                Measured(DISK, counters(90, 10, 5, 5, 3)),
                Measured(other, counters(1, 1, None, None, None, 7)),
                Measured(gone, None),
            ]
        )
    )
    lines = text.splitlines()
    assert 'hotset_cache_hits_total{disk="erp",tier="dm-cache",op="read"} 90' in lines
    assert 'hotset_cache_bypassed_total{disk="we\\"ird\\n",tier="bcache"} 7' in lines
    assert 'hotset_cache_dirty_bytes{disk="erp",tier="dm-cache"} 131072' in lines
    assert f'hotset_hit_ratio{{disk="erp",tier="dm-cache"}} {95 / 110!r}' in lines
    assert 'hotset_tier_up{disk="gone",tier="dm-cache"} 0.0' in lines
    assert not [one for one in lines if "bcache" in one and "promotions" in one], "not counted"
    assert not [one for one in lines if "gone" in one and "up" not in one]
    assert lines[-1] == "# EOF"
    names = [one.split()[2] for one in lines if one.startswith("# TYPE")]
    assert len(set(names)) == len(names), "a family's lines stand together"
    assert "# UNIT hotset_cache_dirty_bytes bytes" in lines


def test_what_was_lost_when_the_counters_began_anew_is_told(target: Target) -> None:
    """A policy was changed: nobody read the counters before, and those after are higher."""
    before = replace(counters(100), begun=NOW - 600)
    after = replace(counters(300), begun=NOW - 60)
    with tier(before, after):
        of_disk(target, "boot", Moment(NOW - 300))
        found = of_disk(target, NOW - 400, Moment(NOW))
    assert found.total.reads == 300
    since, note = found.notes
    assert "counted from" in since
    assert f"{moment(NOW - 300):%H:%M:%S}" in note
    assert f"{moment(NOW - 60):%H:%M:%S}" in note
    assert "is not known" in note


@pytest.mark.parametrize("wrong", [0, 7, 2**31 + 9, 5_000_000_000])
@pytest.mark.parametrize("start", [NOW - 350, NOW - 150], ids=["over it", "from it on"])
def test_one_absurd_reading_counts_nothing_and_is_told(
    target: Target, wrong: int, start: float
) -> None:
    """Its rise was counted, and what was read after it once more: 5,000,000,120 requests of 40."""
    for at, read_hits in ((400, 100), (300, 110), (200, wrong), (100, 130)):
        with tier(counters(read_hits)):
            of_disk(target, "boot", Moment(NOW - at))
    with tier(counters(150)):
        found = of_disk(target, start, Moment(NOW))
    assert found.total.reads == (50 if start == NOW - 350 else 40)
    (note,) = found.notes
    assert f"{moment(NOW - 200):%H:%M:%S}" in note
    assert "not known" in note


def test_a_device_made_anew_counts_on_from_zero_whatever_it_counted_before(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A week of which only its end was read is not forgotten: no reading of it is wrong."""
    for number, (at, read_hits) in enumerate(((400, 10), (300, 5000), (100, 130))):
        monkeypatch.setattr(
            hit_report.loop, "identity", lambda *_, number=number: f"device {number > 1}"
        )
        with tier(counters(read_hits)):
            found = of_disk(target, NOW - 400, Moment(NOW - at))
    assert found.total.reads == 4990 + 130
