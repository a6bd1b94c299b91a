"""Metrics of a TPC-C run that thresholds can name, and TPC-C's own limits."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.reports.model.windows import RESPONSE_LIMITS_S, Repeat
from hotset.tpcc.transactions import KINDS

from . import window
from .thresholds import Threshold, parse, require_known

TPCC_LIMITS = tuple(f"p90({kind})<={limit_s}s" for kind, limit_s in RESPONSE_LIMITS_S.items())
METRICS = ("nopm", *window.metrics(KINDS))


def values(result: Repeat) -> dict[str, float | None]:
    """By metric."""
    return {"nopm": result.nopm, **window.values(result)}


def limits(texts: Sequence[str]) -> list[Threshold]:
    """Thresholds of a run; ``tpc-c`` stands for TPC-C's own.

    :raises ThresholdFormError: one cannot be read or names no metric of a TPC-C run.
    """
    each = [part for text in texts for part in (TPCC_LIMITS if text == "tpc-c" else (text,))]
    parsed = [parse(text) for text in each]
    require_known(parsed, METRICS)
    return parsed
