"""Mounts of an origin past its tier: /etc/fstab, units of systemd, autofs, crypttab, the
kernel's command line.

Origin and tier have one file system and so one UUID and label: what mounts by those takes whichever
is there, and while the tier is down that is the origin with old data. Names are taken as
libmount(3), systemd.mount(5), autofs(5) and crypttab(5) take them, all of them at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from hotset.block.devicemapper import PREFIX
from hotset.core.machines.base import Machine

from ..identity import origin as identity
from . import fstab

Leads = Literal["origin", "inside"]
"""To the very bytes of an origin, or to something that lies on it, such as a partition."""

_UNITS = tuple(
    f"{root}/systemd/system" for root in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
)
_AUTOFS = ("/etc/auto.master", "/etc/auto.master.d", "/etc/autofs")
_LINKS = {
    "by-uuid": "UUID",
    "by-label": "LABEL",
    "by-partuuid": "PARTUUID",
    "by-partlabel": "PARTLABEL",
}
_PROBED = {"PART_ENTRY_UUID": "PARTUUID", "PART_ENTRY_NAME": "PARTLABEL"}
"""blkid's names of tags that differ from mount's."""
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Mounting:
    """Mounts of an origin past its tier.

    :ivar entries: lines of /etc/fstab that can mount the tier instead.
    :ivar others: mounts that hotset does not change, in words.
    :ivar unread: where nobody but autofs can look, in words.
    """

    entries: tuple[fstab.Entry, ...] = ()
    others: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def find_mounts(machine: Machine, origin: PurePosixPath) -> Mounting:
    """Find whatever would mount an origin, by any name."""
    lines = fstab.entries(fstab.read(machine))
    elsewhere = [*_in_units(machine), *_in_crypttab(machine), *_on_command_line(machine)]
    unread = list[str]()
    for where, spec in _in_autofs(machine):
        if spec is None:
            unread.append(where)
        else:
            elsewhere.append((where, spec))
    specs = {line.spec for line in lines} | {spec for _, spec in elsewhere}
    leads = leading(machine, origin, specs)
    mine = [line for line in lines if line.spec in leads]
    whole = [entry for entry in mine if leads[entry.spec] == "origin" and not entry.mounts_a_part]
    can = [entry for entry in whole if not entry.is_early]
    cannot = [
        f"{fstab.PATH}, line {entry.number}, `{entry.line.strip()}`, mounts"
        f" {'it before any unit runs' if entry in whole else 'what lies on it'}"
        for entry in mine
        if entry not in can
    ]
    uses = [f"{where} uses {spec}" for where, spec in elsewhere if spec in leads]
    return Mounting(tuple(can), (*cannot, *dict.fromkeys(uses)), tuple(unread))


def _in_units(machine: Machine) -> Iterator[tuple[str, str]]:
    """Units that mount something, with what they do; drop-ins of theirs, too."""
    kinds = [f"--include=*.{kind}" for kind in ("mount", "swap", "conf")]
    argv = ["grep", "-RsE", *kinds, r"^[[:space:]]*What[[:space:]]*=", *_UNITS]
    for line in machine.run(argv, check=False).stdout.splitlines():
        path, _, setting = line.partition(":")
        spec = setting.partition("=")[2].strip()
        if spec:
            yield path, spec.replace("%%", "%")


def _on_command_line(machine: Machine) -> Iterator[tuple[str, str]]:
    """List the mounts of systemd-fstab-generator(8) besides fstab, and those of the initrd."""
    words = machine.run(["cat", "/proc/cmdline"], check=False).stdout.split()
    for word in words:
        name, _, value = word.strip('"').partition("=")
        name = name.removeprefix("rd.")
        if name in ("systemd.mount-extra", "systemd.swap-extra"):
            yield "the kernel's command line", value.partition(":")[0]
        elif name in ("mount.usr", "resume"):
            yield "the kernel's command line", value


def _in_crypttab(machine: Machine) -> Iterator[tuple[str, str]]:
    for line in machine.run(["cat", "/etc/crypttab"], check=False).stdout.splitlines():
        words = line.split()
        if len(words) >= 2 and not words[0].startswith("#"):
            yield "/etc/crypttab", words[1]


def _in_autofs(machine: Machine) -> Iterator[tuple[str, str | None]]:
    """List the local devices that autofs maps mount; None for a map that is no file."""
    argv = ["grep", "-RsE", "^[[:space:]]*[^#[:space:]]", *_AUTOFS]
    maps = list[str]()
    for line in machine.run(argv, check=False).stdout.splitlines():
        path, _, entry = line.partition(":")
        words = entry.split()
        if entry.startswith("+") or len(words) < 2:
            continue
        name = words[1].removeprefix("file:")
        if name.startswith("/"):
            maps.append(name)
        elif not name.startswith("-"):
            yield f"{path}: {entry.strip()}", None
    if not maps:
        return
    output = machine.run(["grep", "-sHE", r"[[:space:]]:[^[:space:]]", *maps], check=False).stdout
    for line in output.splitlines():
        path, _, entry = line.partition(":")
        yield from ((path, spec) for spec in re.findall(r"\s:(\S+)", entry))


def leading(machine: Machine, origin: PurePosixPath, specs: Iterable[str]) -> dict[str, Leads]:
    """Which of these names lead to an origin, or to something on it."""
    named = {spec: _source_of(spec) for spec in specs}
    if not named:
        return {}
    own, inside = _tags(machine, origin), _inside(machine, origin)
    paths = {name for name in named.values() if isinstance(name, PurePosixPath)}
    by_path = _leading_paths(machine, origin, paths, {device.get("MAJ:MIN") for device in inside})
    leads = dict[str, Leads]()
    for spec, name in named.items():
        if isinstance(name, PurePosixPath):
            if name in by_path:
                leads[spec] = by_path[name]
        elif name is not None and _has(own, *name):
            leads[spec] = "origin"
        elif name is not None and any(_has(device, *name) for device in inside):
            leads[spec] = "inside"
    return leads


def _source_of(spec: str) -> tuple[str, str] | PurePosixPath | None:
    """A tag with its value, or a path; None of what is no device and no file.

    >>> _source_of('LABEL="my data"'), _source_of("/dev/disk/by-label/my\\\\x20data")
    (('LABEL', 'my data'), ('LABEL', 'my data'))
    >>> _source_of("ID=wwn-0x5"), _source_of("tmpfs")
    (PurePosixPath('/dev/disk/by-id/wwn-0x5'), None)
    """
    spec = spec.strip("\"'")
    tag, is_tag, value = spec.partition("=")
    value = value.strip("\"'")
    if is_tag and tag == "ID":
        return PurePosixPath("/dev/disk/by-id") / value
    if is_tag and tag in _LINKS.values():
        return tag, value
    path = PurePosixPath(spec)
    if path.parent.parent == PurePosixPath("/dev/disk") and path.parent.name in _LINKS:
        # As udev writes what may not be in a file's name.
        raw = re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), path.name)
        return _LINKS[path.parent.name], raw.encode("latin-1", "replace").decode(errors="replace")
    return path if path.is_absolute() else None


def _has(tags: Mapping[str, Any], tag: str, value: str) -> bool:
    mine = str(tags.get(tag) or "")
    if tag in ("UUID", "PARTUUID"):
        return mine.lower() == value.lower() != ""
    return mine == value != ""


def _tags(machine: Machine, device: PurePosixPath) -> dict[str, str]:
    """By what a device can be named, as it says itself: udev hides it while its tier is down."""
    argv = ["blkid", "--probe", "--output", "export", str(device)]
    lines = machine.run(argv, check=False).stdout.splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line)
    return {_PROBED.get(tag, tag): re.sub(r"\\(.)", r"\1", value) for tag, value in pairs}


def _inside(machine: Machine, origin: PurePosixPath) -> list[dict[str, Any]]:
    """List the devices on an origin, with their tags; without its tier."""
    if not origin.is_relative_to("/dev"):
        return []
    columns = "NAME,MAJ:MIN,UUID,LABEL,PARTUUID,PARTLABEL"
    output = machine.run(["lsblk", "--json", "--output", columns, str(origin)], check=False).stdout
    left = list[dict[str, Any]](json.loads(output or "{}").get("blockdevices", ()))
    devices = list[dict[str, Any]]()
    while left:
        children = left.pop().get("children", ())
        children = [child for child in children if not str(child.get("name")).startswith(PREFIX)]
        devices += [{name.upper(): value for name, value in child.items()} for child in children]
        left += children
    return devices


def _leading_paths(
    machine: Machine,
    origin: PurePosixPath,
    paths: Iterable[PurePosixPath],
    inside: Iterable[str | None],
) -> dict[PurePosixPath, Leads]:
    nodes = _resolve(machine, {origin, *paths})
    leads: dict[PurePosixPath, Leads] = {
        path: "origin"
        for path in paths
        if path == origin or nodes.get(path) == nodes.get(origin, "")
    }
    devices = [path for path in paths if path not in leads and nodes.get(path, "").startswith("b")]
    shown = identity.show(machine, origin) if devices else None
    for device in devices:
        other = identity.show(machine, device)
        if shown is None or other is None:
            continue
        if shown.is_same(other):
            leads[device] = "origin"
        elif other.number in inside:
            leads[device] = "inside"
    return leads


def _resolve(machine: Machine, paths: Iterable[PurePosixPath]) -> dict[PurePosixPath, str]:
    """Resolve the names that lead anywhere: type, file system and inode."""
    wanted, nodes = sorted(map(str, paths)), dict[PurePosixPath, str]()
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        argv = ["find", "-H", *some, "-maxdepth", "0", "-printf", r"%y %D:%i %p\n"]
        for line in machine.run(argv, check=False).stdout.splitlines():
            type_, at, path = line.split(" ", 2)
            nodes[PurePosixPath(path)] = f"{type_} {at}"
    return nodes
