"""The file of a machine's history: who writes to it, and what becomes of one that cannot be used.

One process records; its lock on a file beside the history says so. A damaged history is set aside;
one of a later hotset, and a file that is no history, are left alone.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from hotset.core.errors import HotsetError
from hotset.core.paths import data_dir

from .store import SCHEMA, VERSION, Store

_BUSY_S = 5.0
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
T = TypeVar("T")


class RefusedError(HotsetError):
    """A file that is not ours to change; the message says whose, and what to do."""


class DamagedError(HotsetError):
    """A history that cannot be read; the message says how that was seen."""


class UnreadableError(HotsetError):
    """The file's folder, its rights or the disk do not let it be read; the message says which."""


def path_of(machine: str) -> Path:
    """The file of a machine's history; no two machines have the same.

    :param machine: as ``--machine`` names it.
    """
    return data_dir() / "history" / f"{quote(machine, safe='@')}.sqlite"


FileId = tuple[int, int]


def file_id(path: Path) -> FileId | None:
    """The device and the number of a file; None: there is none, or it cannot be inspected."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class WriterLock:
    """Held by the one who records; the kernel lets go of it with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_suffix(".lock")
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """True if it is ours now.

        :raises OSError: the file cannot be made or opened.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        # A full disk does not keep anybody from recording once there is room.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return True

    @property
    def owner(self) -> str:
        """The number of the process that records, as far as it is known."""
        with suppress(OSError):
            return self._path.read_text(encoding="utf-8", errors="replace").strip() or "unknown"
        return "unknown"

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def writing(path: Path) -> Iterator[Store]:
    """The history in a file, created if there is none; the lock is held.

    :raises DamagedError: it cannot be read.
    :raises RefusedError: it is another hotset's, or no history.
    :raises sqlite3.Error: the folder or the disk does not let it be written.
    """
    with _opened(path, "rwc") as connection:
        if not _is_ours(connection, path):
            connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")
            path.chmod(0o600)
        yield Store(connection)


def look(path: Path, read: Callable[[Store], T]) -> T | None:
    """Apply ``read`` to a history without changing anything: neither the file nor those
    beside it. None: there is no history.

    :raises DamagedError: it cannot be read.
    :raises RefusedError: it is another hotset's, or no history.
    :raises UnreadableError: the folder or the disk does not let it be read.
    """
    try:
        path.stat()
        with _opened(path, "ro") as connection:
            # All that is read is of one moment.
            connection.execute("BEGIN")
            return read(Store(connection)) if _is_ours(connection, path) else None
    except FileNotFoundError:
        return None
    except (OSError, sqlite3.Error) as error:
        why: object = error
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
            why = "its console was ended while it wrote; the next one that starts repairs it"
        raise UnreadableError(f"{path} cannot be read: {why}") from None


def set_aside(path: Path, at: float) -> Path:
    """Give a history another name, which it returns; nothing of it is lost.

    :raises OSError: it cannot be renamed.
    """
    stamp = f"{datetime.fromtimestamp(at).astimezone():%Y%m%dT%H%M%S.%f}"
    return path.rename(path.with_name(f"{path.stem}.damaged-{stamp}.sqlite"))


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(address, timeout=_BUSY_S, uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        # The lowest byte is the kind of error, those above say more of it.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise DamagedError(f"{path}: {error}") from None
        raise


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """False: nothing is in it yet."""
    ((version,),) = connection.execute("PRAGMA user_version")
    ((has_any,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    if version > VERSION:
        raise RefusedError(
            f"{path} was written by a later version of hotset (format {version}, this one writes"
            f" {VERSION}): use that one, or move the file away to begin a new history"
        )
    if version != VERSION and (version or has_any):
        raise RefusedError(
            f"{path} is not a history that this version of hotset reads (format {version}): move"
            " the file away to begin a new history"
        )
    return bool(version)
