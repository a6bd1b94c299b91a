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
    said = _rereads(document) if "disks" in document else []
    said += _arrays(document) if "lines" in document else []
    return said + _bench_lines(document)


def paths(document: Document) -> list[str]:
    """Describe the time that serving the models took, in a result of any scenario: nothing for a
    real disk, or for a run from before that was measured."""
    ways = {"file": "a model as a file", "loop": "a model through a loop device"}
    return [
        f"Serving {ways[one['way']]} takes {one['path_us']:,} µs of a small request's time on this"
        " computer, as measured at the start; the device is so much faster than its model."
        for one in document.get("paths", ())
    ]


def _bench_lines(document: Document) -> list[str]:
    """The fastest and the most demanding line of a benchmark, of those that were measured."""
    said = []
    lines = [BenchLine.model_validate(one) for one in document.get("bench", ())]
    for line in lines:
        if line.name.startswith("seq1m-q8t1"):
            said.append(f"{line.profile} {line.direction} {words.rate(line.median.mb_per_s)}")
        if line.name.startswith("rnd4k-q1t1"):
            said.append(f"{line.profile} {line.direction} {words.count(line.median.iops)} IOPS")
    return [f"{', '.join(said)}."] if said else []


def _rereads(document: Document) -> list[str]:
    return [
        f"{one['disk']} reads {one['gain']:.1f} times as fast what it has read before; with the"
        f" page cache it seems to be {one['seeming_gain']:.1f} times."
        for one in sorted(document["disks"], key=lambda one: -one["gain"])
    ]


def _arrays(document: Document) -> list[str]:
    said = []
    searches = document["searches"]
    if len(searches) > 1:
        slow, fast = searches[0], min(searches[1:], key=lambda one: one["searched"]["p99_ms"])
        said.append(
            f"99 of 100 searches are answered within {fast['searched']['p99_ms']:,.0f} ms on"
            f" {fast['array']}, within {slow['searched']['p99_ms']:,.0f} ms on {slow['array']}."
        )
    if known := [one for one in document["lines"] if one["off"] is not None]:
        near = sum(abs(one["off"]) <= NEAR for one in known)
        within = words.percent(NEAR, 0)
        said.append(f"{near} of {len(known)} published values are met within {within}.")
    return said
