"""Counters per region of a tier between models, beside its totals and what fio says it asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import flashdev, programs
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.hitratio.heat import difference, total
from hotset.hitratio.region_counters import EngineCounters

pytestmark = pytest.mark.lab

MIB = 1024**2
BLOCK = 64 * 1024
DISK, CACHE = 64 * MIB, 32 * MIB


@pytest.fixture
def tier(tmp_path: Path) -> Iterator[Path]:
    """The folder of a running tier: ``mount/data`` is the disk, ``control`` its socket."""
    if not Path("/dev/fuse").exists():
        pytest.skip("hotset's own engine needs /dev/fuse")
    local, cleanup = Local(), Cleanup(tmp_path, Local())
    for name, size in (("origin", DISK), ("flash", 3 * CACHE)):
        local.run(["truncate", "-s", str(size), str(tmp_path / name)])
    words = [
        "tier",
        "--origin-model",
        "nvme-2024",
        "--origin",
        str(tmp_path / "origin"),
        "--flash",
        str(tmp_path / "flash"),
        "--metadata",
        str(4 * MIB),
        "--cache",
        str(CACHE),
        "--volume",
        str(MIB),
        "--block",
        str(BLOCK),
        "--policy",
        "smq",
        "--mode",
        "writeback",
        "--control",
        str(tmp_path / "control"),
        "--volatile",
        "--discard",
    ]
    with cleanup.part():
        flashdev.serve(local, words, tmp_path / "mount", tmp_path / "log", cleanup, "tier")
        yield tmp_path


def ask(tier: Path, what: object) -> dict[str, int]:
    argv = [str(programs.find_engine()), "ask", str(tier / "control"), json.dumps(what)]
    answer: dict[str, int] = json.loads(Local().run(argv).stdout.splitlines()[-1])
    return answer


def load(tier: Path, *words: str) -> tuple[int, int]:
    """fio on the disk; reads and writes that it made."""
    argv = [
        "fio",
        "--name=load",
        f"--filename={tier / 'mount/data'}",
        "--direct=1",
        "--bs=8k",
        "--ioengine=libaio",
        "--iodepth=4",
        "--output-format=json",
        *words,
    ]
    text = Local().run(argv).stdout
    job = json.loads(text[text.index("{") :])["jobs"][0]
    return int(job["read"]["total_ios"]), int(job["write"]["total_ios"])


def test_regions_tell_where_the_hits_are_and_add_up(tier: Path) -> None:
    ask(tier, {"warm": {"runs": [[0, 256]]}})
    counters = EngineCounters(Local(), PurePosixPath(tier / "control"))
    before, own = counters.read(), ask(tier, {"counters": {}})
    assert before.grid.region == BLOCK
    assert before.grid.disk == DISK
    assert (counters.start(), counters.stop()) == (False, False)
    warm = load(tier, "--rw=randrw", "--size=16M", "--number_ios=800")
    cold = load(tier, "--rw=randread", "--offset=32M", "--size=32M", "--number_ios=200")
    after, now = counters.read(), ask(tier, {"counters": {}})
    assert after.epoch == before.epoch
    gained = difference(before.tallies, after.tallies)
    whole = total(gained.values())
    for name in ("read_hits", "read_misses", "write_hits", "write_misses"):
        assert getattr(whole, name) == now[name] - own[name], "parts are the whole"
    assert (whole.reads, whole.writes) == (warm[0] + cold[0], warm[1])
    first = total(tally for number, tally in gained.items() if number < 256)
    second = total(tally for number, tally in gained.items() if number >= 512)
    assert first.ratio == 1.0, "all of it was warmed"
    assert (first.reads, first.writes) == warm
    assert (second.reads, second.read_misses > 0) == (cold[0], True)
    assert total([first, second]) == whole, "nothing in between"
