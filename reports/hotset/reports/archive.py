"""The archive of runs: one folder a run under the XDG data directory, and an SQLite index.

The folders are the truth; the index can be made again from them. A run's document is written
after every step (to a new file, then renamed), so that a failure loses none of it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from hotset.core import record
from hotset.core.errors import ConflictError, NotFoundError, Remedy
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.paths import data_dir, write_whole
from hotset.core.record import SCHEMA_VERSION

if TYPE_CHECKING:
    from .model.document import RunDocument
    from .render.tables import ListingRow

DOCUMENT = "result.json"
REPORT = "report.html"
_DOOMED = ".deleting-"
_UNFINISHED = "its deletion was begun and is not finished: delete it once more"
_FLOCK = "hhqqi"  # struct flock of fcntl(2): type, whence, start, length, process
_TABLE = "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, started TEXT, listing TEXT)"


@cache
def _row() -> TypeAdapter[ListingRow]:
    """A line of the index."""
    from .render.tables import ListingRow

    return TypeAdapter(ListingRow)


class NoSuchRunError(NotFoundError):
    """The archive has no such run; the message says how to see those it has."""


class RunningError(ConflictError):
    """A run is under way: what would change it has to wait."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"run {run} is running: wait until it has ended, or end it",
            Remedy("see what it does", "runs show", {"run": run}),
            field="run",
        )


def run_name(name: str, at: datetime) -> str:
    """Build a run's name from its time and its purpose, which another may share."""
    return f"{at.astimezone(UTC):%Y%m%d-%H%M%S}-{name}"


def new_folder(base: Path, name: str, at: datetime, mode: int = 0o777) -> Path:
    """Make a folder named after its time and what it is for, as there was none before."""
    stem = run_name(name, at)
    for suffix in ("", *(f".{number}" for number in range(2, 100))):
        folder = base / (stem + suffix)
        with suppress(FileExistsError):
            folder.mkdir(mode, parents=True)
            return folder
    raise FileExistsError(f"{base / stem} and 98 more exist")


@dataclass(frozen=True, slots=True)
class Archive:
    """All runs of this user."""

    folder: Path

    @classmethod
    def default(cls) -> Archive:
        return cls(data_dir() / "runs")

    def new(self, name: str, at: datetime) -> str:
        """Make the folder of a new run and return the run's id, which no other run has."""
        return new_folder(self.folder, name, at).name

    def path(self, run: str) -> Path:
        return self.folder / run

    def hold(self, run: str) -> IO[bytes]:
        """Lock a run for a change; the run is under way until the file is closed, or until this
        process has ended, however it did.

        :raises RunningError: another holds it.
        :raises PrerequisiteMissingError: the archive cannot be written.
        """
        with ExitStack() as stack:
            try:
                file = stack.enter_context(self._locks.open("ab"))
            except OSError as error:
                raise self._not_writable(error) from error
            try:
                # Of the open file and not of the process, so that a look from here ends nothing.
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, _lock_of(run))
            except (BlockingIOError, PermissionError):
                raise RunningError(run) from None
            stack.pop_all()
        return file

    def _not_writable(self, error: Exception) -> PrerequisiteMissingError:
        return PrerequisiteMissingError(
            f"the archive {self.folder} cannot be written: {error}; free some room there, or"
            " name a folder on another disk in XDG_DATA_HOME"
        )

    @property
    def _locks(self) -> Path:
        """A byte of it is a run's; beside the runs, so that none is in the way of a deletion."""
        return self.folder.with_suffix(".lock")

    def _locked_runs(self, runs: Iterable[str]) -> set[str]:
        """Return the runs that are locked, without taking a lock."""
        with suppress(FileNotFoundError), self._locks.open("rb") as file:
            return {
                run
                for run in runs
                if struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_OFD_GETLK, _lock_of(run)))[0]
                != fcntl.F_UNLCK
            }
        return set()

    def save(self, document: RunDocument) -> None:
        """Write a run's document and its line in the index.

        :raises PrerequisiteMissingError: the archive cannot be written, mostly for want of room.
        """
        target = self.path(document.run) / DOCUMENT
        try:
            write_whole(target, document.model_dump_json(indent=1))
            self._index(document)
        except (OSError, sqlite3.Error) as error:
            raise self._not_writable(error) from error

    def load(self, run: str) -> RunDocument:
        """A run by its id, a unique beginning of it, or ``last``, as it is now.

        :raises NoSuchRunError: none, or several begin so, or its document cannot be read.
        """
        name = self.resolve(run)
        # Before: it may end, and afterwards: it may begin while it is read.
        held = self._locked_runs((name,))
        document = self.read(name)
        if document.under_way and (held or self._locked_runs((name,))):
            return document.as_running()
        return document

    def read(self, name: str) -> RunDocument:
        """A run as it was saved, which says nothing of whether it goes on.

        :raises NoSuchRunError: its document cannot be read.
        """
        from .model.document import RunDocument

        file = self.path(name) / DOCUMENT
        try:
            return RunDocument.model_validate_json(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NoSuchRunError(
                f"run {name} has no result: {file} is missing", field="run"
            ) from None
        except (ValueError, OSError) as error:
            raise NoSuchRunError(
                f"run {name}: {file} cannot be read: {_first_fault(error)}", field="run"
            ) from None

    def listing(self, limit: int | None = None) -> list[ListingRow]:
        """The runs, the newest first; one that cannot be read is listed as that.

        :param limit: how many of the newest.
        """
        from .render.tables import ListingRow

        names = self._names()[:limit]
        held = self._locked_runs(names)
        indexed = self._read_index(names[-1] if names else "")
        rows = [self._row_of(run, indexed.get(run)) for run in names]
        held |= self._locked_runs(row.run for row in rows if row.under_way)
        rows = [
            replace(row, state="running") if row.under_way and row.run in held else row
            for row in rows
        ]
        half = [
            ListingRow.unreadable(run, _time_of(run, self.path(_DOOMED + run)), _UNFINISHED)
            for run in self._half_deleted()
        ]
        return sorted([*rows, *half], key=lambda row: row.run, reverse=True)[:limit]

    def count(self) -> int:
        """How many runs there are, those that cannot be read among them."""
        return len(self._names())

    def size(self, limit_s: float) -> int | None:
        """Bytes of all files of all runs; None: they were not counted within that time."""
        total, until = 0, time.monotonic() + limit_s
        for run in (*self._names(), *(_DOOMED + run for run in self._half_deleted())):
            if time.monotonic() > until:
                return None
            with suppress(OSError), os.scandir(self.path(run)) as entries:
                total += sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
        return total

    def _row_of(self, run: str, line: str | None) -> ListingRow:
        """:param line: of the index; None: it has none, as when the index was lost."""
        from .render.tables import ListingRow

        with suppress(ValueError):
            if line is not None:
                return _row().validate_json(line)
        try:
            document = self.read(run)
        except (NoSuchRunError, OSError) as error:
            return ListingRow.unreadable(run, _time_of(run, self.path(run)), str(error))
        with suppress(OSError, sqlite3.Error):
            self._index(document)
        return ListingRow.from_document(document)

    def remove(self, run: str) -> str:
        """Delete a run's folder and index line, or finish what a deletion that was interrupted
        left of them; returns its full id.

        :raises PrerequisiteMissingError: the folder cannot be changed; nothing is deleted.
        :raises RunningError: it is under way.
        """
        name = self.resolve_removable(run)
        # What may not be moved aside may not be removed, either, but its files might be.
        doomed = self.path(f"{_DOOMED}{name}")
        with self.hold(name):
            try:
                if self.path(name).is_dir():
                    self.path(name).rename(doomed)
            except OSError as error:
                raise PrerequisiteMissingError(
                    f"run {name} cannot be deleted: {error}; nothing was. See who may write to"
                    f" {self.folder}"
                ) from error
            shutil.rmtree(doomed)
            self.forget(name)
        return name

    def forget(self, run: str) -> None:
        """Take a run that is gone out of the index; one that cannot be written keeps a line that
        nobody reads."""
        with suppress(sqlite3.Error), closing(self._database()) as database, database:
            database.execute("DELETE FROM runs WHERE run = ?", (run,))

    def _names(self) -> list[str]:
        """The newest first."""
        return [name for name in self._folders() if not name.startswith(_DOOMED)]

    def _half_deleted(self) -> list[str]:
        """Runs whose deletion was begun and is not finished, the newest first."""
        names = (name for name in self._folders() if name.startswith(_DOOMED))
        return [name.removeprefix(_DOOMED) for name in names]

    def _folders(self) -> list[str]:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.folder) as entries:
            return sorted((entry.name for entry in entries if entry.is_dir()), reverse=True)
        return []

    def resolve(self, run: str) -> str:
        """The full id of a run by its id, a unique beginning of it, or ``last``.

        :raises NoSuchRunError: none, or several begin so.
        """
        names, half = self._names(), self._half_deleted()
        if run != "last" and not _matching(run, names) and len(_matching(run, half)) == 1:
            (name,) = _matching(run, half)
            raise NoSuchRunError(
                f"run {name}: {_UNFINISHED}",
                Remedy("delete the rest of it", "runs rm", {"run": name}),
                field="run",
            )
        if not names:
            raise NoSuchRunError(
                "there are no runs yet", Remedy("make the first", "demo"), field="run"
            )
        if run == "last":
            return names[0]
        matching = _matching(run, names)
        if len(matching) != 1:
            what = "no run" if not matching else f"{len(matching)} runs"
            raise NoSuchRunError(
                f"{what} named {run!r}", Remedy("see all runs", "runs list"), field="run"
            )
        return matching[0]

    def resolve_removable(self, run: str) -> str:
        """Resolve as :meth:`resolve` does, also a run whose deletion was begun.

        :raises NoSuchRunError: none, or several begin so.
        :raises RunningError: it is under way.
        """
        half = _matching(run, self._half_deleted())
        if len(half) == 1 and not _matching(run, self._names()):
            return half[0]
        name = self.resolve(run)
        if self._locked_runs((name,)):
            raise RunningError(name)
        return name

    def _index(self, document: RunDocument) -> None:
        from .render.tables import ListingRow

        line = _row().dump_json(ListingRow.from_document(document)).decode()
        with closing(self._database()) as database, database:
            database.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)",
                (document.run, document.started_at.isoformat(), line),
            )

    def _read_index(self, oldest: str) -> dict[str, str]:
        """The lines of these runs and of newer ones."""
        # Where the index cannot be opened (its disk is full), the folders say it all.
        with suppress(sqlite3.Error, OSError), closing(self._database()) as database:
            rows = database.execute("SELECT run, listing FROM runs WHERE run >= ?", (oldest,))
            return dict(rows.fetchall())
        return {}

    def _database(self) -> sqlite3.Connection:
        """The index; a damaged one is put aside, as it can be made again from the folders."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder.with_suffix(".sqlite")
        try:
            return _open(file)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            file.replace(file.with_suffix(".sqlite.damaged"))
            return _open(file)


def _lock_of(run: str) -> bytes:
    """The byte that stands for a run: which, its name alone decides."""
    place = int.from_bytes(sha256(run.encode()).digest()[:7])
    return struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)


def _matching(run: str, names: list[str]) -> list[str]:
    """The names that a run's id, or the beginning of one, means."""
    return [name for name in names if name == run] or [
        name for name in names if run and name.startswith(run)
    ]


def _open(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file)
    try:
        database.execute(_TABLE)
        database.execute("SELECT count(run) FROM runs WHERE run < ''")
    except BaseException:
        database.close()
        raise
    return database


def _first_fault(error: Exception) -> str:
    """In one line: a document that is none at all has hundreds of faults."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    for fault in error.errors():
        if fault["loc"] == ("schema_version",):
            version = record.expected_version(fault["input"], SCHEMA_VERSION)
            return f"it was written by another version of hotset ({version}): use that one"
    more = f", and {error.error_count() - 1} more faults" if error.error_count() > 1 else ""
    return f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}{more}"


def _time_of(run: str, folder: Path) -> datetime:
    """When a run began: its id says it, else its folder."""
    with suppress(ValueError):
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    with suppress(OSError):
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)
