"""Predictions: what the network makes of known ends, what a run teaches, what is refused."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from hotset.core.errors import RequestError
from hotset.core.record import extend
from hotset.reports.archive import Archive
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Repeat
from hotset.whatif.commands import models
from hotset.whatif.demands import Demands, SetUp, solve_network
from hotset.whatif.prediction import PredictedRun, Prediction, iops_from_text, predict

from .published import CARD, FOLDER, NAS, published


@pytest.fixture(scope="module")
def run() -> RunDocument:
    """The published demo."""
    return published("20261121-220932-demo")


def test_between_two_ends_the_tighter_bound_holds() -> None:
    """Two ends are put in: a disk that holds 100 users to 49.1 with nothing cached, four cores that
    hold them to 631.5 with everything. They have the ratio of the test of 2014 (batch requests a
    minute, in thousands), which published no point between them, nor any IOPS: what is tested is
    the network, against the asymptotic bound min(disk / (1 - h), CPU)."""
    before, after = 49.127, 631.513
    demands = Demands(4 / after, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    setup = SetUp(100, 4, (before,))
    for ratio in (0, 0.5, 0.8, 0.9, 0.92, 0.93, 0.94, 1):
        bound = after if ratio == 1 else min(before / (1 - ratio), after)
        assert solve_network(demands, setup, ratio).throughput == pytest.approx(bound, rel=0.035), (
            ratio
        )


def test_what_a_run_teaches(run: RunDocument) -> None:
    found = predict(run, NAS, [0, 0.9, 1], flash=CARD)
    assert found.learned_users == 16
    assert found.learned_from == ("baseline", "accelerated")
    # Fitted to the baseline's throughput alone, and yet what the cached device's counters say.
    assert found.requests_per_transaction == pytest.approx(24.28, abs=0.01)
    assert found.demands.origin_reads == pytest.approx(found.requests_per_transaction, rel=0.03)
    baseline, middle, best = found.lines
    seen = [one.nopm for one in run.arm("baseline").repeats]  # type: ignore[union-attr]
    assert baseline.nopm_low <= sum(seen) / len(seen) <= baseline.nopm_high
    assert baseline.factor == 1
    assert baseline.nopm < middle.nopm < best.nopm
    assert baseline.most_time == "slow storage"
    assert best.most_time == "CPU"
    assert 0 < best.origin_share < 0.5, "written back in the background"
    assert 0.9 < found.enough_hit_ratio < 1
    # All-flash taught nothing; that cache cost hardly anything.
    assert found.ceiling is not None
    assert found.ceiling.predicted_nopm == pytest.approx(found.ceiling.measured_nopm, rel=0.02)


def test_what_the_run_measured_is_shown_as_it_measured_it(run: RunDocument) -> None:
    """The first line came from the network that was fitted to it: 532 NOPM for 510 measured, and
    another factor than the run's report."""
    found = predict(run, NAS, [0, 0.9, 1], flash=CARD)
    first, middle, last = found.lines
    for line, name in ((first, "baseline"), (last, "accelerated")):
        arm = run.arm(name)  # type: ignore[arg-type]
        assert arm is not None
        seen = [one.nopm for one in arm.repeats if one.nopm is not None]
        assert line.nopm == pytest.approx(sum(seen) / len(seen))
        assert (line.nopm_low, line.nopm_high) == (min(seen), max(seen))
        assert line.unlike == ()
    assert last.factor == pytest.approx(last.nopm / first.nopm)
    assert middle.unlike == ("hit ratio",)
    shown = _shown(found, run)
    assert [words.rsplit(maxsplit=1)[1] for words in shown.splitlines()[1:4]] == [
        "measured",
        "predicted",
        "measured",
    ]


def test_a_cache_that_all_flash_was_no_faster_than_has_no_cost(run: RunDocument) -> None:
    """+190.9 % was told to be the cost of the cache."""
    found = predict(run, NAS, [0, 1], flash=CARD)
    assert found.ceiling is not None
    for slower, said in ((0.5, "does not show"), (2.0, "the cost of the cache itself")):
        ceiling = replace(found.ceiling, measured_nopm=found.ceiling.predicted_nopm * slower)
        assert said in _shown(replace(found, ceiling=ceiling), run)


def _shown(found: Prediction, run: RunDocument) -> str:
    console = Console(file=StringIO(), width=1000)
    extend(PredictedRun, found, run=run.run, storage="nas-2014").show(console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.usefixtures("own_folders")
def test_the_page_shows_what_the_command_shows() -> None:
    """Of a run that anybody can look up."""
    name = "20261123-164110-demo"
    kept = Archive.default().path(name)
    kept.mkdir(parents=True)
    (kept / "result.json").write_text(published(name).model_dump_json())
    found = models.predict_run(name, models.SetUp(), models.DEFAULT)
    console = Console(file=StringIO(), width=1000)
    found.show(console)
    assert isinstance(console.file, StringIO)
    table = console.file.getvalue().partition("\n\n")[0]
    assert f"```\n{table}\n```" in (FOLDER.parents[1] / "docs/what-if.md").read_text()


def test_a_cache_that_misses_teaches_the_same(run: RunDocument) -> None:
    """The arm with the cache, as the network says that it would be at a hit ratio at which the slow
    storage does not hold it back yet."""
    taught = predict(run, NAS, [0.995, 1], flash=CARD).lines
    accelerated = run.arm("accelerated")
    assert accelerated is not None
    slower = taught[0].nopm / taught[1].nopm

    def missing(one: Repeat) -> Repeat:
        return one.model_copy(
            update={
                "hit_ratio": 0.995,
                "nopm": one.nopm * slower,
                "tpm": one.tpm * slower,
                "server_cpu": one.server_cpu * slower,
            }
        )

    arm = accelerated.model_copy(update={"repeats": tuple(map(missing, accelerated.repeats))})
    others = tuple(one for one in run.arms if one.name == "baseline")
    again = predict(run.model_copy(update={"arms": (*others, arm)}), NAS, [0.995, 1], flash=CARD)
    assert again.ceiling is None
    for line, before in zip(again.lines, taught, strict=True):
        assert line.nopm == pytest.approx(before.nopm, rel=0.05)


def test_other_users_cores_and_storage(run: RunDocument) -> None:
    def nopm(ratio: float, **asked: object) -> float:
        found = predict(run, NAS, [ratio], flash=CARD, **asked)  # type: ignore[arg-type]
        return found.lines[0].nopm

    assert nopm(0, asked_iops={1: 1181.5, 32: 10862}) > 7 * nopm(0)
    assert nopm(1, cores=8, users=64) > 2 * nopm(1)
    assert nopm(1, users=1) < nopm(1) / 4
    assert nopm(0, cores=8) == pytest.approx(nopm(0), rel=0.02), "the disks hold it back"


def test_a_run_with_nothing_to_learn_from_is_refused(run: RunDocument) -> None:
    without = run.model_copy(update={"arms": run.arms[:1]})
    with pytest.raises(RequestError, match="did not measure TPC-C before") as refused:
        predict(without, NAS, [0.5])
    assert refused.value.field == "run"


def test_a_run_that_teaches_nothing_is_not_asked_for_its_disks(run: RunDocument) -> None:
    """`last`, a benchmark of one database, was told to give the IOPS of its storage; when they were
    given, it was told the real cause."""
    assert run.storage is not None
    disk = run.storage.model_copy(update={"kind": "device"})
    without = run.model_copy(update={"arms": run.arms[:1], "storage": disk})
    with pytest.raises(RequestError, match="did not measure TPC-C before"):
        models.storages(without, models.SetUp())


@pytest.mark.parametrize("text", ["", "5", "0:10", "1:0", "1:-3", "1:x", "1:5,,2:6", "1:nan"])
def test_what_are_no_iops(text: str) -> None:
    with pytest.raises(ValueError, match="IOPS"):
        iops_from_text(text)
