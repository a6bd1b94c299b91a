"""SQL Server as an administrator sees it: files, memory, I/O counters, waits.

Sources: Microsoft's reference of ALTER DATABASE … MODIFY FILE ("Move system databases"),
sys.master_files, sys.dm_io_virtual_file_stats, sys.dm_os_wait_stats,
sys.dm_os_performance_counters and `max server memory`. The statements lie in `sql/sqlserver/`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import ClassVar

from hotset.core.machines.base import Machine
from hotset.core.sql import EngineName, Session
from hotset.core.units import Bytes

from .. import file_labels
from ..base import (
    Change,
    Counter,
    DatabaseFile,
    Engine,
    FileIo,
    FileKind,
    Memory,
    Offer,
    Target,
    TargetError,
    Unavailable,
    Version,
    Wait,
    no_database,
    number,
)
from ..file_labels import Label, Level
from . import whereabouts

_MIB = 1024**2
_DATA_STEP_MB, _LOG_STEP_MB = 256, 64
_UNLIMITED = Bytes(2147483647 * _MIB)
"""Value of `max server memory` when it is not set."""
_SMALLEST_CAP = Bytes(512 * _MIB)
"""Below that a server may not come up again (Linux asks for 2 GB in the machine)."""
_BABELFISH = re.compile(r"\(Babelfish ([\d.]+)\)")
_GROWING = 272696576
"""PERF_COUNTER_BULK_COUNT: a value that only grows, though its name says "/sec"."""


class SqlServerEngine(Engine):
    """One SQL Server; ``database`` is the one whose files are meant."""

    name: ClassVar[EngineName] = "sqlserver"

    def __init__(self, connection: Session, database: str) -> None:
        super().__init__(connection)
        self._database = database or str(connection.query("SELECT DB_NAME()")[0][0])

    def version(self) -> Version:
        number_, edition, text = self._connection.query(self._sql("version"))[0]
        # "Microsoft SQL Server 2022 (RTM-CU15) …", "Babelfish for PostgreSQL with SQL Server …".
        product = str(text).splitlines()[0].split(" - ")[0].strip()
        # Which gives the version of a SQL Server for its own, for the sake of clients.
        babelfish = _BABELFISH.search(str(text))
        own = babelfish[1] if babelfish else str(number_)
        return Version(product, own, None if edition is None else str(edition))

    def placement(self) -> list[DatabaseFile] | Unavailable:
        rows = self._rows("placement", "sys.master_files")
        if isinstance(rows, Unavailable):
            return rows
        if not rows:
            return Unavailable(
                "sys.master_files: no rows: a login sees them with VIEW ANY DEFINITION, if the"
                " server has them"
            )
        return [
            DatabaseFile(
                str(database), str(name), _kind(database, type_), str(path), Bytes(number(size))
            )
            for database, name, type_, path, size in rows
        ]

    def labels(
        self, level: Level, machine: Machine, below: PurePosixPath | None
    ) -> Label | Unavailable:
        if level == "table":
            return Unavailable(
                "SQL Server keeps the tables of a database together in its files:"
                " ask by database or by file"
            )
        files = self.locate(machine, below)
        if isinstance(files, Unavailable):
            return files
        return file_labels.by_path((file.database, file.path) for file in files)

    def locate(
        self, machine: Machine, below: PurePosixPath | None
    ) -> list[DatabaseFile] | Unavailable:
        """The files that this very server has open on a machine, by the machine's paths.

        :param below: a folder whose names of them are wanted, where they have several.
        """
        placement = self.placement()
        if isinstance(placement, Unavailable):
            return placement
        located = self._find(machine, [file.path for file in placement], below)
        if isinstance(located, Unavailable):
            return located
        return [
            replace(file, path=located[file.path]) for file in placement if file.path in located
        ]

    def _find(
        self, machine: Machine, files: list[str], below: PurePosixPath | None
    ) -> dict[str, str] | Unavailable:
        name = str(self._connection.query(self._sql("machine_name"))[0][0])
        return whereabouts.find(machine, name, files, below)

    def offers(self, count: int) -> list[Offer]:
        """Databases alone: tables lie in shared files."""
        return [Offer(f"database:{name}", None) for name in self.databases()[:count]]

    def find(self, machine: Machine, target: Target, below: PurePosixPath | None) -> list[str]:
        """Whole database files are what lies at a known place."""
        if target.kind != "database":
            raise TargetError(
                f"{target.text}: SQL Server keeps tables in shared files; warm the database up"
                f" (database:{self._database}) or name a file",
                field="targets",
            )
        placed = self.locate(machine, below)
        if isinstance(placed, Unavailable):
            raise TargetError(f"{target.text}: {placed.unavailable}", field="dsn")
        paths = [
            file.path for file in placed if file.database == target.name and file.kind == "data"
        ]
        if not paths:
            raise no_database(target, self.databases())
        return paths

    def folders(self, machine: Machine, below: PurePosixPath | None) -> list[str]:
        placed = self.locate(machine, below)
        return [] if isinstance(placed, Unavailable) else [file.path for file in placed]

    def own_folders(self, machine: Machine) -> list[str] | Unavailable:
        files = [str(row[0]) for row in self._connection.query(self._sql("measured_folders"))]
        located = self._find(machine, files, None)
        if isinstance(located, Unavailable):
            return located
        return [located.get(file, f"not open: {file}") for file in files]

    def memory(self) -> Memory | Unavailable:
        cap = self._rows("memory_cap", "sys.configurations")
        if isinstance(cap, Unavailable):
            return cap
        if not cap:
            return Unavailable("sys.configurations: no 'max server memory (MB)'")
        size = Bytes(number(cap[0][0]))
        return Memory(self._machine(), None if size >= _UNLIMITED else size)

    def move(self, folder: str, *, log: bool = False) -> Change | Unavailable:
        placement = self.placement()
        if isinstance(placement, Unavailable):
            return placement
        moving = [
            file for file in placement if file.kind == "temp" or (log and self._own_log(file))
        ]
        statements, notes = [], []
        for file in moving:
            target = _join(folder, file.path)
            if target == file.path:
                continue
            statements.append(
                self._sql("move_file").format(
                    database=_name(file.database), name=_name(file.name), path=_text(target)
                )
            )
            if file.kind == "log":
                notes.append(
                    f"with the server stopped, copy {file.path} to {target}: SQL Server"
                    f" does not, and {file.database} stays down without it"
                )
        if statements:
            notes.insert(
                0,
                "files move when SQL Server is restarted; its account must be able to"
                f" write to {folder}",
            )
        return Change(tuple(statements), restart=bool(statements), notes=tuple(notes))

    def growth(self, log_size: Bytes) -> Change | Unavailable:
        """Data and log grow by fixed steps; the log is made ``log_size`` large if it is smaller.

        A share of a large file is a long standstill: the log is filled with zeros, but (from 2022
        on) for steps of up to 64 MB; so are data files without instant file initialisation.
        """
        placement = self.placement()
        if isinstance(placement, Unavailable):
            return placement
        own = [file for file in placement if file.database == self._database]
        statements = [
            self._sql("grow_file").format(
                database=_name(file.database),
                name=_name(file.name),
                megabytes=_LOG_STEP_MB if file.kind == "log" else _DATA_STEP_MB,
            )
            for file in own
        ]
        statements += [
            self._sql("size_file").format(
                database=_name(file.database), name=_name(file.name), megabytes=log_size // _MIB
            )
            for file in own
            if self._own_log(file) and file.size < log_size
        ]
        return Change(tuple(statements))

    def cap_memory(self, size: Bytes | None) -> Change | Unavailable:
        """`max server memory`: 75 % of the machine's memory, the rest is the system's."""
        if size is None:
            machine = self._machine()
            if isinstance(machine, Unavailable):
                return machine
            size = Bytes(machine * 3 // 4)
        if size < _SMALLEST_CAP:
            raise ValueError(f"{size}: SQL Server needs at least {_SMALLEST_CAP}")
        return Change((self._sql("cap_memory").format(megabytes=size // _MIB),))

    def statistics(self) -> Change:
        return Change((self._sql("statistics"),))

    def clear_cache(self) -> Change | Unavailable:
        # Only clean pages are dropped: a checkpoint cleans those of the connection's database.
        return Change(("CHECKPOINT;", "DBCC DROPCLEANBUFFERS WITH NO_INFOMSGS;"))

    def file_io(self) -> list[FileIo] | Unavailable:
        rows = self._rows("file_io", "sys.dm_io_virtual_file_stats")
        if isinstance(rows, Unavailable):
            return rows
        if not rows:
            return Unavailable(
                "sys.dm_io_virtual_file_stats: no rows: a login sees them with VIEW SERVER STATE,"
                " if the server has them"
            )
        return [
            FileIo(
                str(path),
                _kind(database, type_),
                number(reads),
                number(read_bytes),
                float(number(read_ms)),
                number(writes),
                number(written),
                float(number(write_ms)),
            )
            for database, path, type_, reads, read_bytes, read_ms, writes, written, write_ms in rows
        ]

    def waits(self) -> list[Wait] | Unavailable:
        return self._waits("waits", "sys.dm_os_wait_stats")

    def counters(self) -> list[Counter] | Unavailable:
        rows = self._rows("counters", "sys.dm_os_performance_counters")
        if isinstance(rows, Unavailable):
            return rows
        if not rows:
            return Unavailable("sys.dm_os_performance_counters: no rows")
        counters = [
            Counter(str(name).removesuffix("/sec"), float(number(value)), number(type_) != _GROWING)
            for name, value, type_ in rows
        ]
        return _with_ratio(counters)

    def _machine(self) -> Bytes | Unavailable:
        rows = self._rows("memory", "sys.dm_os_sys_info")
        if isinstance(rows, Unavailable):
            return rows
        if not rows or rows[0][0] is None or number(rows[0][0]) <= 0:
            return Unavailable("sys.dm_os_sys_info: says nothing of the machine's memory")
        return Bytes(number(rows[0][0]))

    def _own_log(self, file: DatabaseFile) -> bool:
        return file.kind == "log" and file.database == self._database


def _with_ratio(counters: list[Counter]) -> list[Counter]:
    """The buffer cache hit ratio (0-1) in place of its two raw values."""
    raw = {counter.name: counter.value for counter in counters}
    hits, base = raw.get("Buffer cache hit ratio"), raw.get("Buffer cache hit ratio base")
    others = [
        counter for counter in counters if not counter.name.startswith("Buffer cache hit ratio")
    ]
    if hits is None or not base:
        return others
    return [*others, Counter("Buffer cache hit ratio", hits / base, gauge=True)]


def _kind(database: object, type_: object) -> FileKind:
    if database == "tempdb":
        return "temp"
    return "log" if type_ == "LOG" else "data"


def _path(text: str) -> PurePath:
    """A path of the server's machine, whichever system that is."""
    windows = "\\" in text or text[1:2] == ":"
    return PureWindowsPath(text) if windows else PurePosixPath(text)


def _join(folder: str, path: str) -> str:
    return str(_path(folder) / _path(path).name)


def _name(text: str) -> str:
    """An identifier in brackets."""
    return f"[{text.replace(']', ']]')}]"


def _text(text: str) -> str:
    """A string literal."""
    quoted = text.replace("'", "''")
    return f"N'{quoted}'"
