"""Room on this computer's file systems: callers from elsewhere leave some.

Users who may run benchmarks have files made on the server: the lab's disks, archives of runs, jobs,
files of a benchmark. None begins where too little would be left for what else the server does, and
each ends where half of that is gone, by whatever fills the disk: of what a trace or several jobs at
once will take, nobody knows before.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from hotset.core.errors import PrerequisiteError
from hotset.core.paths import cache_dir, data_dir, state_dir
from hotset.core.rights import Makes
from hotset.core.units import Bytes

from .remote import OF_THIS_COMPUTER

_RESERVE_MAX = 10 * 1024**3
"""Bytes; on a small file system a twentieth."""
_MAKING = frozenset(
    ("demo", "disk", "experiment", "lab", "sql", "tpcc", "tpch", "warmup", "whatif")
)
"""First words of what makes files here. The others, such as to flush a disk, have to work on a
computer whose disk is full, too."""
_WITHOUT_FILES = frozenset(
    (
        *("disk fail", "disk power-cut", "disk replace", "experiment plan", "lab down"),
        *("tpcc drop", "tpch drop", "warmup schedule remove", "warmup unpin"),
    )
)
"""Operations under those words that make no files: most free room, or undo something."""
_LOOK_S = 1.0


class NoRoomError(PrerequisiteError):
    """Too little would be left; the message names the file system's folder."""


@dataclass(slots=True)
class Guard:
    """Sees while an operation runs that room is left; ``why`` it was ended, if it was."""

    why: str = ""


@contextmanager
def guard_room(
    name: str, values: Mapping[str, Any], look_s: float = _LOOK_S, guard: Guard | None = None
) -> Iterator[Guard]:
    """Interrupt an operation, as Ctrl-C does, where it or another leaves too little room.

    An interrupt may still arrive as the operation ends, but none does after this context. One that
    is ending already is left to do so.

    :param guard: is told why; a new one if None.
    """
    guard = guard or Guard()
    ended, deciding = threading.Event(), threading.Lock()
    if not makes_files(name, values):
        yield guard
        return
    guarded_thread = threading.get_ident()

    def look() -> None:
        while not ended.wait(look_s):
            why = ""
            with suppress(OSError):  # of a file system that went
                why = _too_full(values)
            if not why:
                continue
            with deciding:
                if not ended.is_set() and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
                    guard.why = why
                    signal.pthread_kill(guarded_thread, signal.SIGINT)
            return

    watcher = threading.Thread(target=look, name="room", daemon=True)
    watcher.start()
    try:
        yield guard
    finally:
        with deciding:
            ended.set()
        watcher.join()


def _too_full(values: Mapping[str, Any]) -> str:
    """Why an operation with these values is to end, in words; empty: it is not."""
    for folder in _written_folders(values):
        room, reserve = _room(folder)
        if room < reserve // 2:
            return (
                f"ended, as {folder} has {Bytes(room)} free, less than half of the {Bytes(reserve)}"
                " that the API and the console leave free"
            )
    return ""


def makes_files(name: str, values: Mapping[str, Any]) -> bool:
    """True if an operation with these values makes files on this computer, beside its records. A
    warm-up of another machine's cache does not, but for a file that it is told to write.

    >>> makes_files("whatif trace tpcc", {}), makes_files("tier flush", {})
    (True, False)
    >>> [makes_files("warmup run", {"machine": one}) for one in ("local", "ssh://db1")]
    [True, False]
    """
    first = name.partition(" ")[0]
    if first not in _MAKING or name in _WITHOUT_FILES:
        return False
    is_here = values.get("machine", "local") in OF_THIS_COMPUTER
    return first != "warmup" or is_here or bool(values.get("output"))


def _written_folders(values: Mapping[str, Any]) -> list[Path]:
    """Folders that an operation with these values writes to."""
    return [data_dir(), cache_dir(), state_dir(), *_named_folders(values)]


def _named_folders(values: Mapping[str, Any]) -> list[Path]:
    """List the folders that the caller names."""
    folder, output = values.get("folder"), values.get("output")
    return [*([Path(folder)] if folder else []), *([Path(output).parent] if output else [])]


def require(fields: Mapping[str, FieldInfo], values: Mapping[str, Any]) -> None:
    """See that a request of an operation that makes files leaves room.

    :raises NoRoomError: it does not, or there is none left already.
    """
    wanted = {
        name: mark.files * int(Bytes.parse(values[name]))
        for name, field in fields.items()
        for mark in field.metadata
        if isinstance(mark, Makes)
    }
    size, named = sum(wanted.values()), _named_folders(values)
    for folder in named:
        _require(folder, size, "size" if size else None)
    size = 0 if named else size
    require_lab(size, "size" if size else None)


def require_lab(wanted: int, field: str | None) -> None:
    """See that as many bytes have room where the lab's disks, runs and jobs are kept.

    :raises NoRoomError: they have not.
    """
    for folder in (data_dir(), cache_dir(), state_dir()):
        _require(folder, wanted, field)


def _require(folder: Path, wanted: int, field: str | None) -> None:
    free, reserve = _room(folder)
    if free - wanted < reserve:
        room = Bytes(max(0, free - reserve))
        raise NoRoomError(
            f"{Bytes(wanted)} and more may be written, and {folder} has room for {room} beside the"
            f" {Bytes(reserve)} that the API and the console leave free",
            field=field,
        )


def _room(folder: Path) -> tuple[int, int]:
    """Return the bytes free on a folder's file system, and those to keep free."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    usage = shutil.disk_usage(existing)
    return usage.free, min(_RESERVE_MAX, usage.total // 20)
