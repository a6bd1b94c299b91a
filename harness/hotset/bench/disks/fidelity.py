"""Is a served device model as fast as it promises? Every model, request size, queue depth and
direction: fio on the served file, beside the same load on the same model in virtual time.

Each cell begins with a device that has done nothing before, on both sides, so that caches which
fill in the meantime fill alike. What is off without a known reason is measured twice more and the
median counts: a computer that others use as well has its hiccups.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hotset.block import flashdev
from hotset.block.flashdev import Model
from hotset.core.errors import RequestError
from hotset.core.machines.local import Local
from hotset.core.paths import read_json_lines
from hotset.core.progress import Measured, Reporter
from hotset.core.record import derived, document_of, record_of
from hotset.core.units import Bytes
from hotset.core.words import deviation, percent
from hotset.hitratio.sampler import Cpu, parse_cpu
from hotset.lab import served_model
from hotset.reports.model.disks import BenchRun, median_run

from . import disk_bench, serving_path
from .disk_bench import DIRECTIONS, Direction, Profile

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
BLOCKS = {"4k": 4096, "8k": 8192, "64k": 65536, "1M": 1024**2}
_SEQUENTIAL = "1M"
TOLERANCE, TOLERANCE_MB_PER_S = 0.10, 0.05
_ENOUGH_REQUESTS = 1000
"""For a mean that does not wander; a fast device makes them in less than the time."""
_SECONDS_MIN = 2
_REPEATS = 2
_NEAR_CEILING = 0.8
_BUSY = 0.9
_MEMORY = Path("/dev/shm")  # noqa: S108 - files of our own in a folder of our own
Verdict = Literal["within", "explained", "off"]


@dataclass(frozen=True, slots=True)
class Point:
    """One load on one model: 1 MiB requests one after the other, smaller ones anywhere."""

    model: str
    block: str
    depth: int
    direction: Direction

    @property
    def name(self) -> str:
        """
        >>> Point("dc500m", "4k", 8, "read").name
        'dc500m 4k QD8 read'
        """
        return f"{self.model} {self.block} QD{self.depth} {self.direction}"

    @property
    def profile(self) -> Profile:
        return Profile(self.name, self.block != _SEQUENTIAL, BLOCKS[self.block], self.depth)


@dataclass(frozen=True, slots=True)
class Cell:
    """A point measured.

    :ivar seconds: of each run.
    :ivar runs: one, and up to two more where it was off for no known reason.
    :ivar path_us: time that serving added to a small request on this computer.
    :ivar busy: the processors' share of time in work while the last one ran.
    :ivar ceiling: this computer's limit for such a load without a model; only measured where
        the cell is off.
    """

    model: str
    block: str
    depth: int
    direction: Direction
    seconds: int
    expected: BenchRun
    runs: tuple[BenchRun, ...]
    path_us: int
    busy: float
    ceiling: BenchRun | None = None

    @property
    def point(self) -> Point:
        return Point(self.model, self.block, self.depth, self.direction)

    @derived
    def measured(self) -> BenchRun:
        return median_run(self.runs)

    @derived
    def off(self) -> float:
        """Relative error of the requests per second, which is that of MB/s as well."""
        return self.measured.iops / self.expected.iops - 1

    @derived
    def latency_off(self) -> float:
        return self.measured.latency_us / self.expected.latency_us - 1

    @property
    def is_within(self) -> bool:
        """True if within tolerance, which is tighter for the rates of 1 MiB requests."""
        allowed = TOLERANCE_MB_PER_S if self.block == _SEQUENTIAL else TOLERANCE
        return abs(self.off) <= allowed and abs(self.latency_off) <= TOLERANCE

    @property
    def is_at_ceiling(self) -> bool:
        """True if about this computer's ceiling was expected, and about that was measured."""
        if self.ceiling is None:
            return False
        most = _NEAR_CEILING * self.ceiling.iops
        return self.expected.iops >= most and self.measured.iops >= min(
            most, _NEAR_CEILING * self.expected.iops
        )

    @derived
    def reason(self) -> str:
        """Why it is slower, where that was measured; nothing of that makes it faster."""
        if self.is_within or self.off > 0:
            return ""
        if self.is_at_ceiling:
            served = self.ceiling.iops if self.ceiling else 0
            return f"this computer serves {served:,.0f} such requests a second without any model"
        if self.busy >= _BUSY:
            return f"the processors were {percent(self.busy, 0)} busy"
        return ""

    @derived
    def verdict(self) -> Verdict:
        if self.is_within:
            return "within"
        return "explained" if self.reason else "off"


def points(models: Sequence[str], only: Sequence[str]) -> list[Point]:
    """All of these models, or those whose name has every word of one of ``only``.

    :raises RequestError: there is none.
    """
    all_points = [
        Point(model, block, depth, direction)
        for model in models
        for block in BLOCKS
        for direction in DIRECTIONS
        for depth in DEPTHS
    ]
    wanted = [
        point for point in all_points if not only or any(_is_named(point, words) for words in only)
    ]
    if not wanted:
        raise RequestError(
            f"no cell is named like {' or '.join(only)}: they are named such as"
            f" {all_points[0].name}",
            field="only",
        )
    return wanted


def _is_named(point: Point, words: str) -> bool:
    return set(words.split()) <= set(point.name.split())


class Kept:
    """The cells of earlier calls, in a file, a line of JSON each.

    A cell counts for the program, the model, the size and the seconds that it was measured with,
    and for how a cell is measured and judged.
    """

    def __init__(self, local: Local, file: Path, size: Bytes, seconds: int) -> None:
        self._file = file
        judged = [TOLERANCE, TOLERANCE_MB_PER_S, _ENOUGH_REQUESTS, _REPEATS]
        self._stamp = [flashdev.build(local), int(size), seconds, *judged]
        self._cells: dict[Point, Cell] = {}
        for loaded in read_json_lines(file):
            with suppress(ValueError, KeyError, TypeError):
                if loaded["stamp"] == self._stamp:
                    cell = record_of(Cell, loaded["cell"])
                    self._cells[cell.point] = cell

    def get(self, point: Point) -> Cell | None:
        return self._cells.get(point)

    def forget(self, points: Sequence[Point]) -> None:
        """They are to be measured again."""
        for point in points:
            self._cells.pop(point, None)

    def add(self, cell: Cell) -> None:
        self._cells[cell.point] = cell
        line = json.dumps({"stamp": self._stamp, "cell": document_of(cell)})
        with self._file.open("a", encoding="utf-8") as out:
            out.write(f"{line}\n")


def measure(
    local: Local, wanted: Sequence[Point], size: Bytes, seconds: int, kept: Kept, report: Reporter
) -> Iterator[Cell]:
    """The cells, those that are kept first of all."""
    begun, done = time.monotonic(), 0
    missing = [point for point in wanted if kept.get(point) is None]
    if len(missing) < len(wanted):
        report.say(f"{len(wanted) - len(missing)} cells were measured before")
    yield from (cell for point in wanted if (cell := kept.get(point)) is not None)
    if not missing:
        return
    with _backing(size, report) as backing, report.task(f"{len(missing)} cells"):
        bench = _Bench(local, backing, size, seconds)
        report.say(f"serving takes {bench.path_us} us of a small request's time here")
        for point in missing:
            cell = bench.measure(point)
            kept.add(cell)
            done += 1
            measured = Measured.by_rate(done, len(missing), "cells", time.monotonic() - begun)
            report.figure(_progress(cell, measured), measured)
            if cell.verdict == "off":
                slower = deviation(cell.latency_off, 0)
                report.say(f"{point.name}: {deviation(cell.off, 0)}, latency {slower}")
            yield cell


def _progress(cell: Cell, measured: Measured) -> str:
    return (
        f"{measured.done:.0f} of {measured.total:.0f} cells: {cell.point.name}"
        f" {cell.measured.iops:,.0f} of {cell.expected.iops:,.0f} IOPS"
        f" ({deviation(cell.off)}){measured.left}"
    )


@contextmanager
def _backing(size: Bytes, report: Reporter) -> Iterator[Path]:
    """The devices' content: in memory where there is room, so that no disk of this computer's is
    measured."""
    room = os.statvfs(_MEMORY) if _MEMORY.is_dir() else None
    fits = room is not None and room.f_bavail * room.f_frsize > 2 * size
    if not fits:
        report.say(
            f"{_MEMORY} has no room for twice {size}: the devices' content lies on a disk of this"
            " computer, which is measured as well"
        )
    with tempfile.TemporaryDirectory(
        prefix="hotset-fidelity-", dir=_MEMORY if fits else None
    ) as name:
        file = Path(name) / "data"
        with file.open("wb") as out:
            os.posix_fallocate(out.fileno(), 0, int(size))
        yield file


class _Bench:
    """Measures cells, and what this computer serves at all."""

    def __init__(self, local: Local, backing: Path, size: Bytes, seconds: int) -> None:
        self._local, self._backing = local, backing
        self._size, self._seconds = size, seconds
        self._ceilings: dict[Profile, BenchRun] = {}
        self._path_us: int | None = None

    @property
    def path_us(self) -> int:
        """Time that serving adds to a small request on this computer, measured once: a device is so
        much faster than its model that both together take the model's time."""
        if self._path_us is None:
            quiet = Reporter(quiet=True)
            (path,) = serving_path.measure(self._local, ("file",), quiet)
            self._path_us = path.path_us
        return self._path_us

    def measure(self, point: Point) -> Cell:
        seconds = self._seconds
        expected = self._expect(point, seconds)
        needed = max(_SECONDS_MIN, -(-_ENOUGH_REQUESTS // max(1, int(expected.iops))))
        if needed < seconds:
            seconds, expected = needed, self._expect(point, needed)
        named = (point.model, point.block, point.depth, point.direction, seconds, expected)
        sample, busy = self._run(point.model, point, seconds)
        cell = Cell(*named, (sample,), self.path_us, busy)
        if cell.is_within:
            return cell
        cell = replace(cell, ceiling=self._ceiling(point))
        if cell.verdict != "off":
            return cell
        # All of them, however the first comes out: else chance would be asked until it agrees.
        more = [self._run(point.model, point, seconds) for _ in range(_REPEATS)]
        busy = statistics.median([busy, *(busy_share for _, busy_share in more)])
        return replace(cell, runs=(sample, *(repeated for repeated, _ in more)), busy=busy)

    def _expect(self, point: Point, seconds: int) -> BenchRun:
        words = ["--size", str(int(self._size)), "--load", point.direction]
        words += ["--block", str(point.profile.block), "--depth", str(point.depth)]
        words += ["--seconds", str(seconds)]
        words += [] if point.profile.random else ["--sequential"]
        return disk_bench.promise(self._local, point.model, words)

    def _run(self, model: Model, point: Point, seconds: int) -> tuple[BenchRun, float]:
        """fio's sample, and how busy the processors were."""
        path_us = self.path_us
        with served_model.serve_model(
            self._local, model, self._size, backing=self._backing, path_us=path_us
        ) as served:
            before = _cpu()
            sample = disk_bench.measure(
                self._local,
                served.file,
                self._size,
                seconds,
                point.profile,
                point.direction,
                refill=False,
            )
            after = _cpu()
        return sample, (after.busy - before.busy) / max(1, after.total - before.total)

    def _ceiling(self, point: Point) -> BenchRun:
        alike = Point("plain", point.block, point.depth, point.direction)
        if alike.profile not in self._ceilings:
            self._ceilings[alike.profile], _ = self._run(
                serving_path.plain(0.0), alike, _SECONDS_MIN
            )
        return self._ceilings[alike.profile]


def _cpu() -> Cpu:
    return parse_cpu(Path("/proc/stat").read_text().partition("\n")[0])
