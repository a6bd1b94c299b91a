"""Targets as users write them: what they stand for, and the blocks they come to.

``/a/file``, ``/a/folder``, ``table:NAME``, ``index:NAME``, ``database:NAME``,
``region:OFFSET+LENGTH`` (a part of the disk), ``heat`` (hottest first) and ``snapshot:FILE`` (a
resident set saved before).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hotset.block import extents, filesystem
from hotset.block.devicemapper import device_size
from hotset.block.extents import Extent, Run
from hotset.block.filesystem import FileSystem
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.databases.base import Kind, Target, TargetError, TargetGoneError

_NAMED = re.compile(r"^(table|index|database|region|snapshot):(.+)$")
_FORMS = (
    "write a full path such as /srv/pg/base, table:NAME, index:NAME, database:NAME,"
    " region:OFFSET+LENGTH, heat or snapshot:FILE"
)


def parse(text: str) -> Target:
    """:raises TargetError: not a target; shows the forms.

    >>> parse("table:public.orders")
    Target(text='table:public.orders', kind='table', name='public.orders')
    """
    if text == "heat":
        return Target(text, "heat", "")
    match = _NAMED.match(text)
    if match:
        kind: Kind = match[1]  # type: ignore[assignment] # the pattern's own words
        if kind == "region":
            region_of(text)
        return Target(text, kind, match[2])
    if not text.startswith("/"):
        raise TargetError(f"{text!r}: {_FORMS}", field="targets")
    return Target(text, "path", str(PurePosixPath(text)))


def check_file(target: Target) -> Path:
    """A snapshot's file.

    :raises TargetError: it is not there.
    """
    path = Path(target.name)
    if not path.is_file():
        raise TargetError(
            f"{target.text}: there is no such file on this computer",
            Remedy("write one", "warmup snapshot", {"output": "FILE"}),
            field="targets",
        )
    return path


_PATHS_PER_CALL = 200
OWN = "(file system's own)"
_REGION = "region:"
_UNITS = ("TiB", "GiB", "MiB", "KiB")


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """A target and the blocks it stands for: ``layers``, the most important first, each runs in
    origin order (a file has one; a snapshot one per level).

    :ivar is_asked: somebody named it; the file system's own blocks come along by themselves.
    """

    name: str
    extents: int
    layers: tuple[list[Run], ...]
    pinned: bool = False
    is_asked: bool = True


def region_of(text: str) -> Extent:
    """The part of a disk that ``region:OFFSET+LENGTH`` names.

    >>> region_of("region:1GiB+64KiB")
    Extent(start=Bytes(1073741824), length=Bytes(65536))

    :raises TargetError: names the part that is wrong, and the form.
    """
    offset, plus, length = text.removeprefix(_REGION).partition("+")
    try:
        extent = Extent(Bytes.parse(offset), Bytes.parse(length))
    except ValueError as error:
        wrong = "" if not plus else f" ({error})"
        raise TargetError(
            f"{text!r}: write region:OFFSET+LENGTH, such as region:10GiB+512MiB{wrong}",
            field="targets",
        ) from None
    if not extent.length:
        raise TargetError(f"{text!r}: the length is 0; write at least 1", field="targets")
    return extent


def region_name(part: Extent) -> str:
    """Format a region as :func:`region_of` reads it, to the byte.

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
        pieces = extents.of_files(self.machine, self.files(paths))
        return PlanTarget(name, len(pieces), (self.runs(pieces),), pinned)

    def region(self, name: str) -> Extent:
        """:raises TargetError: it is not on the disk as a whole."""
        extent = region_of(name)
        if extent.start + extent.length > self.size:
            raise TargetError(
                f"{name} ends at {Bytes(extent.start + extent.length)}, beyond the end of"
                f" {self.device} ({self.size}, {int(self.size)} bytes): name a part of the disk",
                field="targets",
            )
        return extent

    def own(self) -> PlanTarget:
        """Return the target of the file system's own metadata (journal, tables)."""
        pieces = []
        if self.kind is not None:
            pieces = filesystem.own_extents(self.machine, self.device, self.kind)
        return PlanTarget(OWN, len(pieces), (self.runs(pieces),), is_asked=False)

    def free(self) -> list[Extent]:
        """Where nothing lies; as the disk says it, so a little old while the file system is mounted
        and written to. Nowhere, as far as is known, without a file system."""
        if self.kind is None:
            return []
        return filesystem.free_extents(self.machine, self.device, self.kind)

    def runs(self, pieces: Sequence[Extent]) -> list[Run]:
        return extents.to_runs(pieces, self.block, self.size)

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
        number = filesystem.device_number(self.machine, self.device)
        files: list[str] = []
        for path, device, is_folder in self._kinds(paths, number):
            if device != number:
                raise self._lost_error(
                    path,
                    number,
                    f"{path} is not on {self.device} (mounted on {self.folder}) but on another"
                    " file system: name what is on the accelerated disk",
                )
            below = PurePosixPath(path)
            files += extents.files_under(self.machine, below) if is_folder else [path]
        return files

    def split(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """Split the paths into those on the disk, and the others."""
        number = filesystem.device_number(self.machine, self.device)
        on = {path: device for path, device, _ in self._kinds(paths, number)}
        here = [path for path in paths if on[path] == number]
        return here, [path for path in paths if on[path] != number]

    def _kinds(self, paths: Sequence[str], number: str) -> Iterator[tuple[str, str, bool]]:
        """Path, device as ``major:minor``, whether it is a folder.

        :param number: of the disk.
        :raises TargetError: one is not there, or neither a file nor a folder.
        """
        for some in _some(paths):
            argv = ["stat", "--dereference", "--format=%d %F", "--", *some]
            done = self.machine.run(argv, check=False)
            if done.rc:
                missing = next(
                    (path for path in some if _stat(self.machine, path, "-L") is None), ""
                )
                message = done.stderr.strip() or "not there"
                words = f"on {self.machine.kind}: {message.splitlines()[0]}"
                if missing:
                    raise self._lost_error(missing, number, words)
                raise TargetError(words, field="targets")
            for path, line in zip(some, done.stdout.splitlines(), strict=True):
                digits, _, kind = line.partition(" ")
                if kind not in ("regular file", "regular empty file", "directory"):
                    raise TargetError(
                        f"{path} is a {kind}: name a file or a folder", field="targets"
                    )
                yield path, _number(digits), kind == "directory"

    def _lost_error(self, path: str, number: str, words: str) -> TargetError:
        """Only this disk's file system can say that it has no such thing (any more): that nothing
        is at its path may as well mean that it is not mounted there, and that something else is
        there, that this hides it."""
        is_there = True
        for place in map(str, (PurePosixPath(path), *PurePosixPath(path).parents)):
            own, led = _stat(self.machine, place, "-P"), _stat(self.machine, place, "-L")
            leads_here = led is not None and led[0] == number
            leads_away = own is not None and own == (number, "symbolic link") and not leads_here
            if leads_away or (leads_here and not is_there):
                return TargetGoneError(words, field="targets")
            if leads_here:
                break
            is_there = led is not None
        return TargetError(words, field="targets")


@contextmanager
def inspect(
    machine: Machine, device: PurePosixPath, block: Bytes, usual: PurePosixPath | None
) -> Iterator[MountedView]:
    """The file system of an accelerated device, for the length of a ``with`` block.

    :param usual: where it is usually mounted; it is mounted there when it is not mounted now.
    :raises TargetError: something else is mounted there.
    """
    kind, size = filesystem.kind_if_any(machine, device), device_size(machine, device)
    mounted = filesystem.mounts_of(machine, device)
    if mounted or usual is None or kind is None:
        folder = mounted[0].folder if mounted else None
        yield MountedView(machine, device, folder, kind, block, size)
        return
    if any(mount.folder == usual for mount in filesystem.mounts(machine)):
        raise TargetError(f"something else is mounted on {usual}", field="mount_point")
    machine.run(["mkdir", "-p", str(usual)])
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(device), str(usual)])
    try:
        yield MountedView(machine, device, usual, kind, block, size)
    finally:
        machine.run(["umount", str(usual)])


def sizes(machine: Machine, paths: Sequence[str]) -> dict[str, Bytes]:
    """Add up the sizes of files and of all files below folders, by the folder that has them."""
    totals: dict[str, Bytes] = {}
    for some in _some(paths):
        places = machine.run(["readlink", "-f", "--", *some]).stdout.splitlines()
        argv = ["find", *places, "-type", "f", "-printf", "%s %h\\n"]
        for line in machine.run(argv).stdout.splitlines():
            size, _, folder = line.partition(" ")
            totals[folder] = Bytes(totals.get(folder, 0) + int(size))
    return totals


def _stat(machine: Machine, path: str, link: Literal["-L", "-P"]) -> tuple[str, str] | None:
    """Device as ``major:minor``, and kind, of a path or of what it leads to; None: there is no such
    file.

    :raises TargetError: it cannot be looked at.
    """
    options = ["--dereference"] if link == "-L" else []
    argv = ["stat", *options, "--format=%d %F", "--", path]
    done = machine.run(argv, check=False)
    if done.rc == 0:
        number, _, kind = done.stdout.strip().partition(" ")
        return _number(number), kind
    if "No such file" in done.stderr or "Not a directory" in done.stderr:
        return None
    raise TargetError(f"on {machine.kind}: {done.stderr.strip()}", field="targets")


def _number(device: str) -> str:
    return f"{os.major(int(device))}:{os.minor(int(device))}"


def _some(paths: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(paths), _PATHS_PER_CALL):
        yield paths[start : start + _PATHS_PER_CALL]
