"""That an origin can be told from another disk, whatever name that has after a reboot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from ...block import devices
from ...block.devices import DeviceRefusedError
from ...common.errors import Remedy
from ...hosts.base import Machine
from ..identity.origin import identify
from . import program


def require(
    machine: Machine,
    origin: PurePosixPath,
    wanted: str,
    field: str,
    say: Callable[[str], None],
    *remedies: Remedy,
) -> None:
    """See that a boot will know the origin.

    :param wanted: what needs that, in words.
    :param say: told where a dry run cannot see that.
    :raises DeviceRefusedError: to a boot it looks like any other disk of its size.
    """
    if devices.type_of(machine, origin) == "file" or not identify(machine, origin).is_nameless:
        return
    content = program.content(machine, origin)
    if content is None:
        say(program.unchecked(f"whether a boot will know {origin}, which {wanted} needs"))
    if content != "":
        return
    raise DeviceRefusedError(
        f"{origin} has no World Wide Name, serial number or UUID, and nothing known lies on it:"
        f" after a reboot nothing tells it from another disk, so it cannot have {wanted}. Give the"
        " virtual disk a serial number, or put a file system or a partition table on it first",
        *remedies,
        field=field,
    )
