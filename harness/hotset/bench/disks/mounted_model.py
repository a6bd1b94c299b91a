"""A modelled disk with files on it, mounted: for what reads and writes files. Takes root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.block import filesystem, loop
from hotset.block.flashdev import Model
from hotset.core.errors import RequestError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab import served_model
from hotset.lab.served_model import ServedModel

_FILE_SYSTEM_BYTES = 64 * 1024**2


class RootError(RequestError):
    """Not root, whom loop devices and mounts take."""


@dataclass(frozen=True, slots=True)
class MountedModel:
    """``files``: where its files are; ``device``: that they lie on."""

    files: Path
    device: ServedModel


def require(local: Local) -> None:
    """:raises RootError: not root.
    :raises PrerequisiteMissingError: there are no loop devices.
    """
    if os.geteuid():
        raise RootError("takes root, as it mounts the modelled disks: call it with sudo")
    loop.require(local)


def make_content(local: Local, content: Path, source: Path, size: Bytes) -> None:
    """A file system of what is in a folder, with ``size`` for files, in a file that no disk has
    written: one that had would have some of them in its cache. It is not mounted either: a copy of
    the mount table, as a container makes when it starts, would keep it from being unmounted."""
    with content.open("wb") as file:
        file.truncate(size + size // 16 + _FILE_SYSTEM_BYTES)
    filesystem.make_of(local, PurePosixPath(content), PurePosixPath(source))


@contextmanager
def mount_model(
    local: Local,
    folder: Path,
    content: Path,
    model: Model,
    read_only: bool = True,
    trace: Path | None = None,
    path_us: int | None = None,
    cleanup_at: Callable[[Path, Local], Cleanup] = Cleanup,
) -> Iterator[MountedModel]:
    """The files of ``content``, on a model.

    :param folder: of the caller's, for the mount and the journal.
    :param trace: where every read and write is written down, complete when the context ends.
    :param path_us: time that serving through a loop device takes here, where it was measured.
    :param cleanup_at: makes the journal of a folder; a plan's ends no process.
    """
    size, at = Bytes(content.stat().st_size), folder / "files"
    cleanup = cleanup_at(folder, local)
    with (
        served_model.serve_model(
            local,
            model,
            size,
            backing=content,
            trace=trace,
            path_us=path_us,
            cleanup_at=cleanup_at,
        ) as served,
        cleanup.part(),
    ):
        device = loop.attach(local, served.file, cleanup, readonly=read_only)
        at.mkdir(exist_ok=True)
        local.run(["mount", "-o", "ro" if read_only else "rw,noatime", str(device), str(at)])
        try:
            yield MountedModel(at, served)
        finally:
            local.run(["umount", str(at)], timeout_s=600)
