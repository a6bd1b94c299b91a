"""Device models, benchmarks of disks, and members of modelled arrays that fail."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hotset.core import extras, fields
from hotset.core.extras import Extra
from hotset.core.machines.local import Local
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lock,
    Nothing,
    OnThisComputer,
    Recorded,
    Request,
    check_output,
    operation,
)
from hotset.core.record import Result, extend
from hotset.core.rights import Makes, Needs, Right
from hotset.core.units import Bytes
from hotset.core.words import csv_text, print_table

from .. import thresholds
from . import keeping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from hotset.lab.calibrate import DiskCalibration
    from hotset.lab.served_model import DiskArray, DiskPowerCut
    from hotset.reports.model.windows import Verdict

    from ..disks.disk_bench import Change, Direction, DiskBench
    from ..disks.disk_models import DiskModels
    from ..disks.raffle import DiskRaffle
    from ..disks.reread import TenFiles
    from ..kept.measurement import Kept

Row = tuple[object, ...]
_MEMORY = Bytes(2 * 1024**3)
LabMachine = Literal["auto", "local", "image", "uml"]


PageFile = Annotated[
    Path | None,
    Field(description="Also write the result here, as an HTML page that needs no network."),
    OnThisComputer,
]


def check_page(page: Path | None) -> None:
    """Before the work, not after it. Raises RequestError, ExtraMissingError."""
    check_output(page, "page")
    if page is not None:
        extras.require(Extra.REPORT)


def write_page(page: Path | None, operation: str, result: Result, context: Context) -> None:
    """A scenario's result as a page, where one was asked for."""
    if page is None:
        return
    from hotset.reports.render import disk_pages, html

    context.write(page, html.render_page(disk_pages.PAGES[operation](result.document())))


@operation(
    "disk models",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetDiskModel"),
    result="bench.disks.disk_models:DiskModels",
)
def models(request: Nothing, context: Context) -> DiskModels:  # noqa: ARG001
    """List the device models that come with hotset, and the values they should reach."""
    from ..disks import disk_models

    return disk_models.DiskModels(tuple(disk_models.library(Local())))


class Bench(Request):
    target: Annotated[
        fields.Device | None,
        Field(description="A file (created if it is missing) or a block device."),
        Cli(argument=True, metavar="TARGET"),
    ] = None
    model: Annotated[
        fields.DiskModel | None,
        Field(description="Measure a device model instead: its name or JSON file."),
    ] = None
    size: Annotated[fields.Size, Field(description="Size of the test file."), Makes()] = "1GiB"
    repeats: Annotated[
        int, Field(ge=1, le=1000, description="How often each line is measured.")
    ] = 5
    seconds: Annotated[float, Field(ge=0.5, le=3600, description="Seconds of each run.")] = 5.0
    read_only: Annotated[bool, Field(description="Write nothing.")] = False
    yes: Annotated[bool, Field(description="Allow overwriting existing data on a device.")] = False
    against: Annotated[
        fields.ReadFile | None,
        Field(description="A saved result (--format json) to compare with."),
    ] = None
    threshold: Annotated[
        fields.Expressions | None,
        fields.thresholds("'mb_per_s(seq1m-q8t1-read)>=500' or 'latency(rnd4k-q1t1-read)<1ms'"),
    ] = None
    junit: fields.Junit = None
    label: fields.RunLabel = None
    keep: fields.Keep = True


@dataclass(frozen=True, slots=True)
class BenchResult(Recorded[Any]):
    """
    :ivar before: the target of the result that it is compared with, and the changes.
    :ivar verdicts: of its thresholds.
    """

    described_by = "bench.disks.disk_bench:JudgedBench"
    csv_rows = "cells"
    before: tuple[str, list[Change]] | None = None
    verdicts: tuple[Verdict, ...] = ()

    def show(self, console: Console) -> None:
        from ..disks import serving_path

        bench = self.content
        emulated = ", emulated" if bench.emulated else ""
        title = f"{bench.target}{emulated}: {Bytes(bench.size)}, {bench.seconds:g} s a run, median"
        print_table(console, title, *self._cells)
        serving_path.print_paths(console, bench.paths)
        if self.before:
            print_table(console, f"compared with {self.before[0]}", *self._changes)
        for verdict in self.verdicts:
            console.print(verdict.text, markup=False)

    def failure(self) -> Exception | None:
        return thresholds.collect_missed(self.verdicts)

    def csv(self) -> str:
        tables = [csv_text(*self._cells)]
        if self.before:
            tables.append(csv_text(*self._changes))
        return "\n".join(tables)

    @property
    def _cells(self) -> tuple[Sequence[str], list[Row]]:
        rows: list[Row] = [
            (cell.profile, cell.direction, median.mb_per_s, median.iops, median.latency_us)
            for cell in self.content.cells
            for median in (cell.median,)
        ]
        return ("profile", "direction", "MB/s", "IOPS", "latency us"), rows

    @property
    def _changes(self) -> tuple[Sequence[str], list[Row]]:
        rows: list[Row] = [
            (
                change.profile,
                change.direction,
                change.before.mb_per_s,
                change.after.mb_per_s,
                change.factor,
            )
            for change in (self.before[1] if self.before else ())
        ]
        return ("profile", "direction", "before MB/s", "after MB/s", "factor"), rows


def _lock_device(request: Bench) -> Lock:
    return Lock("disk", request.target or request.model)


@operation(
    "disk bench",
    Kind.JOB,
    Right.ADMIN,
    ("Measure", "HotsetDiskSpeed"),
    destroys=True,
    progress=True,
    lock=_lock_device,
    extras=(Extra.BENCH,),
)
def bench(request: Bench, context: Context) -> BenchResult:
    """Run the CrystalDiskMark profile with fio: sequential and random, read, write and 70/30.

    It bypasses the page cache and shows the median of the runs. Exit code 5: a threshold was
    missed.
    """
    from ..disks import disk_bench, disk_metrics

    before = disk_bench.read(Path(request.against)) if request.against else None
    directions = ("read",) if request.read_only else disk_bench.DIRECTIONS
    limits = disk_metrics.limits(request.threshold or [], directions, before is not None)
    check_output(request.junit, "junit")
    begun = time.monotonic()
    kept = keeping.begin(request.keep, keeping.of_disk(request), context)
    with keeping.failing(kept):
        measured = _bench(request, directions, kept, context)
        changes = disk_bench.compare(before, measured) if before else []
    verdicts = tuple(thresholds.judge(limits, disk_metrics.values(measured, changes)))
    if request.junit is not None:
        cases = [thresholds.Case.from_verdict("hotset.disk.bench", verdict) for verdict in verdicts]
        text = thresholds.junit("hotset.disk.bench", cases, time.monotonic() - begun)
        context.write(request.junit, text)
    kept.judge(verdicts)
    keeping.finish(kept, "complete", None, context)
    result = extend(disk_bench.JudgedBench, measured, thresholds=verdicts, run=kept.run)
    return BenchResult(result, (before.target, changes) if before else None, verdicts)


def _bench(
    request: Bench, directions: Sequence[Direction], kept: Kept, context: Context
) -> DiskBench:

    from ..disks import bench_target, disk_bench, serving_path
    from ..kept import tier

    local, size = Local(), Bytes.parse(request.size)
    path = Path(request.target) if request.target else None
    model, read_only = request.model, request.read_only
    say, ask = context.report.say, context.ask_for_name
    served = model is not None and path is None
    paths = serving_path.measure(local, ("file",) if served else (), context.report)
    with (
        bench_target.open_target(
            local,
            path,
            model,
            size,
            read_only,
            request.yes,
            say,
            ask,
            serving_path.find_us(paths, "file"),
        ) as opened,
        tier.observe(kept, local, PurePosixPath(opened.file)),
    ):
        measured = disk_bench.DiskBench(
            opened.name, model is not None, int(size), request.seconds, (), paths
        )
        for cell in disk_bench.run(
            local, opened.file, size, request.seconds, request.repeats, directions
        ):
            measured = replace(measured, cells=(*measured.cells, cell))
            kept.keep_lines(measured)
            speed = cell.median.mb_per_s
            context.report.say(f"{cell.profile} {cell.direction}: {speed:.1f} MB/s")
    return measured


class Raffle(Request):
    folder: Annotated[
        fields.WrittenFile | None,
        Field(description="A folder on the disk to test."),
        Cli(argument=True, metavar="FOLDER"),
    ] = None
    model: Annotated[
        fields.DiskModel | None,
        Field(
            description="Read from a device model instead: its name or JSON file. Takes root, as"
            " it is mounted."
        ),
        Needs(Right.ADMIN),
    ] = None
    size: Annotated[
        fields.Size, Field(description="Size of each of the ten files."), Makes(files=10)
    ] = "100MB"
    passes: Annotated[int, Field(ge=1, le=1000, description="How often to draw all tickets.")] = 2
    warm: Annotated[bool, Field(description="Let the page cache help after the first pass.")] = (
        False
    )
    seed: Annotated[fields.Seed, Field(description="Seed of the drawing order.")] = 1
    keep: Annotated[bool, Field(description="Keep the files afterwards.")] = False


@operation(
    "disk raffle",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetDiskRaffle"),
    progress=True,
    lock=lambda request: Lock("disk", request.folder or request.model),
    result="bench.disks.raffle:DiskRaffle",
)
def hold_raffle(request: Raffle, context: Context) -> DiskRaffle:
    """Draw 100 tickets for ten files and read them: which layer serves those drawn often?

    Cold by default: a file is dropped from the page cache before each read, so that the device
    serves it. With --warm the page cache is emptied only once.
    """
    from ..disks import raffle

    report, raffles = context.report, []
    with _raffle_files(request, context) as files:
        for name in raffle.WEIGHTS:
            raffle.drop(files.folder / name)
        for number in range(request.passes):
            report.say(f"pass {number + 1} of {request.passes}")
            held = raffle.WEIGHTS, request.seed, number, not request.warm
            raffles.append(raffle.hold(files.folder, *held, files.count))
    return raffle.DiskRaffle(tuple(raffles))


@contextmanager
def _raffle_files(request: Raffle, context: Context) -> Iterator[TenFiles]:
    """The ten files, in a folder of the user's or on a model."""
    from ..disks import raffle, reread

    report, size = context.report, Bytes.parse(request.size)
    if (request.folder is None) == (request.model is None):
        raise raffle.RaffleError("name a folder, or a model: one of them", field="model")
    if request.model is not None:
        if request.keep:
            raise raffle.RaffleError("a model's files are gone with it", field="keep")
        with reread.on_model(Local(), request.model, size, report) as files:
            yield files
    elif request.folder is not None:
        folder = Path(request.folder)
        try:
            with report.task(f"writing ten files of {size}"):
                place = raffle.prepare(folder, tuple(raffle.WEIGHTS), size)
            yield reread.TenFiles(place, raffle.nothing_counted)
        finally:
            if not request.keep:
                raffle.remove(folder)


class Served(Request):
    socket: Annotated[
        fields.ReadFile,
        Field(description="Control socket of `flashdev serve --control`."),
        Cli(argument=True, metavar="SOCKET"),
    ]


class Member(Served):
    member: Annotated[
        int,
        Field(ge=0, le=1000, description="The member's number, from 0."),
        Cli(argument=True, metavar="MEMBER"),
    ]


def _lock_socket(request: Served) -> Lock:
    return Lock("array", request.socket)


@operation(
    "disk status",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetDiskArray"),
    result="lab.served_model:DiskArray",
)
def array_status(request: Served, context: Context) -> DiskArray:  # noqa: ARG001
    """Show the members of a served array, and how far a rebuild is."""
    from hotset.lab import served_model

    return served_model.status(Local(), Path(request.socket))


@operation(
    "disk fail",
    Kind.JOB,
    Right.OPERATE,
    ("Disable", "HotsetDiskMember"),
    lock=_lock_socket,
    result="lab.served_model:DiskArray",
    stops=True,
)
def fail_member(request: Member, context: Context) -> DiskArray:  # noqa: ARG001
    """Make a member of a served array fail. A hot spare takes its place if there is one."""
    from hotset.lab import served_model

    return served_model.fail(Local(), Path(request.socket), request.member)


@operation(
    "disk replace",
    Kind.JOB,
    Right.OPERATE,
    ("Repair", "HotsetDiskMember"),
    lock=_lock_socket,
    result="lab.served_model:DiskArray",
)
def replace_member(request: Member, context: Context) -> DiskArray:  # noqa: ARG001
    """Replace a failed member of a served array with a new device, and rebuild it."""
    from hotset.lab import served_model

    return served_model.replace(Local(), Path(request.socket), request.member)


@operation(
    "disk power-cut",
    Kind.JOB,
    Right.OPERATE,
    ("Stop", "HotsetDisk"),
    lock=_lock_socket,
    result="lab.served_model:DiskPowerCut",
    stops=True,
)
def cut_power(request: Served, context: Context) -> DiskPowerCut:  # noqa: ARG001
    """Cut the power of a served device: it loses its volatile buffer, and every request fails.

    Serve its backing file again to see what is left.
    """
    from hotset.lab import served_model

    lost = served_model.power_cut(Local(), Path(request.socket))
    return served_model.DiskPowerCut(lost)


class CalibrateDisk(Request):
    model: Annotated[
        fields.DiskModel, Field(description="A built-in model's name, or its JSON file.")
    ] = "nas-2014"
    size: Annotated[fields.Size, Field(description="Size of the disk."), Makes()] = "1GiB"
    machine: Annotated[LabMachine, Field(description="The lab's machine.")] = "auto"


@operation(
    "disk calibrate",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetDisk"),
    progress=True,
    lock=lambda request: Lock("lab"),  # noqa: ARG005
    extras=(Extra.BENCH,),
    result="lab.calibrate:DiskCalibration",
)
def calibrate_disk(request: CalibrateDisk, context: Context) -> DiskCalibration:
    """Measure the lab's slow disk with fio, and compare it with its model.

    It measures through the whole chain, iSCSI included. Exit code 5 when a value is off by more
    than 15 %.
    """
    from hotset.lab import calibrate, doctor
    from hotset.lab import lab as labs

    report, size = context.report, Bytes.parse(request.size)
    doctor.require(labs.choose(request.machine))
    spec = labs.LabSpec(request.machine, cores=2, memory=_MEMORY, flash=Bytes(64 * 1024**2))
    with labs.running(spec, "disk calibrate", report.say) as lab:
        storage = lab.backend.slow_disk(request.model, size)
        with lab.cleanup.part():
            device = storage.attach(lab.cleanup)
            lines = calibrate.disk(lab.machine, device, request.model, size, report)
    return calibrate.DiskCalibration(request.model, tuple(lines))
