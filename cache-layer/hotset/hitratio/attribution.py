"""Whose blocks they are: files of the file system on an accelerated disk, and groups of files.

A region of the disk belongs to a file when no other file lies in it. The rule for the others is
the same everywhere, so that the rows of a report add up to its total exactly: a region that
several owners share is counted in the row :data:`SHARED`, one with nothing of a file in it in
:data:`UNOWNED`, and the file system's own tables and journal in :data:`FILE_SYSTEM`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents, filesystem
from hotset.block.extents import Extent, parse_filefrag
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, Machine, PrerequisiteMissingError

from .heat import Grid, Tally, total


class SystemName(str):
    """A name of what is no table, file or database of the user's: the server's catalog, its log,
    the file system, the rest. It is told by whoever gives the name, which alone cannot tell it."""

    __slots__ = ()


SHARED, UNOWNED = SystemName("(several)"), SystemName("(not in a file)")
FILE_SYSTEM = SystemName("(file system)")
_FILES_PER_CALL = 200
_FILE = re.compile(r"^File size of (.*) is \d+ \(\d+ blocks? of \d+ bytes\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Owner:
    """Something that owns blocks, and where they lie on the disk."""

    name: str
    extents: tuple[Extent, ...]


class NotMountedError(PrerequisiteMissingError):
    """The disk's file system is not mounted: its files cannot be told apart."""


def mount_point(machine: Machine, device: PurePosixPath) -> PurePosixPath:
    """Where a device is mounted on its machine.

    :raises NotMountedError: nowhere.
    """
    for mount in filesystem.mounts_of(machine, device):
        return mount.folder
    raise NotMountedError(
        f"{device} is not mounted, so its files are not known: mount it",
        Remedy("see the whole disk", "report hit-ratio", {"by": "total"}),
    )


def files(machine: Machine, device: PurePosixPath) -> list[Owner]:
    """The regular files on a mounted device, and the file system itself.

    :raises NotMountedError: it is not mounted.
    """
    where = mount_point(machine, device)
    names = extents.files_under(machine, where)
    owners: list[Owner] = []
    for start in range(0, len(names), _FILES_PER_CALL):
        some = names[start : start + _FILES_PER_CALL]
        # A file that is gone meanwhile is no error: it has no blocks any more.
        result = machine.run(["filefrag", "-v", "-s", *some], check=False)
        if result.rc and not _FILE.search(result.stdout):
            raise CommandError(machine.kind, result)
        owners += [Owner(name, tuple(own)) for name, own in per_file(result.stdout).items()]
    kind = filesystem.kind_of(machine, device)
    own = filesystem.own_extents(machine, device, kind)
    return [*owners, Owner(FILE_SYSTEM, tuple(own))]


def newer(
    machine: Machine, device: PurePosixPath, than: float, label: Callable[[str], str]
) -> set[str] | None:
    """The labels of regular files on a mounted device that came to be after a time (seconds since
    1970). What is counted where they lie may be of files that were there before, as after VACUUM
    FULL, TRUNCATE or DROP. None: the file system does not keep when that was.

    :raises NotMountedError: it is not mounted.
    """
    where = mount_point(machine, device)
    argv = ["find", str(where), "-xdev", "-type", "f", "-size", "+0"]
    done = machine.run([*argv, "-newerBt", f"@{than:.0f}", "-print0"], check=False)
    if done.rc or "birth time" in done.stderr:
        return None
    return {label(name) for name in done.stdout.split("\0") if name}


def per_file(text: str) -> dict[str, list[Extent]]:
    """``filefrag -v`` output, file by file; files without data on the disk are left out."""
    heads = list(_FILE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    parts = {head[1]: text[head.start() : end] for head, end in zip(heads, ends, strict=True)}
    by_name = {name: parse_filefrag(part) for name, part in parts.items()}
    return {name: where for name, where in by_name.items() if where}


def group_by(owners: Iterable[Owner], label: Callable[[str], str]) -> list[Owner]:
    """The owners by label (a file's table, a table's database)."""
    groups: dict[str, list[Extent]] = {}
    for owner in owners:
        name = owner.name if owner.name == FILE_SYSTEM else label(owner.name)
        groups.setdefault(name, []).extend(owner.extents)
    return [Owner(name, tuple(where)) for name, where in groups.items()]


def of_regions(grid: Grid, owners: Iterable[Owner]) -> dict[int, str]:
    """The owner of every region that has one, :data:`SHARED` where there are several.

    The file system's own blocks beside those of one file do not make a region shared: the file's
    journal and tables are too small to matter against it.
    """
    names: dict[int, str] = {}
    for owner in owners:
        for extent in owner.extents:
            for number in grid.numbers(extent):
                known = names.setdefault(number, owner.name)
                if known == FILE_SYSTEM:
                    names[number] = owner.name
                elif owner.name not in (known, FILE_SYSTEM):
                    names[number] = SHARED
    return names


def split(
    tallies: Mapping[int, Tally], grid: Grid, owners: Iterable[Owner]
) -> list[tuple[str, Tally]]:
    """Counters by owner, the busiest first; the sum of all rows is that of all regions.

    Owners nobody asked anything of are left out.
    """
    whose = of_regions(grid, owners)
    parts: dict[str, list[Tally]] = {}
    for number, tally in tallies.items():
        parts.setdefault(whose.get(number, UNOWNED), []).append(tally)
    rows = [(name, total(some)) for name, some in parts.items()]
    rest = (SHARED, UNOWNED, FILE_SYSTEM)
    return sorted(rows, key=lambda row: (row[0] in rest, -row[1].requests, row[0]))
