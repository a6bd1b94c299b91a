"""Schedule warm-ups with systemd: at set times, at boot, at shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    Request,
    operation,
)
from hotset.core.rights import Right

from ..schedule_request import Add

if TYPE_CHECKING:
    from hotset.disk.boot.schedules import Schedules


@operation("warmup schedule add", Kind.JOB, Right.ADMIN, ("Register", "HotsetWarmupSchedule"))
def add(request: Add, context: Context) -> Lines:
    """Write a systemd service (and a timer for --at) on the disk's machine.

    hotset must be installed there, because the units run it. No unit ever holds a password: give
    --password-file, a path on that machine.
    """
    from hotset.disk import flash_devices
    from hotset.disk.boot import fstab

    from .. import schedule

    schedule.check(request)
    with machines.open_machine(request.machine) as machine:
        disk = flash_devices.find(machine, request.disk).disk
        hotset = schedule.find_program(machine, request.program)
        mounts = fstab.folders(machine, disk.device)
        units = schedule.units(request, disk.name, hotset, mounts)
        if request.at is not None:
            at = schedule.calendar(request.at)
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

    with machines.open_machine(request.machine) as machine:
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

    with machines.open_machine(request.machine) as machine:
        for unit in schedules.remove(machine, request.name):
            context.message(f"removed {unit}")
    return Lines()
