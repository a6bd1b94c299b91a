"""Experiments on modelled disks: their files, their plans, short runs and what is shown of them."""

from __future__ import annotations

import io
import json
import os
from html import unescape
from pathlib import Path

import pytest
from rich.console import Console

from hotset.bench.disks import serving_path
from hotset.bench.disks.mounted_model import RootError
from hotset.block.programs import RefusedError
from hotset.core.paths import repository_file
from hotset.core.progress import Reporter
from hotset.experiment import disk_plan, disk_scenario
from hotset.experiment.file.disk_spec import DiskSpec
from hotset.experiment.file.spec import SpecError, read, read_any
from hotset.experiment.journal import Journal
from hotset.reports.analysis import disks
from hotset.reports.archive import REPORT, Archive
from hotset.reports.render import html, markdown, tables, terminal
from tests.support.marks import needs_fuse, needs_root

REREAD = repository_file("experiments/hybrid-disk-reread.toml")
ARRAYS = repository_file("experiments/flash-arrays.toml")
SMALL = (
    'reread.models=["wd3200bekt", "hybrid-disk-2014"]',
    "reread.size=1MiB",
    "reread.passes=1",
)
QUIET = Reporter(quiet=True)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One short run of what serving takes: how near it comes is not in question here."""
    monkeypatch.setattr(serving_path, "_RUNS", 1)
    monkeypatch.setattr(serving_path, "SECONDS", 1)


def of_disks(file: Path, *replaced: str) -> DiskSpec:
    found = read_any(file, replaced)
    assert isinstance(found, DiskSpec)
    return found


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        ("reread.size=3", "reread.size = 3: too small: give 4 KiB or more"),
        ("reread.passes=0", "reread.passes = 0: Input should be greater than or equal to 1"),
        ("reread.pases=1", "unknown key reread.pases"),
        ("reread.models=[]", "models = []: name a disk at least, or leave the key out"),
        ('reread.models=["a", "a"]', "a is named twice: name each disk once"),
        ("arrays.size=1GiB", "[reread] and [arrays] are one experiment each: keep one"),
        (
            "tpcc.users=3",
            "tpcc: an experiment with [reread] has no database: leave tpcc out, or make two"
            " experiments",
        ),
    ],
)
def test_a_bad_key_is_one_line_with_key_value_and_remedy(replaced: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        of_disks(REREAD, replaced)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_needs_a_database_says_so() -> None:
    with pytest.raises(SpecError, match=r"\[arrays\] is of modelled disks"):
        read(ARRAYS)


def test_a_model_in_a_file_is_a_file_that_must_be_allowed() -> None:
    spec = of_disks(REREAD, 'reread.models=["hdd-7200", "mine.json", "/etc/other"]')
    assert spec.files == ["mine.json", "/etc/other"]


def test_without_root_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    archive = Archive(tmp_path / "runs")
    with pytest.raises(RootError, match="root"):
        disk_scenario.run(of_disks(REREAD), archive, QUIET)
    assert archive.listing() == []


@needs_root
def test_a_model_that_is_not_there_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "runs")
    with pytest.raises(RefusedError, match="no-such-disk"):
        disk_scenario.run(of_disks(REREAD, 'reread.models=["no-such-disk"]'), archive, QUIET)
    assert archive.listing() == []


@needs_root
def test_a_model_whose_members_differ_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    members = [{"hdd": {"rpm": 7200}}, {"hdd": {"rpm": 5400}}]
    model = {"name": "mine", "device": {"raid": {"level": "1", "members": {"each": members}}}}
    spec = of_disks(REREAD, f"reread.models=[{_inline(model)}]")
    archive = Archive(tmp_path / "runs")
    with pytest.raises(
        RefusedError, match=r"members\[1\]. \(.*\) is unlike the members"
    ) as refused:
        disk_scenario.run(spec, archive, QUIET)
    assert "members of an array are alike" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert archive.listing() == []


def _inline(value: object) -> str:
    """As TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_inline(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def test_a_plan_names_each_disk_and_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    disk_plan.plan(of_disks(REREAD))
    text = capsys.readouterr().out
    for disk in ("wd3200bekt", "hybrid-disk-2014", "sata-ssd-2014"):
        _, found, rest = text.partition(f"# reads of {disk}\n")
        assert found
        part = rest.partition("\n# ")[0]
        serve, mount = part.index(f"flashdev serve --model {disk}"), part.index("mount -o ro")
        drawn = part.index(f"{disk}, pass 1: 100 tickets for 10 files, without the page cache")
        assert serve < mount < drawn < part.index("umount")
        assert f"{disk}, pass 3: 100 tickets for 10 files, with the page cache" in part


def test_a_plan_of_arrays_measures_each_and_ends_with_the_power(
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = of_disks(ARRAYS, "arrays.search=true", "arrays.repeats=2", "arrays.size=64MiB")
    disk_plan.plan(spec)
    parts = capsys.readouterr().out.split("\n# ")[1:]
    heads = [part.partition("\n")[0] for part in parts]
    assert heads == list(disk_scenario.phases(spec))
    by_name = dict(zip(heads, parts, strict=True))
    assert "8 users search 500,000 posts" in by_name["search of dc500m-raid6"]
    # Two profiles, read and write, twice each.
    assert by_name["values of dc500m-raid6"].count("--size=67108864") == 8
    failure = by_name["failure of dc500m-raid6"]
    assert failure.index("fio") < failure.index('{"fail": {"member": 1}}') < failure.rindex("fio")
    assert heads[-1] == "power cut of dc500m"
    assert '{"power_cut": {}}' in by_name["power cut of dc500m"]


@pytest.mark.parametrize(("file", "through_loop"), [(REREAD, True), (ARRAYS, False)])
def test_a_plan_begins_with_what_serving_takes(
    file: Path, through_loop: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    disk_plan.plan(of_disks(file))
    first = capsys.readouterr().out.partition("\n# ")[0]
    assert first.startswith("# what serving a model takes of a small request's time here\n")
    assert "--path-us 0" in first
    assert "--bs=4096" in first
    assert ("losetup" in first) == through_loop


@needs_root
def test_a_run_is_kept_shown_and_resumed_at_the_disk_that_is_missing(tmp_path: Path) -> None:
    spec, archive = of_disks(REREAD, *SMALL), Archive(tmp_path / "runs")
    begun = Journal.begin(archive, spec, ("hotset", "experiment", "run", "x.toml"))
    with pytest.raises(KeyboardInterrupt), begun.phase("reads of wd3200bekt"):
        raise KeyboardInterrupt
    begun.write_report()
    assert disks.NOTHING in (archive.path(begun.document.run) / REPORT).read_text()

    document = disk_scenario.run(spec, archive, QUIET, resume="last")
    assert (document.run, document.state) == (begun.document.run, "complete")
    assert [phase.name for phase in document.phases] == list(disk_scenario.phases(spec))
    found = archive.load("last").disks
    assert found is not None
    (path,) = found.paths
    assert path.way == "loop"
    plain, hybrid = found.disks
    assert (plain.disk, hybrid.disk) == ("wd3200bekt", "hybrid-disk-2014")
    assert {one.served_by for one in plain.cold} == {"device"}
    assert all(draw.from_flash is not None for draw in hybrid.cold[0].draws)
    with pytest.raises(SpecError, match="complete"):
        disk_scenario.run(spec, archive, QUIET, resume="last")

    page = (archive.path(document.run) / REPORT).read_text()
    for said in ('data-chart="seeming"', "hybrid-disk-2014 reads", "hotset experiment run x.toml"):
        assert said in page
    took = f"takes {path.path_us:,} µs of a small request's time on this computer"
    assert took in unescape(page)
    assert "No factor" not in page
    text = markdown.render(document)
    assert "## Without the page cache: the disk itself" in text
    assert "| wd3200bekt |" in text
    shown = Console(record=True, width=120, file=io.StringIO())
    terminal.summary(document, shown)
    said = shown.export_text()
    assert "hybrid-disk-2014: who served the reads" in said
    assert took in " ".join(said.split())
    assert tables.summary_csv(document).startswith("disk,first read,read again,gain,")
    assert archive.listing()[0].experiment == "hybrid-disk-reread"


@needs_fuse
@pytest.mark.night
def test_arrays_go_on_where_they_ended(tmp_path: Path) -> None:
    """All but the last values and the failures were measured before."""
    spec = of_disks(ARRAYS, "arrays.size=64MiB", "arrays.seconds=0.5", "arrays.repeats=1")
    archive, left = Archive(tmp_path / "runs"), "values of dc500m-raid0"
    begun = Journal.begin(archive, spec)
    for name in disk_scenario.phases(spec):
        if name != left:
            with begun.phase(name):
                pass
    begun.write_report()
    document = disk_scenario.run(spec, archive, QUIET, resume="last")
    assert document.state == "complete"
    assert document.disks is not None
    assert [path.way for path in document.disks.paths] == ["file"]
    assert {one.array for one in document.disks.lines} == {"dc500m-raid0"}
    assert len(document.disks.lines) == 6
    assert document.disks.failures == document.disks.cuts == ()
    assert 'id="figure-published"' in html.render(document)
    assert tables.summary_csv(document).startswith("array,profile,direction,unit,published,ours")
