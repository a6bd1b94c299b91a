"""The flash cache of a server's disks: set up, inspected, taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from hotset.core import fields
from hotset.core.errors import HotsetError, RequestError
from hotset.core.machines import names as machines
from hotset.core.machines.base import MachineGoneError
from hotset.core.operation import Cli, Context, Kind, Lines, Request, operation
from hotset.core.record import convert
from hotset.core.rights import Needs, Right
from hotset.tier.policies import Policy

from . import places

if TYPE_CHECKING:
    from hotset.core.machines.base import Machine

_DRY_RUN = "Print every command that would change something, and run none."
DryRun = Annotated[bool, Field(description=_DRY_RUN)]
BreakReservation = Annotated[
    bool,
    Field(
        description="Take the origin away from the host that has reserved it. That host's writes"
        " then fail."
    ),
    Needs(Right.ADMIN),
]
Overwrite = Annotated[bool, Field(description="Allow overwriting existing data."), Cli(short="-y")]


class NamedDisk(Request):
    """A disk of a machine, by its name."""

    disk: places.NamedDisk
    machine: fields.Machine = "local"


class Create(Request):
    disk: Annotated[
        fields.Word,
        Field(min_length=1, description="A name for the accelerated disk."),
        Cli(argument=True, metavar="DISK"),
    ]
    flash: Annotated[
        fields.Device,
        Field(description="The flash device, as /dev/disk/by-id/…; with `userspace` also a file."),
    ]
    origin: Annotated[
        fields.Device,
        Field(description="The slow device (or file, as above). Existing data is kept."),
    ]
    cache: Annotated[
        fields.Size, Field(description="Size of this disk's cache on the flash, such as 100GiB.")
    ]
    database: Annotated[
        Literal["oltp", "warehouse"],
        Field(description="The kind of database: sets block size, write mode and bypass."),
    ]
    database_size: Annotated[
        fields.Size | None,
        Field(
            description="How large the database is: `userspace` takes smaller blocks for a cache"
            " that holds less than a third of it."
        ),
    ] = None
    kind: Annotated[
        Literal["dm-cache", "bcache", "userspace"],
        Field(
            description="The kernel's dm-cache or bcache, or hotset's own engine in user space,"
            " which needs neither."
        ),
    ] = "dm-cache"
    volume: Annotated[
        fields.Size | None,
        Field(description="Size of a plain volume on the flash, for logs and temporary space."),
    ] = None
    mode: Annotated[
        Literal["writeback", "writethrough"] | None,
        Field(description="Write mode, in place of the one for this kind of database."),
    ] = None
    block: Annotated[
        fields.Size | None,
        Field(
            description="Size of the cache's blocks, in place of the one for this kind of database"
            " (not bcache)."
        ),
    ] = None
    policy: Annotated[
        Policy | None,
        Field(description="What decides which blocks are cached. Only `userspace` has a choice."),
    ] = None
    reserve: Annotated[
        bool,
        Field(
            description="Keep other hosts from writing to the origin, if the storage supports it."
        ),
        Cli(off="--no-reserve"),
    ] = True
    break_reservation: BreakReservation = False
    machine: fields.Machine = "local"
    yes: Overwrite = False
    dry_run: DryRun = False


@operation(
    "tier create",
    Kind.JOB,
    Right.ADMIN,
    ("New", "HotsetTier"),
    destroys=True,
    progress=True,
    lock=places.lock_of,
)
def create(request: Create, context: Context) -> Lines:
    """Put a flash cache in front of a disk, in place: existing data is kept.

    A second disk on the same flash uses what is left of it.
    """
    from . import create as creation

    wanted = convert(creation.CreateRequest, request)
    commands: list[str] | None = [] if request.dry_run else None
    ask = None if request.dry_run else context.ask_for_name
    with places.repartitioning(request.machine, f"tier create {request.disk}", commands) as machine:
        creation.create(machine, wanted, request.yes, context.report.say, ask)
    if commands is not None:
        context.report.say("that was a dry run: nothing was changed")
    return Lines(tuple(commands or ()))


class Activate(Request):
    disk: Annotated[
        places.Disk, Field(description="The accelerated disk; all of the machine if left out.")
    ] = None
    unit: Annotated[
        bool,
        Field(description="Also write a systemd unit that does this at every boot."),
        Needs(Right.ADMIN),
    ] = False
    yes: Annotated[
        bool,
        Field(description="With --unit: change /etc/fstab where it mounts the origin."),
        Needs(Right.ADMIN),
    ] = False
    keep_flash: Annotated[
        bool,
        Field(
            description="Trust what the flash holds, although the origin was written to in between."
        ),
        Needs(Right.ADMIN),
    ] = False
    break_reservation: BreakReservation = False
    machine: fields.Machine = "local"
    dry_run: DryRun = False

    @field_validator("keep_flash", "break_reservation")
    @classmethod
    def _of_one(cls, wanted: bool, info: ValidationInfo) -> bool:
        if wanted and info.data.get("disk") is None:
            raise ValueError("it may lose data: name the disk")
        return wanted


@operation(
    "tier activate",
    Kind.JOB,
    Right.OPERATE,
    ("Enable", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
)
def activate(request: Activate, context: Context) -> Lines:
    """Set up the devices again after a reboot: of all disks, or of the one you name.

    What may lose data is done to one that is named. Damaged metadata is found before it is used.
    """
    from hotset.tier.base import TierFailedError

    from . import flash_devices

    commands: list[str] | None = [] if request.dry_run else None
    with machines.open_machine(request.machine) as machine:
        names = [disk.disk.name for disk in flash_devices.list_disks(machine)]
        if request.disk or not names:
            names = [flash_devices.find(machine, request.disk).disk.name]
    failed = []
    for name in names:
        try:
            _activate(request, name, commands, context)
        except HotsetError as error:
            # One bad disk keeps no other from its users, whatever is wrong with it.
            if len(names) == 1 or isinstance(error, MachineGoneError):
                raise
            failed.append(name)
            context.message(str(error))
    if failed:
        raise TierFailedError(f"not activated: {', '.join(failed)}")
    return Lines(tuple(commands or ()))


def _activate(request: Activate, name: str, commands: list[str] | None, context: Context) -> None:
    from . import flash_devices, lifecycle
    from .boot import startup

    say = context.report.say
    place = (request.machine, name, "tier activate", commands)
    with places.disk_as_root(*place, alone=request.unit) as attached:
        machine, disk = attached.machine, attached.disk
        if request.unit:
            startup.check(
                machine,
                name,
                disk.kind,
                disk.origin,
                request.yes,
                say,
                unit=True,
                recorded=disk.origin_id,
            )
        lifecycle.activate(
            attached,
            say,
            break_reservation=request.break_reservation,
            flash_counts=request.keep_flash,
        )
        if request.unit:
            say(f"written: {startup.set_up(flash_devices.find(machine, disk.name), say)}")


@operation(
    "tier deactivate",
    Kind.JOB,
    Right.OPERATE,
    ("Disable", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
    stops=True,
)
def deactivate(request: NamedDisk, context: Context) -> Lines:
    """Remove a disk's devices. What is cached stays on the flash, including dirty blocks."""
    from . import lifecycle

    with places.disk_as_root(request.machine, request.disk, "tier deactivate") as attached:
        lifecycle.deactivate(attached, context.report.say)
    return Lines()


@operation(
    "tier flush",
    Kind.JOB,
    Right.OPERATE,
    ("Sync", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
)
def flush(request: places.OneDisk, context: Context) -> Lines:
    """Write all dirty data back to the origin. The cache stays in use."""
    from hotset.tier.stalled import FlushWatch

    from . import lifecycle

    report = context.report
    with places.disk_as_root(request.machine, request.disk, "tier flush") as attached:
        disk = attached.disk
        watch = FlushWatch(report, disk.spec.block)
        with report.task(f"writing back what is dirty on {disk.device}"):
            dirty = lifecycle.flush(attached, watch, report.say)
        report.say(f"{dirty} blocks of {disk.spec.block} were dirty; none is")
    return Lines()


class Resize(places.OneDisk):
    cache: Annotated[fields.Size | None, Field(description="The cache's new size.")] = None
    flush: Annotated[
        bool, Field(description="Write back dirty data first, if that is necessary.")
    ] = False


@operation(
    "tier resize",
    Kind.JOB,
    Right.OPERATE,
    ("Resize", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
)
def resize(request: Resize, context: Context) -> Lines:
    """Adapt to an origin that has grown; with --cache, change the size of the cache.

    The file system may stay mounted.
    """
    from hotset.tier.stalled import FlushWatch

    from . import resize as resizing

    with places.disk_repartitioning(request.machine, request.disk, "tier resize") as attached:
        watch = FlushWatch(context.report, attached.disk.spec.block)
        size = fields.maybe_size(request.cache)
        resizing.resize(attached, size, request.flush, watch, context.report.say)
    return Lines()


class Set(places.OneDisk):
    policy: Annotated[
        Policy | None,
        Field(description="What decides which blocks are cached (only with `userspace`)."),
    ] = None
    mode: Annotated[
        Literal["writeback", "writethrough"] | None,
        Field(
            description="When a write counts as done: once it is on the flash, or on the origin as"
            " well."
        ),
        Needs(Right.ADMIN),
    ] = None
    origin: Annotated[
        fields.Device | None,
        Field(description="The origin's new name, if it has another now; the disk must be down."),
        Needs(Right.ADMIN),
    ] = None


@operation(
    "tier set",
    Kind.JOB,
    Right.OPERATE,
    ("Set", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
)
def set_(request: Set, context: Context) -> Lines:
    """Change the policy or the write mode of a disk while it is in use, or the name of its origin.

    Before write-through starts, all dirty data is written back. A new name of the origin is taken
    only if it leads to the same disk, by World Wide Name, serial number or UUID.
    """
    from hotset.tier.stalled import FlushWatch

    from . import settings

    tunes = request.policy is not None or request.mode is not None
    if tunes == (request.origin is not None):
        raise RequestError("give a policy, a mode or both, or else the origin's new name")
    with places.disk_repartitioning(request.machine, request.disk, "tier set") as attached:
        watch = FlushWatch(context.report, attached.disk.spec.block)
        say = context.report.say
        if request.origin is not None:
            settings.rename_origin(attached, PurePosixPath(request.origin), say)
            return Lines()
        settings.retune(attached, request.policy, request.mode, watch, say)
    return Lines()


class Detach(NamedDisk):
    flash_is_dead: Annotated[
        bool,
        Field(description="Detach although nothing can be written back, and say what is lost."),
    ] = False
    yes: Overwrite = False


@operation(
    "tier detach",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetTier"),
    destroys=True,
    progress=True,
    lock=places.lock_of,
)
def detach(request: Detach, context: Context) -> Lines:
    """Write back dirty data, then remove the cache: the origin is a plain disk again."""
    from hotset.tier.stalled import FlushWatch

    from . import lifecycle

    with places.disk_repartitioning(request.machine, request.disk, "tier detach") as attached:
        disk = attached.disk
        watch = FlushWatch(context.report, disk.spec.block)
        dead, yes = request.flash_is_dead, request.yes
        if dead:
            lost = f"{disk.device}: writes that are only on {attached.flash.path} are lost"
            context.ask_for_name(disk.name, lost)
        with _schedules_end(attached.machine, (disk.name,), context.report.say):
            lifecycle.detach(attached, dead, yes, watch, context.report.say)
    return Lines()


@contextmanager
def _schedules_end(
    machine: Machine, disks: Sequence[str], say: Callable[[str], None]
) -> Iterator[None]:
    """The warm-up schedules of those disks end that are no more afterwards, also where the kernel
    does not let go of them."""
    try:
        yield
    except BaseException as error:
        try:
            _end_schedules(machine, disks, say)
        except Exception as other:
            error.add_note(f"warm-up schedules of disks that are no more may be left: {other}")
        raise
    _end_schedules(machine, disks, say)


def _end_schedules(machine: Machine, disks: Sequence[str], say: Callable[[str], None]) -> None:
    from . import flash_devices
    from .boot import schedules

    known = flash_devices.inventory(machine)
    if known.problems:
        return  # a flash device that cannot be read may have them still
    left = {disk.name for flash in known.flash_devices for disk in flash.disks}
    for name in (disk for disk in disks if disk not in left):
        for unit in schedules.end_for(machine, name):
            say(f"removed {unit}: disk {name} is no more")


class Repair(NamedDisk):
    yes: Annotated[
        bool,
        Field(
            description="Keep what is certain (dm-cache: cached, taken for dirty; in user space:"
            " written back, and the cache begins empty) and give up what is not. Without it, only"
            " say what that is."
        ),
        Needs(Right.ADMIN),
        Cli(short="-y"),
    ] = False


@operation(
    "tier repair",
    Kind.JOB,
    Right.OPERATE,
    ("Repair", "HotsetTier"),
    progress=True,
    lock=places.lock_of,
)
def repair(request: Repair, context: Context) -> Lines:
    """Repair cache metadata that `tier activate` found damaged; no write is lost unasked."""
    from . import repair as repairing

    with places.disk_as_root(request.machine, request.disk, "tier repair") as attached:
        repairing.repair(attached, context.report.say, request.yes)
    return Lines()


class Destroy(Request):
    flash_name: places.FlashName
    machine: fields.Machine = "local"
    yes: Overwrite = False


@operation(
    "tier destroy",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetFlash"),
    destroys=True,
    progress=True,
    lock=lambda request: places.on_disk(request.machine, None),
)
def destroy(request: Destroy, context: Context) -> Lines:
    """Detach all disks of a flash device, then remove its volume and its label."""
    from hotset.block import devices
    from hotset.tier.stalled import FlushWatch

    from . import flash_devices, lifecycle

    report = context.report
    with places.repartitioning(request.machine, f"tier destroy {request.flash_name}") as machine:
        flash = flash_devices.find_flash(machine, request.flash_name)
        if devices.answers(machine, flash.path):
            device = devices.inspect(machine, flash.path)
            context.ask_for_name(device.path.name, f"{device.known_as}: {device.holds}")
        elif request.yes:
            lost = f"{flash.path} does not answer: writes that are only on it are lost"
            context.ask_for_name(flash.name, lost)
        with _schedules_end(machine, [disk.name for disk in flash.disks], report.say):
            lifecycle.destroy(
                machine,
                flash,
                request.yes,
                lambda disk: FlushWatch(report, disk.spec.block),
                report.say,
            )
    return Lines()


class Import(Request):
    flash: Annotated[fields.Device, Field(description="The flash device, as /dev/disk/by-id/….")]
    take_over: Annotated[
        bool, Field(description="It belongs to another machine, which no longer uses it.")
    ] = False
    machine: fields.Machine = "local"


@operation(
    "tier import",
    Kind.JOB,
    Right.ADMIN,
    ("Import", "HotsetFlash"),
    progress=True,
    lock=lambda request: places.on_disk(request.machine, None),
)
def import_flash(request: Import, context: Context) -> Lines:
    """Register a flash device that carries hotset's label on this machine.

    Use it after the loss of the root disk, or when flash and origins have moved to another server.
    Then run `tier activate`, which sets up the devices.
    """
    from . import adopt

    report, path = context.report, PurePosixPath(request.flash)
    with places.repartitioning(request.machine, f"tier import {path}") as machine:
        flash = adopt.adopt(machine, path, request.take_over, report.say, context.ask_for_name)
    disks = ", ".join(disk.name for disk in flash.disks) or "none"
    report.say(f"known here as flash device {flash.name}, disks: {disks}; activate them next")
    return Lines()
