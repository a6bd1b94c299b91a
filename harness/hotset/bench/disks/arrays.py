"""The arrays of a published test (Kingston DC500M in a NAS, 2020), modelled: its table beside ours,
and what becomes of an array when a member fails, or of a drive when the power does."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import mean
from threading import Event
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from hotset.block import flashdev
from hotset.block.flashdev import Model
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import print_table
from hotset.lab import served_model
from hotset.reports.model.disks import (
    BenchLine,
    BenchRun,
    DiskArrayFailure,
    DiskArrayLine,
    DiskArraySearch,
    DiskPowerFailure,
    DiskPowerFailureFile,
    DiskResults,
    ServingPath,
    Way,
)

from . import disk_bench, search, serving_path
from .disk_bench import PROFILES, Direction
from .search import SearchLoad
from .serving_path import print_paths

if TYPE_CHECKING:
    from rich.console import Console

TOLERANCE = 0.15
Unit = Literal["MB/s", "IOPS", "us"]
_SEQUENTIAL, _RANDOM = PROFILES[1], PROFILES[3]
CELLS: tuple[tuple[str, Direction, Unit], ...] = (
    (_SEQUENTIAL.name, "read", "MB/s"),
    (_SEQUENTIAL.name, "write", "MB/s"),
    (_RANDOM.name, "read", "IOPS"),
    (_RANDOM.name, "write", "IOPS"),
    (_RANDOM.name, "read", "us"),
    (_RANDOM.name, "write", "us"),
)
# In the order of the cells; None where the test gives nothing.
PUBLISHED: dict[str, tuple[float | None, ...]] = {
    "hdd-raid5-2014": (520, 420, None, None, None, None),
    "dc500m-raid5": (991.32, 1816.72, 2874.27, 6349.12, 338.99, 149.24),
    "dc500m-raid6": (1124.01, 1429.50, 2971.19, 6081.30, 328.07, 156.73),
    "dc500m-raid-f1": (1104.37, 1840.82, 3009.52, 6281.98, 323.34, 150.72),
    "dc500m-raid0": (None,) * 6,
}
_FAILING = ("dc500m-raid5", "dc500m-raid6", "dc500m-raid-f1")
_DRIVE = "dc500m"
_SERVED = 0.05
"""A model that is served as fast as it is, within this, is not what makes a difference."""
FAILED_MEMBER = 1
_REBUILD_LIMIT_S = 120.0
_CUT_AFTER_S = 1.0
_PAGE = 4096
_FLUSHED_EVERY = (16, 64, 256, None, None, None)
"""Files that are written at once: after how many pages each is flushed; None: never."""
CUT_SIZE = Bytes(1024**3)


@dataclass(frozen=True)
class DiskArrays(Versioned):
    """All that was measured. ``paths``: time that serving adds to a small request here."""

    csv_rows = "lines"

    lines: tuple[DiskArrayLine, ...] = ()
    failures: tuple[DiskArrayFailure, ...] = ()
    cuts: tuple[DiskPowerFailure, ...] = ()
    searches: tuple[DiskArraySearch, ...] = ()
    paths: tuple[ServingPath, ...] = ()

    @classmethod
    def from_results(cls, results: DiskResults) -> DiskArrays:
        return cls(results.lines, results.failures, results.cuts, results.searches, results.paths)

    def show(self, console: Console) -> None:
        from hotset.reports.render import disk_tables

        columns, rows = disk_tables.lines(self.document())
        without = [row[:-1] for row in rows]
        print_table(console, "the published table and ours", columns[:-1], without)
        for line in self.lines:
            if line.reason:
                about = f"{line.array} {line.profile} {line.direction}, {line.unit}"
                console.print(f"{about}: {line.reason}", markup=False)
        print_paths(console, self.paths)
        for failure in self.failures:
            rebuilt = "later" if failure.rebuilt_s is None else f"after {failure.rebuilt_s:.1f} s"
            console.print(
                f"{failure.array}, a member fails: {failure.before_iops:,.0f} reads a second"
                f" before, {failure.during_iops:,.0f} in the time after it; rebuilt {rebuilt}",
                markup=False,
            )
        for cut in self.cuts:
            kind = "with" if cut.protected else "without"
            console.print(
                f"power cut {kind} power-loss protection: {Bytes(cut.lost_bytes)} of answered"
                f" writes lost, {Bytes(cut.flushed_lost_bytes)} of what was flushed;"
                f" {sum(file.lost_bytes > 0 for file in cut.files)} of {len(cut.files)} files"
                " are not as they were answered",
                markup=False,
            )

        if self.searches:
            print_table(
                console, "searching while posts come in", *disk_tables.searches(self.document())
            )

    def csv(self) -> str:
        from hotset.reports.render import disk_tables

        return disk_tables.csv(self.document())


@dataclass(frozen=True, slots=True)
class Load:
    """How much is measured. ``search`` is None where that is left out."""

    size: Bytes
    seconds: float
    repeats: int
    search: SearchLoad | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A measurement to take on an array."""

    kind: Literal["search", "values", "failure", "power cut"]
    array: str

    @property
    def name(self) -> str:
        """
        >>> Part("values", "dc500m-raid5").name
        'values of dc500m-raid5'
        """
        return f"{self.kind} of {self.array}"


def parts(search_too: bool) -> tuple[Part, ...]:
    """The whole scenario. The search is first, as it is refused where something is missing."""
    return (
        *(Part("search", array) for array in search.ARRAYS if search_too),
        *(Part("values", array) for array in PUBLISHED),
        *(Part("failure", array) for array in _FAILING),
        Part("power cut", _DRIVE),
    )


def require(local: Local, load: Load) -> None:
    """:raises RootError: not root, whom the search takes.
    :raises PrerequisiteMissingError: a part of the search is missing.
    """
    if load.search is not None:
        search.require(local)


def ways(wanted: Sequence[Part]) -> tuple[Way, ...]:
    """How the arrays of these parts are reached: a search is on a file system."""
    both: tuple[Way, ...] = ("file", "loop")
    needed = {"loop" if part.kind == "search" else "file" for part in wanted}
    return tuple(way for way in both if way in needed)


def measure(
    local: Local,
    wanted: Sequence[Part],
    load: Load,
    paths: Sequence[ServingPath],
    report: Reporter,
) -> Generator[DiskResults]:
    """Measure each of these parts, in their order.

    :param paths: the serving times here, from :func:`serving_path.measure` for their ways.
    """
    searched = [part.array for part in wanted if part.kind == "search"]
    through_loop, as_file = (serving_path.find_us(paths, way) for way in ("loop", "file"))
    searches = search.measure(local, searched, load.search or SearchLoad(), through_loop, report)
    with closing(searches):
        for part in wanted:
            if part.kind == "search":
                of_array = _search(searches, report)
                yield DiskResults(scenario="arrays", searches=(of_array,))
            else:
                yield _measure(local, part, load, as_file, report)


def _search(searches: Iterator[DiskArraySearch], report: Reporter) -> DiskArraySearch:
    search = next(searches)
    p50, p99 = search.searched.p50_ms, search.searched.p99_ms
    report.say(
        f"{search.array}: {search.searches_per_s:,.0f} searches/s, {p50:.1f} ms, {p99:.1f} ms"
    )
    return search


def _measure(
    local: Local, part: Part, load: Load, path_us: int | None, report: Reporter
) -> DiskResults:
    array = part.array
    if part.kind == "values":
        lines = []
        for line in table(local, array, load, path_us):
            lines.append(line)
            report.say(f"{array} {line.profile} {line.direction}: {line.ours:,.0f} {line.unit}")
        return DiskResults(scenario="arrays", lines=tuple(lines))
    if part.kind == "failure":
        report.say(f"{array}: member {FAILED_MEMBER} fails under load")
        failure = member_fails(local, array, load.size, load.seconds, path_us)
        return DiskResults(scenario="arrays", failures=(failure,))
    report.say(f"{array}: the power fails under writes, with protection and without")
    kinds = (True, False)
    cuts = (power_fails(local, array, protected, CUT_SIZE, path_us) for protected in kinds)
    return DiskResults(scenario="arrays", cuts=tuple(cuts))


def table(local: Local, array: str, load: Load, path_us: int | None) -> Iterator[DiskArrayLine]:
    """An array of the published table, measured by fio on its model."""
    samples: dict[tuple[str, Direction], BenchRun] = {}
    size, seconds = load.size, load.seconds
    with served_model.serve_model(local, array, size, path_us=path_us) as served:
        for cell in cells(local, served.file, size, seconds, load.repeats):
            samples[cell.profile, cell.direction] = cell.median
    for (profile, direction, unit), value in zip(CELLS, PUBLISHED[array], strict=True):
        sample = samples[profile, direction]
        promised = promise(local, array, size, profile, direction, seconds)
        line = compare(array, profile, direction, unit, value, _in(unit, sample))
        most = partial(_most, local, profile, direction)
        yield explain(line, promised, path_us, most)


def compare(
    array: str,
    profile: str,
    direction: Direction,
    unit: Unit,
    published: float | None,
    ours: float,
) -> DiskArrayLine:
    """A value of the published table and ours."""
    return DiskArrayLine(
        array=array,
        profile=profile,
        direction=direction,
        unit=unit,
        published=published,
        ours=ours,
        reason="",
        off=None if published is None else ours / published - 1,
    )


def cells(
    local: Local, file: Path, size: Bytes, seconds: float, repeats: int
) -> Iterator[BenchLine]:
    """Measure an array with fio."""
    directions: tuple[Direction, ...] = ("read", "write")
    profiles = (_SEQUENTIAL, _RANDOM)
    return disk_bench.run(local, file, size, seconds, repeats, directions, profiles)


def reads(local: Local, file: Path, size: Bytes, seconds: float) -> float:
    """4 KiB random reads a second, 32 at a time."""
    return disk_bench.measure(local, file, size, seconds, PROFILES[2], "read").iops


@cache
def promise(
    local: Local, array: str, size: Bytes, profile: str, direction: Direction, seconds: float
) -> BenchRun:
    """Return the model's result for the same load in virtual time."""
    shape = _profile(profile)
    words = ["--size", str(int(size)), "--load", direction, "--seconds", str(max(1, int(seconds)))]
    words += ["--block", str(shape.block), "--depth", str(shape.depth)]
    return disk_bench.promise(local, array, words if shape.random else [*words, "--sequential"])


def explain(
    line: DiskArrayLine, promised: BenchRun, path_us: int | None, most: Callable[[], BenchRun]
) -> DiskArrayLine:
    """A value with the reason of its difference from the published one, if that is large.

    :param promised: the model's result for the load in virtual time.
    :param path_us: time taken off for serving it; None: not measured.
    :param most: tells what this computer serves of such a load without any model.
    """
    if line.published is None or line.off is None or abs(line.off) <= TOLERANCE:
        return line
    ideal, shown = _in(line.unit, promised), line.unit.replace("us", "µs")
    reason = f"the model makes {ideal:,.0f} {shown}"
    if abs(ideal / line.published - 1) > TOLERANCE:
        reason += " on a file of this size"
    served = line.ours / ideal - 1
    if abs(served) > _SERVED:
        is_slower = served > 0 if line.unit == "us" else served < 0
        reason += f"; {_slower(shown, _in(line.unit, most())) if is_slower else _faster(path_us)}"
    return line.model_copy(update={"reason": reason})


def _slower(unit: str, most: float) -> str:
    """One request at a time, so that both times add up."""
    return (
        "it was served more slowly, as this computer's own time"
        f" ({most:,.0f} {unit} without a model) is added to the model's"
    )


def _faster(path_us: int | None) -> str:
    """Explain a faster result: only the compensation for the path can make a model faster."""
    if not path_us:
        return "it was served faster, and no reason is known"
    return f"it was served faster, as its way took less than the {path_us} µs that were measured"


@cache
def _most(local: Local, profile: str, direction: Direction) -> BenchRun:
    return serving_path.ceiling(local, _profile(profile), direction)


def _profile(name: str) -> disk_bench.Profile:
    return next(known for known in PROFILES if known.name == name)


def _in(unit: Unit, sample: BenchRun) -> float:
    return {"MB/s": sample.mb_per_s, "IOPS": sample.iops, "us": sample.latency_us}[unit]


def member_fails(
    local: Local, array: Model, size: Bytes, seconds: float, path_us: int | None = None
) -> DiskArrayFailure:
    """A member fails under load, which goes on until a spare has taken its place."""
    over = Event()
    with (
        served_model.serve_model(local, array, size, path_us=path_us) as served,
        ThreadPoolExecutor(1) as beside,
    ):
        before = reads(local, served.file, size, seconds)
        under_load = beside.submit(_reads_until, over, local, served.file, size, seconds)
        try:
            begun = time.monotonic()
            served_model.fail(local, served.socket, FAILED_MEMBER)
            rebuilt = None
            while rebuilt is None and not under_load.done():
                time.sleep(0.1)
                state = served_model.status(local, served.socket)
                if all(member.state == "active" for member in state.members):
                    rebuilt = time.monotonic() - begun
                elif time.monotonic() - begun > _REBUILD_LIMIT_S:
                    break
        finally:
            over.set()
        return DiskArrayFailure(
            array=str(array),
            before_iops=before,
            during_iops=under_load.result(),
            rebuilt_s=rebuilt,
        )


def _reads_until(over: Event, local: Local, file: Path, size: Bytes, seconds: float) -> float:
    """Reads a second, of as many runs as begin before it is over; of one at least."""
    samples = [reads(local, file, size, seconds)]
    while not over.is_set():
        samples.append(reads(local, file, size, seconds))
    return mean(samples)


def power_fails(
    local: Local, drive: Model, protected: bool, size: Bytes, path_us: int | None = None
) -> DiskPowerFailure:
    """Write files on a drive with or without power-loss protection until its power fails, and
    compare them with what was written."""
    model = flashdev.library_model(local, drive) if isinstance(drive, str) else drive
    _protect(model["device"], protected)
    with tempfile.TemporaryDirectory(prefix="hotset-cut-") as folder:
        backing = Path(folder) / "data"
        with backing.open("wb") as file:
            file.truncate(size)
        with (
            served_model.serve_model(
                local, model, size, backing=backing, path_us=path_us
            ) as served,
            ThreadPoolExecutor(len(_FLUSHED_EVERY)) as beside,
        ):
            share = size // len(_FLUSHED_EVERY) // _PAGE
            writing = [
                beside.submit(_write, served.file, range(nth * share, (nth + 1) * share), every)
                for nth, every in enumerate(_FLUSHED_EVERY)
            ]
            time.sleep(_CUT_AFTER_S)
            reply = served_model.power_cut(local, served.socket)
            written = [future.result() for future in writing]
        with backing.open("rb") as stored:
            files = tuple(_compare_file(stored, file) for file in written)
    return DiskPowerFailure(
        protected=protected,
        reported_bytes=int(reply),
        lost_bytes=sum(file.lost_bytes for file in files),
        flushed_lost_bytes=sum(file.flushed_lost_bytes for file in files),
        files=files,
    )


def _protect(device: dict[str, Any], protected: bool) -> None:
    """Every flash device of a model's tree."""
    for kind, fields in device.items():
        if kind == "ssd":
            fields["power_loss_protection"] = protected
        elif isinstance(fields, dict):
            _protect(fields, protected)


@dataclass(frozen=True, slots=True)
class _Written:
    """Pages of a file that were answered, from page ``first`` of the drive on; so many of them
    were flushed."""

    every: int | None
    first: int
    pages: list[bytes]
    flushed: int


def _write(drive: Path, where: range, every: int | None) -> _Written:
    """A file's pages one after the other, and a flush ``every`` so many, until that fails."""
    pages: list[bytes] = []
    flushed = 0
    with suppress(OSError), drive.open("r+b", buffering=0) as out:
        out.seek(where.start * _PAGE)
        for number in range(1, len(where) + 1):
            page = os.urandom(_PAGE)
            out.write(page)
            pages.append(page)
            if every and number % every == 0:
                os.fsync(out.fileno())
                flushed = number
    return _Written(every, where.start, pages, flushed)


def _compare_file(stored: BinaryIO, written: _Written) -> DiskPowerFailureFile:
    """Count the bytes of a file that the drive lost in the power cut."""
    stored.seek(written.first * _PAGE)
    lost = [nth for nth, page in enumerate(written.pages) if stored.read(_PAGE) != page]
    flushed_lost = sum(nth < written.flushed for nth in lost)
    return DiskPowerFailureFile(
        flushed_every=written.every,
        written_bytes=_PAGE * len(written.pages),
        flushed_bytes=_PAGE * written.flushed,
        lost_bytes=_PAGE * len(lost),
        flushed_lost_bytes=_PAGE * flushed_lost,
    )
