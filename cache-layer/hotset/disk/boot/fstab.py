"""/etc/fstab as mount(8) and systemd read it, and the change that mounts a tier for its origin."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block.filesystem import unescape
from hotset.core.machines.base import Machine

from ..flash_devices import AttachedDisk, Disk, FlashError
from ..identity import origin as identity

PATH = PurePosixPath("/etc/fstab")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that mounts something; ``number`` counts from 1. ``options`` may be empty."""

    number: int
    line: str
    spec: str
    folder: PurePosixPath
    options: str

    @property
    def mounts_a_part(self) -> bool:
        """True if it mounts a stretch of a file."""
        return bool(re.search(r"(^|,)(offset|sizelimit)=", self.options))

    @property
    def is_early(self) -> bool:
        """True if the initrd mounts it, which knows no unit of the root disk's."""
        return "x-initrd.mount" in self.options.split(",")

    def through(self, device: PurePosixPath, unit: str, remote: bool) -> str:
        """The line that mounts the tier instead, once its unit has made it.

        :param remote: the unit waits for the network; a mount that does not would be in its way.
        """
        options = [
            option for option in self.options.split(",") if not re.fullmatch(r"loop(=.*)?|", option)
        ]
        wanted = [f"x-systemd.requires={unit}", *["_netdev"] * remote]
        words = re.split(r"(\s+)", self.line.strip())
        words += [" ", "auto"] * (len(words) < 5)
        words += [" ", ""] * (len(words) < 7)
        words[0] = str(device)
        words[6] = ",".join((*options, *(option for option in wanted if option not in options)))
        return "".join(words)


def entries(text: str) -> list[Entry]:
    """The lines of an fstab(5), those with two and three fields among them: libmount takes three,
    systemd two.

    >>> entries("# x\\nUUID=7 /srv ext4\\n")[0].spec
    'UUID=7'
    """
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) >= 2 and not words[0].startswith("#"):
            spec, folder, *_ = map(unescape, words)
            options = words[3] if len(words) > 3 else ""
            entries.append(Entry(number, line, spec, PurePosixPath(folder), options))
    return entries


def read(machine: Machine) -> str:
    return machine.run(["cat", str(PATH)], check=False).stdout


def folders(machine: Machine, device: PurePosixPath) -> list[PurePosixPath]:
    """Where an accelerated device or a flash device's volume is mounted by its name."""
    return [entry.folder for entry in entries(read(machine)) if entry.spec == str(device)]


def require_writable(machine: Machine) -> None:
    """:raises FlashError: /etc/fstab cannot be changed, or nobody could take the change back."""
    path = _target(machine)
    for place in (path, path.parent):
        if machine.run(["test", "-w", str(place)], check=False).rc:
            raise FlashError(
                f"{PATH} mounts the origin, and cannot be changed ({place} is read-only): change it"
                " where it comes from first",
                field="origin",
            )


def rewrite(attached: AttachedDisk, entries: Sequence[Entry], unit: str) -> list[str]:
    """Have entries of a disk's origin mount its tier; returns the new lines.

    The old line stays above as a comment, for :func:`restore`.
    """
    machine, disk = attached.machine, attached.disk
    lines = read(machine).split("\n")
    changed, remote = list[str](), identity.is_remote(machine, disk.origin)
    for entry in reversed(entries):
        if lines[entry.number - 1] != entry.line:
            raise FlashError(f"{PATH} has just been changed by somebody else: try again")
        new = entry.through(disk.device, unit, remote)
        lines[entry.number - 1 : entry.number] = [f"{_mark(disk)}{entry.line}", new]
        changed.insert(0, new)
    if changed:
        _write(machine, lines)
    return changed


def restore(attached: AttachedDisk) -> list[str]:
    """Take back what :func:`rewrite` did; returns the lines as they are again."""
    disk = attached.disk
    lines = read(attached.machine).split("\n")
    restored, kept = list[str](), list[str]()
    at = 0
    while at < len(lines):
        if lines[at].startswith(_mark(disk)):
            old = lines[at].removeprefix(_mark(disk))
            kept.append(old)
            restored.append(old)
            following = lines[at + 1].split() if at + 1 < len(lines) else []
            at += 2 if following[:1] == [str(disk.device)] else 1
            continue
        kept.append(lines[at])
        at += 1
    if restored:
        _write(attached.machine, kept)
    return restored


def _write(machine: Machine, lines: list[str]) -> None:
    # Where it is a symbolic link, that stays.
    machine.replace("\n".join(lines), _target(machine))


def _target(machine: Machine) -> PurePosixPath:
    target = machine.run(["readlink", "-f", str(PATH)], check=False).stdout.strip()
    return PurePosixPath(target or PATH)


def advice(entries: Sequence[Entry], device: PurePosixPath, unit: str, remote: bool) -> str:
    """Describe wrong entries and how they have to read; ``remote`` as of
    :meth:`Entry.through`."""
    shown = "; ".join(
        f"line {entry.number}, `{entry.line.strip()}`, should read"
        f" `{entry.through(device, unit, remote)}`"
        for entry in entries
    )
    return f"{PATH} mounts the origin, which has old data while the tier is down: {shown}"


def _mark(disk: Disk) -> str:
    return f"# hotset {disk.name}: "
