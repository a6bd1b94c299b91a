"""Targets of a warm-up on a disk: paths and regions to extents to cache blocks.

The file system is looked at where it is mounted. When it is not, it is mounted read-only for the
look, on the folder where it is usually mounted, so that paths are the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents, filesystem, usage
from hotset.block.devicemapper import device_size
from hotset.block.extents import Extent, Run
from hotset.block.filesystem import FileSystem
from hotset.core.errors import Remedy, RequestError
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

from .planner import PlanTarget

_PATHS_PER_CALL = 200
OWN = "(file system's own)"
_REGION = "region:"
_UNITS = ("TiB", "GiB", "MiB", "KiB")


class TargetError(RequestError):
    """A target that cannot be warmed; the message names it and what would do."""


class TargetGoneError(TargetError):
    """Where it was looked for, there is no such thing (any more)."""


def region_of(text: str) -> Extent:
    """The part of a disk that ``region:OFFSET+LENGTH`` names.

    >>> region_of("region:1GiB+64KiB")
    Extent(start=Bytes(1073741824), length=Bytes(65536))

    :raises TargetError: names the part that is wrong, and the form.
    """
    offset, plus, length = text.removeprefix(_REGION).partition("+")
    try:
        found = Extent(Bytes.parse(offset), Bytes.parse(length))
    except ValueError as error:
        wrong = "" if not plus else f" ({error})"
        raise TargetError(
            f"{text!r}: write region:OFFSET+LENGTH, such as region:10GiB+512MiB{wrong}",
            field="targets",
        ) from None
    if not found.length:
        raise TargetError(f"{text!r}: the length is 0; write at least 1", field="targets")
    return found


def region_name(part: Extent) -> str:
    """As :func:`region_of` reads it, to the byte.

    >>> region_name(Extent(Bytes(2**30), Bytes(3 * 2**16)))
    'region:1GiB+192KiB'
    """
    return f"{_REGION}{_exactly(part.start)}+{_exactly(part.length)}"


def _exactly(size: Bytes) -> str:
    for power, unit in zip((40, 30, 20, 10), _UNITS, strict=True):
        if size and size % 2**power == 0:
            return f"{size >> power}{unit}"
    return str(int(size))


@dataclass(frozen=True, slots=True)
class MountedView:
    """A disk's file system, mounted on ``folder`` (None: nowhere) for as long as this is in use.

    :ivar kind: None where the disk has no file system that hotset knows: regions can be named.
    """

    machine: Machine
    device: PurePosixPath
    folder: PurePosixPath | None
    kind: FileSystem | None
    block: Bytes
    size: Bytes

    def wish(self, name: str, paths: Sequence[str], pinned: bool = False) -> PlanTarget:
        """The blocks of files and of all files below folders.

        :raises TargetError: one is not there, or lies on another file system.
        """
        found = extents.of_files(self.machine, self.files(paths))
        return PlanTarget(name, len(found), (self.runs(found),), pinned)

    def region(self, name: str) -> Extent:
        """:raises TargetError: it is not on the disk as a whole."""
        found = region_of(name)
        if found.start + found.length > self.size:
            raise TargetError(
                f"{name} ends at {Bytes(found.start + found.length)}, beyond the end of"
                f" {self.device} ({self.size}, {int(self.size)} bytes): name a part of the disk",
                field="targets",
            )
        return found

    def own(self) -> PlanTarget:
        """What the file system needs beside its files (journal, tables)."""
        found = []
        if self.kind is not None:
            found = filesystem.own_extents(self.machine, self.device, self.kind)
        return PlanTarget(OWN, len(found), (self.runs(found),), is_asked=False)

    def free(self) -> list[Extent]:
        """Where nothing lies; as the disk says it, so a little old while the file system is mounted
        and written to. Nowhere, as far as is known, without a file system."""
        if self.kind is None:
            return []
        return filesystem.free_extents(self.machine, self.device, self.kind)

    def runs(self, found: Sequence[Extent]) -> list[Run]:
        return extents.to_runs(found, self.block, self.size)

    def files(self, paths: Sequence[str]) -> list[str]:
        """Regular files among the paths and below the folders among them."""
        if self.kind is None:
            raise TargetError(
                f"{self.device} has no file system of kind {' or '.join(filesystem.LOOK_OPTIONS)},"
                f" so the path {paths[0]} cannot be resolved on it: name a part of the disk, as"
                " region:OFFSET+LENGTH",
                field="targets",
            )
        if self.folder is None:
            raise TargetError(
                f"{self.device} is not mounted, so the path {paths[0]} cannot be resolved on it:"
                " mount it first",
                Remedy(
                    "have it mounted read-only meanwhile, say where it is usually mounted",
                    parameters={"mount_point": "DIR"},
                ),
                field="targets",
            )
        number = usage.device_number(self.machine, self.device)
        files: list[str] = []
        for path, device, is_folder in _kinds(self.machine, paths):
            if device != number:
                raise TargetGoneError(
                    f"{path} is not on {self.device} (mounted on {self.folder}) but on another"
                    " file system: name what is on the accelerated disk",
                    field="targets",
                )
            below = PurePosixPath(path)
            files += extents.files_under(self.machine, below) if is_folder else [path]
        return files

    def split(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """Those that lie on the disk, and the others."""
        number = usage.device_number(self.machine, self.device)
        on = {path: device for path, device, _ in _kinds(self.machine, paths)}
        here = [path for path in paths if on[path] == number]
        return here, [path for path in paths if on[path] != number]


@contextmanager
def inspect(
    machine: Machine, device: PurePosixPath, block: Bytes, usual: PurePosixPath | None
) -> Iterator[MountedView]:
    """The file system of an accelerated device, for the length of a ``with`` block.

    :param usual: where it is usually mounted; it is mounted there when it is not mounted now.
    :raises TargetError: something else is mounted there.
    """
    kind, size = filesystem.kind_if_any(machine, device), device_size(machine, device)
    mounted = usage.mounted_at(machine, device)
    if mounted or usual is None or kind is None:
        folder = mounted[0].folder if mounted else None
        yield MountedView(machine, device, folder, kind, block, size)
        return
    if any(mount.folder == usual for mount in usage.mounts(machine)):
        raise TargetError(f"something else is mounted on {usual}", field="mount_point")
    machine.run(["mkdir", "-p", str(usual)])
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(device), str(usual)])
    try:
        yield MountedView(machine, device, usual, kind, block, size)
    finally:
        machine.run(["umount", str(usual)])


def sizes(machine: Machine, paths: Sequence[str]) -> dict[str, Bytes]:
    """Of files and of all files below folders: bytes by the folder that has them."""
    found: dict[str, Bytes] = {}
    for some in _some(paths):
        places = machine.run(["readlink", "-f", "--", *some]).stdout.splitlines()
        argv = ["find", *places, "-type", "f", "-printf", "%s %h\\n"]
        for line in machine.run(argv).stdout.splitlines():
            size, _, folder = line.partition(" ")
            found[folder] = Bytes(found.get(folder, 0) + int(size))
    return found


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
            gone = "No such file" in said
            raise (TargetGoneError if gone else TargetError)(
                f"on {machine.kind}: {said.splitlines()[0]}", field="targets"
            )
        for path, line in zip(some, lines, strict=True):
            number, _, kind = line.partition(" ")
            device = int(number)
            if kind not in ("regular file", "regular empty file", "directory"):
                raise TargetError(f"{path} is a {kind}: name a file or a folder", field="targets")
            yield path, f"{os.major(device)}:{os.minor(device)}", kind == "directory"


def _some(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _PATHS_PER_CALL):
        yield paths[start : start + _PATHS_PER_CALL]
