"""Cache policies that were measured side by side, each as an arm of its own."""

from __future__ import annotations

from hotset.core import words

from ...model.base import ArmName
from ...model.document import POLICY_ARMS, Arm, RunDocument
from .. import answer, units
from ..answer import ArmFigures
from . import curve

TITLE = "Cache policies side by side"
_KERNELS: ArmName = "smq"
"""That of the kernel's dm-cache, with which the others are compared."""


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    unit = units.find_unit(document).short
    compared = tuple(f"of {name}" for name in _references(document))
    return ("policy", unit, "hit ratio", "p95 ms", *compared)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """The fastest first; ratios with their 95 % intervals. Empty where there was none."""
    references = _references(document)
    return [
        (
            figures.name,
            words.count(figures.rate),
            words.percent(figures.hit_ratio),
            words.latencies(figures.latency_ms)[1],
            *(curve.show_ratio(document.arm(figures.name), arm) for arm in references.values()),
        )
        for figures in _rank(document)
    ]


def headline(document: RunDocument) -> str:
    """The fastest policy in a sentence, if one is; empty where there were not several."""
    ranked = _rank(document)
    if len(ranked) < 2:
        return ""
    unit = units.find_unit(document).short
    rates = words.enumerate_words(
        [f"{figures.name} {words.count(figures.rate)}" for figures in ranked]
    )
    best, second = (document.arm(figures.name) for figures in ranked[:2])
    if best is None or second is None:
        return ""
    ratio, low, high = _interval(best, second)
    many = words.count(len(ranked))
    verdict = words.verdict(ratio, low, high)
    if verdict == "not known":
        return f"Of {many} cache policies it is not known which is the fastest: {rates} {unit}."
    if verdict == "not significant":
        return f"Of {many} cache policies none was clearly the fastest: {rates} {unit}."
    return (
        f"Of {many} cache policies {best.name} was the fastest, {words.factor(ratio)} as fast as"
        f" {second.name} (95 % interval {words.interval(low, high)}): {rates} {unit}."
    )


def _interval(best: Arm, second: Arm) -> tuple[float, float, float]:
    """The ratio, from, to; all the same where nothing is known of how sure it is."""
    from .. import stats

    try:
        return stats.ratio_with_interval(best, second)
    except stats.NoFactor:
        return 1.0, 1.0, 1.0


def _rank(document: RunDocument) -> list[ArmFigures]:
    measured = [arm for name in POLICY_ARMS if (arm := document.arm(name)) is not None]
    return sorted(map(answer.figures, measured), key=lambda figures: -figures.rate)


def _references(document: RunDocument) -> dict[ArmName, Arm]:
    """Return the arms that policies are compared with, where they were measured."""
    names: tuple[ArmName, ...] = ("baseline", _KERNELS)
    return {name: arm for name in names if (arm := document.arm(name)) is not None}
