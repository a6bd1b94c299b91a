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
    predictions = document.predictions
    return [row(arm) for arm in predictions.arms] if predictions else []


def row(arm: PredictedArm) -> tuple[str, ...]:
    """One arm, for people."""
    return (
        arm.arm,
        words.count(arm.users),
        words.percent(arm.hit_ratio),
        words.count(arm.predicted_nopm),
        words.count(arm.predicted_nopm_low),
        words.count(arm.predicted_nopm_high),
        words.count(arm.measured_nopm),
        words.deviation(arm.error),
        "yes" if arm.in_range else "no",
    )


def sentence(predictions: Predictions) -> str:
    """How good the prediction was, and what it was made of."""
    within = sum(arm.in_range for arm in predictions.arms)
    return (
        f"Predicted from run {predictions.learned_from} at the hit ratios that were measured: off"
        f" by {words.percent(predictions.mean_error, 0)} on average; {within} of"
        f" {len(predictions.arms)} measured means lie within the range that was predicted."
    )
