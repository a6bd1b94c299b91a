"""Cache policies that were measured side by side, each as an arm of its own."""

from __future__ import annotations

from ...model import words
from ...model.base import ArmName
from ...model.document import POLICY_ARMS, Arm, RunDocument
from .. import answer, units
from ..answer import ArmFigures

TITLE = "Cache policies side by side"
_KERNELS: ArmName = "smq"
"""That of the kernel's dm-cache, with which the others are compared."""


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    unit = units.of(document).short
    compared = tuple(f"of {name}" for name in _references(document))
    return ("policy", unit, "hit ratio", "p95 ms", *compared)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """The fastest first; ratios with their 95 % intervals. Empty where there was none."""
    references = _references(document)
    return [
        (
            one.name,
            words.count(one.rate),
            words.percent(one.hit_ratio),
            words.latencies(one.latency_ms)[1],
            *(_ratio(document.arm(one.name), arm) for arm in references.values()),
        )
        for one in _ranked(document)
    ]


def headline(document: RunDocument) -> str:
    """The fastest policy in a sentence; empty where there were not several."""
    ranked = _ranked(document)
    if len(ranked) < 2:
        return ""
    best, unit = ranked[0], units.of(document).short
    others = words.listed([f"{one.name} {words.count(one.rate)}" for one in ranked[1:]])
    return (
        f"Of {words.count(len(ranked))} cache policies {best.name} did most:"
        f" {words.count(best.rate)} {unit}; {others}."
    )


def _ranked(document: RunDocument) -> list[ArmFigures]:
    measured = [arm for name in POLICY_ARMS if (arm := document.arm(name)) is not None]
    return sorted(map(answer.figures, measured), key=lambda one: -one.rate)


def _references(document: RunDocument) -> dict[ArmName, Arm]:
    """What the policies are compared with, where it was measured."""
    names: tuple[ArmName, ...] = ("baseline", _KERNELS)
    return {name: arm for name in names if (arm := document.arm(name)) is not None}


def _ratio(arm: Arm | None, reference: Arm) -> str:
    from .. import stats

    if arm is None or arm.name == reference.name:
        return words.ABSENT
    try:
        ratio, low, high = stats.ratio_with_interval(arm, reference)
    except stats.NoFactor:
        return words.ABSENT
    return f"{words.factor(ratio)} ({words.interval(low, high)})"
