"""`hotset runs trend`: which runs of the archive count, and what is said of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hotset.experiment import history
from hotset.reports.archive import Archive
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Repeat
from tests import documents
from tests.cli_server import CommandLine

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)
WHOLE = documents.complete(5)


def saved(archive: Archive, day: int, times: float, **changes: object) -> RunDocument:
    """A run so many times as fast as the others."""
    at = BEGUN + timedelta(days=day)

    def faster(_: ArmName, one: Repeat) -> dict[str, object]:
        return {"nopm": (one.nopm or 0) * times * (1 + day % 3 / 100)}

    given = {"run": archive.new("demo", at), "started_at": at, **changes}
    document = documents.with_windows(WHOLE, faster).model_copy(update=given)
    archive.save(document)
    return document


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Of the command line: twelve runs, and since the ninth a new version that is slower."""
    found = Archive(tmp_path / "cli" / "data" / "hotset" / "runs")
    for day in range(12):
        slow = day >= 8
        saved(found, day, 0.8 if slow else 1.0, hotset_version="0.2.0" if slow else "0.1.0")
    return found


def test_a_drop_is_told_with_what_changed_beside_it(archive: Archive) -> None:
    found, with_it = history.trend(archive, archive.load("last"), "nopm", 100)
    assert len(found.samples) == 12
    (change,) = found.changes
    assert (change.at, change.worse, found.is_worse) == (8, True, True)
    assert change.ratio == pytest.approx(0.8, rel=0.02)
    assert with_it == (("hotset: 0.1.0 / 0.2.0",),)


def test_only_runs_of_the_set_up_that_ended_well_count(archive: Archive) -> None:
    tpcc = {**documents.SPEC, "tpcc": {**documents.SPEC["tpcc"], "users": 99}}
    experiment = WHOLE.experiment.model_copy(update={"spec": tpcc})
    other = saved(archive, 20, 1.0, experiment=experiment)
    saved(archive, 21, 0.1, state="failed")
    assert WHOLE.machine is not None
    faster = WHOLE.machine.model_copy(update={"cores": 64})
    saved(archive, 22, 3.0, machine=faster)
    newer = WHOLE.machine.model_copy(update={"kernel": "7.0", "memory_bytes": 5})
    last = saved(archive, 23, 0.8, machine=newer)
    found, _ = history.trend(archive, last, "nopm", 100)
    assert len(found.samples) == 13
    assert found.samples[-1].run == last.run
    assert len(history.trend(archive, other, "nopm", 100)[0].samples) == 1
    assert len(history.trend(archive, last, "nopm", 5)[0].samples) == 5


def trend_of(hotset: CommandLine, archive: Archive, *argv: str) -> tuple[int, str, str]:
    environment = {"XDG_DATA_HOME": str(archive.folder.parents[1])}
    done = hotset("runs", "trend", *argv, env=environment)
    return done.code, done.out, done.err


@pytest.mark.night
@pytest.mark.parametrize(("argv", "code"), [((), 0), (("--fail",), 5)])
def test_the_command_line(
    hotset: CommandLine, archive: Archive, argv: Sequence[str], code: int
) -> None:
    ended, out, err = trend_of(hotset, archive, *argv)
    assert ended == code
    assert "nopm fell by 2" in out
    assert "• hotset: 0.1.0 / 0.2.0" in out
    assert ("nopm fell by 2" in err) == bool(code)
    ended, out, _ = trend_of(hotset, archive, *argv, "--format", "json", "--metric", "p95")
    assert ended == 0, "its level did not change"
    assert json.loads(out)["changes"] == []
    _, out, _ = trend_of(hotset, archive, *argv, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [bool(row["change"]) for row in rows] == [place == 8 for place in range(12)]


def test_an_unknown_metric_is_refused_with_those_there_are(
    hotset: CommandLine, archive: Archive
) -> None:
    code, out, err = trend_of(hotset, archive, "--metric", "speed")
    assert (code, out) == (2, "")
    assert "measured no 'speed'; it has nopm(baseline), tpm(baseline)" in err
