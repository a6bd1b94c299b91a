"""What serving a model takes here: measured, taken off, and in the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.bench.disks import arrays, bench_target, disk_bench, serving_path
from hotset.bench.disks.disk_bench import PROFILES
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.reports.model.disks import ServingPath, Way
from tests.support.marks import needs_fuse, needs_root

SIZE = Bytes(64 * 1024**2)
SLOWER_US = 20_000


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_path, "_RUNS", 1)
    monkeypatch.setattr(serving_path, "SECONDS", 1)


def measure(way: Way) -> ServingPath:
    (found,) = serving_path.measure(Local(), (way,), Reporter(quiet=True))
    return found


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if everything on the way took that much longer."""
    plain = serving_path.plain
    monkeypatch.setattr(serving_path, "plain", lambda latency_us: plain(latency_us + SLOWER_US))


@needs_fuse
def test_a_way_is_measured_as_it_is_on_this_computer(long_way: None) -> None:
    """110 µs were taken off whatever the computer, and through a loop device or not."""
    del long_way
    found = measure("file")
    assert (found.way, len(found.runs_us)) == ("file", 1)
    assert SLOWER_US < found.path_us < SLOWER_US + 20_000
    assert found.path_us == round(found.runs_us[0])


@needs_root
def test_a_loop_device_is_part_of_its_way() -> None:
    found = measure("loop")
    assert found.way == "loop"
    assert 0 < found.path_us < 20_000
    assert serving_path.find_us((measure("file"), found), "loop") == found.path_us
    assert serving_path.find_us((), "loop") is None


@needs_fuse
def test_what_was_measured_is_taken_off_a_benchmark_of_a_model(tmp_path: Path) -> None:
    """Of a device that waits longer than its way takes, what is left of that is seen."""
    import json

    model = tmp_path / "slow.json"
    model.write_text(json.dumps(serving_path.plain(SLOWER_US)))
    seen = []
    for path_us in (0, SLOWER_US // 2):
        with bench_target.open_target(
            Local(), None, str(model), SIZE, True, False, print, path_us=path_us
        ) as target:
            sample = disk_bench.measure(Local(), target.file, SIZE, 1, PROFILES[3], "read")
        seen.append(sample.latency_us)
    assert seen[0] - seen[1] > SLOWER_US / 4, seen


def test_a_search_is_through_a_loop_device_and_the_values_are_of_a_file() -> None:
    assert arrays.ways(arrays.parts(False)) == ("file",)
    assert arrays.ways(arrays.parts(True)) == ("file", "loop")
    assert arrays.ways([one for one in arrays.parts(True) if one.kind == "search"]) == ("loop",)
    assert arrays.ways([]) == ()
