"""That an origin can be told from another disk, whatever name that has after a reboot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.block import devices
from hotset.block.devices import DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine

from ..flash_devices import AttachedDisk
from ..identity.origin import OriginId, identify
from . import program, systemd_unit


def require(
    machine: Machine,
    origin: PurePosixPath,
    wanted: str,
    field: str,
    say: Callable[[str], None],
    *remedies: Remedy,
    recorded: OriginId | None = None,
) -> None:
    """See that a boot will know the origin.

    :param wanted: purpose of the proof, in words.
    :param say: told where a dry run cannot see that.
    :param recorded: recorded identity of the origin; None: the identity it shows now.
    :raises DeviceRefusedError: to a boot it looks like any other disk of its size.
    """
    known = _is_known(machine, origin, recorded)
    if known is None:
        say(program.describe_unchecked(f"whether a boot will know {origin}, which {wanted} needs"))
    if known is not False:
        return
    raise DeviceRefusedError(
        f"{_unknown(origin, recorded)}, so it cannot have {wanted}."
        f" {_give_number(recorded)}, or put a file system or a partition table on it first",
        *remedies,
        field=field,
    )


def warn(attached: AttachedDisk, say: Callable[[str], None]) -> None:
    """Say of a disk that holds writes back or has a unit that no boot will know its origin. There
    are such: made by an earlier hotset, or by another server that saw numbers of it. They are not
    refused, since what their flash holds has to come back."""
    disk = attached.disk
    has_unit = systemd_unit.is_installed(attached)
    if disk.spec.mode != "writeback" and not has_unit:
        return
    try:
        if (
            devices.type_of(attached.machine, disk.origin) is None
            or _is_known(attached.machine, disk.origin, disk.origin_id) is not False
        ):
            return
    except (CommandError, CommandTimeoutError) as error:
        # A warning fails nothing that works without it.
        say(f"not known: whether a boot will know {disk.origin} ({error})")
        return
    say(
        f"{_unknown(disk.origin, disk.origin_id)}; disk {disk.name} then stays down if its flash"
        f" may hold writes, and begins empty otherwise. {_give_number(disk.origin_id)}, or set its"
        " mode to writethrough, which holds no writes back"
    )


def _give_number(recorded: OriginId | None) -> str:
    """A boot goes by what is on record, and a number that came later is not."""
    again = "" if recorded is None else ", detach the disk and create it again, which records that"
    return f"Give the virtual disk a serial number{again}"


def _unknown(origin: PurePosixPath, recorded: OriginId | None) -> str:
    where = "" if recorded is None else " on record"
    return (
        f"{origin} has no World Wide Name, serial number or UUID{where}, and nothing known lies on"
        " it: after a reboot nothing tells it from another disk"
    )


def _is_known(
    machine: Machine, origin: PurePosixPath, recorded: OriginId | None = None
) -> bool | None:
    """True if a boot will recognise the origin; None where a dry run cannot ask.

    :param recorded: what is on record of it, by which a boot goes; None: what it shows now will be.
    """
    if devices.type_of(machine, origin) == "file":
        return True
    if not (recorded or identify(machine, origin)).is_nameless:
        return True
    content = program.content(machine, origin)
    return None if content is None else content != ""
