"""What is recorded of a machine, and that nothing that becomes of the file stops it."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.core.units import Bytes
from hotset.monitoring.history import opening, recorder, store
from hotset.monitoring.history.amounts import Amounts
from hotset.monitoring.history.observation import Event, Facts, SeenDisk
from hotset.monitoring.history.recorder import Recorder
from tests.observations import BLOCK, NOON, Clock, counters, disk, end, recorded, with_policy

FILL = """
import json, os, sys
from pathlib import Path
from hotset.monitoring.history.recorder import Recorder
from tests.observations import Clock, counters, disk, end, recorded

folder, path = Path(sys.argv[1]), Path(sys.argv[1]) / "local.sqlite"
clock, kept, said, hits = Clock(), Recorder(path), [], 0
filler = folder / "filler"

def take(times):
    global hits
    for _ in range(times):
        clock.passes(10); hits += 100
        kept.take(clock.see(disk(counters(hits))))

def left():
    found = recorded(path, clock).disks if path.exists() and path.stat().st_size else []
    return sum(one.total.read_hits for one in found)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history" / "local.sqlite"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def one(file: Path, clock: Clock) -> Iterator[Recorder]:
    found = Recorder(file)
    yield found
    found.close(clock.see())


def counted(file: Path, clock: Clock, identity: str = "u1") -> Amounts:
    (found,) = [one for one in recorded(file, clock).disks if one.identity == identity]
    return found.total


def events(file: Path, clock: Clock, *kinds: str) -> list[str]:
    clock.passes(1)
    found = recorded(file, clock).events
    return [one.text for one in found if one.kind in kinds or not kinds]


def known(file: Path) -> dict[str, Facts]:
    found = opening.look(file, lambda store: store.disks())
    assert found is not None
    return found


def test_all_that_is_counted_between_the_first_reading_and_the_last_is_kept(
    one: Recorder, clock: Clock, file: Path
) -> None:
    """Readings as they come: quick ones while somebody watches, late ones of a slow machine."""
    for number, seconds in enumerate((0, 10, 2, 2.1, 13, 34, 9.9, 10)):
        clock.passes(seconds)
        one.take(clock.see(disk(counters(100 * number, number))))
    end(one, clock, disk(counters(700, 7)))
    found = counted(file, clock)
    assert (found.known_ms, found.read_hits, found.read_misses) == (81_000, 700, 7)
    assert found.read_bytes == 707 * 8192


def test_what_was_not_watched_is_unknown(one: Recorder, clock: Clock, file: Path) -> None:
    """A machine that did not answer for an hour: no zero, and no hour's requests in one span."""
    one.take(clock.see(disk(counters(0))))
    clock.passes(10)
    one.take(clock.see(disk(counters(50))))
    clock.passes(3600)
    one.take(clock.see(disk(counters(90_000))))
    clock.passes(10)
    one.take(clock.see(disk(counters(90_050))))
    end(one, clock, disk(counters(90_050)))
    assert counted(file, clock).read_hits == 100
    assert counted(file, clock).known_ms == 20_000
    found = recorded(file, clock)
    for spans in (found.disks[0].spans, found.machine):
        starts = [span.start for span in spans if span is not None]
        assert starts == [int(NOON), int(NOON) + 3610]


def test_a_machine_out_of_reach_is_an_event_from_its_beginning_to_its_end(
    one: Recorder, clock: Clock, file: Path
) -> None:
    one.take(clock.see(disk(counters(0))))
    for _ in range(3):
        clock.passes(10)
        one.take(clock.see(error="nothing answers at db1"))
    clock.passes(10)
    one.take(clock.see(disk(counters(9))))
    end(one, clock, disk(counters(9)))
    found = recorded(file, clock)
    assert found.disks == []
    (seen,) = [one for one in found.events if one.kind == "unreachable"]
    assert (seen.at, seen.until, seen.text) == (NOON + 10, NOON + 40, "nothing answers at db1")
    assert events(file, clock, "disk") == [], (
        "a machine that does not answer has not lost its disks"
    )


def test_where_counters_began_anew_what_lies_around_it_is_not_known(
    one: Recorder, clock: Clock, file: Path
) -> None:
    """Whether they did, or one reading is wrong, nobody can tell of a kind that does not say when
    its counters began."""
    for hits in (1000, 1100, 1200, 7, 57, 107):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    end(one, clock, disk(counters(107)))
    told = "shop: its counters restarted, or a reading of them was wrong"
    assert events(file, clock, "reset") == [told]
    assert counted(file, clock).read_hits == 150
    assert counted(file, clock).known_ms == 20_000


def test_a_kind_that_says_when_its_counters_began_is_believed(
    one: Recorder, clock: Clock, file: Path
) -> None:
    """What lies between the two counts is not known, nor what no further reading bears out."""
    for hits, begun in ((900, 1.0), (1000, 1.0), (1100, 1.0), (1200, 2.0), (1250, 2.0)):
        engine = replace(counters(hits), begun=begun)
        seen = disk(engine)
        one.take(clock.see(replace(seen, facts=replace(seen.facts, kind="userspace"))))
        clock.passes(10)
    end(one, clock, replace(seen, facts=replace(seen.facts, kind="userspace")))
    assert events(file, clock, "reset") == ["shop: its counters restarted"]
    assert counted(file, clock).read_hits == 150


def test_a_reading_in_a_flush_is_passed_over(one: Recorder, clock: Clock, file: Path) -> None:
    """dm-cache shows the counters of the last suspend meanwhile."""
    flushing = replace(counters(50), stale=True)
    for seen in (counters(100), flushing, counters(300), counters(400)):
        one.take(clock.see(disk(seen)))
        clock.passes(10)
    end(one, clock, disk(counters(400)))
    assert counted(file, clock).read_hits == 300
    assert events(file, clock, "reset") == []


def test_the_last_reading_counts_once_another_bears_it_out(
    one: Recorder, clock: Clock, file: Path
) -> None:
    for hits in (100, 200, 10**8):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    one.close(clock.see())
    assert counted(file, clock).read_hits == 100


def test_a_clock_that_is_set_is_told_and_makes_no_gap(
    one: Recorder, clock: Clock, file: Path
) -> None:
    for hits, jump in ((0, 0), (10, 3600), (20, 0), (30, -7200), (40, 0)):
        clock.at += jump
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    end(one, clock, disk(counters(40)))
    assert events(file, clock, "clock") == [
        "the clock was set ahead by 1 h 0 min",
        "the clock was set back by 2 h 0 min",
    ]
    assert (counted(file, clock).read_hits, counted(file, clock).known_ms) == (40, 40_000)


def test_tpm_is_of_the_machine(one: Recorder, clock: Clock, file: Path) -> None:
    for tpm in (None, 600, 1200, None):
        one.take(clock.see(tpm=tpm))
        clock.passes(10)
    end(one, clock)
    found = [span.amounts for span in recorded(file, clock).machine if span is not None]
    assert [one.tpm for one in found] == [600, 1200, None]
    assert sum(one.running_ms or 0 for one in found) == 20_000


def test_events_from_elsewhere_are_kept(one: Recorder, clock: Clock, file: Path) -> None:
    warmed = Event("audit:1", NOON - 60, "warm-up", "warmup run database:shop", NOON - 30)
    one.take(clock.see(), [warmed])
    one.close(clock.see())
    assert events(file, clock, "warm-up") == ["warmup run database:shop"]


def test_what_changed_while_nobody_recorded_is_said_so(file: Path, clock: Clock) -> None:
    first = Recorder(file)
    first.take(clock.see(disk(counters(5))))
    first.close(clock.see())
    clock.passes(3600)
    second = Recorder(file)
    second.take(clock.see(with_policy(disk(counters(5)), "hotset")))
    second.close(clock.see())
    assert events(file, clock, "setting") == [
        "shop: policy changed from smq to hotset (while nothing was recorded)"
    ]
    assert events(file, clock, "console") == [
        "this console started",
        "this console ended",
        "this console started",
        "this console ended",
    ]


def test_a_console_that_was_killed_is_told_by_the_next(file: Path, clock: Clock) -> None:
    killed = Recorder(file)
    killed.take(clock.see())
    killed._lock.release()
    second = Recorder(file)
    second.take(clock.see())
    second.close(clock.see())
    assert "the one before ended without a word" in events(file, clock, "console")[1]


def test_a_damaged_history_is_set_aside_and_a_new_one_begun(
    one: Recorder, clock: Clock, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.parent.mkdir()
    file.write_bytes(b"not a database " * 1000)
    with caplog.at_level(logging.WARNING):
        one.take(clock.see(disk(counters(0))))
    (aside,) = file.parent.glob("*.damaged-*")
    assert aside.read_bytes() == b"not a database " * 1000
    assert str(aside) in one.notice
    assert str(aside) in caplog.text
    clock.passes(10)
    one.take(clock.see(disk(counters(70))))
    end(one, clock, disk(counters(70)))
    assert counted(file, clock).read_hits == 70
    assert events(file, clock, "history") == [one.notice]


def test_a_history_that_is_removed_while_it_is_written_begins_anew(
    one: Recorder, clock: Clock, file: Path
) -> None:
    """SQLite would go on in a file that nobody finds any more."""
    for hits in (0, 100, 200, 300, 400):
        if hits == 200:
            file.unlink()
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    end(one, clock, disk(counters(hits)))
    assert counted(file, clock).read_hits == 300
    assert events(file, clock, "history") == [
        "the file of the history was removed, and a new one begun"
    ]


@pytest.mark.parametrize("left", [(), (disk(counters(7), "u2", "other"),)])
def test_what_waits_of_a_disk_that_is_gone_outlives_the_file(
    one: Recorder, clock: Clock, file: Path, left: tuple[SeenDisk, ...]
) -> None:
    """The new file has never heard of the disk, and no reading shows it any more."""
    clock.passes(3)
    for hits in (0, 100, 200):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(3)
    file.unlink()
    for _ in range(3):
        one.take(clock.see(*left))
        clock.passes(10)
    one.close(clock.see())
    assert counted(file, clock).read_hits == 100
    assert not known(file)["u1"].present


def test_a_history_that_is_replaced_while_it_is_written_goes_on_in_the_other(
    one: Recorder, clock: Clock, file: Path, tmp_path: Path
) -> None:
    other = Recorder(tmp_path / "other" / "local.sqlite")
    other.take(clock.see(disk(counters(5))))
    other.close(clock.see())
    for hits in (0, 100, 200, 300, 400):
        if hits == 200:
            (tmp_path / "other" / "local.sqlite").rename(file)
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    one.close(clock.see())
    assert counted(file, clock).read_hits >= 200
    assert "replaced by another" in events(file, clock, "history")[0]
    assert sum("this console started" in text for text in events(file, clock, "console")) == 1


def test_a_console_starts_once_whatever_becomes_of_the_file(
    one: Recorder, clock: Clock, file: Path
) -> None:
    one.take(clock.see(disk(counters(0))))
    file.unlink()
    clock.passes(10)
    one.take(clock.see(disk(counters(10))))
    one.close(clock.see())
    assert not any("started" in text for text in events(file, clock, "console"))


def test_who_reads_makes_no_file(file: Path) -> None:
    file.parent.mkdir()
    assert opening.look(file, lambda store: store.disks()) is None
    assert not file.exists()


def test_a_history_that_is_damaged_while_it_is_written_is_set_aside_too(
    one: Recorder, clock: Clock, file: Path
) -> None:
    for number in range(100):
        one.take(clock.see(disk(counters(number))))
        clock.passes(10)
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xff" * (size - 4096))
    for hits in (1000, 1010, 1020):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    assert "damaged" in one.notice
    assert len(list(file.parent.glob("*.damaged-*.sqlite"))) == 1
    end(one, clock, disk(counters(1020)))
    assert counted(file, clock).read_hits > 0


@pytest.mark.parametrize("version", [store.VERSION + 1, 99])
def test_a_history_of_a_later_hotset_is_left_alone(
    one: Recorder, clock: Clock, file: Path, version: int
) -> None:
    made = Recorder(file)
    made.take(clock.see())
    made.close(clock.see())
    with sqlite3.connect(file) as other:
        other.execute(f"PRAGMA user_version = {version}")
    before = file.read_bytes()
    for _ in range(5):
        one.take(clock.see(disk(counters(5))))
        clock.passes(40)
    assert "later version of hotset" in one.notice
    assert file.read_bytes() == before


def test_a_database_of_something_else_is_left_alone(
    one: Recorder, clock: Clock, file: Path
) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE customer (id INTEGER)")
    before = file.read_bytes()
    one.take(clock.see())
    assert "is not a history" in one.notice
    assert file.read_bytes() == before


def test_an_earlier_format_is_left_alone(
    one: Recorder, clock: Clock, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Recorder(file)
    made.take(clock.see())
    made.close(clock.see())
    monkeypatch.setattr(opening, "VERSION", store.VERSION + 1)
    one.take(clock.see())
    assert f"(format {store.VERSION})" in one.notice
    assert list(file.parent.glob("*.damaged-*")) == []


def test_of_two_consoles_one_records_and_the_other_takes_over(file: Path, clock: Clock) -> None:
    first, second = Recorder(file), Recorder(file)
    warmed = Event("audit:1", NOON + 5, "warm-up", "warmup run database:shop")
    for hits in range(0, 500, 100):
        for each in (first, second):
            each.take(clock.see(disk(counters(hits))), [warmed] if each is second else [])
        clock.passes(10)
    assert first.notice == ""
    assert "another console" in second.notice
    end(first, clock, disk(counters(400)))
    assert counted(file, clock).read_hits == 400, "not twice"
    for hits in (1000, 1100):
        second.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    end(second, clock, disk(counters(1100)))
    assert second.notice == ""
    assert counted(file, clock).read_hits == 500
    assert events(file, clock, "warm-up") == ["warmup run database:shop"], (
        "told once, kept for later"
    )


def test_a_disk_made_again_under_the_same_name_has_a_history_of_its_own(
    one: Recorder, clock: Clock, file: Path
) -> None:
    for identity, hits in (("u1", 0), ("u1", 100), ("u1", 100), ("u2", 0), ("u2", 5)):
        one.take(clock.see(disk(counters(hits), identity)))
        clock.passes(10)
    end(one, clock, disk(counters(5), "u2"))
    assert (counted(file, clock, "u1").read_hits, counted(file, clock, "u2").read_hits) == (100, 5)
    assert events(file, clock, "disk") == [
        "shop is accelerated from now on",
        "shop is not seen any more",
    ]


def test_a_disk_without_an_identity_is_another_one_at_the_next_start(
    file: Path, clock: Clock
) -> None:
    for _ in range(2):
        one = Recorder(file)
        for hits in (0, 100):
            one.take(clock.see(disk(counters(hits), identity="")))
            clock.passes(10)
        end(one, clock, disk(counters(100), identity=""))
    assert len(recorded(file, clock).disks) == 2


def test_a_renamed_disk_goes_on(one: Recorder, clock: Clock, file: Path) -> None:
    for name, hits in (("shop", 0), ("shop", 100), ("store", 200), ("store", 300)):
        one.take(clock.see(disk(counters(hits), name=name)))
        clock.passes(10)
    end(one, clock, disk(counters(300), name="store"))
    assert counted(file, clock).read_hits == 300
    assert events(file, clock, "disk") == ["store: was called shop before"]


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "history").write_text("a file")
    one = Recorder(tmp_path / "history" / "local.sqlite")
    one.take(clock.see(disk(counters(1))))
    assert "nothing is recorded" in one.notice
    one.close(clock.see())


def on_a_small_disk(folder: Path, script: str) -> dict[str, str | int]:
    """Run it with a file system of 400 KiB at the folder; gives what it prints."""
    folder.mkdir()
    open_ = f'mount -t tmpfs -o size=400k none "$1" && exec {sys.executable} -c "$2" "$1"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", open_, "sh"]
    done = subprocess.run(
        [*argv, str(folder), FILL + script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    found: dict[str, str | int] = json.loads(done.stdout)
    return found


def test_on_a_full_disk_it_goes_on_and_records_all_once_there_is_room(tmp_path: Path) -> None:
    found = on_a_small_disk(
        tmp_path / "small",
        """
take(3)
filler.write_bytes(b"")
with filler.open("ab", buffering=0) as file:
    try:
        while True: file.write(b"x" * 1024)
    except OSError: pass
take(100)
full, before = kept.notice, left()
filler.unlink()
take(5)
now = kept.notice
end(kept, clock, disk(counters(hits)))
print(json.dumps({"full": full, "before": before, "now": now, "left": left(), "hits": hits}))
""",
    )
    assert "nothing can be written" in str(found["full"])
    assert int(found["before"]) < 10_000
    assert found["now"] == ""
    assert found["left"] == int(found["hits"]) - 100, "all but what came before the first reading"


def test_in_a_read_only_folder_it_says_so_and_records_once_it_may(tmp_path: Path) -> None:
    found = on_a_small_disk(
        tmp_path / "small",
        """
import subprocess
subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
take(5)
said = kept.notice
subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
take(10)
now = kept.notice
end(kept, clock, disk(counters(hits)))
print(json.dumps({"said": said, "now": now, "left": left()}))
""",
    )
    assert "nothing" in str(found["said"])
    assert found["now"] == ""
    assert int(found["left"]) > 0


def test_what_waits_for_room_is_bounded(one: Recorder, clock: Clock, file: Path) -> None:
    """An hour of readings; what was counted before them is not guessed from them."""
    file.parent.mkdir()
    file.mkdir()
    for number in range(recorder.EVENTS_HELD + 200):
        one.take(clock.see(disk(counters(number))), [Event(str(number), NOON, "warm-up", "x")])
        clock.passes(10)
    assert len(one._readings) <= 2 * 361
    assert len(one._events) <= recorder.EVENTS_HELD
    file.rmdir()
    end(one, clock, disk(counters(number)))
    assert counted(file, clock).read_hits == 360


def test_levels_are_bytes(one: Recorder, clock: Clock, file: Path) -> None:
    for number in range(3):
        one.take(clock.see(disk(counters(number, dirty=7))))
        clock.passes(10)
    one.close(clock.see())
    (last,) = [span for span in recorded(file, clock).disks[0].spans if span is not None]
    assert (last.dirty, last.size) == (7 * BLOCK, 1024 * BLOCK)


def test_a_cache_that_is_resized_or_down_is_told(one: Recorder, clock: Clock, file: Path) -> None:
    one_disk = disk(counters(3))
    larger = replace(one_disk, facts=replace(one_disk.facts, size=Bytes(128 << 20)))
    for seen in (disk(counters(3)), larger, disk(None), disk(None), disk(counters(3))):
        one.take(clock.see(seen))
        clock.passes(10)
    one.close(clock.see())
    assert events(file, clock, "size") == [
        "shop: cache resized from 64 MiB to 128 MiB",
        "shop: cache resized from 128 MiB to 64 MiB",
    ]
    assert events(file, clock, "down") == ["shop: its cache could not be read"]
