"""Results of the scenarios on modelled disks as rows of raw values, for CSV and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotset.core import words
from hotset.core.words import csv_text

from ..model.disks import BenchLine

Document = Mapping[str, Any]
Rows = tuple[Sequence[str], list[tuple[object, ...]]]


def rereads(document: Document) -> Rows:
    """Files that are read again, a line a disk."""
    columns = ("disk", "first read", "read again", "gain", "from page cache", "seeming gain")
    keys = ("first_mb_per_s", "again_mb_per_s", "gain", "page_cache_mb_per_s", "seeming_gain")
    return columns, [(disk["disk"], *(disk[key] for key in keys)) for disk in document["disks"]]


def lines(document: Document) -> Rows:
    """Published values of arrays and ours."""
    columns = ("array", "profile", "direction", "unit", "published", "ours", "off", "because")
    keys = ("array", "profile", "direction", "unit", "published", "ours")
    rows: list[tuple[object, ...]] = []
    for line in document["lines"]:
        off = None if line["off"] is None else words.deviation(line["off"], 0)
        rows.append((*(line[key] for key in keys), off, line["reason"]))
    return columns, rows


def searches(document: Document) -> Rows:
    """A full-text search, a line an array."""
    columns = ("array", "searches/s", "p50 ms", "p99 ms", "commit ms", "reads", "writes")
    rows: list[tuple[object, ...]] = [
        (
            search["array"],
            search["searches_per_s"],
            *(search["searched"][key] for key in ("p50_ms", "p99_ms", "commit_ms")),
            *(search["heat"][key] for key in ("reads", "writes")),
            words.percent(search["heat"]["hottest_share"], 0),
        )
        for search in document["searches"]
    ]
    return (*columns, "to the hottest tenth"), rows


def bench_rows(document: Document) -> Rows:
    """A benchmark of a disk: medians, a line a profile and direction."""
    lines = [BenchLine.model_validate(line) for line in document["bench"]]
    columns = ("profile", "direction", "runs", "mb_per_s", "iops", "latency_us")
    return columns, [
        (
            line.profile,
            line.direction,
            len(line.runs),
            line.median.mb_per_s,
            line.median.iops,
            line.median.latency_us,
        )
        for line in lines
    ]


def csv(document: Document) -> str:
    """All tables that have a line; of a result of either scenario."""
    tables = (
        make(document)
        for key, make in (
            ("disks", rereads),
            ("lines", lines),
            ("searches", searches),
            ("bench", bench_rows),
        )
        if document.get(key)
    )
    return "\n".join(csv_text(*table) for table in tables)
