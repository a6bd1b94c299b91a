"""Thresholds: what can be written, what is refused, what is said."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.bench import thresholds, tpcc_metrics
from hotset.bench.thresholds import Case, ThresholdFormError, judge, parse, require
from hotset.core.errors import ThresholdError


@given(
    st.sampled_from(tpcc_metrics.METRICS),
    st.sampled_from(["<", "<=", ">", ">=", "=="]),
    st.floats(0, 1e9, allow_nan=False),
    st.floats(0, 1e9, allow_nan=False),
)
def test_a_threshold_means_what_it_says(metric: str, sign: str, limit: float, value: float) -> None:
    (verdict,) = judge([parse(f"{metric} {sign} {limit:.6f}")], {metric: value})
    limit = float(f"{limit:.6f}")
    expected = {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "==": value == limit,
    }
    assert verdict.met == expected[sign]


@given(st.text(max_size=30))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        found = parse(text)
    except ThresholdFormError:
        return
    assert found.limit >= 0
    assert found.text == text


@pytest.mark.parametrize(
    "text", ["", "nopm", "nopm>", "nopm>=x", "nopm=>5", "nopm>=50ms", "p95<5%", "p95<-1", "a b<1"]
)
def test_what_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(ThresholdFormError, match="threshold"):
        parse(text)


def test_an_unknown_metric_lists_those_there_are() -> None:
    with pytest.raises(ThresholdFormError, match=r"no metric 'speed'; there are nopm, tpm"):
        tpcc_metrics.limits(["speed>1"])
    assert [one.limit for one in tpcc_metrics.limits(["tpc-c"])] == [5e3, 5e3, 5e3, 5e3, 20e3]


def test_a_metric_can_be_spelt_as_the_tables_spell_it() -> None:
    """The tables have `new-order`, and `p95(new-order)` was refused."""
    (limit,) = tpcc_metrics.limits(["p95(new-order)<20ms"])
    assert limit.metric == "p95(new_order)"
    (verdict,) = judge([limit], {"p95(new_order)": 19.0})
    assert verdict.met


def test_what_was_missed_or_not_measured_is_named_with_its_value() -> None:
    verdicts = judge(
        [parse("nopm>=50000"), parse("p95<20ms"), parse("late<1")],
        {"nopm": 51000.0, "p95": 31.5, "late": None},
    )
    with pytest.raises(ThresholdError) as missed:
        require(verdicts)
    assert str(missed.value) == (
        "p95<20ms: missed, measured 31.50 ms; late<1: late was not measured"
    )
    require(verdicts[:1])


def test_junit_has_a_case_each() -> None:
    verdicts = judge([parse("nopm>=5"), parse("p95<20ms")], {"nopm": 6.0, "p95": 31.5})
    text = thresholds.junit("run", [Case.from_verdict("8-users", one) for one in verdicts], 12.5)
    root = ElementTree.fromstring(text)  # noqa: S314 - ours
    assert {case.get("classname") for case in root} == {"8-users"}
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    assert [case.get("name") for case in root] == ["nopm>=5", "p95<20ms"]
    failure = root.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "p95<20ms: missed, measured 31.50 ms"
