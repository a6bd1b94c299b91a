"""``hotset-boot`` on a machine: where it is, and what it knows of a device: who uses it, and how
much is written to it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hotset.core.errors import PrerequisiteError, Remedy
from hotset.core.machines import copies
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local

from . import engine_program

NAME = "hotset-boot"


def find_built() -> Path:
    """The program as it was built.

    :raises PrerequisiteMissingError: it is not.
    """
    return engine_program.find(Local(), NAME)


def on(machine: Machine) -> str:
    """The program on a machine, put there if need be."""
    return copies.install(machine, find_built())


class InUseError(PrerequisiteError):
    """A device is in use; the message says by whom, and what to do."""


def users(machine: Machine, device: PurePosixPath, *, writers: bool = False) -> str:
    """Who uses a device, in whichever namespace or container of the machine, or what is built on
    it, and who may write to a file; empty: nobody, or there is no such device, or a dry run where
    the program is not on the machine yet.

    :param writers: without who only reads it.
    """
    result = machine.run([on(machine), "users", *["--writers"] * writers, str(device)])
    return "" if result.made_up else result.stdout.strip()


def require_unused(machine: Machine, device: PurePosixPath, *, writers: bool = False) -> None:
    """:raises InUseError: somebody uses it; see :func:`users`."""
    if message := users(machine, device, writers=writers):
        raise InUseError(message)


def count_writes(machine: Machine, device: PurePosixPath) -> int | None:
    """A number that every write to a device raises, by whatever name of it, in this boot of the
    machine; of a file, when it was written to last. None in a dry run where the program is not on
    the machine yet.

    :raises PrerequisiteError: the kernel counts nothing there.
    """
    result = machine.run([on(machine), "writes", str(device)])
    if result.made_up:
        return None
    if result.stdout.strip() == "uncounted":
        raise PrerequisiteError(
            f"the kernel does not count what is written to {device} (its queue/iostats is 0), so"
            " nobody would know whether it was changed meanwhile: write 1 there",
            Remedy("warm it up while it is in use", parameters={"method": "online"}),
        )
    return int(result.stdout)
