"""The history as a table, and a look at it that changes nothing."""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.core.errors import HotsetError, RequestError
from hotset.core.operation import Context
from hotset.core.record import document_of
from hotset.monitoring.history import opening, series, table
from hotset.monitoring.history.recorder import Recorder
from hotset.operations import table as operations
from pages import simulated_week
from tests.observations import Clock, counters, disk

DAY = table.check(86_400.0, 3600.0)


@pytest.fixture
def file(own_folders: Path) -> Path:
    del own_folders
    return opening.path_of("local")


@pytest.fixture
def week(file: Path) -> Path:
    simulated_week.write(file, time.time())
    return file


def content(folder: Path) -> dict[str, str]:
    return {
        one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(folder.iterdir())
    }


def answer(**values: object) -> table.DiskHistory:
    found = operations.find("report history")
    result = found.function(found.parse(values), Context())
    shown: table.DiskHistory = result.to_record()
    return shown


def test_a_look_leaves_the_file_and_its_folder_as_they_were(week: Path) -> None:
    """SQLite makes a log and an index beside a file that is opened to be read."""
    before, at = content(week.parent), week.stat().st_mtime_ns
    assert answer(disk="shop").watched_s > 80_000
    assert (content(week.parent), week.stat().st_mtime_ns) == (before, at)


@pytest.fixture
def recording(file: Path) -> Iterator[tuple[Recorder, Clock]]:
    clock, one = Clock(time.time() - 60, 1000), Recorder(file)
    for hits in range(0, 700, 100):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    yield one, clock
    one.close(clock.see())


def test_what_a_running_console_wrote_is_read_and_it_goes_on(
    recording: tuple[Recorder, Clock], file: Path
) -> None:
    one, clock = recording
    with sqlite3.connect(file) as other:
        (kept,) = other.execute("SELECT count(*) FROM reading").fetchone()
    before = answer(since="15min").watched_s
    assert kept
    assert before > 0
    for hits in range(700, 1100, 100):
        one.take(clock.see(disk(counters(hits))))
        clock.passes(10)
    assert one.notice == ""
    assert answer(since="15min").watched_s > before


def test_what_was_not_recorded_has_a_row_without_values(week: Path) -> None:
    del week
    found = answer(disk="shop", since="7d", step="1h")
    empty = [row for row in found.rows if not row.watched_s]
    assert len(empty) >= 7, "the night in which nothing was recorded"
    assert {(row.hit_ratio, row.dirty_bytes) for row in empty} == {(None, None)}
    assert "not recorded" in found.to_text()


def test_its_forms_agree(week: Path) -> None:
    del week
    found = operations.find("report history")
    result = found.function(
        found.parse({"disk": "shop", "since": "2h", "step": "10min"}), Context()
    )
    rows = list(csv.DictReader(io.StringIO(result.csv())))
    document = document_of(result.to_record())
    assert [row["begun"] for row in rows] == [row["begun"] for row in document["rows"]]
    assert float(rows[3]["hit_ratio"]) == document["rows"][3]["hit_ratio"]
    assert {"benchmark", "console"} & {one["kind"] for one in document["events"]}


@pytest.mark.parametrize(
    ("values", "field", "says"),
    [
        ({"since": "9d"}, "since", "kept for 8 days"),
        ({"since": "soon"}, "since", "not a span"),
        ({"since": "1h", "step": "7s"}, "step", "multiple"),
        ({"since": "7d", "step": "1min"}, "step", "spans of 300 s"),
        ({"since": "26h", "step": "1min"}, "", ""),
        ({"disk": "nosuch"}, "disk", r"of disk nosuch .*; recorded ever: archive, shop"),
        ({}, "disk", "there are several: archive, shop"),
    ],
)
def test_what_cannot_be_shown_names_the_field(
    week: Path, values: dict[str, str], field: str, says: str
) -> None:
    del week
    if not field:
        assert answer(disk="shop", **values).rows
        return
    with pytest.raises(RequestError, match=says) as refused:
        answer(**({"disk": "shop"} if field in ("since", "step") else {}), **values)
    assert refused.value.field == field


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")


def later(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")


def damaged(path: Path) -> None:
    path.write_bytes(b"not a database " * 100)


def torn(path: Path) -> None:
    simulated_week.write(path, time.time())
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) // 2))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (foreign, "is not a history"),
        (later, "written by a later version"),
        (damaged, "not a database"),
        (torn, "malformed|not a database|disk image"),
        (Path.mkdir, "cannot be read"),
    ],
    ids=["foreign", "later", "damaged", "torn", "a folder"],
)
def test_a_file_that_is_no_history_is_one_clear_error(file: Path, spoil: object, says: str) -> None:
    file.parent.mkdir(parents=True)
    spoil(file)  # type: ignore[operator]
    before = sorted(one.name for one in file.parent.iterdir())
    with pytest.raises(HotsetError, match=says) as refused:
        answer(disk="shop")
    assert str(file) in str(refused.value)
    assert sorted(one.name for one in file.parent.iterdir()) == before, "left alone"


def test_no_history_is_no_zero(file: Path) -> None:
    with pytest.raises(table.NoHistoryError, match="nothing was ever recorded"):
        answer()
    assert not file.exists()
    assert series.find_choice("24h").length_s == DAY.length_s


def test_what_a_killed_console_left_half_written_is_read_once_it_is_repaired(
    recording: tuple[Recorder, Clock], file: Path, tmp_path: Path
) -> None:
    """A look changes nothing: who writes next takes back what was not written whole."""
    one, clock = recording
    left = tmp_path / "left"
    with closing(sqlite3.connect(file, isolation_level=None)) as killed:
        killed.execute("PRAGMA cache_size = 1")
        killed.execute("BEGIN")
        killed.execute("CREATE TABLE large AS SELECT randomblob(100000)")
        killed.execute("UPDATE reading SET read_hits = 0")
        shutil.copytree(file.parent, left)
    path = left / file.name
    before = path.read_bytes()
    with pytest.raises(opening.UnreadableError, match="the next one that starts repairs it"):
        opening.look(path, lambda store: store.disks())
    assert path.read_bytes() == before
    with opening.writing(path) as store:
        assert store.check() == "ok"
    found = opening.look(path, lambda store: store.readings(0, clock.at, clock.moment))
    assert found is not None
    assert max(reading.values[0] or 0 for reading in found["u1"]) > 0
    assert one.notice == ""
