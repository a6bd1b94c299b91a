"""One operation at a time: the lock first, then the card as it is under the lock.

Cards are read after the lock is held, never before: what another operation has changed meanwhile
is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hotset.core.machines import locks
from hotset.core.machines.base import Machine
from hotset.core.machines.locks import Mode

from . import cache_device as cards
from .cache_device import AttachedDisk


@contextmanager
def on_disk(
    machine: Machine, name: str, disk: str | None, mode: Mode = "exclusive"
) -> Iterator[AttachedDisk]:
    """An operation on a disk that changes nothing of how the flash is cut: flush, warm-up.

    :param name: the command, without the disk: ``tier flush``.
    :param disk: None takes the only one there is.
    :raises CardError: there is no such disk, or more than one to choose from.
    :raises MachineBusyError: another operation has it.
    """
    found = cards.find(machine, disk).disk
    with locks.held(machine, f"{name} {found.name}", found.name, mode) as there:
        yield cards.find(there, found.name)


@contextmanager
def on_cards(machine: Machine, name: str) -> Iterator[Machine]:
    """An operation that cuts the flash anew: create, resize, detach, destroy, import.

    :param name: the command with what it works on: ``tier detach oltp``.
    :raises MachineBusyError: another operation has one of the cards.
    """
    with locks.held(machine, name) as there:
        yield there
