"""The scenarios on modelled disks as pages: what they say, their tables, and that they draw."""

from __future__ import annotations

import copy
import doctest
from typing import Any

from hotset.reports.model import words
from hotset.reports.render import disk_pages, html


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
    searched = {"seconds": 20.0, "searches": 900, "found": 800, "p50_ms": p99_ms / 4}
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
    "cuts": [{"protected": False, "said_bytes": 1, "lost_bytes": 4096, "flushed_lost_bytes": 0}],
    "searches": [array_search("hdd-raid5-2014", 800.0), array_search("dc500m-raid5", 20.0)],
}


def test_a_gain_is_told_from_a_seeming_one() -> None:
    page = disk_pages.of_reread(REREAD)
    assert page.headlines[0] == (
        "hybrid reads 2.1 times as fast what it has read before; with the page cache it seems to"
        " be 50.0 times."
    )
    weight = next(one for one in page.figures if one.key == "weight").table
    assert weight.rows[:2] == (("hdd", "a", "1", "50.0"), ("hdd", "b", "2", "75.0"))
    text = html.render_disks(page)
    for said in ("The trap", "served the reads", 'data-chart="again"', "hotset-document"):
        assert said in text


def test_published_values_failures_and_searches_are_there() -> None:
    page = disk_pages.of_arrays(ARRAYS)
    assert page.headlines == (
        "99 of 100 searches are answered within 20 ms on dc500m-raid5, within 800 ms on"
        " hdd-raid5-2014.",
        f"1 of 2 published values are met within {words.percent(0.15, 0)}.",
    )
    text = html.render_disks(page)
    assert "&lt;named&gt; reason" in text
    assert "<td>45 %</td>" in text or "45" in text
    assert [one.key for one in page.figures] == ["published", "failures", "searches", "heat"]


def test_without_a_search_it_is_not_spoken_of() -> None:
    without = copy.deepcopy(ARRAYS) | {"searches": []}
    page = disk_pages.of_arrays(without)
    assert [one.key for one in page.figures] == ["published", "failures"]
    assert "search" not in " ".join((*page.headlines, *page.notes))
    assert "Heat:" not in html.render_disks(page)


def test_doctests() -> None:
    assert doctest.testmod(disk_pages).failed == 0
