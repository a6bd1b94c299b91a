"""Predictions from an earlier run, beside what was measured."""

from __future__ import annotations

from hotset.core import words

from ..model.document import PredictedArm, Predictions, RunDocument

COLUMNS = (
    "arm",
    "users",
    "hit ratio",
    "NOPM predicted",
    "from",
    "to",
    "measured",
    "error",
    "within",
)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row per arm and number of users; empty where nothing was predicted."""
    found = document.predictions
    return [row(arm) for arm in found.arms] if found else []


def row(one: PredictedArm) -> tuple[str, ...]:
    """One arm, for people."""
    return (
        one.arm,
        words.count(one.users),
        words.percent(one.hit_ratio),
        words.count(one.predicted_nopm),
        words.count(one.predicted_nopm_low),
        words.count(one.predicted_nopm_high),
        words.count(one.measured_nopm),
        words.deviation(one.error),
        "yes" if one.in_range else "no",
    )


def sentence(found: Predictions) -> str:
    """How good the prediction was, and what it was made of."""
    within = sum(arm.in_range for arm in found.arms)
    return (
        f"Predicted from run {found.learned_from} at the hit ratios that were measured: off by"
        f" {words.percent(found.mean_error, 0)} on average; {within} of {len(found.arms)} measured"
        " means lie within the range that was predicted."
    )
