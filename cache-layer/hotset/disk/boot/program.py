"""``hotset-boot``: the program on the machine that knows a disk by its flash's label alone.

What a boot may do with a disk is decided there (``cache-layer/crates/boot``), and asked of it
here too, so that nobody decides it twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hotset.block import programs
from hotset.core.machines.base import CommandError, Machine, to_its_end

from ..flash_devices import AttachedDisk
from ..state import Word

_TIMEOUT_S = 1000.0
"""It reads what is hashed of the origin, which may be a log of 2 GiB."""

_IN_USE = 5
"""Exit code of ``hotset-boot stop`` when the tier is in use (boot/src/main.rs)."""

Verb = Literal["start", "stop", "decide", "mark"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision on activating a disk that is down: with what is cached, ``empty``, or not
    at all. ``origin``: whether it is as it was; ``why``: in words."""

    action: Literal["start", "empty", "refuse"]
    reason: Literal["none", "unfinished", "identity", "conflict"]
    origin: Literal["same", "changed", "unknown"]
    why: str


def command(attached: AttachedDisk, verb: Verb) -> list[str]:
    """Build the command of a verb; the unit calls two of them at boot."""
    flash = str(attached.flash.path)
    return [programs.boot(attached.machine), verb, "--flash", flash, attached.disk.name]


def decide(attached: AttachedDisk) -> Verdict | None:
    """Decide on an inactive disk whose flash device has its label; None in a dry run where the
    program is not on the machine yet."""
    result = attached.machine.run(command(attached, "decide"), timeout_s=_TIMEOUT_S)
    return None if result.made_up else Verdict(**json.loads(result.stdout))


def content(machine: Machine, origin: PurePosixPath) -> str | None:
    """The UUID of what lies on an origin, by which a boot knows one without numbers; empty: it does
    not. None as of :func:`decide`."""
    result = machine.run([programs.boot(machine), "content", str(origin)])
    return None if result.made_up else result.stdout.strip()


def describe_unchecked(what: str) -> str:
    """Describe a check that a dry run skips as it lacks the program."""
    return f"not checked: {what}, as {programs.BOOT} is not on the machine yet"


def stop(attached: AttachedDisk) -> None:
    """Take the devices down and put down how the disk was left, all by one command: whatever
    becomes of this program, the record fits. What is dirty on the flash is not looked at. Of one
    that had ended it is put down that nobody knows.

    :raises InUseError: somebody uses it, and it goes on.
    """
    argv = to_its_end([*command(attached, "stop"), "--held"])
    done = attached.machine.run(argv, timeout_s=_TIMEOUT_S, check=False)
    if done.rc == _IN_USE:
        raise programs.InUseError(done.stderr.strip().partition(": ")[2])
    if done.rc:
        raise CommandError(attached.machine.kind, done)


def mark(attached: AttachedDisk, word: Word | Literal["flushed"]) -> None:
    """Put down how a disk was left, and what its origin looks like now; ``flushed``: that this has
    all of one that :func:`stop` took down, as it was seen then."""
    attached.machine.run([*command(attached, "mark"), word], timeout_s=_TIMEOUT_S)
