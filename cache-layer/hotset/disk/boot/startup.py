"""Activation of a disk at boot: its unit makes the tier, and /etc/fstab mounts that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.tier.base import TierKind

from ..flash_devices import AttachedDisk, FlashError, device_of
from ..identity import origin as origins
from . import fstab, mounts, proof, systemd_unit
from .mounts import Mounting

Say = Callable[[str], None]


def check(
    machine: Machine,
    disk: str,
    kind: TierKind,
    origin: PurePosixPath,
    yes: bool,
    say: Say,
    unit: bool = False,
    recorded: origins.OriginId | None = None,
) -> tuple[fstab.Entry, ...]:
    """List the entries of /etc/fstab that :func:`set_up` will change.

    :param say: told what a dry run cannot check.
    :param unit: the disk gets one in any case, not only where an entry is to require it.
    :param recorded: recorded identity of the origin; None: the identity it shows now.
    :raises DeviceRefusedError: a unit would not know the origin after a reboot.
    :raises FlashError: an entry would mount the origin past the tier, and ``yes`` is not or it
        cannot be changed; or something else would, which hotset does not change.
    """
    mounting = mounts.find_mounts(machine, origin)
    if mounting.others:
        raise FlashError(_of_others(mounting, device_of(kind, disk)), field="origin")
    if mounting.entries and not yes:
        raise FlashError(
            _advice(machine, mounting, disk, kind, origin),
            Remedy("change that", parameters={"yes": True}),
            field="origin",
        )
    if mounting.entries:
        fstab.require_writable(machine)
    if mounting.entries or unit:
        wanted = "a unit that activates it at boot"
        proof.require(machine, origin, wanted, "origin", say, recorded=recorded)
    return mounting.entries


def warn(attached: AttachedDisk, say: Say) -> None:
    """Say what would mount the origin past the tier, and where no boot will know it."""
    disk = attached.disk
    proof.warn(attached, say)
    mounting = mounts.find_mounts(attached.machine, disk.origin)
    if mounting.entries:
        advice = _advice(attached.machine, mounting, disk.name, disk.kind, disk.origin)
        say(f"{advice}; to activate the disk with a unit changes that")
    if mounting.others:
        say(_of_others(mounting, disk.device))
    for source in mounting.unread:
        say(
            f"hotset cannot read what autofs mounts by `{source}`: see yourself that it is not"
            f" {disk.origin}"
        )


def set_up(attached: AttachedDisk, say: Say) -> PurePosixPath:
    """Install the unit of an active disk, and have the origin's entries mount its tier; returns the
    unit's path."""
    machine = attached.machine
    unit = systemd_unit.install(attached)
    mounting = mounts.find_mounts(machine, attached.disk.origin)
    for line in fstab.rewrite(attached, mounting.entries, unit.name):
        say(f"{fstab.PATH}: {line}")
    if not systemd_unit.runs(machine):
        say(
            "systemd does not run this machine, so nothing makes the tier at its start, and"
            f" nothing can mount it before disk {attached.disk.name} is activated"
        )
    systemd_unit.reload(machine)
    return unit


def _of_others(mounting: Mounting, device: PurePosixPath) -> str:
    return (
        "the origin, which has old data while the tier is down, would be used past the tier:"
        f" {'; '.join(mounting.others)}. hotset does not change that: have it use {device}, or"
        " remove it"
    )


def _advice(
    machine: Machine, mounting: Mounting, disk: str, kind: TierKind, origin: PurePosixPath
) -> str:
    remote, unit = origins.is_remote(machine, origin), systemd_unit.name_of(disk)
    return fstab.advice(mounting.entries, device_of(kind, disk), unit, remote)
