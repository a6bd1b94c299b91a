"""``hotset-boot``: the program on the machine that knows a disk by its flash's label alone.

What a boot may do with a disk is decided there (``cache-layer/flashdev/boot``), and asked of it
here too, so that nobody decides it twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hotset.block import flashdev
from hotset.core.errors import PrerequisiteError, Remedy
from hotset.core.machines.base import Machine, PrerequisiteMissingError, to_its_end
from hotset.core.machines.local import Local

from ..cache_device import Card, Disk
from ..state import Word

NAME = "hotset-boot"
_TIMEOUT_S = 1000.0
"""It reads what is hashed of the origin, which may be a log of 2 GiB."""

Verb = Literal["start", "stop", "decide"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a disk that is down may come up: with what is cached, with an ``empty`` cache, or not
    at all. ``origin``: whether it is as it was; ``why``: in words."""

    action: Literal["start", "empty", "refuse"]
    reason: Literal["none", "unfinished", "identity", "conflict"]
    origin: Literal["same", "changed", "unknown"]
    why: str


def built() -> Path:
    """The program as it was built, beside ``flashdev``.

    :raises PrerequisiteMissingError: it is not.
    """
    here = flashdev.program(Local()).with_name(NAME)
    if not here.exists():
        raise PrerequisiteMissingError(f"{NAME} is not built: run `make build` in hotset's folder")
    return here


def on(machine: Machine) -> str:
    """The program on a machine, put there if need be."""
    return flashdev.installed(machine, built())


def command(machine: Machine, card: Card, disk: Disk, verb: Verb) -> list[str]:
    """What the unit at boot calls."""
    return [on(machine), verb, "--flash", str(card.flash), disk.name]


def decide(machine: Machine, card: Card, disk: Disk) -> Verdict | None:
    """Of a disk that is down, and whose label says what the card does; None in a dry run where the
    program is not on the machine yet."""
    said = machine.run(command(machine, card, disk, "decide"), timeout_s=_TIMEOUT_S)
    return None if said.made_up else Verdict(**json.loads(said.stdout))


def content(machine: Machine, origin: PurePosixPath) -> str | None:
    """The UUID of what lies on an origin, by which a boot knows one without numbers; empty: it does
    not. None as of :func:`decide`."""
    said = machine.run([on(machine), "content", str(origin)])
    return None if said.made_up else said.stdout.strip()


def written(machine: Machine, device: PurePosixPath) -> int | None:
    """A number that every write to a device raises, by whatever name of it, in this boot of the
    machine; of a file, when it was written to last. None as of :func:`decide`.

    :raises PrerequisiteError: the kernel counts nothing there.
    """
    said = machine.run([on(machine), "writes", str(device)])
    if said.made_up:
        return None
    if said.stdout.strip() == "uncounted":
        raise PrerequisiteError(
            f"the kernel does not count what is written to {device} (its queue/iostats is 0), so"
            " nobody would know whether it was changed meanwhile: write 1 there",
            Remedy("warm it up while it is in use", parameters={"method": "online"}),
        )
    return int(said.stdout)


def unchecked(what: str) -> str:
    """What a dry run says where it cannot ask the program."""
    return f"not checked: {what}, as {NAME} is not on the machine yet"


def stop(machine: Machine, card: Card, disk: Disk) -> None:
    """Take the devices down and put down how the disk was left, all by one command: whatever
    becomes of this program, the record fits. What is dirty on the flash is not looked at."""
    argv = [*command(machine, card, disk, "stop"), "--held"]
    machine.run(to_its_end(argv), timeout_s=_TIMEOUT_S)


def mark(machine: Machine, card: Card, disk: Disk, word: Word) -> None:
    """Put down how a disk was left, and what its origin looks like now."""
    argv = [on(machine), "mark", "--flash", str(card.flash), disk.name, word]
    machine.run(argv, timeout_s=_TIMEOUT_S)
