"""Warm-ups: fill a disk's cache before its users come, and keep it filled."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    Lock,
    Nothing,
    Request,
    operation,
)
from hotset.core.paths import write_whole
from hotset.core.rights import Right
from hotset.core.units import Blocks
from hotset.disk import places

if TYPE_CHECKING:
    from hotset.databases.connect import NamesDatabase
    from hotset.disk.flash_devices import AttachedDisk

    from .. import text
    from ..plan import Request as Planning
    from ..plan_store import SavedPlan


def _full(path: str) -> str:
    if not PurePosixPath(path).is_absolute():
        raise ValueError(f"{path!r} is not a full path")
    return path


_FULL = r"^/[^\x00-\x1f\x7f]*$"
_TARGETS = "What to cache, most important first."
Method = Annotated[
    Literal["auto", "offline", "online"],
    Field(
        description="dm-cache: offline fills an idle device at the origin's rate; online reads"
        " through a device in use until the policy promotes the blocks; auto chooses."
        " bcache takes one pass of reads."
    ),
]
Pin = Annotated[
    fields.Targets, Field(description="A target that comes before all others. Repeatable.")
]
Exclude = Annotated[fields.Targets, Field(description="A target to leave out. Repeatable.")]
MountPoint = Annotated[
    Annotated[
        fields.ReadFile,
        AfterValidator(_full),
        WithJsonSchema({"type": "string", "maxLength": fields.TEXT_MAX, "pattern": _FULL}),
    ]
    | None,
    Field(
        description="Where the disk is usually mounted, if it is not mounted now. It is mounted"
        " there read-only for the duration."
    ),
]
Dsn = Annotated[
    fields.Server | None,
    Field(description="The database server, for table:, index: and database: targets."),
    Cli(variable="HOTSET_DSN"),
]
Rate = Annotated[fields.Rate | None, Field(description="Highest rate, such as 50MB/s.")]
Samples = Annotated[
    int,
    Field(
        ge=0,
        le=1_000_000,
        description="Offline: number of blocks to compare with the origin afterwards.",
    ),
]
Share = Annotated[
    float, Field(ge=0.01, le=1.0, description="Online: stop when this share is cached.")
]


class Lookup(Request):
    """Parameters for finding a target's blocks."""

    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    mount_point: MountPoint = None
    engine: fields.Product = "postgres"
    dsn: Dsn = None
    password: fields.Password = None


class Plan(Request):
    targets: Annotated[
        fields.Targets,
        Field(min_length=1, description=_TARGETS),
        Cli(argument=True, metavar="TARGET"),
    ]
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    pin: Pin = []
    exclude: Exclude = []
    mount_point: MountPoint = None
    engine: fields.Product = "postgres"
    dsn: Dsn = None
    password: fields.Password = None
    origin_rate: Annotated[
        fields.Rate | None,
        Field(description="The origin's sequential rate, such as 110MB/s; measured if left out."),
    ] = None


@operation(
    "warmup plan",
    Kind.QUERY,
    Right.OPERATE,
    ("Get", "HotsetWarmupPlan"),
    result="warmup.text:WarmupPlan",
)
def plan(request: Plan, context: Context) -> text.WarmupPlan:
    """Show what a warm-up would do: what fits, what does not, the order, and how long it takes."""
    from .. import plan as planning
    from .. import text

    wanted = _planning(request, request.targets)
    with places.disk_of(request.machine, request.disk, "warmup plan", "shared") as attached:
        rate = fields.maybe_rate(request.origin_rate)
        planned = planning.plan_with_estimate(attached, wanted, rate and rate / 1e6)
    for note in planned.notes:
        context.note(note)
    return text.WarmupPlan.from_plan(planned)


class Run(Request):
    targets: Annotated[
        fields.Targets | None,
        Field(description=_TARGETS),
        Cli(argument=True, metavar="TARGET"),
    ] = None
    resume: Annotated[
        fields.Word | None,
        Field(description="Resume this saved plan, or `last`: only what is missing is cached."),
    ] = None
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    method: Method = "auto"
    pin: Pin = []
    exclude: Exclude = []
    mount_point: MountPoint = None
    engine: fields.Product = "postgres"
    dsn: Dsn = None
    password: fields.Password = None
    rate: Rate = None
    samples: Samples = 100
    share: Share = 0.95


def _lock(request: Run | Restore) -> Lock:
    return places.on_disk(request.machine, request.disk)


def _with_its_plan(request: Run) -> Run:
    """A plan has a machine and a disk of its own, and ``last`` may be another one in a moment."""
    from .. import plan_store

    if request.resume is None:
        return request
    plan = plan_store.find(request.resume)
    named = {"resume": plan.id, "machine": plan.machine, "disk": plan.disk}
    return request.model_copy(update=named)


@operation(
    "warmup run",
    Kind.JOB,
    Right.OPERATE,
    ("Start", "HotsetWarmup"),
    progress=True,
    stored=_with_its_plan,
    lock=_lock,
    result="warmup.text:WarmupResult",
)
def run(request: Run, context: Context) -> text.WarmupResult:
    """Cache the targets. To continue after an interruption, use --resume or the same command.

    What is already cached stays if there is room. An offline warm-up needs an idle device: stop the
    database and unmount. If the device is not idle, the plan is saved for --resume.
    """
    from .. import plan_store

    if (request.resume is None) == (not request.targets):
        raise RequestError("give targets, or a plan to resume: one of the two", field="targets")
    if request.resume is not None:
        plan = plan_store.find(request.resume)
        with places.disk_of(plan.machine, plan.disk, "warmup run") as attached:
            return _perform(attached, *_look_again(attached, plan, request, context), context)
    wanted = _planning(request, request.targets or [])
    with places.disk_of(request.machine, request.disk, "warmup run") as attached:
        plan = _save(attached, wanted, request, context)
        return _perform(attached, plan, "", context)


class Restore(Request):
    file: Annotated[
        fields.ReadFile,
        Field(description="A file that `warmup snapshot` wrote."),
        Cli(argument=True, metavar="FILE"),
    ]
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    method: Method = "auto"
    rate: Rate = None
    samples: Samples = 100
    share: Share = 0.95


@operation(
    "warmup restore",
    Kind.JOB,
    Right.OPERATE,
    ("Restore", "HotsetSnapshot"),
    progress=True,
    lock=_lock,
    result="warmup.text:WarmupResult",
)
def restore(request: Restore, context: Context) -> text.WarmupResult:
    """Cache what a snapshot lists; same as `run snapshot:FILE`."""
    targets = [f"snapshot:{Path(request.file).absolute()}"]
    given = request.model_dump(exclude={"file"}, exclude_unset=True)
    return run(Run(targets=targets, **given), context)


class Snapshot(Request):
    output: Annotated[fields.WrittenFile, Field(description="The file to write, on this computer.")]
    disk: places.Disk = None
    machine: fields.Machine = "local"
    force: Annotated[
        bool, Field(description="Overwrite the file, whatever it is; a snapshot in any case.")
    ] = False


@operation("warmup snapshot", Kind.JOB, Right.OPERATE, ("New", "HotsetSnapshot"))
def snapshot(request: Snapshot, context: Context) -> Lines:
    """Save a list of what is cached now, to cache it again after a restart."""
    from .. import plan as planning
    from .. import snapshot as snapshots

    output = Path(request.output)
    if not snapshots.is_snapshot(output):
        fields.require_new(request.output, request.force)
    with places.disk_of(request.machine, request.disk, "warmup snapshot", "shared") as attached:
        taken = planning.take_snapshot(attached)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, taken.render())
    except OSError as error:
        raise RequestError(
            f"{output} cannot be written: {error.strerror}", field="output"
        ) from None
    context.message(
        f"{output}: {taken.bytes} cached of disk {taken.disk}, {len(taken.files)} files named"
    )
    return Lines()


@operation(
    "warmup plans",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetWarmup"),
    result="warmup.text:WarmupPlans",
)
def list_plans(request: Nothing, context: Context) -> text.WarmupPlans:  # noqa: ARG001
    """List the warm-up plans saved on this computer, newest last, and the state of each."""
    from .. import plan_store, text

    return text.WarmupPlans.from_plans(plan_store.every())


def planning_of(request: NamesDatabase, machine: str, mount_point: str | None = None) -> Planning:
    """Where a request's targets are looked up, with none of them yet."""
    from ..plan import Request as Planning

    usual = None if mount_point is None else PurePosixPath(mount_point)
    return Planning(
        machine,
        (),
        mount_point=usual,
        engine=request.engine,
        dsn=request.dsn,
        password=fields.secret(request.password),
    )


def _planning(request: Plan | Run, targets: list[str]) -> Planning:
    from ..targets import parse

    for text in (*targets, *request.pin, *request.exclude):
        parse(text)
    return replace(
        planning_of(request, request.machine, request.mount_point),
        targets=tuple(targets),
        pin=tuple(request.pin),
        exclude=tuple(request.exclude),
    )


def _refresh(attached: AttachedDisk, wanted: Planning, request: Run, context: Context) -> None:
    """Have hotset's own engine keep to what is pinned, where that lies by now."""
    from hotset.tier import kinds, pins
    from hotset.tier.base import TierFailedError

    from .. import division

    known = pins.read_preferences(attached.machine, attached.disk.name)
    if not (kinds.kind_of_name(attached.disk.kind).divides and known.targets):
        return
    if not attached.tier.is_active():
        return
    report = context.report
    try:
        for note in division.divide(attached, known, wanted, known.targets, report):
            context.note(note)
        division.fetch(attached, report, fields.maybe_rate(request.rate))
    except (RequestError, TierFailedError) as error:
        # What was asked for is the warm-up.
        context.note(f"what is pinned, excluded and shared stays as it was: {error}")


def _save(attached: AttachedDisk, wanted: Planning, request: Run, context: Context) -> SavedPlan:
    """Make a plan, and save it."""
    from .. import plan as planning
    from .. import plan_store, text
    from ..plan_store import SavedPlan

    disk = attached.disk
    _refresh(attached, wanted, request, context)
    whole, notes = planning.plan_request(attached, wanted)
    for note in notes:
        context.note(note)
    now = datetime.now().astimezone()
    plan = SavedPlan(
        plan_store.new_id(disk.name, now),
        now.isoformat(timespec="seconds"),
        request.machine,
        disk.name,
        str(disk.origin),
        wanted.targets,
        disk.spec.block,
        tuple(whole.runs),
        request.method,
        request.samples,
        request.share,
        fields.maybe_rate(request.rate),
        whole.left_out,
        pin=wanted.pin,
        exclude=wanted.exclude,
        mount_point=request.mount_point,
        engine=wanted.engine,
        dsn=wanted.dsn,
    )
    plan_store.save(plan)
    context.report.say(f"plan {plan.id}: {text.summary(whole)}")
    return plan


def _look_again(
    attached: AttachedDisk, plan: SavedPlan, request: Run, context: Context
) -> tuple[SavedPlan, str]:
    """A plan with its targets where they lie now, and why that is not known; empty: it is. Off line
    a database is down and its files are not mounted: then they are cached where they lay."""
    from hotset.databases.base import TargetGoneError

    from .. import plan_store
    from ..plan import CANNOT_BE_LOOKED_UP

    try:
        plan, notes = plan_store.look_again(attached, plan, _planning_again(plan, request))
    except TargetGoneError:
        raise
    except CANNOT_BE_LOOKED_UP as error:
        context.note(
            f"where {' '.join(plan.targets)} lies now is not known: {error}; it is cached where it"
            f" lay at {plan.looked_up or plan.created}"
        )
        return plan, str(error)
    for note in notes:
        context.note(note)
    return plan, ""


def _planning_again(plan: SavedPlan, request: Run) -> Planning:
    """Build the planning of a saved plan; a server that is named now is asked instead."""
    server = {"engine": plan.engine, "dsn": plan.dsn} if request.dsn is None else {}
    named = request.model_copy(update=server)
    usual = request.mount_point or plan.mount_point
    return replace(
        planning_of(named, plan.machine, usual),
        targets=plan.targets,
        pin=plan.pin,
        exclude=plan.exclude,
        without_gone=True,
    )


def _perform(
    attached: AttachedDisk, plan: SavedPlan, not_known: str, context: Context
) -> text.WarmupResult:
    from hotset.block.extents import count

    from .. import plan_store, text

    report = context.report
    with report.task(f"warm-up of {attached.disk.name}"):
        warmed = plan_store.perform(attached, plan, report)
    left = count(plan_store.missing(attached, plan.runs))
    cached = Blocks(count(plan.runs) - left)
    return text.WarmupResult.from_outcome(plan, warmed, cached, not_known)
