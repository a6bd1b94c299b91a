"""Metrics of a disk benchmark that thresholds can refer to."""

from __future__ import annotations

from collections.abc import Sequence

from ..thresholds import Threshold, Values, read
from .disk_bench import PROFILES, Change, Direction, DiskBench

_FIGURES = ("mb_per_s", "iops", "latency")
_FACTOR = "factor"
"""Times as fast as the result that it is compared with."""


def limits(
    texts: Sequence[str], directions: Sequence[Direction], compared: bool
) -> list[Threshold]:
    """
    :param compared: True if there is a result to compare with.
    :raises ThresholdFormError: one cannot be read or names what is not measured.
    """
    figures = (*_FIGURES, _FACTOR) if compared else _FIGURES
    lines = [_line(profile.name, direction) for direction in directions for profile in PROFILES]
    return read(texts, [f"{figure}({line})" for line in lines for figure in figures])


def values(bench: DiskBench, changes: Sequence[Change]) -> Values:
    """By metric: medians, latencies in ms; a factor of each line that both results have."""
    measured: dict[str, float | None] = {}
    for cell in bench.cells:
        line, median = _line(cell.profile, cell.direction), cell.median
        figures = (median.mb_per_s, median.iops, median.latency_us / 1e3)
        measured |= {
            f"{name}({line})": value for name, value in zip(_FIGURES, figures, strict=True)
        }
        measured[f"{_FACTOR}({line})"] = None
    for change in changes:
        measured[f"{_FACTOR}({_line(change.profile, change.direction)})"] = change.factor
    return measured


def _line(profile: str, direction: Direction) -> str:
    """
    >>> _line("SEQ1M Q8T1", "read")
    'seq1m-q8t1-read'
    """
    return f"{profile.lower().replace(' ', '-')}-{direction}"
