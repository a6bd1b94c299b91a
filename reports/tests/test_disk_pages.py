"""The scenarios on modelled disks as pages: what they say, their tables, and that they draw."""

from __future__ import annotations

import copy
import doctest
import io
from typing import Any

import pytest
from rich.console import Console

from hotset.core import words
from hotset.reports.model.disks import DiskResults
from hotset.reports.render import disk_pages, html, terminal
from tests import documents


def draws(*seconds: float) -> list[dict[str, Any]]:
    return [
        {"name": name, "seconds": one, "bytes": 10**6, "in_memory": 0.0, "major_faults": 3}
        for name, one in zip("abb", seconds, strict=True)
    ]


def disk(name: str, gain: float) -> dict[str, Any]:
    one = {"number": 0, "dropped": True, "served_by": "device", "draws": draws(0.02, 0.02, 0.01)}
    warm = {**one, "number": 1, "dropped": False, "served_by": "both"}
    return {
        "disk": name,
        "first_mb_per_s": 50.0,
        "again_mb_per_s": 50.0 * gain,
        "gain": gain,
        "page_cache_mb_per_s": 2500.0,
        "seeming_gain": 50.0,
        "cold": [one],
        "warm": warm,
    }


REREAD = {"schema_version": 1, "disks": [disk("hdd", 1.0), disk("hybrid", 2.1)]}


def array_search(name: str, p99_ms: float) -> dict[str, Any]:
    searched = {"seconds": 20.0, "searches": 900, "posts": 800, "p50_ms": p99_ms / 4}
    searched |= {"p99_ms": p99_ms, "added": 4000, "commits": 20, "commit_ms": 30.0}
    heat = {"reads": 8, "read_bytes": 8192, "writes": 2, "written_bytes": 512}
    heat |= {"hottest_share": 0.45, "read_strips": [8, 0], "write_strips": [0, 2]}
    return {"array": name, "searches_per_s": 45.0, "searched": searched, "heat": heat}


def line(published: float | None, off: float | None, reason: str = "") -> dict[str, Any]:
    return {
        "array": "raid5",
        "profile": "SEQ1M Q1T1",
        "direction": "read",
        "unit": "MB/s",
        "published": published,
        "ours": 1000.0,
        "off": off,
        "reason": reason,
    }


ARRAYS = {
    "schema_version": 1,
    "lines": [line(990.0, 0.01), line(500.0, 1.0, "<named> reason"), line(None, None)],
    "failures": [
        {"array": "raid5", "before_iops": 9e4, "during_iops": 6e4, "rebuilt_s": None},
    ],
    "cuts": [
        {
            "protected": False,
            "reported_bytes": 1,
            "lost_bytes": 4096,
            "flushed_lost_bytes": 0,
            "files": [
                {
                    "flushed_every": None,
                    "written_bytes": 8192,
                    "flushed_bytes": 0,
                    "lost_bytes": 4096,
                    "flushed_lost_bytes": 0,
                }
            ],
        }
    ],
    "searches": [array_search("hdd-raid5-2014", 800.0), array_search("dc500m-raid5", 20.0)],
}


def test_a_gain_is_told_from_a_seeming_one() -> None:
    page = disk_pages.of_reread(REREAD)
    assert page.headlines[0] == (
        "hybrid reads 2.1 times as fast what it has read before; with the page cache it seems to"
        " be 50.0 times."
    )
    weight = next(one for one in page.sections if one.key == "weight").tables[0]
    assert weight.rows[:2] == (("hdd", "a", "1", "50.0"), ("hdd", "b", "2", "75.0"))
    text = html.render_page(page)
    for said in ("The trap", "served the reads", 'data-chart="again"', "hotset-document"):
        assert said in text


def test_published_values_failures_and_searches_are_there() -> None:
    page = disk_pages.of_arrays(ARRAYS)
    assert page.headlines == (
        "99 of 100 searches are answered within 20 ms on dc500m-raid5, within 800 ms on"
        " hdd-raid5-2014.",
        f"1 of 2 published values are met within {words.percent(0.15, 0)}.",
    )
    text = html.render_page(page)
    assert "&lt;named&gt; reason" in text
    assert "<td>45 %</td>" in text or "45" in text
    assert [one.key for one in page.sections] == [
        "published",
        "failures",
        "searches",
        "heat",
        "power-cuts",
    ]


@pytest.mark.parametrize("width", [80, 200])
def test_a_reason_is_read_without_turning_ones_head(width: int) -> None:
    """Its column was 8 characters wide on a terminal of 80: a word a line, for 20 lines."""
    reason = (
        "the model makes 2,877 IOPS; it was served faster, as its way took less than the 62 µs that"
        " were measured"
    )
    lines = [line(990.0, 0.01), {**line(600.0, 0.67, reason), "unit": "IOPS"}, line(None, None)]
    found = DiskResults.model_validate({"scenario": "arrays", "lines": lines})
    used = Console(file=io.StringIO(), width=width, no_color=True)
    terminal.summary(documents.complete().model_copy(update={"disks": found}), used)
    assert isinstance(used.file, io.StringIO)
    text = used.file.getvalue()
    at = next(one for one in text.splitlines() if "the model makes 2,877" in one)
    assert ("because" in text) == (width == 200)
    if width == 80:
        assert at.startswith("• raid5, SEQ1M Q1T1, read, IOPS: the model makes")
        assert f"raid5, SEQ1M Q1T1, read, IOPS: {reason}" in " ".join(text.split())
        assert "…" not in text
    else:
        assert reason in at


def test_what_serving_took_is_said_of_each_scenario() -> None:
    paths = [{"way": "file", "path_us": 62, "runs_us": [60.0, 62.0, 80.0]}]
    said = "Serving a model as a file takes 62 µs of a small request's time on this computer"
    for page in (
        disk_pages.of_reread({**REREAD, "paths": paths}),
        disk_pages.of_arrays({**ARRAYS, "paths": paths}),
        disk_pages.of_bench({"bench": [], "paths": paths}),
    ):
        assert [note.startswith(said) for note in page.notes].count(True) == 1
    assert not any("Serving" in note for note in disk_pages.of_arrays(ARRAYS).notes)


def test_without_a_search_it_is_not_spoken_of() -> None:
    without = copy.deepcopy(ARRAYS) | {"searches": []}
    page = disk_pages.of_arrays(without)
    assert [one.key for one in page.sections] == ["published", "failures", "power-cuts"]
    assert "search" not in " ".join((*page.headlines, *page.notes))
    assert "Heat:" not in html.render_page(page)


def test_doctests() -> None:
    assert doctest.testmod(disk_pages).failed == 0


def test_a_power_cut_is_shown_file_by_file() -> None:
    file = {"flushed_every": 16, "written_bytes": 8192, "flushed_bytes": 4096}
    lost = {"lost_bytes": 4096, "flushed_lost_bytes": 0}
    files = [{**file, **lost}, {**file, "flushed_every": None, **lost}]
    cut = {"protected": False, "reported_bytes": 4096, **lost, "files": files}
    sections = disk_pages.of_arrays({**ARRAYS, "cuts": [cut]}).sections
    (section,) = (one for one in sections if one.key == "power-cuts")
    assert section.tables[0].rows == (
        ("without", "1", "every 64 KiB", "8 KiB", "4 KiB", "0 B"),
        ("without", "2", "never", "8 KiB", "4 KiB", "0 B"),
    )
