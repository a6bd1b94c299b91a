"""Schedule warm-ups with systemd: at set times, at boot, at shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    OnThisComputer,
    Request,
    operation,
)
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from hotset.disk.boot.schedules import Schedules


class Add(Request):
    targets: Annotated[
        fields.Targets | None,
        Field(description="What to cache at the times of --at, as for `warmup run`."),
        Cli(argument=True, metavar="TARGET"),
    ] = None
    at: Annotated[
        fields.Expression | None,
        Field(description="When to run, as in systemd.time(7), such as 'Mon..Fri 07:00'."),
    ] = None
    on_boot: Annotated[
        bool, Field(description="Restore the last snapshot when the machine boots.")
    ] = False
    on_shutdown: Annotated[
        bool, Field(description="Save a snapshot when the machine shuts down.")
    ] = False
    name: Annotated[
        fields.Word | None,
        Field(
            description="Name of the schedule; by default it comes from the disk and the occasion."
        ),
    ] = None
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    method: Annotated[
        Literal["auto", "offline", "online"], Field(description="As for `warmup run`.")
    ] = "auto"
    rate: Annotated[fields.Rate | None, Field(description="Highest rate, such as 50MB/s.")] = None
    engine: fields.Product = "postgres"
    dsn: Annotated[
        fields.Server | None,
        Field(description="The database's address, as seen from that machine."),
    ] = None
    password_file: Annotated[
        fields.ReadFile | None,
        Field(description="A file that holds the password, on the disk's machine."),
    ] = None
    program: Annotated[
        fields.Text | None,
        Field(description="Full path of hotset on that machine."),
        OnThisComputer,
    ] = None
    no_enable: Annotated[bool, Field(description="Write the units, but do not enable them.")] = (
        False
    )
    dry_run: Annotated[bool, Field(description="Print the units without writing them.")] = False


@operation("warmup schedule add", Kind.JOB, Right.ADMIN, ("Register", "HotsetWarmupSchedule"))
def add(request: Add, context: Context) -> Lines:
    """Write a systemd service (and a timer for --at) on the disk's machine.

    hotset must be installed there, because the units run it. No unit ever holds a password: give
    --password-file, a path on that machine.
    """
    from hotset.disk import cache_device
    from hotset.disk.boot import fstab

    from .. import schedule
    from ..schedule import ScheduleRequest

    wanted = ScheduleRequest(
        tuple(request.targets or ()),
        request.at,
        request.on_boot,
        request.on_shutdown,
        request.name,
        request.method,
        request.rate,
        request.engine,
        request.dsn,
        request.password_file,
    )
    schedule.check(wanted)
    with places.machine(request.machine) as machine:
        disk = cache_device.find(machine, request.disk).disk
        hotset = schedule.find_program(machine, request.program)
        mounts = fstab.folders(machine, disk.device)
        units = schedule.units(wanted, disk.name, hotset, mounts)
        if wanted.at is not None:
            at = schedule.calendar(wanted.at)
            schedule.check_calendar(machine, at)
            for time in schedule.skipped_days(machine, at):
                context.message(
                    f"no warm-up on {time}, a time that does not exist: the clock is set forward"
                    f" over it. Name a time that every day has, or one of UTC ('{at} UTC')"
                )
        if request.dry_run:
            return Lines(tuple(f"# {unit.path}\n{unit.text}".rstrip("\n") for unit in units))
        schedule.install(machine, units, enable=not request.no_enable)
    for unit in units:
        context.message(f"{unit.path}{' (not enabled)' * request.no_enable}")
    return Lines()


class Listing(Request):
    machine: fields.Machine = "local"


@operation(
    "warmup schedule list",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetWarmupSchedule"),
    result="disk.boot.schedules:Schedules",
)
def list_schedules(request: Listing, context: Context) -> Schedules:
    """List the schedules on a machine: when each runs, how its last run came out, its command.

    Of runs before the machine's last start systemd knows nothing, but for the snapshot that a
    shutdown saved.
    """
    from hotset.disk.boot import schedules, systemd_unit

    with places.machine(request.machine) as machine:
        listed = schedules.Schedules(tuple(schedules.rows(machine, schedules.list_units(machine))))
        if listed.schedules and not systemd_unit.runs(machine):
            context.note(f"systemd does not run on {machine.kind}, so nothing starts them")
    for row in listed.schedules:
        if row.last == "failed":
            unit = f"{schedules.PREFIX}{row.name}"
            context.note(f"{row.name} failed: `journalctl --unit {unit}` there says why")
    return listed


class Remove(Request):
    name: Annotated[
        fields.Word,
        Field(description="The schedule's name, as in `schedule list`."),
        Cli(argument=True, metavar="NAME"),
    ]
    machine: fields.Machine = "local"


@operation(
    "warmup schedule remove",
    Kind.JOB,
    Right.ADMIN,
    ("Unregister", "HotsetWarmupSchedule"),
    stops=True,
)
def remove(request: Remove, context: Context) -> Lines:
    """Disable a schedule and remove its units."""
    from hotset.disk.boot import schedules

    with places.machine(request.machine) as machine:
        for unit in schedules.remove(machine, request.name):
            context.message(f"removed {unit}")
    return Lines()
