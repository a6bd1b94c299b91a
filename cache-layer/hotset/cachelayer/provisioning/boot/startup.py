"""What a boot does for a disk: its unit makes the tier, and /etc/fstab mounts that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from ...common.errors import Remedy
from ...hosts.base import Machine
from ...tiers.base import TierKind
from ..cache_device import Card, CardError, Disk, device_of
from ..identity import origin as origins
from . import fstab, systemd_unit


def check(
    machine: Machine, disk: str, kind: TierKind, origin: PurePosixPath, yes: bool
) -> list[fstab.Entry]:
    """What of /etc/fstab :func:`set_up` will change.

    :raises CardError: an entry would mount the origin past the tier, and ``yes`` is not.
    """
    entries = fstab.mounting(machine, origin)
    if entries and not yes:
        raise CardError(
            _advice(machine, entries, disk, kind, origin),
            Remedy("change that", parameters={"yes": True}),
            field="origin",
        )
    return entries


def warn(machine: Machine, disk: Disk, say: Callable[[str], None]) -> None:
    """Say which entries would mount the origin past the tier."""
    entries = fstab.mounting(machine, disk.origin)
    if entries:
        advice = _advice(machine, entries, disk.name, disk.kind, disk.origin)
        say(f"{advice}; `hotset tier activate {disk.name} --unit --yes` changes that")


def set_up(machine: Machine, card: Card, disk: Disk, say: Callable[[str], None]) -> PurePosixPath:
    """Install the unit of an active disk, and have the origin's entries mount its tier; returns the
    unit's path."""
    unit = systemd_unit.install(machine, card, disk)
    for line in fstab.rewrite(machine, disk, unit.name):
        say(f"{fstab.PATH}: {line}")
    systemd_unit.reload(machine)
    return unit


def _advice(
    machine: Machine, entries: list[fstab.Entry], disk: str, kind: TierKind, origin: PurePosixPath
) -> str:
    remote = origins.is_remote(machine, origin)
    return fstab.advice(entries, device_of(kind, disk), systemd_unit.name_of(disk), remote)
