"""What is found in a console's history: the disk's own part of it, and dirty data that stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotset.core.clock import Moment
from hotset.core.errors import HotsetError
from hotset.core.units import Bytes
from hotset.health import recorded
from hotset.health.findings import Ask
from hotset.monitoring.history import opening
from hotset.monitoring.history.amounts import Amounts
from hotset.monitoring.history.observation import Event, Facts
from hotset.monitoring.history.readings import Reading, Span
from tests.observations import NOON
from tests.simulated_days import SIZE, Shop, outgrown, steady
from tests.support.hit_counters import DISK

END = int(NOON)
ASK = Ask("local", "erp", "hit ratio")
NOTHING = Amounts(300_000, 0, 0, 0, 0, 0)
FACTS = Facts("u1", "erp", "dm-cache", "smq", "writeback", SIZE)


def recorded_of(spans: list[Span], *events: Event) -> recorded.Recorded:
    return recorded.Recorded(spans, events)


def test_a_drop_is_told_with_what_happened_meanwhile_and_where_to_look() -> None:
    happened = Event("k", END - 50_000.0, "setting", "erp: policy changed from smq to cleaner")
    seen = recorded_of(Shop(1).spans(outgrown, END), happened)
    (found,) = recorded.hit_ratio(ASK, seen, END)
    assert found.state == "warning"
    assert "at the same hours of 7 earlier days" in found.text
    assert "policy changed" in found.text
    assert [one.operation for one in found.remedies] == ["report history", "heat top"]


def test_a_quiet_week_is_in_order_and_a_short_one_is_not_known() -> None:
    spans = Shop(1).spans(steady, END)
    (fine,) = recorded.hit_ratio(ASK, recorded_of(spans), END)
    assert fine.state == "ok"
    (short,) = recorded.hit_ratio(ASK, recorded_of(spans[-300:]), END)
    assert short.state == "unknown"
    (stopped,) = recorded.hit_ratio(ASK, recorded_of(spans), END + 86_400)
    assert stopped.state == "unknown"


def dirty(*shares: float) -> recorded.Recorded:
    """The last hours' dirty data as shares of the cache; within an hour they swing above that."""
    spans = []
    for back, share in zip(range(len(shares), 0, -1), shares, strict=True):
        for at in range(0, 3600, 300):
            more = 0.2 * (at % 900 > 0)
            dirty_bytes = Bytes(round(SIZE * (share + more)))
            spans.append(Span(END - 3600 * back + at, NOTHING, dirty_bytes, SIZE, SIZE))
    return recorded_of(spans)


@pytest.mark.parametrize(
    ("shares", "state"),
    [
        ([0.3, 0.1] * 12, "ok"),
        ([0.6] * 24, "warning"),
        ([0.6] * 12 + [0.4] + [0.6] * 11, "ok"),
        ([0.01 * hour for hour in range(24)], "warning"),
        ([0.005 * hour for hour in range(24)], "ok"),
        ([0.1] * 24, "ok"),
        ([0.6] * 12, "unknown"),
    ],
    ids=["swings", "stays high", "fell once", "rises", "is little", "bcache's own", "half a day"],
)
def test_dirty_data_that_do_not_fall(shares: list[float], state: str) -> None:
    (found,) = recorded.dirty(ASK, dirty(*shares), END)
    assert found.state == state
    assert [one.operation for one in found.remedies] == ["tier flush"] * (state == "warning")


NOW = Moment(END, "boot", END)


def history(spans: list[Span]) -> None:
    path = opening.path_of("local")
    path.parent.mkdir(parents=True)
    hits, rows = 0, []
    for span in spans:
        hits += span.amounts.read_hits
        ms = 1000 * (span.start + 300)
        rows.append(Reading("u1", ms, ms, bool(rows), (hits, *[0] * 10, None, None)))
    with opening.writing(path) as kept:
        kept.keep(NOW, rows, (), (FACTS,))


def test_a_disk_is_found_by_its_identity_and_not_by_its_name(own_folders: Path) -> None:
    del own_folders
    history(Shop(1).spans(steady, END))
    mine = replace(DISK, identity="u1", name="renamed")
    assert len(recorded.read("local", mine, NOW).spans) >= 2000
    with pytest.raises(recorded.UnrecordedError):
        recorded.read("local", replace(DISK, identity="u2", name="erp"), NOW)


def test_nothing_recorded_and_a_damaged_file_are_said(own_folders: Path) -> None:
    del own_folders
    with pytest.raises(recorded.UnrecordedError, match="a console that runs records it"):
        recorded.read("local", DISK, NOW)
    path = opening.path_of("local")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no history" * 999)
    with pytest.raises(HotsetError, match="not a database"):
        recorded.read("local", DISK, NOW)
