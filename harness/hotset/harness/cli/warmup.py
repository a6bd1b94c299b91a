"""``hotset warmup``: fill a disk's cache before its users come, and keep it filled."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hotset.harness.cli import pins, schedule
from hotset.harness.cli.options import (
    DiskArgument,
    DiskOption,
    Format,
    FormatOption,
    HostOption,
    PasswordFileOption,
    QuietOption,
    ServerOption,
    disk_of,
)

if TYPE_CHECKING:
    from hotset.cachelayer.card import Card, Disk
    from hotset.cachelayer.machine import Machine
    from hotset.cachelayer.units import Bytes
    from hotset.harness.warmups.jobs import Job
    from hotset.harness.warmups.planning import Request

app = typer.Typer(
    help="Fill a disk's cache before its users come. TARGETs, the most important first: a full path"
    " of a file or folder, table:NAME, index:NAME, database:NAME (--dsn), heat, snapshot:FILE.",
    no_args_is_help=True,
)
app.command("pin")(pins.pin_targets)
app.command("exclude")(pins.exclude_targets)
app.command("unpin")(pins.unpin_targets)
app.command("list")(pins.list_preferences)
app.add_typer(schedule.app, name="schedule")

TargetsArgument = Annotated[
    list[str], typer.Argument(metavar="TARGET...", help="What to cache, most important first.")
]
PinOption = Annotated[
    list[str], typer.Option("--pin", help="A target that comes before all others. Repeatable.")
]
ExcludeOption = Annotated[
    list[str], typer.Option("--exclude", help="A target that is never taken. Repeatable.")
]
MountPointOption = Annotated[
    str | None,
    typer.Option(
        help="Where the disk is usually mounted, if it is not now; there it is looked at read-only."
    ),
]
DsnOption = Annotated[
    str | None,
    typer.Option(
        "--dsn", envvar="HOTSET_DSN", help="The database server, for table:, index:, database:."
    ),
]
OriginRateOption = Annotated[
    str | None,
    typer.Option(help="The origin's sequential rate, such as 110MB/s; measured if left out."),
]
MethodOption = Annotated[
    Literal["auto", "offline", "online"],
    typer.Option(
        help="dm-cache: offline fills an idle device at the origin's rate, online reads through the"
        " one in use until the policy promotes; auto picks. bcache has one pass of reads."
    ),
]
RateOption = Annotated[str | None, typer.Option(help="At most so much, such as 50MB/s.")]
SamplesOption = Annotated[
    int, typer.Option(min=0, help="Off line: blocks compared with the origin afterwards.")
]
ShareOption = Annotated[
    float, typer.Option(min=0.01, max=1.0, help="On line: enough when so much is cached.")
]


@app.command("plan")
def plan(
    targets: TargetsArgument,
    disk: DiskOption = None,
    machine: HostOption = "local",
    pin: PinOption = [],  # noqa: B006 - typer copies it
    exclude: ExcludeOption = [],  # noqa: B006
    mount_point: MountPointOption = None,
    engine: ServerOption = "postgres",
    dsn: DsnOption = None,
    password_file: PasswordFileOption = None,
    origin_rate: OriginRateOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """What a warm-up would do: what fits, what does not, in which order, how long."""
    from hotset.harness.progress import to_stdout
    from hotset.harness.warmups import planning, text

    request = _request(machine, targets, pin, exclude, mount_point, engine, dsn, password_file)
    with disk_of(machine, disk) as (there, card, found):
        rate = _rate(origin_rate, "--origin-rate")
        planned = planning.planned(there, card, found, request, rate and rate / 1e6)
    _note(planned.notes)
    to_stdout(text.plan(planned, format_.value))


@app.command("run")
def run(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET...]", help="What to cache, most important first."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with this job (last: the newest): only what is missing is done."),
    ] = None,
    disk: DiskOption = None,
    machine: HostOption = "local",
    method: MethodOption = "auto",
    pin: PinOption = [],  # noqa: B006
    exclude: ExcludeOption = [],  # noqa: B006
    mount_point: MountPointOption = None,
    engine: ServerOption = "postgres",
    dsn: DsnOption = None,
    password_file: PasswordFileOption = None,
    rate: RateOption = None,
    samples: SamplesOption = 100,
    share: ShareOption = 0.95,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Cache the targets. Whatever interrupts it, --resume or the same command goes on.

    What is cached already stays, as far as there is room. Off line the device must be idle: stop
    the database and unmount; a plan that is refused for that is kept as a job to --resume.
    """
    from hotset.harness.warmups import jobs

    if (resume is None) == (not targets):
        raise typer.BadParameter("give TARGETs, or --resume JOB", param_hint="TARGET")
    if resume is not None:
        job = jobs.find(resume)
        with disk_of(job.machine, job.disk) as (there, card, found):
            _perform(there, card, found, job, format_, quiet)
        return
    request = _request(
        machine, targets or [], pin, exclude, mount_point, engine, dsn, password_file
    )
    limit = _rate(rate, "--rate")
    with disk_of(machine, disk) as (there, card, found):
        job = _job(there, card, found, request, method, samples, share, limit, quiet)
        _perform(there, card, found, job, format_, quiet)


@app.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `warmup snapshot` wrote.")],
    disk: DiskOption = None,
    machine: HostOption = "local",
    method: MethodOption = "auto",
    rate: RateOption = None,
    samples: SamplesOption = 100,
    share: ShareOption = 0.95,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Cache what a snapshot says: `run snapshot:FILE`."""
    run([f"snapshot:{file.absolute()}"], None, disk, machine, method, [], [], None, "postgres",
        None, None, rate, samples, share, format_, quiet)  # fmt: skip


@app.command("snapshot")
def snapshot(
    output: Annotated[Path, typer.Option(help="The file to write, on this computer.")],
    disk: DiskArgument = None,
    machine: HostOption = "local",
) -> None:
    """Save what is cached now, to have it cached again after a restart."""
    from hotset.cachelayer.paths import write_whole
    from hotset.harness.warmups import planning

    with disk_of(machine, disk) as (there, card, found):
        taken = planning.take_snapshot(there, card, found)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, taken.render())
    except OSError as error:
        raise typer.BadParameter(
            f"{output} cannot be written: {error.strerror}", param_hint="--output"
        ) from None
    typer.echo(
        f"{output}: {taken.bytes} cached of disk {taken.disk}, {len(taken.files)} files named",
        err=True,
    )


@app.command("jobs")
def list_jobs(format_: FormatOption = Format.TABLE) -> None:
    """Warm-up jobs that this computer has kept, the newest last."""
    from hotset.harness.progress import to_stdout
    from hotset.harness.warmups import jobs, text

    to_stdout(text.jobs(jobs.every(), format_.value))


def _request(
    machine: str,
    targets: list[str],
    pin: list[str],
    exclude: list[str],
    mount_point: str | None,
    engine: Literal["postgres", "sqlserver"],
    dsn: str | None,
    password_file: Path | None,
) -> Request:
    from hotset.harness.warmups.planning import Request
    from hotset.harness.warmups.targets import parse

    for text in (*targets, *pin, *exclude):
        parse(text)
    usual = None if mount_point is None else PurePosixPath(mount_point)
    if usual is not None and not usual.is_absolute():
        raise typer.BadParameter(f"{mount_point!r} is not a full path", param_hint="--mount-point")
    return Request(machine, tuple(targets), tuple(pin), tuple(exclude), usual, engine, dsn,
                   password_file)  # fmt: skip


def _note(notes: list[str]) -> None:
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _job(
    machine: Machine,
    card: Card,
    disk: Disk,
    request: Request,
    method: Literal["auto", "offline", "online"],
    samples: int,
    share: float,
    rate: Bytes | None,
    quiet: bool,
) -> Job:
    """Plan, and keep the plan as a job."""
    from datetime import datetime

    from hotset.harness.warmups import jobs, planning, text
    from hotset.harness.warmups.jobs import Job

    whole, notes = planning.made(machine, card, disk, request)
    _note(notes)
    now = datetime.now().astimezone()
    job = Job(jobs.new_id(disk.name, now), now.isoformat(timespec="seconds"), request.machine,
              disk.name, str(disk.origin), request.targets, disk.spec.block, tuple(whole.runs),
              method, samples, share, rate)  # fmt: skip
    jobs.save(job)
    if not quiet:
        typer.echo(f"job {job.id}: {text.summary(whole)}", err=True)
    return job


def _perform(
    machine: Machine, card: Card, disk: Disk, job: Job, format_: Format, quiet: bool
) -> None:
    from hotset.cachelayer.extents import count
    from hotset.cachelayer.units import Blocks
    from hotset.harness.progress import Reporter, to_stdout
    from hotset.harness.warmups import jobs, text

    report = Reporter(quiet)
    with report.task(f"warm-up of {disk.name}"):
        warmed = jobs.perform(machine, card, disk, job, report)
    left = count(jobs.missing(machine, card, disk, job.runs))
    cached = Blocks(count(job.runs) - left)
    to_stdout(text.done(job, warmed, cached, format_.value))


def _rate(text: str | None, option: str) -> Bytes | None:
    """Bytes a second."""
    from hotset.cachelayer.units import Bytes

    if text is None:
        return None
    try:
        rate = Bytes.parse(text.removesuffix("/s"))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if rate < 1:
        raise typer.BadParameter("a rate is more than 0", param_hint=option)
    return rate
