"""Served models against themselves: what counts as near enough, why a cell is not, going on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.bench.disks import fidelity, fidelity_table, serving_path
from hotset.bench.disks.fidelity import Cell, Kept, Point
from hotset.core.errors import RequestError
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.record import record_of
from hotset.core.units import Bytes
from hotset.reports.model.disks import BenchRun
from tests.cli_server import CommandLine
from tests.support.marks import needs_fuse

SIZE = Bytes(256 * 1024**2)


def run_of(mb_per_s: float, iops: float, latency_us: float) -> BenchRun:
    return BenchRun(mb_per_s=mb_per_s, iops=iops, latency_us=latency_us)


EXPECTED = run_of(400.0, 100_000.0, 320.0)


def test_the_published_page_says_what_its_cells_do() -> None:
    """All 432 cells, the overview and the list of what is off; what is said of them follows."""
    folder = Path(__file__).resolve().parents[3] / "reports/published/20261127-disk-models"
    document = json.loads((folder / "disk-models.json").read_text())
    cells = [record_of(Cell, one) for one in document["cells"]]
    page, command = (folder / "README.md").read_text(), "hotset disk calibrate-all"
    computer = page.partition(f"`{command}`. ")[2].partition(".\n")[0]
    assert page.startswith(fidelity_table.markdown(cells, command, computer))


def cell(factor: float, block: str = "4k", busy: float = 0.5) -> Cell:
    """So many times as fast as it should be."""
    run = run_of(400.0 * factor, 100_000.0 * factor, 320.0 / factor)
    return Cell("dc500m", block, 32, "read", 2, EXPECTED, (run,), 60, busy)


def test_a_rate_of_large_requests_has_to_be_nearer_than_that_of_small_ones() -> None:
    assert cell(0.92).verdict == "within"
    assert cell(0.92, block="1M").verdict == "off"
    assert cell(0.97, block="1M").verdict == "within"
    assert cell(0.85).verdict == "off"
    assert cell(1.2).verdict == "off"


def test_the_median_of_several_runs_counts() -> None:
    runs = tuple(run_of(400.0, one, 320.0) for one in (10_000.0, 99_000.0, 101_000.0))
    assert replace(cell(1.0), runs=runs).off == pytest.approx(-0.01)


def test_a_reason_is_something_measured() -> None:
    slow = cell(0.5)
    assert slow.reason == ""
    ceiling = run_of(440.0, 110_000.0, 290.0)
    near = replace(cell(0.85), ceiling=ceiling)
    assert near.verdict == "explained"
    assert "serves 110,000 such requests" in near.reason
    assert replace(slow, ceiling=ceiling).verdict == "off", "it serves twice as many"
    above = replace(slow, ceiling=run_of(220.0, 55_000.0, 580.0))
    assert above.verdict == "explained", "more than that cannot be had here"
    far = replace(slow, ceiling=run_of(2000.0, 500_000.0, 64.0))
    assert far.verdict == "off"
    assert "97 % busy" in cell(0.5, busy=0.97).reason
    assert cell(1.0, busy=0.97).reason == ""
    assert cell(1.5, busy=0.97).verdict == "off", "nothing makes it faster than it is"


def test_all_cells_of_all_models_are_there_or_those_named() -> None:
    assert len(fidelity.points(["a", "b"], [])) == 2 * 4 * 3 * 7
    named = fidelity.points(["a", "b"], ["b 4k QD8", "1M mix"])
    assert {one.name for one in named if one.model == "b" and one.block == "4k"} == {
        f"b 4k QD8 {direction}" for direction in ("read", "write", "mix")
    }
    assert sum(one.model == "a" for one in named) == 7
    with pytest.raises(RequestError, match="a 4k QD1 read"):
        fidelity.points(["a"], ["b"])


def test_the_tables_have_every_cell_and_the_reasons() -> None:
    cells = [cell(1.01), replace(cell(0.5), depth=64), replace(cell(0.5, busy=0.95), depth=1)]
    text = fidelity_table.markdown(cells, "hotset disk calibrate-all", "2 cores")
    assert "1 of 3 cells are within 10 %" in text
    assert "| dc500m | 3 | 1 | 1 | 1 | +1.0 % | -1.0 % |" in text
    assert "| 4k read | -50.0 %* |  |  |  |  | +1.0 % | -50.0 % (!) |" in text
    because = "the processors were 95 % busy"
    assert f"| dc500m 4k QD1 read | 100,000 | 50,000 | +100.0 % | {because} |" in text


@needs_fuse
@pytest.mark.night
def test_a_slice_is_measured_kept_and_not_measured_again(tmp_path: Path) -> None:
    local, file = Local(), tmp_path / "kept"
    wanted = [Point("hdd-7200", "8k", 4, "read"), Point("dc500m-raid5", "4k", 1, "mix")]

    def measured() -> list[Cell]:
        kept = Kept(local, file, SIZE, 2)
        return list(fidelity.measure(local, wanted, SIZE, 2, kept, Reporter(quiet=True)))

    first = measured()
    assert [one.point for one in first] == wanted
    # How near they come is measured by `calibrate-all`: other tests take the processors here.
    assert all(one.expected.iops > 0 < one.measured.iops for one in first)
    assert first[0].off < 0.3, "a model of a hard disk serves faster than itself"
    with file.open("a") as out:
        out.write('{"stamp": ["cut o')
    assert measured() == first
    other = Kept(local, file, SIZE, 3)
    assert other.get(wanted[0]) is None, "of other seconds"


@needs_fuse
def test_a_device_is_so_much_faster_than_its_model_as_serving_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a request's way took longer than the device does, all of whose time is the way's."""
    plain, model = serving_path.plain, tmp_path / "slow.json"
    model.write_text(json.dumps(plain(40_000)))
    monkeypatch.setattr(serving_path, "plain", lambda latency_us: plain(latency_us + 50_000))
    for name, value in {"_RUNS": 1, "SECONDS": 1}.items():
        monkeypatch.setattr(serving_path, name, value)
    for name, value in {"_REPEATS": 0, "_SECONDS_MIN": 1}.items():
        monkeypatch.setattr(fidelity, name, value)
    wanted, kept = [Point(str(model), "4k", 1, "read")], Kept(Local(), tmp_path / "kept", SIZE, 1)
    (found,) = fidelity.measure(Local(), wanted, SIZE, 1, kept, Reporter(quiet=True))
    assert found.path_us > 40_000
    assert found.expected.latency_us > 39_000
    assert found.measured.latency_us < found.expected.latency_us / 2


@needs_fuse
@pytest.mark.night
def test_the_command_tells_cells_and_models(hotset: CommandLine, tmp_path: Path) -> None:
    words = ["--only", "hdd-7200 8k QD4 read", "--seconds", "2", "--size", "256MiB"]
    words += ["--kept", str(tmp_path / "kept"), "--format", "json"]
    done = hotset("disk", "calibrate-all", *words)
    found = json.loads(done.out)
    assert [one["model"] for one in found["models"]] == ["hdd-7200"]
    # Other tests take the processors from it, so that the cell may be off, which is code 5.
    assert done.code == (5 if found["cells"][0]["verdict"] == "off" else 0), done.err
    assert found["cells"][0]["off"] < 0.3
    again = record_of(Cell, found["cells"][0])
    assert again.measured.iops == found["cells"][0]["measured"]["iops"]
