"""Predictions beside measurements: of runs that are published, and of one made to agree."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from hotset.core.errors import RequestError
from hotset.core.operation import Context
from hotset.operations import table
from hotset.reports.archive import Archive
from hotset.reports.model.document import RunDocument
from hotset.reports.render import html, markdown, terminal
from hotset.whatif.checking import Devices, check, of_an_earlier_run

from .published import CARD, published

IOPS = {1: 126.0, 4: 383.0, 16: 850.0, 32: 1117.0, 64: 1401.0}
DEVICES = Devices(IOPS, CARD)
DEMO = published("20261121-220932-demo")


def test_a_run_that_measured_the_same_is_predicted_as_it_was() -> None:
    other = DEMO.model_copy(update={"run": "20261122-000000-again"})
    found = {one.arm: one for one in check(other, DEMO, IOPS, DEVICES)}
    assert {one.users for one in found.values()} == {16}
    # Learned from these two: what is left is that the means of the repeats' demands are taken.
    for name in ("baseline", "accelerated"):
        assert abs(found[name].error) < 0.03
        assert found[name].in_range
    assert found["baseline"].hit_ratio == 0.0


def test_the_error_is_by_what_was_measured() -> None:
    arms = []
    for arm in DEMO.arms:
        repeats = [one.model_copy(update={"nopm": one.nopm * 2}) for one in arm.repeats]
        arms.append(arm.model_copy(update={"repeats": tuple(repeats)}))
    faster = DEMO.model_copy(update={"run": "20261122-000000-faster", "arms": tuple(arms)})
    for one in check(faster, DEMO, IOPS, DEVICES):
        if one.arm != "all-flash":
            assert one.error == pytest.approx(-0.5, abs=0.02)
            assert not one.in_range


def test_a_run_is_not_held_against_itself() -> None:
    with pytest.raises(RequestError, match="itself") as refused:
        check(DEMO, DEMO, IOPS, DEVICES)
    assert refused.value.field == "by"


def test_the_operation_shows_it_by_the_arm() -> None:
    archive, later = Archive.default(), DEMO.started_at + timedelta(days=1)
    by = DEMO.model_copy(update={"run": archive.new("demo", DEMO.started_at)})
    run = DEMO.model_copy(update={"run": archive.new("demo", later), "started_at": later})
    for one in (by, run):
        archive.save(one)
    found = table.find("whatif check")
    request = found.parse({"run": run.run, "by": by.run})
    document = found.function(request, Context()).document()
    assert (document["run"], document["by"]) == (run.run, by.run)
    assert {one["arm"] for one in document["arms"]} >= {"baseline", "accelerated"}


def later(by: RunDocument, **update: object) -> RunDocument:
    """A run after it that measured the same."""
    return by.model_copy(update={"run": "20991231-000000-demo", **update})


def test_each_point_of_a_curve_is_predicted_with_its_users() -> None:
    arms = []
    for arm in DEMO.arms:
        fewer = [one.model_copy(update={"users": 4}) for one in arm.repeats]
        arms.append(arm.model_copy(update={"curve": tuple(fewer)}))
    found = check(later(DEMO, arms=tuple(arms)), DEMO, IOPS, DEVICES)
    assert [(one.arm, one.users) for one in found] == [
        (arm, users) for arm in ("baseline", "accelerated", "all-flash") for users in (4, 16)
    ]
    base = {one.users: one for one in found if one.arm == "baseline"}
    assert base[4].predicted_nopm < base[16].predicted_nopm, "the storage has fewer to serve"
    assert base[4].measured_nopm == base[16].measured_nopm
    assert base[4].error < -0.1


def test_a_run_is_held_against_the_newest_one_of_its_server() -> None:
    archive, kept = Archive.default(), []
    for days in range(3):
        at = DEMO.started_at + timedelta(days=days)
        kept.append(DEMO.model_copy(update={"run": archive.new("demo", at), "started_at": at}))
    assert DEMO.database is not None
    small = DEMO.database.model_copy(update={"warehouses": 1})
    archive.save(kept[0])
    archive.save(kept[1].model_copy(update={"database": small}))
    assert of_an_earlier_run(archive, kept[0]) is None, "only itself is there"
    found = of_an_earlier_run(archive, kept[2])
    assert found is not None
    assert found.learned_from == kept[0].run, "the newer one had another database"
    assert found.mean_error < 0.1


def test_the_report_shows_it_in_every_form() -> None:
    archive = Archive.default()
    by = DEMO.model_copy(update={"run": archive.new("demo", DEMO.started_at)})
    archive.save(by)
    run = later(by)
    run = run.model_copy(update={"predictions": of_an_earlier_run(archive, run)})
    assert RunDocument.model_validate_json(run.model_dump_json()) == run
    console = Console(width=100, record=True, file=StringIO())
    terminal.summary(run, console)
    for text in (html.render(run), markdown.render(run), console.export_text()):
        assert "Predicted and measured" in text
        assert " ".join(f"Predicted from run {by.run}".split()) in " ".join(text.split())
