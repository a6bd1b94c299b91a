"""The CrystalDiskMark profile, by fio: how fast is a file, a device or a model?

CrystalDiskMark 7 runs DiskSpd for five seconds on a test file, five times, and shows the best of
them. Here the median is shown, which one lucky run cannot move; `DiskBench.runs` has them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from hotset.block import flashdev
from hotset.block.flashdev import Model
from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.record import Versioned, record_of
from hotset.core.units import Bytes
from hotset.reports.model.disks import BenchLine, BenchRun, ServingPath
from hotset.reports.model.windows import Verdict

Direction = Literal["read", "write", "mix"]
DIRECTIONS: tuple[Direction, ...] = ("read", "write", "mix")
_PATTERNS = {
    (False, "read"): "read",
    (False, "write"): "write",
    (False, "mix"): "rw",
    (True, "read"): "randread",
    (True, "write"): "randwrite",
    (True, "mix"): "randrw",
}
_MIX_READ_PERCENT = 70
_SMALLEST = 16 * 1024**2


class BenchError(RequestError):
    """The benchmark cannot be run as asked; the message says what would do."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One line of the table: ``depth`` requests of ``block`` bytes at a time, by one thread."""

    name: str
    random: bool
    block: int
    depth: int


PROFILES = (
    Profile("SEQ1M Q8T1", False, 1024**2, 8),
    Profile("SEQ1M Q1T1", False, 1024**2, 1),
    Profile("RND4K Q32T1", True, 4096, 32),
    Profile("RND4K Q1T1", True, 4096, 1),
)


@dataclass(frozen=True, slots=True)
class DiskBench:
    """The result of a disk benchmark.

    :ivar emulated: the target was a model.
    :ivar paths: time that serving it adds to a small request here.
    """

    target: str
    emulated: bool
    size: int
    seconds: float
    cells: tuple[BenchLine, ...]
    paths: tuple[ServingPath, ...] = ()

    def cell(self, profile: str, direction: Direction) -> BenchLine | None:
        matching = (
            cell for cell in self.cells if (cell.profile, cell.direction) == (profile, direction)
        )
        return next(matching, None)


@dataclass(frozen=True)
class JudgedBench(DiskBench, Versioned):
    """A benchmark, and its thresholds. ``run``: what it is in the archive; None: not kept."""

    thresholds: tuple[Verdict, ...] = ()
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A cell of two results: how many times as fast the second is."""

    profile: str
    direction: Direction
    before: BenchRun
    after: BenchRun

    @property
    def factor(self) -> float:
        return self.after.iops / self.before.iops


def read(file: Path) -> DiskBench:
    """A saved result.

    :raises BenchError: the file cannot be read or holds no result.
    """
    try:
        return record_of(DiskBench, json.loads(file.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "it"
        raise BenchError(f"{file}: no result of disk bench: {key}: {first['msg']}") from None
    except (OSError, ValueError) as error:
        raise BenchError(f"{file}: no result of a benchmark: {error}") from None


def compare(before: DiskBench, after: DiskBench) -> list[Change]:
    """The cells that both have.

    :raises BenchError: they differ in the size of the test file, or have no cell in common.
    """
    if before.size != after.size:
        raise BenchError(
            f"the results were measured on {Bytes(before.size)} and on {Bytes(after.size)}: caches"
            " make those two different things; run one again with the other's size",
            field="size",
        )
    changes = []
    for cell in before.cells:
        other = after.cell(cell.profile, cell.direction)
        if other is not None:
            changes.append(Change(cell.profile, cell.direction, cell.median, other.median))
    if not changes:
        raise BenchError("the two results have no line in common")
    return changes


def run(
    machine: Machine,
    file: Path,
    size: Bytes,
    seconds: float,
    repeats: int,
    directions: Iterable[Direction],
    profiles: Sequence[Profile] = PROFILES,
) -> Iterator[BenchLine]:
    """Measure a file or block device of a machine, cell by cell, without the page cache.

    :param file: must exist and be ``size`` bytes long at least; what is written has no meaning.
    """
    if size < _SMALLEST:
        raise BenchError(f"{size} is too little: take {Bytes(_SMALLEST)} at least", field="size")
    for direction in directions:
        for profile in profiles:
            runs = (
                measure(machine, file, size, seconds, profile, direction) for _ in range(repeats)
            )
            yield BenchLine(profile=profile.name, direction=direction, runs=tuple(runs))


def measure(
    machine: Machine,
    file: Path,
    size: Bytes,
    seconds: float,
    profile: Profile,
    direction: Direction,
    refill: bool = True,
) -> BenchRun:
    """One run of fio.

    :param refill: new data for each write, which takes processor time; a model needs none.
    """
    # A colon separates file names for fio; unescaped, it would make plain files of the parts.
    name = str(file).replace(":", "\\:")
    argv = [
        "fio",
        "--name=hotset",
        f"--filename={name}",
        "--allow_file_create=0",
        f"--rw={_PATTERNS[profile.random, direction]}",
        f"--rwmixread={_MIX_READ_PERCENT}",
        f"--bs={profile.block}",
        f"--iodepth={profile.depth}",
        "--ioengine=libaio",
        "--direct=1",
        f"--size={int(size)}",
        "--time_based",
        f"--runtime={seconds:g}",
        "--randrepeat=0",
        "--norandommap",
        *(["--refill_buffers"] if refill else []),
        "--output-format=json",
    ]
    return sample_of(machine.run(argv, timeout_s=seconds + 90).stdout)


def promise(local: Local, model: Model, words: Sequence[str]) -> BenchRun:
    """Return a model's result for a load in virtual time."""
    promised = flashdev.read_promise(local, model, words)
    return BenchRun(
        mb_per_s=promised["mb_per_s"],
        iops=promised["iops"],
        latency_us=promised["latency_us_mean"],
    )


def sample_of(text: str) -> BenchRun:
    """Parse fio's JSON for its one job, reads and writes together.

    >>> sample_of('note {"jobs": [{"read": {"iops": 30.0, "bw_bytes": 3000000, "total_ios": 30,'
    ...     ' "lat_ns": {"mean": 1000.0}}, "write": {"iops": 10.0, "bw_bytes": 1000000,'
    ...     ' "total_ios": 10, "lat_ns": {"mean": 5000.0}}}]}')
    BenchRun(mb_per_s=4.0, iops=40.0, latency_us=2.0)
    """
    # fio may print notes before its JSON.
    job = json.loads(text[text.index("{") :])["jobs"][0]
    sides = [job["read"], job["write"]]
    requests = sum(side["total_ios"] for side in sides)
    if not requests:
        raise BenchError("no request was answered in the time: measure longer")
    waited_ns = sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides)
    return BenchRun(
        mb_per_s=sum(side["bw_bytes"] for side in sides) / 1e6,
        iops=sum(side["iops"] for side in sides),
        latency_us=waited_ns / requests / 1e3,
    )
