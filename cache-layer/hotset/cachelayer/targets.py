"""Targets of a warm-up on a disk's file system: paths to extents to cache blocks.

The file system is looked at where it is mounted. When it is not, it is mounted read-only for the
look, on the folder where it is usually mounted, so that paths are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer import extents, filesystem, idle
from hotset.cachelayer.extents import Extent, Run
from hotset.cachelayer.filesystem import FileSystem
from hotset.cachelayer.flash import device_size
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.plans import Wish
from hotset.cachelayer.units import Bytes

_PATHS_PER_CALL = 200
OWN = "(file system's own)"


class TargetError(ValueError):
    """A target that cannot be warmed; the message names it and what would do."""


@dataclass(frozen=True, slots=True)
class Look:
    """A disk's file system, mounted on ``folder`` (None: nowhere) for as long as this is in use."""

    machine: Machine
    device: PurePosixPath
    folder: PurePosixPath | None
    kind: FileSystem
    block: Bytes
    size: Bytes

    def wish(self, name: str, paths: Sequence[str], pinned: bool = False) -> Wish:
        """The blocks of files and of all files below folders.

        :raises TargetError: one is not there, or lies on another file system.
        """
        found = extents.of_files(self.machine, self.files(paths))
        return Wish(name, len(found), (self.runs(found),), pinned)

    def own(self) -> Wish:
        """What the file system needs beside its files (journal, tables)."""
        found = filesystem.own_extents(self.machine, self.device, self.kind)
        return Wish(OWN, len(found), (self.runs(found),))

    def free(self) -> list[Extent]:
        """Where nothing lies; as the disk says it, so a little old while the file system is mounted
        and written to."""
        return filesystem.free_extents(self.machine, self.device, self.kind)

    def runs(self, found: Sequence[Extent]) -> list[Run]:
        return extents.to_runs(found, self.block, self.size)

    def files(self, paths: Sequence[str]) -> list[str]:
        """Regular files among the paths and below the folders among them."""
        if self.folder is None:
            raise TargetError(
                f"{self.device} is not mounted, so {paths[0]} means nothing on it: mount it, or say"
                " where it is usually mounted (--mount-point DIR; it is mounted there read-only"
                " for the look)"
            )
        number = idle.device_number(self.machine, self.device)
        files: list[str] = []
        for path, device, is_folder in _kinds(self.machine, paths):
            if device != number:
                raise TargetError(
                    f"TARGET {path} does not lie on {self.device} (mounted on {self.folder}) but"
                    " on another file system: name what lies on the accelerated disk"
                )
            below = PurePosixPath(path)
            files += extents.files_under(self.machine, below) if is_folder else [path]
        return files


@contextmanager
def look(
    machine: Machine, device: PurePosixPath, block: Bytes, usual: PurePosixPath | None
) -> Iterator[Look]:
    """The file system of an accelerated device, for the length of a ``with`` block.

    :param usual: where it is usually mounted; it is mounted there when it is not mounted now.
    :raises TargetError: something else is mounted there.
    """
    kind, size = filesystem.kind_of(machine, device), device_size(machine, device)
    mounted = idle.mounted_at(machine, device)
    if mounted or usual is None:
        folder = mounted[0].folder if mounted else None
        yield Look(machine, device, folder, kind, block, size)
        return
    if any(mount.folder == usual for mount in idle.mounts(machine)):
        raise TargetError(f"--mount-point {usual}: something else is mounted there")
    machine.run(["mkdir", "-p", str(usual)])
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(device), str(usual)])
    try:
        yield Look(machine, device, usual, kind, block, size)
    finally:
        machine.run(["umount", str(usual)])


def _kinds(machine: Machine, paths: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Path, device as ``major:minor``, whether it is a folder.

    :raises TargetError: one is not there, or neither a file nor a folder.
    """
    for some in _some(paths):
        argv = ["stat", "--dereference", "--format=%d %F", "--", *some]
        done = machine.run(argv, check=False)
        lines = done.stdout.splitlines()
        if done.rc:
            said = done.stderr.strip() or "not there"
            raise TargetError(f"TARGET on {machine.kind}: {said.splitlines()[0]}")
        for path, line in zip(some, lines, strict=True):
            number, _, kind = line.partition(" ")
            device = int(number)
            if kind not in ("regular file", "regular empty file", "directory"):
                raise TargetError(f"TARGET {path} is a {kind}: name a file or a folder")
            yield path, f"{os.major(device)}:{os.minor(device)}", kind == "directory"


def _some(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _PATHS_PER_CALL):
        yield paths[start : start + _PATHS_PER_CALL]
