"""The CrystalDiskMark profile: what fio says becomes cells, and two results are compared."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotset.bench.disks import bench_target, disk_bench, disk_metrics
from hotset.bench.disks.disk_bench import BenchError, DiskBench
from hotset.bench.thresholds import ThresholdFormError, Values, judge
from hotset.core.machines.base import Result
from hotset.core.machines.local import Local
from hotset.core.record import document_of
from hotset.core.units import Bytes
from hotset.reports.model.disks import BenchLine, BenchRun
from tests.cli_server import CommandLine
from tests.pseudo_terminal import HOTSET, Terminal

MIB = 1024**2


def result(iops: float, size: int = 64 * MIB) -> DiskBench:
    runs = tuple(
        BenchRun(mb_per_s=iops / 250, iops=one, latency_us=1e6 / one)
        for one in (iops, iops * 2, iops * 3)
    )
    line = BenchLine(profile="RND4K Q1T1", direction="read", runs=runs)
    return DiskBench("disk", False, size, 5, (line,))


class Fio:
    """A machine whose fio answers with the requests a second it was asked about."""

    kind = "local"

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def run(self, argv: list[str], timeout_s: float = 0) -> Result:  # noqa: ARG002
        self.calls.append(argv)
        reads = 0 if "--rw=randwrite" in argv or "--rw=write" in argv else 70
        side = {"iops": 1.0, "bw_bytes": 4096, "lat_ns": {"mean": 1e6}}
        job = {"read": side | {"total_ios": reads}, "write": side | {"total_ios": 30}}
        return Result(tuple(argv), 0, json.dumps({"jobs": [job]}), "", 0.0)


def test_every_line_of_the_profile_is_run_so_many_times() -> None:
    fio = Fio()
    cells = list(disk_bench.run(fio, Path("/x"), Bytes(64 * MIB), 1, 3, ("read", "mix")))  # type: ignore[arg-type]
    assert [(one.profile, one.direction) for one in cells[:4]] == [
        ("SEQ1M Q8T1", "read"),
        ("SEQ1M Q1T1", "read"),
        ("RND4K Q32T1", "read"),
        ("RND4K Q1T1", "read"),
    ]
    assert len(cells) == 8
    assert all(len(one.runs) == 3 for one in cells)
    last = fio.calls[-1]
    assert {"--rw=randrw", "--rwmixread=70", "--bs=4096", "--iodepth=1", "--direct=1"} <= set(last)


def test_a_saved_result_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(json.dumps(document_of(result(100))))
    assert disk_bench.read(file) == result(100)


def test_the_median_is_shown_and_compared() -> None:
    assert result(100).cells[0].median.iops == 200
    (change,) = disk_bench.compare(result(100), result(400))
    assert change.factor == 4


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"target": "x", "cells": [{}]}'])
def test_what_is_no_result_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "result.json"
    file.write_text(text)
    with pytest.raises(BenchError, match="result"):
        disk_bench.read(file)


def test_results_of_different_sizes_are_not_compared() -> None:
    with pytest.raises(BenchError, match="caches"):
        disk_bench.compare(result(100), result(100, size=128 * MIB))


def test_a_file_with_data_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 16 * MIB)
    with (
        pytest.raises(BenchError, match="its data would be lost"),
        bench_target.open_target(Local(), file, None, Bytes(16 * MIB), False, False, print),
    ):
        pass
    with bench_target.open_target(
        Local(), file, None, Bytes(16 * MIB), True, False, print
    ) as target:
        assert target.file == file
    assert file.read_bytes()[:1] == b"x"


def test_what_was_never_written_is_no_disks_speed(tmp_path: Path) -> None:
    """A trimmed device and the holes of a file answer from memory."""
    file, size = tmp_path / "there.dat", Bytes(2 * MIB)
    for content, holes in ((b"\1" * size, False), (b"", True)):
        file.write_bytes(content)
        os.truncate(file, size)
        said = list[str]()
        with bench_target.open_target(Local(), file, None, size, True, False, said.append):
            pass
        assert bool(said) is holes
    assert "has holes" in said[0]
    assert "comes from no medium" in said[0]


def test_one_target_is_named(tmp_path: Path) -> None:
    for path, model in ((None, None), (tmp_path / "x", "dc500m")):
        with (
            pytest.raises(BenchError, match="one of them"),
            bench_target.open_target(Local(), path, model, Bytes(MIB), False, False, print),
        ):
            pass


def test_thresholds_name_lines_of_the_profile() -> None:
    slow, fast = result(100), result(400)
    texts = [
        "iops(rnd4k-q1t1-read)>=800",
        "latency(rnd4k-q1t1-read)<1ms",
        "mb_per_s(rnd4k-q1t1-read)>1",
        "factor(rnd4k-q1t1-read)>=4",
        "iops(seq1m-q8t1-read)>1",
    ]
    limits = disk_metrics.limits(texts, ["read"], compared=True)
    verdicts = judge(limits, {"iops(seq1m-q8t1-read)": None, **measured(slow, fast)})
    assert [one.met for one in verdicts] == [True, False, True, True, False]
    assert verdicts[1].text == "latency(rnd4k-q1t1-read)<1ms: missed, measured 1.25 ms"


def measured(before: DiskBench, after: DiskBench) -> Values:
    return disk_metrics.values(after, disk_bench.compare(before, after))


def test_a_threshold_of_what_is_not_measured_is_refused() -> None:
    for text in ("iops(rnd4k-q1t1-write)>1", "factor(rnd4k-q1t1-read)>1", "nopm>1"):
        with pytest.raises(ThresholdFormError, match="there is no metric"):
            disk_metrics.limits([text], ["read"], compared=False)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_a_missed_threshold_is_code_5_and_stands_in_every_form(
    hotset: CommandLine, tmp_path: Path
) -> None:
    file, junit = tmp_path / "bench.dat", tmp_path / "junit.xml"
    probe = tmp_path / "probe"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system knows no direct I/O")
    given = ["--size=16MiB", "--repeats=1", "--seconds=0.5", "--read-only", f"--junit={junit}"]
    limits = ["--threshold=iops(rnd4k-q1t1-read)>=1", "--threshold=iops(seq1m-q1t1-read)<1"]
    done = hotset("disk", "bench", str(file), *given, *limits, "--format", "json")
    assert done.code == 5, done.err
    assert "iops(seq1m-q1t1-read)<1: missed, measured" in done.err
    assert [one["met"] for one in json.loads(done.out)["thresholds"]] == [True, False]
    assert 'failures="1"' in junit.read_text()
    assert not file.exists()
    saved = tmp_path / "saved.json"
    saved.write_text(done.out)
    assert disk_bench.read(saved).cells


@pytest.fixture
def used_device(tmp_path: Path) -> Iterator[Path]:
    """A block device of this computer's with a file system."""
    if shutil.which("fio") is None or os.geteuid() != 0:
        pytest.skip("root makes the device, and fio measures it")
    local, file = Local(), tmp_path / "disk.img"
    local.run(["mke2fs", "-q", "-t", "ext4", str(file), "32m"])
    made = local.run(["losetup", "--find", "--show", str(file)], check=False)
    if made.rc != 0:
        pytest.skip("no loop devices here")
    device = Path(made.stdout.strip())
    yield device
    local.run(["losetup", "--detach", str(device)])


def test_on_a_terminal_a_device_is_asked_for_by_name_before_it_is_overwritten(
    used_device: Path,
) -> None:
    def bench(*words: str) -> Terminal:
        given = ["--size=16MiB", "--repeats=1", "--seconds=0.5"]
        argv = [str(HOTSET), "disk", "bench", str(used_device), *given, *words]
        return Terminal(argv, {**os.environ, "TERM": "dumb"}, columns=300)

    before = used_device.read_bytes()
    refused = bench()
    assert refused.ended() == 2
    assert "has no name in /dev/disk/by-id" in refused.written
    looked_at = bench("--read-only")
    assert looked_at.ended() == 0
    assert "to go on" not in looked_at.written, "nothing is overwritten"
    assert "was discarded, comes from no medium" in " ".join(looked_at.written.split())
    turned_down = bench("--yes")
    turned_down.until_written(f"type {used_device.name} to go on: ")
    assert f"to be overwritten: {used_device} (" in turned_down.written
    assert "32 MiB): ext4" in turned_down.written
    turned_down.press("ext4\n")
    assert turned_down.ended() == 1
    assert used_device.read_bytes() == before
    agreed = bench("--yes")
    agreed.until_written(f"type {used_device.name} to go on: ")
    agreed.press(f"{used_device.name}\n")
    assert agreed.ended() == 0
    assert used_device.read_bytes() != before
