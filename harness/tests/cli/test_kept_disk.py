"""Benchmarks of a disk as runs of the archive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli_server import CommandLine, Done

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
SIZE = 16 * 1024**2


class Disk:
    """A file that is only read, so that a measurement takes two seconds."""

    def __init__(self, hotset: CommandLine, folder: Path) -> None:
        self._hotset = hotset
        self._env = {"XDG_DATA_HOME": str(folder / "data")}
        self.file = folder / "bench.dat"
        self.file.write_bytes(b"\xa5" * SIZE)

    def __call__(self, *argv: str) -> Done:
        return self._hotset(*argv, env=self._env)

    def measure(self, *more: str) -> dict[str, Any]:
        words = ("--size=16MiB", "--repeats=2", "--seconds=0.5", "--read-only", "--format=json")
        done = self("disk", "bench", str(self.file), *words, *more)
        assert done.code == 0, done.err
        found: dict[str, Any] = json.loads(done.out)
        return found


@pytest.fixture
def disk(hotset: CommandLine, tmp_path: Path) -> Disk:
    return Disk(hotset, tmp_path)


@pytest.mark.night
def test_a_benchmark_of_a_disk_is_a_run(disk: Disk) -> None:
    printed = disk.measure("--label", "before")
    shown = json.loads(disk("runs", "show", "last", "--format", "json").out)
    assert shown["run"] == printed["run"]
    kept = {(one["profile"], one["direction"]): one["runs"] for one in shown["disks"]["bench"]}
    assert len(kept) == 4
    for cell in printed["cells"]:
        assert kept[cell["profile"], cell["direction"]] == cell["runs"]
    (row,) = json.loads(disk("runs", "list", "--format", "json").out)["runs"]
    assert (row["measurement"], row["label"], row["unit"]) == ("disk bench", "before", "MB/s")
    for form in ("md", "html"):
        assert disk("report", "last", "--format", form).code == 0
    assert "RND4K Q1T1 read" in disk("report", "last", "--format", "md").out
    assert "RND4K Q1T1 read" in disk("runs", "show", "last").out
    assert disk("runs", "show", "last", "--format", "csv").out.startswith("profile,direction,runs")


@pytest.mark.night
def test_runs_of_one_measurement_are_no_repeats_of_it(disk: Disk) -> None:
    """Two runs of fio in each of two measurements show nothing of what differs between days; of
    three measurements and three there is an interval."""
    first, second = (disk.measure("--label", label)["run"] for label in ("before", "after"))
    lines = json.loads(disk("runs", "compare", first, second, "--format=json").out)["lines"]
    assert {line["verdict"] for line in lines} == {"not known"}
    assert len(lines) == 4
    for label in ("before", "after") * 2:
        disk.measure("--label", label)
    pooled = disk("runs", "compare", "before", "after", "--format=json")
    lines = json.loads(pooled.out)["lines"]
    assert all(line["ci_low"] < line["speed_ratio"] < line["ci_high"] for line in lines)
    trend = json.loads(disk("runs", "trend", "last", "--format=json").out)
    assert (trend["metric"], len(trend["runs"])) == ("mb_per_s(seq1m-q8t1-read)", 6)


def test_a_benchmark_that_is_refused_or_not_to_be_kept_leaves_no_run(disk: Disk) -> None:
    assert disk("disk", "bench", str(disk.file), "--size=16MiB").code == 2
    assert disk.measure("--no-keep")["run"] is None
    assert json.loads(disk("runs", "list", "--format=json").out)["runs"] == []
