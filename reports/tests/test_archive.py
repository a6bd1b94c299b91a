"""The archive of runs and the record of a run as it grows."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NoReturn

import pytest
from pydantic import TypeAdapter

from hotset.core.errors import of_command_line
from hotset.core.machines.base import MachineGoneError, PrerequisiteMissingError
from hotset.core.machines.cleanup import BusyError
from hotset.core.paths import repository_file
from hotset.core.record import SCHEMA_VERSION
from hotset.experiment.file.spec import Spec, SpecError, read
from hotset.experiment.journal import Journal
from hotset.reports.archive import DOCUMENT, REPORT, Archive, NoSuchRunError
from hotset.reports.model.document import RunDocument, WarmUpRepeat
from hotset.reports.model.windows import Repeat
from hotset.reports.render.tables import ListingRow
from tests import documents

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "runs")


@pytest.fixture
def spec() -> Spec:
    return read(repository_file("experiments/demo.toml"))


def saved(archive: Archive, at: datetime = NOON, name: str = "demo") -> RunDocument:
    run = archive.new(name, at)
    document = documents.complete(5).model_copy(update={"run": run, "started_at": at})
    archive.save(document)
    return document


def test_ids_are_unique_and_sort_by_time(archive: Archive) -> None:
    runs = [archive.new("demo", NOON + timedelta(seconds=s)) for s in (0, 0, 0, 1)]
    assert len(set(runs)) == 4
    assert runs == sorted(runs)
    assert runs[0] == "20261121-120000-demo"
    assert all(archive.path(run).is_dir() for run in runs)


def test_ids_are_in_universal_time(archive: Archive) -> None:
    zone = timezone(timedelta(hours=5))
    assert archive.new("demo", NOON.astimezone(zone)) == "20261121-120000-demo"


def test_what_is_saved_is_loaded(archive: Archive) -> None:
    document = saved(archive)
    assert archive.load(document.run) == document
    assert (
        json.loads((archive.path(document.run) / DOCUMENT).read_text())["schema_version"]
        == SCHEMA_VERSION
    )
    assert not list(archive.path(document.run).glob("*.new"))


def test_the_newest_comes_first(archive: Archive) -> None:
    runs = [saved(archive, NOON + timedelta(hours=h)).run for h in (1, 3, 2)]
    assert [row.run for row in archive.listing()] == [runs[1], runs[2], runs[0]]


def test_an_archive_that_is_not_there_is_empty(archive: Archive) -> None:
    assert archive.listing() == []
    with pytest.raises(NoSuchRunError, match="no runs yet"):
        archive.load("last")


def test_a_run_by_the_beginning_of_its_id(archive: Archive) -> None:
    first = saved(archive)
    second = saved(archive, NOON + timedelta(days=1))
    assert archive.load("20261121").run == first.run
    assert archive.load("20261122-12").run == second.run
    assert archive.load("last").run == second.run
    with pytest.raises(NoSuchRunError, match="2 runs named '2026'"):
        archive.load("2026")
    with pytest.raises(NoSuchRunError, match="no run named 'nonsense'") as unknown:
        archive.load("nonsense")
    assert "`hotset runs list`" in of_command_line(unknown.value)


def test_a_whole_id_is_that_run_though_others_begin_so(archive: Archive) -> None:
    first, second = saved(archive), saved(archive)
    assert second.run == f"{first.run}.2"
    assert archive.load(first.run).run == first.run
    assert archive.load(second.run).run == second.run


@pytest.mark.parametrize("name", ["..", ".", "../runs", "/etc", "", "*"])
def test_nothing_outside_the_archive_is_a_run(archive: Archive, name: str, tmp_path: Path) -> None:
    saved(archive)
    saved(archive)
    (tmp_path / "precious").mkdir()
    with pytest.raises(NoSuchRunError):
        archive.remove(name)
    assert len(archive.listing()) == 2
    assert (tmp_path / "precious").is_dir()


def test_no_name_is_no_run(archive: Archive) -> None:
    """``runs rm "$UNSET"`` must not find the only run there is."""
    saved(archive)
    with pytest.raises(NoSuchRunError):
        archive.load("")


def test_a_run_that_cannot_be_deleted_keeps_its_files(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that nobody may change lets its runs' own files be deleted."""

    def refuse(*_: object) -> None:
        raise PermissionError("Operation not permitted")

    run = saved(archive).run
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refuse)
        with pytest.raises(PrerequisiteMissingError, match="cannot be deleted"):
            archive.remove(run)
    assert archive.load(run).run == run


def test_remove(archive: Archive) -> None:
    kept, gone = saved(archive), saved(archive, NOON + timedelta(days=1))
    assert archive.remove("20261122") == gone.run
    assert [row.run for row in archive.listing()] == [kept.run]
    assert not archive.path(gone.run).exists()
    with pytest.raises(NoSuchRunError):
        archive.load(gone.run)


def test_an_interrupted_deletion_is_listed_and_finished(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left of the run was in a hidden folder that nobody ever saw again."""
    kept, gone = saved(archive), saved(archive, NOON + timedelta(days=1))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            archive.remove(gone.run)
    whole = archive.size(60)
    newest, oldest = archive.listing()
    assert (newest.run, newest.state, oldest.run) == (gone.run, "unreadable", kept.run)
    assert newest.fault == "its deletion was begun and is not finished: delete it once more"
    assert archive.resolve("last") == kept.run, "it is no run that one works with"
    with pytest.raises(NoSuchRunError, match="its deletion was begun") as said:
        archive.load(gone.run)
    assert said.value.remedies[0].parameters == {"run": gone.run}
    assert archive.remove(gone.run[:10]) == gone.run
    assert [path.name for path in archive.folder.iterdir()] == [kept.run]
    assert [row.run for row in archive.listing()] == [kept.run]
    left = archive.size(60)
    assert None not in (whole, left)
    assert (left or 0) < (whole or 0), "what is left of it takes room, too"


def test_a_lost_index_is_made_again_from_the_folders(archive: Archive) -> None:
    saved(archive)
    saved(archive, NOON + timedelta(days=1))
    before = archive.listing()
    archive.folder.with_suffix(".sqlite").unlink()
    assert archive.listing() == before
    assert len(before) == 2


def test_the_list_comes_from_the_index(archive: Archive) -> None:
    """Not every result is read for a list: a long archive stays quick."""
    document = saved(archive)
    before = archive.listing()
    (archive.path(document.run) / DOCUMENT).write_text("{")
    assert archive.listing() == before


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 99}', "[]", "\x00"])
def test_a_broken_result_is_listed_as_unreadable(archive: Archive, text: str) -> None:
    """It was left out without a word: a run that is there looked like one that never was."""
    good, bad = saved(archive), saved(archive, NOON + timedelta(days=1))
    (archive.path(bad.run) / DOCUMENT).write_text(text)
    archive.folder.with_suffix(".sqlite").unlink()
    first, second = archive.listing()
    assert (first.run, first.state, first.started_at) == (bad.run, "unreadable", bad.started_at)
    assert str(archive.path(bad.run) / DOCUMENT) in first.fault
    assert (second.run, second.state) == (good.run, "complete")
    with pytest.raises(NoSuchRunError, match="cannot be read"):
        archive.load(bad.run)


@pytest.mark.parametrize("version", [14, 2, 0])
def test_a_run_of_another_version_says_so_and_stays(archive: Archive, version: int) -> None:
    """It was told which numbers there might be."""
    document = saved(archive)
    file = archive.path(document.run) / DOCUMENT
    other = {**json.loads(file.read_text()), "schema_version": version, "hereafter": 1}
    file.write_text(json.dumps(other))
    of_another = rf"another version of hotset \(format {version}, this one reads 1\): use that one"
    with pytest.raises(NoSuchRunError, match=of_another):
        archive.load(document.run)
    assert json.loads(file.read_text()) == other


def test_a_damaged_index_is_put_aside_and_made_again(archive: Archive) -> None:
    """Every list ended in "file is not a database", and so did every run that was to be kept."""
    first = saved(archive)
    index = archive.folder.with_suffix(".sqlite")
    index.write_bytes(b"no database " * 100)
    assert [row.run for row in archive.listing()] == [first.run]
    assert index.with_suffix(".sqlite.damaged").exists()
    second = saved(archive, NOON + timedelta(days=1))
    assert [row.run for row in archive.listing()] == [second.run, first.run]


def test_a_list_of_ten_thousand_runs_takes_less_than_a_second(archive: Archive) -> None:
    """Of this process's own time, of which a busy computer takes nothing."""
    row = ListingRow.from_document(saved(archive))
    lines, adapter = [], TypeAdapter(ListingRow)
    for minute in range(10_000):
        at = NOON + timedelta(days=1, minutes=minute)
        run = f"{at:%Y%m%d-%H%M%S}-demo"
        (archive.folder / run).mkdir()
        line = adapter.dump_json(replace(row, run=run, started_at=at))
        lines.append((run, at.isoformat(), line.decode()))
    with closing(archive._database()) as database, database:
        database.executemany("INSERT INTO runs VALUES (?, ?, ?)", lines)
    begun = time.process_time()
    found = archive.listing(1000)
    spent_s = time.process_time() - begun
    assert [one.run for one in found] == [run for run, _, _ in lines[:-1001:-1]]
    assert archive.count() == 10_001
    assert spent_s < 1


def test_a_list_has_the_newest_and_reads_no_document_that_is_in_the_index(
    archive: Archive,
) -> None:
    runs = [saved(archive, NOON + timedelta(hours=h)).run for h in (1, 2, 3)]
    for run in runs:
        (archive.path(run) / DOCUMENT).unlink()
    assert [row.run for row in archive.listing(2)] == [runs[2], runs[1]]
    assert archive.count() == 3


def test_a_run_without_a_result(archive: Archive) -> None:
    good = saved(archive)
    run = archive.new("demo", NOON + timedelta(days=1))
    assert [(row.run, row.state) for row in archive.listing()] == [
        (run, "unreadable"),
        (good.run, "complete"),
    ]
    with pytest.raises(NoSuchRunError, match="has no result"):
        archive.load(run)
    assert archive.remove(run) == run


def test_a_list_needs_no_room_for_an_index(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = saved(archive).run
    monkeypatch.setattr(sqlite3, "connect", full)
    assert [row.run for row in archive.listing()] == [run]


# The journal


def full(*_: object) -> NoReturn:
    raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize("where", ["document", "index"])
def test_an_archive_without_room_says_so_and_keeps_nothing_half_made(
    archive: Archive, spec: Spec, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def no_space(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    if where == "index":
        monkeypatch.setattr(sqlite3, "connect", full)
    else:
        monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(PrerequisiteMissingError, match=f"{archive.folder} .*XDG_DATA_HOME"):
        Journal.begin(archive, spec)
    assert list(archive.folder.iterdir()) == []


def repeat(number: int) -> Repeat:
    return documents.repeat("baseline", number, 400, duration_s=3)


def warmed(number: int, **figures: float) -> WarmUpRepeat:
    known = documents.warmup().repeats[0]
    return known.model_copy(update={"repeat": number, **figures})


def test_a_run_is_in_the_archive_from_its_first_moment(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    found = archive.load("last")
    assert found == journal.document.as_running()
    assert archive.read(found.run).state == "interrupted", "what a kill would make of it"
    assert Spec.model_validate(found.experiment.spec) == spec


def test_phases_that_end_well(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    with journal.phase("lab"):
        (phase,) = archive.load("last").phases
        assert (phase.name, phase.state) == ("lab", "running")
    phases = archive.load("last").phases
    assert [(phase.name, phase.state) for phase in phases] == [("lab", "done")]
    assert phases[0].seconds >= 0


@pytest.mark.parametrize(
    ("error", "state", "text"),
    [
        (ValueError("the disk broke"), "failed", "the disk broke"),
        (KeyboardInterrupt(), "interrupted", "stopped by the user"),
        (KeyboardInterrupt("no room is left"), "interrupted", "no room is left"),
    ],
)
def test_phases_that_do_not(
    archive: Archive, spec: Spec, error: BaseException, state: str, text: str
) -> None:
    journal = Journal.begin(archive, spec)
    with journal.phase("lab"):
        pass
    with pytest.raises(type(error)), journal.phase("baseline 1"):
        raise error
    found = archive.load("last")
    assert [(phase.name, phase.state) for phase in found.phases] == [
        ("lab", "done"),
        ("baseline 1", state),
    ]
    assert found.state == state
    assert found.failure is not None
    assert found.failure.phase == "baseline 1"
    assert text in found.failure.text


REFUSALS = [BusyError("another hotset"), PrerequisiteMissingError("no qemu")]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_refused_run_leaves_no_record(archive: Archive, spec: Spec, refusal: Exception) -> None:
    kept = saved(archive)
    journal = Journal.begin(archive, spec)
    with pytest.raises(type(refusal)), journal.phase("lab"):
        raise refusal
    journal.write_report()
    assert [row.run for row in archive.listing()] == [kept.run]
    assert [folder.name for folder in archive.folder.iterdir()] == [kept.run]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_is_lacking_later_is_a_failure(
    archive: Archive, spec: Spec, refusal: Exception
) -> None:
    journal = Journal.begin(archive, spec)
    with journal.phase("lab"):
        pass
    with pytest.raises(type(refusal)), journal.phase("database"):
        raise refusal
    assert archive.load("last").state == "failed"


def test_a_machine_that_does_not_come_up_is_a_failure(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    with pytest.raises(MachineGoneError), journal.phase("lab"):
        raise MachineGoneError("kernel panic")
    journal.write_report()
    assert archive.load("last").state == "failed"
    assert (archive.path(journal.document.run) / REPORT).exists()


def failed_run(archive: Archive, spec: Spec) -> str:
    journal = Journal.begin(archive, spec)
    with journal.phase("lab"):
        pass
    journal.add_repeat("baseline", repeat(1))
    with pytest.raises(ValueError, match="broke"), journal.phase("accelerated 1"):
        raise ValueError("broke")
    return journal.document.run


def test_a_failed_run_is_resumed_with_what_it_has(archive: Archive, spec: Spec) -> None:
    run = failed_run(archive, spec)
    journal = Journal.resume(archive, spec, run)
    assert journal.document.run == run
    assert journal.document.failure is None
    assert [phase.name for phase in journal.document.phases] == ["lab"]
    assert journal.has("baseline", 1, "tpcc")
    assert not journal.has("baseline", 2, "tpcc")
    assert not journal.has("accelerated", 1, "tpcc")
    assert archive.load(run).state == "running"
    assert len(archive.listing()) == 1


def test_a_refused_resumption_changes_nothing(archive: Archive, spec: Spec) -> None:
    run = failed_run(archive, spec)
    before, line = archive.load(run), archive.listing()
    journal = Journal.resume(archive, spec, run)
    with pytest.raises(BusyError), journal.phase("lab"):
        raise BusyError("another hotset")
    journal.write_report()
    assert archive.load(run) == before
    assert archive.listing() == line


def test_time_goes_on_where_a_run_stopped(archive: Archive, spec: Spec) -> None:
    run = failed_run(archive, spec)
    document = archive.load(run)
    archive.save(document.model_copy(update={"seconds": 1000.0}))
    assert 1000 <= Journal.resume(archive, spec, run).document.seconds < 1010


def test_another_experiment_does_not_resume_a_run(archive: Archive, spec: Spec) -> None:
    run = failed_run(archive, spec)
    before = archive.load(run)
    other = read(repository_file("experiments/demo.toml"), ("tpcc.users=17",))
    with pytest.raises(SpecError, match="another experiment"):
        Journal.resume(archive, other, run)
    assert archive.load(run) == before


def test_a_complete_run_is_not_resumed(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    journal.finish(spec.arms)
    journal.write_report()
    with pytest.raises(SpecError, match="nothing to resume"):
        Journal.resume(archive, spec, "last")
    with pytest.raises(NoSuchRunError):
        Journal.resume(archive, spec, "nonsense")


def test_repeats_are_kept_in_order(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    journal.add_repeat("baseline", repeat(2))
    journal.add_repeat("all-flash", repeat(1))
    journal.add_repeat("baseline", repeat(1))
    arm = archive.load("last").arm("baseline")
    assert arm is not None
    assert [one.repeat for one in arm.repeats] == [1, 2]
    assert journal.has("baseline", 2, "tpcc")
    assert not journal.has("accelerated", 2, "tpcc")


def test_power_runs_are_kept_beside_the_windows(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    journal.add_repeat("baseline", repeat(1))
    for number in (2, 3, 1):
        journal.add_power_run("baseline", documents.power_run("baseline", number))
        journal.add_power_run("accelerated", documents.power_run("accelerated", number))
    arm = archive.load("last").power_arm("baseline")
    assert arm is not None
    assert [one.repeat for one in arm.repeats] == [1, 2, 3]
    assert journal.has("baseline", 2, "tpch")
    assert not journal.has("baseline", 2, "tpcc")
    journal.finish(spec.arms)
    factor = archive.load("last").factor("tpch")
    assert factor is not None
    assert factor.significant


def test_warm_up_figures_over_all_repeats(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    figures = {"origin_mb_per_s": 100.0, "sampled_blocks": 40, "differing_blocks": 0}
    journal.add_warmup(warmed(2, mb_per_s=90.0, seconds=4.0, probe_hit_ratio=0.99, **figures))
    journal.add_warmup(warmed(1, mb_per_s=70.0, seconds=6.0, probe_hit_ratio=0.96, **figures))
    found = archive.load("last").warmup
    assert found is not None
    assert [one.repeat for one in found.repeats] == [1, 2]
    assert (found.mb_per_s, found.seconds) == (80.0, 5.0)
    assert found.sampled_blocks == 80
    assert found.probe_hit_ratio == 0.96, "the worst probe counts"
    journal.add_warmup(warmed(1, mb_per_s=80.0, seconds=6.0, probe_hit_ratio=0.97, **figures))
    again = archive.load("last").warmup
    assert again is not None
    assert len(again.repeats) == 2
    assert again.mb_per_s == 85.0


def test_a_finished_run_has_its_factor_and_its_arms_in_order(archive: Archive, spec: Spec) -> None:
    journal = Journal.begin(archive, spec)
    for arm in documents.complete(5).arms[::-1]:
        for one in arm.repeats:
            journal.add_repeat(arm.name, one)
    journal.finish(spec.arms)
    journal.write_report()
    found = archive.load("last")
    assert found.state == "complete"
    assert tuple(arm.name for arm in found.arms) == spec.arms
    factor = found.factor()
    assert factor is not None
    assert factor.ratio == pytest.approx(4193 / 428, rel=0.1)
    page = (archive.path(found.run) / REPORT).read_text()
    assert "<html" in page
    assert found.run in page


def test_a_run_that_never_measured_has_a_page_too(archive: Archive, spec: Spec) -> None:
    run = failed_run(archive, spec)
    Journal.resume(archive, spec, run).write_report()
    assert "<html" in (archive.path(run) / REPORT).read_text()
