"""The machine and the disk that an operation works with, one operation at a time: the lock first,
then the flash device as it is under the lock. And the fields that name them.

Labels are read after the lock is held, never before: what another operation has changed meanwhile
is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.operation import Cli, Lock
from hotset.core.rights import Names

if TYPE_CHECKING:
    from hotset.core.machines.base import Machine
    from hotset.core.machines.locks import Mode

    from .flash_devices import AttachedDisk, FlashDevice


@contextmanager
def maybe_machine(name: str | None) -> Iterator[Machine | None]:
    """The machine of a name, where one is given."""
    if name is None:
        yield None
        return
    with machines.open_machine(name) as opened:
        yield opened


@contextmanager
def repartitioning(name: str, what: str, commands: list[str] | None = None) -> Iterator[Machine]:
    """A machine on which hotset is root, for an operation that repartitions its flash: create,
    resize, detach, destroy, import.

    :param what: has the machine's lock meanwhile: ``tier detach shop``.
    :param commands: a dry run, which locks nothing: commands that would change something are added
        here and not run.
    :raises MachineBusyError: another operation has one of the flash devices.
    """
    from hotset.core.machines import locks
    from hotset.core.machines.dry_run import DryRun

    from . import flash_devices

    with machines.open_machine(name) as opened:
        flash_devices.need_root(opened)
        if commands is not None:
            yield DryRun(opened, commands.append)
            return
        with locks.held(opened, what) as alone:
            yield alone


@contextmanager
def disk_of(
    name: str, disk: str | None, what: str = "", mode: Mode = "exclusive"
) -> Iterator[AttachedDisk]:
    """The disk a user means, on its flash device and machine.

    :param disk: None takes the only one there is.
    :param what: has the disk's lock meanwhile: ``warmup run``; without one nothing is locked.
    :raises FlashError: there is no such disk, or more than one to choose from.
    :raises MachineBusyError: another operation has it.
    """
    with machines.open_machine(name) as opened, locked(opened, disk, what, mode) as attached:
        yield attached


@contextmanager
def disk_as_root(
    name: str,
    disk: str | None,
    what: str,
    commands: list[str] | None = None,
    *,
    alone: bool = False,
) -> Iterator[AttachedDisk]:
    """Do as :func:`disk_of`, on a machine where hotset is root; a dry run locks nothing.

    :param alone: it changes what all disks have in common, such as /etc/fstab.
    """
    from hotset.core.machines.dry_run import DryRun

    from . import flash_devices

    with machines.open_machine(name) as opened:
        flash_devices.need_root(opened)
        with locked(opened, disk, what if commands is None else "", alone=alone) as attached:
            if commands is None:
                yield attached
            else:
                yield replace(attached, machine=DryRun(opened, commands.append))


@contextmanager
def disk_repartitioning(name: str, disk: str | None, what: str) -> Iterator[AttachedDisk]:
    """A disk, for an operation that repartitions the flash."""
    from . import flash_devices

    with repartitioning(name, f"{what} {disk or ''}".strip()) as machine:
        yield flash_devices.find(machine, disk)


@contextmanager
def locked(
    machine: Machine,
    disk: str | None,
    what: str,
    mode: Mode = "exclusive",
    *,
    alone: bool = False,
) -> Iterator[AttachedDisk]:
    """Do as :func:`disk_of`, on a machine that is open; see :func:`disk_as_root`."""
    from hotset.core.machines import locks

    from . import flash_devices

    attached = flash_devices.find(machine, disk)
    if not what:
        yield attached
        return
    known = attached.disk.name
    with locks.held(machine, f"{what} {known}", None if alone else known, mode) as held:
        yield flash_devices.find(held, known)


def disks(name: str) -> list[str]:
    """The accelerated disks of a machine.

    :raises HotsetError: they cannot all be read.
    """
    return [disk.name for flash in _flash_devices(name) for disk in flash.disks]


def flash_names(name: str) -> list[str]:
    """List the flash devices, as :func:`disks` lists disks."""
    return [flash.name for flash in _flash_devices(name)]


def _flash_devices(name: str) -> tuple[FlashDevice, ...]:
    from . import flash_devices

    with machines.open_machine(name) as opened:
        known = flash_devices.inventory(opened)
    if known.problems:
        raise flash_devices.FlashError("; ".join(known.problems))
    return known.flash_devices


def on_disk(machine: str, disk: str | None) -> Lock:
    """Return the lock for exclusive use of a disk."""
    return Lock(f"machine {machine}", disk)


def _value_of(name: object) -> object:
    if name is None:
        raise ValueError("null is no name: leave the field out, or name one")
    return name


_DISK = "The accelerated disk; may be left out if there is only one."
DiskOption = Annotated[
    fields.Name | None,
    BeforeValidator(_value_of),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": fields.TEXT_MAX,
            "pattern": fields.TEXT_PATTERN,
        }
    ),
    Field(description=_DISK),
    Names.WORD,
]
Disk = Annotated[DiskOption, Cli(argument=True, metavar="DISK")]
# What takes a disk down, or cannot be undone, is told of which, although there is only one.
NamedDisk = Annotated[
    fields.Name,
    Field(description="The accelerated disk. It is named, although there is only one."),
    Cli(argument=True, metavar="DISK", candidates=disks),
    Names.WORD,
]
FlashName = Annotated[
    fields.Name,
    Field(
        description="The flash device, by its name or by that of a disk on it. It is named,"
        " although there is only one."
    ),
    Cli(argument=True, metavar="FLASH", candidates=flash_names),
    Names.WORD,
]
