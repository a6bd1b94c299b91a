"""The file of a machine's history: who writes to it, and what becomes of one that cannot be used.

One process records; its lock on a file beside the history says so. A damaged history is set aside;
one of a later hotset, and a file that is no history, are left alone.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from hotset.core.errors import HotsetError
from hotset.core.paths import data_dir

from .store import SCHEMA, VERSION, Store

_BUSY_S = 5.0
_WAL_PAGES = 100
"""The file beside the history that takes what is written is merged into it at this many pages."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOOKS = 3
"""So often a file is read that a console begins to write to meanwhile."""
Found = TypeVar("Found")


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
    """The device and the number of a file; None: there is none, or nobody may look."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class WriterLock:
    """Held by the one who records; the kernel lets go of it with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_suffix(".lock")
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Whether it is ours now.

        :raises OSError: the file cannot be made or opened.
        """
        if self._descriptor is not None:
            return True
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
            return self._path.read_text(encoding="utf-8", errors="replace").strip()
        return ""

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_damage(error: Exception) -> bool:
    """Whether SQLite says that a file is damaged, or none of its own."""
    code = getattr(error, "sqlite_errorcode", 0)
    # The lowest byte is the kind of error, those above say more of it.
    return isinstance(error, sqlite3.Error) and (code & 0xFF) in _DAMAGED


def open_to_write(path: Path) -> Store:
    """The history in a file, made if need be; the lock is held.

    :raises DamagedError: it cannot be read.
    :raises RefusedError: it is another hotset's, or no history.
    :raises sqlite3.Error: the folder or the disk does not let it be opened.
    """
    connection = _connected(path)
    try:
        _require_ours(connection, path)
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_PAGES * 4096}")
        if not _version(connection):
            connection.executescript(f"BEGIN;{SCHEMA}COMMIT;")
            path.chmod(0o600)
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DamagedError(f"{path}: {found}")
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error) and is_damage(error):
            raise DamagedError(f"{path}: {error}") from None
        raise
    return Store(connection)


@contextmanager
def reading(path: Path) -> Iterator[Store | None]:
    """The history in a file for one who only reads it; None where there is none.

    :raises DamagedError: it cannot be read.
    :raises RefusedError: it is another hotset's, or no history.
    :raises sqlite3.Error: the folder or the disk does not let it be opened.
    """
    try:
        # Never made by one who only reads: whoever records would take it for a history's.
        connection = _connected(path, "rw")
        connection.execute("PRAGMA user_version")
    except sqlite3.OperationalError:
        if path.exists():
            raise
        yield None
        return
    try:
        _require_ours(connection, path)
        yield Store(connection) if _version(connection) else None
    except sqlite3.Error as error:
        if is_damage(error):
            raise DamagedError(f"{path}: {error}") from None
        raise
    finally:
        connection.close()


def look(path: Path, read: Callable[[Store], Found]) -> Found | None:
    """What ``read`` makes of a history, for one who changes nothing: neither the file nor those
    beside it, and who records is not kept waiting. None: there is no history.

    A file without a log beside it is read as one that nobody writes to (``immutable``): else SQLite
    would make one. Where a console began to write meanwhile, it is read again.

    :raises DamagedError: it cannot be read.
    :raises RefusedError: it is another hotset's, or no history.
    :raises UnreadableError: the folder or the disk does not let it be read.
    """
    log = path.with_name(f"{path.name}-wal")
    for left in reversed(range(_LOOKS)):
        try:
            before, is_written = _state(path), log.exists()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError(f"{path} cannot be read: {error.strerror}") from None
        try:
            found = _looked(path, read, "ro" if is_written else "ro&immutable=1")
        except DamagedError:
            if left and not is_written and log.exists():
                continue
            raise
        with suppress(OSError):
            if is_written or (_state(path) == before and not log.exists()):
                return found
    raise UnreadableError(f"{path} is being made anew: try again in a moment")


def _looked(path: Path, read: Callable[[Store], Found], mode: str) -> Found | None:
    try:
        connection = _connected(path, mode)
        try:
            _require_ours(connection, path)
            return read(Store(connection)) if _version(connection) else None
        finally:
            connection.close()
    except sqlite3.Error as error:
        if is_damage(error):
            raise DamagedError(f"{path}: {error}") from None
        raise UnreadableError(f"{path} cannot be read: {error}") from None


def _state(path: Path) -> tuple[int, int, int]:
    """What changes with a file's content.

    :raises OSError: there is none, or nobody may look.
    """
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def set_aside(path: Path, at: float) -> Path:
    """Give a history another name, which it returns; nothing of it is lost.

    :raises OSError: it cannot be renamed.
    """
    stamp = f"{datetime.fromtimestamp(at).astimezone():%Y%m%dT%H%M%S}"
    aside, number = path.with_name(f"{path.stem}.damaged-{stamp}.sqlite"), 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.stem}.damaged-{stamp}-{number}.sqlite")
    path.rename(aside)
    for ending in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return aside


def _connected(path: Path, mode: str = "rwc") -> sqlite3.Connection:
    # The console reads in one thread after the other, never in two at once.
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, timeout=_BUSY_S, check_same_thread=False, uri=True)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _require_ours(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version == VERSION:
        return
    if version > VERSION:
        raise RefusedError(
            f"{path} was written by a later version of hotset (format {version}, this one writes"
            f" {VERSION}): use that one, or move the file away to begin a new history"
        )
    holds = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if version or holds:
        raise RefusedError(
            f"{path} is not a history that this version of hotset reads (format {version}): move"
            " the file away to begin a new history"
        )
