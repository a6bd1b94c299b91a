"""Arithmetic of half-open spans (start, end) of whole numbers, whatever they count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """All that one of the spans covers: sorted, apart, none empty.

    >>> union([(8, 10), (3, 5), (5, 9), (7, 7)])
    [(3, 10)]
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def difference(spans: Iterable[Span], without: Sequence[Span]) -> list[Span]:
    """Subtract the others from the spans; both sorted and apart.

    >>> difference([(0, 9), (9, 12)], [(3, 5), (8, 10)])
    [(0, 3), (5, 8), (10, 12)]
    """
    left: list[Span] = []
    at = 0
    for first, end in spans:
        start = first
        while at < len(without) and without[at][0] < end:
            hole_start, hole_end = without[at]
            if hole_start > start:
                left.append((start, hole_start))
            start = max(start, hole_end)
            if start > end:
                break  # the hole reaches into the next span
            at += 1
        if start < end:
            left.append((start, end))
    return left


def intersection(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Intersect two lists of spans; each sorted and apart."""
    return difference(spans, difference(spans, others))
