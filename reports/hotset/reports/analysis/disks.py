"""Sentences on the scenarios on modelled disks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotset.core import words

from ..model.disks import BenchLine

Document = Mapping[str, Any]
NEAR = 0.15
"""A published value is met within this."""
NOTHING = "Nothing was measured."


def headlines(document: Document) -> list[str]:
    """Describe the result of either scenario."""
    sentences = _rereads(document) if "disks" in document else []
    sentences += _arrays(document) if "lines" in document else []
    return sentences + _bench_lines(document)


def paths(document: Document) -> list[str]:
    """Describe the time that serving the models took, in a result of any scenario: nothing for a
    real disk, or for a run from before that was measured."""
    ways = {"file": "a model as a file", "loop": "a model through a loop device"}
    return [
        f"Serving {ways[path['way']]} takes {path['path_us']:,} µs of a small request's time on"
        " this computer, as measured at the start; the device is so much faster than its model."
        for path in document.get("paths", ())
    ]


def _bench_lines(document: Document) -> list[str]:
    """The fastest and the most demanding line of a benchmark, of those that were measured."""
    figures = []
    lines = [BenchLine.model_validate(line) for line in document.get("bench", ())]
    for line in lines:
        if line.name.startswith("seq1m-q8t1"):
            figures.append(f"{line.profile} {line.direction} {words.rate(line.median.mb_per_s)}")
        if line.name.startswith("rnd4k-q1t1"):
            figures.append(f"{line.profile} {line.direction} {words.count(line.median.iops)} IOPS")
    return [f"{', '.join(figures)}."] if figures else []


def _rereads(document: Document) -> list[str]:
    return [
        f"{disk['disk']} reads {disk['gain']:.1f} times as fast what it has read before; with the"
        f" page cache it seems to be {disk['seeming_gain']:.1f} times."
        for disk in sorted(document["disks"], key=lambda disk: -disk["gain"])
    ]


def _arrays(document: Document) -> list[str]:
    sentences = []
    searches = document["searches"]
    if len(searches) > 1:
        slow, fast = searches[0], min(searches[1:], key=lambda search: search["searched"]["p99_ms"])
        sentences.append(
            f"99 of 100 searches are answered within {fast['searched']['p99_ms']:,.0f} ms on"
            f" {fast['array']}, within {slow['searched']['p99_ms']:,.0f} ms on {slow['array']}."
        )
    if known := [line for line in document["lines"] if line["off"] is not None]:
        near = sum(abs(line["off"]) <= NEAR for line in known)
        within = words.percent(NEAR, 0)
        sentences.append(f"{near} of {len(known)} published values are met within {within}.")
    return sentences
