"""Thresholds of an experiment: what they may name, what they are held against, how a run ends."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from hotset.bench.thresholds import ThresholdFormError
from hotset.core.errors import code_of
from hotset.core.paths import repository_file
from hotset.experiment import verdicts
from hotset.experiment.commands.experiment import Measured, _junit
from hotset.experiment.file.spec import SpecError, read
from hotset.experiment.journal import Journal
from hotset.reports.analysis import answer
from hotset.reports.archive import Archive
from tests import documents

DEMO = repository_file("experiments/demo.toml")


def test_the_file_and_the_command_line_name_the_same_metrics() -> None:
    wanted = read(DEMO, ("thresholds.factor=>=5", 'thresholds.p95=["<20ms", ">0"]'))
    found = wanted.limits(["queries(all-flash)<30s"])
    assert [(one.metric, one.sign, one.limit) for one in found] == [
        ("factor", ">=", 5),
        ("p95", "<", 20),
        ("p95", ">", 0),
        ("queries(all-flash)", "<", 30_000),
    ]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("thresholds.speed=>5", "there is no metric 'speed'; there are factor, factor_low"),
        ("thresholds.factor=5", "thresholds.factor"),
        ("thresholds.p95=<5%", "p95 takes us, ms or s"),
        ('thresholds."nopm(split-disks)"=>5', "thresholds"),
    ],
)
def test_what_cannot_be_judged_is_refused_when_the_file_is_read(override: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        read(DEMO, (override,))
    assert said in str(refused.value)


def test_an_arm_that_is_not_measured_has_no_metrics() -> None:
    with pytest.raises(ThresholdFormError, match=r"no metric 'nopm\(split-disks\)'"):
        read(DEMO).limits(["nopm(split-disks)>5"])
    with pytest.raises(ThresholdFormError, match="no metric 'factor'"):
        verdicts.limits({"factor": ">5"}, (), ("baseline",), verdicts.Measures("tpcc", False))


def test_every_metric_of_a_whole_run_was_measured() -> None:
    document = documents.with_queries(repeats=3)
    values = verdicts.values(document)
    known = verdicts.metrics(
        ("baseline", "accelerated", "all-flash"), verdicts.Measures("tpcc", True)
    )
    unmeasured = {name for name in known if values.get(name) is None}
    assert unmeasured == {"hit_ratio(baseline)", "hit_ratio(all-flash)"}
    arm, factor = document.arm("accelerated"), document.factor()
    assert arm is not None
    assert factor is not None
    figures = answer.figures(arm)
    assert values["nopm"] == values["nopm(accelerated)"] == figures.rate
    assert (values["factor"], values["factor_low"]) == (factor.ratio, factor.ci_low)
    assert figures.latency_ms is not None
    assert values["p99.9(accelerated)"] == figures.latency_ms.p99_9


def test_a_run_that_misses_one_ends_with_5_and_says_what_was_measured(tmp_path: Path) -> None:
    wanted = read(DEMO, ("thresholds.nopm=>1000",))
    journal = Journal.begin(Archive(tmp_path), wanted)
    whole = documents.complete(10)
    journal.change(arms=whole.arms, warmup=whole.warmup)
    journal.finish(wanted.arms, wanted.limits(["factor>=50", "queries<5s"]))
    found = Archive(tmp_path).load("last")
    assert [(one.threshold, one.met) for one in found.thresholds] == [
        ("nopm>1000", True),
        ("factor>=50", False),
        ("queries<5s", False),
    ]
    failure = Measured(found).failure()
    assert failure is not None
    assert code_of(failure) == 5
    assert str(failure).startswith("factor>=50: missed, measured ")
    assert "queries<5s: queries was not measured" in str(failure)
    file = tmp_path / "junit.xml"
    file.write_text(_junit(found), encoding="utf-8")
    root = ElementTree.parse(file).getroot()  # noqa: S314 - ours
    assert (root.get("name"), root.get("tests"), root.get("failures")) == (
        "hotset.experiment.demo",
        "3",
        "2",
    )


def test_a_run_that_meets_all_is_no_failure(tmp_path: Path) -> None:
    wanted = read(DEMO)
    journal = Journal.begin(Archive(tmp_path), wanted)
    journal.change(arms=documents.complete(10).arms)
    journal.finish(wanted.arms, wanted.limits(["nopm>=1"]))
    assert Measured(journal.document).failure() is None
    assert [one.met for one in journal.document.thresholds] == [True]
