"""Hit ratios of the accelerated arm's tables, where its tier counts by region."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from hotset.core import words

from ...model.document import RunDocument
from ...model.windows import Part

COLUMNS = ("table", "reads", "writes", "hit ratio", "reads hit", "writes hit")
NOTE = (
    "Hits / (hits + misses), counted by regions of the disk over the whole TPC-C run, ramp-up"
    " included; regions of several tables are one line."
)


def summarize_parts(document: RunDocument) -> list[Part]:
    """The busiest first, what is no table last; requests summed over the repeats, ratios weighted
    by them."""
    arm = document.arm("accelerated")
    every = [part for repeat in arm.repeats for part in repeat.parts] if arm else []
    by_name: dict[str, list[Part]] = {}
    for part in every:
        by_name.setdefault(part.name, []).append(part)
    parts = [_merge(name, some) for name, some in by_name.items()]
    return sorted(parts, key=_place)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """The lines under `COLUMNS`."""
    return [
        (
            part.name,
            f"{part.reads:,}",
            f"{part.writes:,}",
            words.percent(part.hit_ratio),
            words.percent(part.read_hit_ratio),
            words.percent(part.write_hit_ratio),
        )
        for part in summarize_parts(document)
    ]


def _place(part: Part) -> tuple[bool, int, str]:
    return part.name.startswith("("), -part.reads - part.writes, part.name


def _merge(name: str, some: list[Part]) -> Part:
    return Part(
        name=name,
        reads=sum(part.reads for part in some),
        writes=sum(part.writes for part in some),
        hit_ratio=_mean((part.hit_ratio, part.reads + part.writes) for part in some),
        read_hit_ratio=_mean((part.read_hit_ratio, part.reads) for part in some),
        write_hit_ratio=_mean((part.write_hit_ratio, part.writes) for part in some),
    )


def _mean(weighted: Iterable[tuple[float | None, int]]) -> float | None:
    known = [(ratio, weight) for ratio, weight in weighted if ratio is not None and weight]
    total = fsum(weight for _, weight in known)
    return min(1.0, fsum(ratio * weight for ratio, weight in known) / total) if total else None
