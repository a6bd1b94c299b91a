"""/etc/fstab: what would mount an origin past its tier, and the change that mounts the tier.

Origin and tier have one file system and so one UUID and label: an entry by those mounts whichever
is there, and while the tier is down that is the origin with old data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from ...block.usage import unescaped
from ...hosts.base import Machine
from ..cache_device import Disk
from ..identity import origin as identity
from ..identity.origin import Shown

PATH = PurePosixPath("/etc/fstab")
_TAGS = {
    "UUID": "UUID",
    "LABEL": "LABEL",
    "PARTUUID": "PART_ENTRY_UUID",
    "PARTLABEL": "PART_ENTRY_NAME",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that mounts something; ``number`` counts from 1."""

    number: int
    line: str
    spec: str
    folder: PurePosixPath
    options: str

    def through(self, device: PurePosixPath, unit: str, remote: bool) -> str:
        """The line that mounts the tier instead, once its unit has made it.

        :param remote: the unit waits for the network; a mount that does not would be in its way.
        """
        there = self.options.split(",")
        wanted = [f"x-systemd.requires={unit}", *["_netdev"] * remote]
        words = re.split(r"(\s+)", self.line.strip())
        words[0] = str(device)
        words[6] = ",".join((*there, *(one for one in wanted if one not in there)))
        return "".join(words)


def entries(text: str) -> list[Entry]:
    """The lines of an fstab(5) that have at least the four first fields.

    >>> entries("# x\\nUUID=7 /srv ext4 rw 0 2\\n")[0].spec
    'UUID=7'
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if len(words) >= 4 and not words[0].startswith("#"):
            folder = PurePosixPath(unescaped(words[1]))
            found.append(Entry(number, line, words[0], folder, words[3]))
    return found


def mounting(machine: Machine, origin: PurePosixPath) -> list[Entry]:
    """The entries that mount a device, by whatever name."""
    text = machine.run(["cat", str(PATH)], check=False).stdout
    there = entries(text)
    if not there:
        return []
    tags, shown = _tags(machine, origin), identity.shown(machine, origin)
    return [one for one in there if _leads_to(machine, one.spec, shown, tags)]


def folders(machine: Machine, device: PurePosixPath) -> list[PurePosixPath]:
    """Where an accelerated device or a card's volume is mounted by its name."""
    text = machine.run(["cat", str(PATH)], check=False).stdout
    return [one.folder for one in entries(text) if one.spec == str(device)]


def rewrite(machine: Machine, disk: Disk, unit: str) -> list[str]:
    """Have the entries of a disk's origin mount its tier; returns the new lines.

    The old line stays above as a comment, for :func:`restore`.
    """
    lines = machine.run(["cat", str(PATH)], check=False).stdout.splitlines()
    changed, remote = list[str](), identity.is_remote(machine, disk.origin)
    for entry in reversed(mounting(machine, disk.origin)):
        new = entry.through(disk.device, unit, remote)
        lines[entry.number - 1 : entry.number] = [f"{_mark(disk)}{entry.line}", new]
        changed.insert(0, new)
    if changed:
        machine.replace("\n".join(lines) + "\n", PATH)
    return changed


def restore(machine: Machine, disk: Disk) -> list[str]:
    """Take back what :func:`rewrite` did; returns the lines as they are again."""
    lines = machine.run(["cat", str(PATH)], check=False).stdout.splitlines()
    found, kept = list[str](), list[str]()
    at = 0
    while at < len(lines):
        if lines[at].startswith(_mark(disk)):
            old = lines[at].removeprefix(_mark(disk))
            kept.append(old)
            found.append(old)
            following = lines[at + 1].split() if at + 1 < len(lines) else []
            at += 2 if following[:1] == [str(disk.device)] else 1
            continue
        kept.append(lines[at])
        at += 1
    if found:
        machine.replace("\n".join(kept) + "\n", PATH)
    return found


def advice(found: list[Entry], device: PurePosixPath, unit: str, remote: bool) -> str:
    """What is wrong with entries, and how they have to read; ``remote`` as of
    :meth:`Entry.through`."""
    shown = "; ".join(
        f"line {one.number}, `{one.line.strip()}`, should read"
        f" `{one.through(device, unit, remote)}`"
        for one in found
    )
    return f"{PATH} mounts the origin, which has old data while the tier is down: {shown}"


def _mark(disk: Disk) -> str:
    return f"# hotset {disk.name}: "


def _leads_to(machine: Machine, spec: str, origin: Shown | None, tags: dict[str, str]) -> bool:
    name, is_tag, value = spec.partition("=")
    if is_tag and name in _TAGS:
        return tags.get(_TAGS[name], "").lower() == value.strip('"').lower() != ""
    if not spec.startswith("/dev/"):
        return False
    by = PurePosixPath(spec).parent.name
    name = {"by-uuid": "UUID", "by-label": "LABEL", "by-partuuid": "PARTUUID"}.get(by, "")
    if name and tags.get(_TAGS[name], "") == PurePosixPath(spec).name:
        return True
    found = identity.shown(machine, PurePosixPath(spec))
    return origin is not None and found is not None and origin.is_same(found)


def _tags(machine: Machine, device: PurePosixPath) -> dict[str, str]:
    argv = ["blkid", "--probe", "--output", "export", str(device)]
    lines = machine.run(argv, check=False).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
