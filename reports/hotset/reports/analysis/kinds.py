"""Kinds of transactions, arm beside arm: of SQL of one's own, each script."""

from __future__ import annotations

from statistics import fmean

from hotset.core import words

from ..model.document import Arm, RunDocument
from ..model.windows import Latency
from . import answer, units


def title(document: RunDocument) -> str:
    """Heads the table."""
    return f"By {units.find_unit(document).kind}, means of the repeats; p95 factor: baseline / arm"


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    kind = units.find_unit(document).kind
    return (kind, "arm", "per s", "p50 ms", "p95 ms", "p99 ms", "p95 factor", "failed")


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row for each kind and arm; empty where nothing was measured."""
    found = [arm for name in answer.ARM_ORDER if (arm := document.arm(name)) is not None]
    names = dict.fromkeys(
        name for arm in found for repeat in arm.repeats for name in repeat.transactions
    )
    base = document.arm("baseline")
    return [_row(name, arm, base) for name in names for arm in found]


def _row(kind: str, arm: Arm, base: Arm | None) -> tuple[str, ...]:
    latency = _latency(arm, kind)
    before = _latency(base, kind) if base is not None and base.name != arm.name else None
    slow, quick = (one.p95 if one else None for one in (before, latency))
    failed = sum(
        count
        for repeat in arm.repeats
        if kind in repeat.transactions
        for count in repeat.transactions[kind].failed.values()
    )
    ratio = words.factor(slow / quick) if slow is not None and quick else ""
    return (
        kind.replace("_", " "),
        arm.name,
        words.count(_per_second(arm, kind)),
        *words.latencies(latency),
        ratio or words.ABSENT,
        words.total(failed) if failed else "0",
    )


def _per_second(arm: Arm, kind: str) -> float:
    return fmean(
        repeat.transactions[kind].committed / repeat.duration_s
        if kind in repeat.transactions
        else 0.0
        for repeat in arm.repeats
    )


def _latency(arm: Arm, kind: str) -> Latency | None:
    """Over the repeats."""
    found = (repeat.transactions.get(kind) for repeat in arm.repeats)
    return answer.mean_latency(one.latency_ms if one else None for one in found)
