"""Thresholds: what a run must reach, as ``p95(new_order)<20ms`` or ``nopm>=50000``.

A missed one is exit code 5. Times are given in us, ms (by default) or s, shares as 0.95 or 95%.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from hotset.core.errors import RequestError, ThresholdError
from hotset.reports.model.windows import Verdict

Values = Mapping[str, float | None]
"""Measured values by metric; times in ms, shares from 0 to 1. None: known, but not measured."""

_COMPARE = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_FACTORS = {"": 1.0, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "%": 0.01, "/s": 1.0}
WHOLE = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9][0-9_]*)"
"""A whole number; commas are between thousands and nowhere else: half of the world writes decimals
with them."""
_FORM = re.compile(
    r"\s*(?P<metric>[a-z_0-9.]+\s*(\(\s*[a-z_0-9-]+\s*\))?)\s*(?P<sign><=|>=|==|<|>)\s*"
    rf"(?P<number>{WHOLE}(\.[0-9]+)?(e[+-]?[0-9]+)?)\s*(?P<unit>us|µs|ms|s|%|/s)?\s*",
    re.IGNORECASE,
)
_TIME = re.compile(r"(p[0-9.]+|mean|max|latency|queries|query|geomean|warmup)(\(.*\))?")


class ThresholdFormError(RequestError):
    """A threshold that cannot be read, or names a metric that there is not."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(f"threshold {text!r}: {problem}", field="threshold")


@dataclass(frozen=True, slots=True)
class Threshold:
    """One of them; ``limit`` is in the metric's own unit."""

    text: str
    metric: str
    sign: str
    limit: float

    def holds(self, value: float) -> bool:
        return bool(_COMPARE[self.sign](value, self.limit))


def parse(text: str) -> Threshold:
    """
    >>> parse("p95(new_order) < 20ms")
    Threshold(text='p95(new_order) < 20ms', metric='p95(new_order)', sign='<', limit=20.0)
    >>> parse("p99.9<1s").limit, parse("hit_ratio>=50%").limit, parse("nopm>=50,000").limit
    (1000.0, 0.5, 50000.0)

    :raises ThresholdFormError: it is not of that form, or its unit is not the metric's.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise ThresholdFormError(
            text,
            "write METRIC, a comparison and a number, such as 'nopm>=50000' or"
            " 'p95(new_order)<20ms'",
        )
    metric = re.sub(r"\s", "", match["metric"]).lower()
    unit = (match["unit"] or "").lower()
    is_time = _TIME.fullmatch(metric) is not None
    if is_time != (unit in ("us", "µs", "ms", "s")) and unit:
        wanted = "us, ms or s" if is_time else "no unit of time"
        raise ThresholdFormError(text, f"{metric} takes {wanted}, not {unit!r}")
    number = float(re.sub("[_,]", "", match["number"])) * _FACTORS[unit]
    return Threshold(text, metric, match["sign"], number)


def require_known(thresholds: Iterable[Threshold], metrics: Iterable[str]) -> None:
    """
    :raises ThresholdFormError: one names a metric that there is not; those there are, are listed.
    """
    known = list(metrics)
    for threshold in thresholds:
        if threshold.metric not in known:
            raise ThresholdFormError(
                threshold.text,
                f"there is no metric {threshold.metric!r}; there are {', '.join(known)}",
            )


def judge(thresholds: Iterable[Threshold], values: Values) -> list[Verdict]:
    """A verdict on each.

    :raises ThresholdFormError: see :func:`require_known`.
    """
    limits = list(thresholds)
    require_known(limits, values)
    return [verdict(limit, values[limit.metric]) for limit in limits]


def verdict(threshold: Threshold, value: float | None) -> Verdict:
    """Judge a value by a threshold; None: nothing was measured, which counts as missed."""
    met = value is not None and threshold.holds(value)
    if value is None:
        text = f"{threshold.metric} was not measured"
    else:
        text = f"{'met' if met else 'missed'}, measured {format_value(threshold, value)}"
    return Verdict(
        threshold=threshold.text, measured=value, met=met, text=f"{threshold.text}: {text}"
    )


def require(verdicts: Sequence[Verdict]) -> None:
    """
    :raises ThresholdError: with each that was missed, and what was measured.
    """
    if (error := collect_missed(verdicts)) is not None:
        raise error


def collect_missed(verdicts: Sequence[Verdict]) -> ThresholdError | None:
    """Return an error for the missed thresholds, with what was measured; None if all were met."""
    reasons = [verdict.text for verdict in verdicts if not verdict.met]
    return ThresholdError("; ".join(reasons)) if reasons else None


def format_value(threshold: Threshold, value: float) -> str:
    """A value in the metric's unit.

    >>> format_value(parse("p95<1s"), 61.234), format_value(parse("nopm>5"), 51234.4)
    ('61.23 ms', '51,234')
    >>> format_value(parse("queries<1s"), 61234)
    '61.23 s'
    """
    if _TIME.fullmatch(threshold.metric):
        return f"{value:,.2f} ms" if value < 10_000 else f"{value / 1000:,.2f} s"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


@dataclass(frozen=True, slots=True)
class Case:
    """A threshold as CI servers show it.

    :ivar about: the subject: the class of the case.
    :ivar text: the verdict in words.
    """

    about: str
    threshold: str
    text: str
    met: bool

    @classmethod
    def from_verdict(cls, about: str, verdict: Verdict) -> Case:
        return cls(about, verdict.threshold, verdict.text, verdict.met)


def junit(suite: str, cases: Sequence[Case], seconds: float) -> str:
    """Thresholds as JUnit XML, a test case each, as CI servers read it."""
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(cases)),
        failures=str(sum(not case.met for case in cases)),
        errors="0",
        time=f"{seconds:.3f}",
    )
    for judged in cases:
        case = ElementTree.SubElement(
            root, "testcase", classname=judged.about, name=judged.threshold
        )
        if not judged.met:
            failure = ElementTree.SubElement(case, "failure", message=judged.text)
            failure.text = judged.text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


class ThresholdMissedError(ThresholdError):
    """A figure did not reach what the experiment asked for; the message names both."""
