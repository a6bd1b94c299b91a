"""PostgreSQL as an administrator sees it: tablespaces, buffers, I/O counters, waits.

Sources: the manual's chapters "The Cumulative Statistics System", "ALTER SYSTEM", pg_buffercache.
The statements lie in `sql/postgres/`, with the oldest version they are for in the name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import ClassVar, cast

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted, EngineName, Row, Session
from hotset.core.units import Bytes
from hotset.hitratio.attribution import SystemName

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
    TargetGoneError,
    Unavailable,
    Version,
    Wait,
    no_database,
    number,
    require_machine,
    sql,
)
from ..file_labels import Label, Level
from . import whereabouts
from .client import extension_schema
from .whereabouts import Whereabouts

_MIB = 1024**2

_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
_INDEXES, _TABLES = "iI", "rmtp"


class PostgresEngine(Engine):
    """One PostgreSQL server."""

    name: ClassVar[EngineName] = "postgres"

    def __init__(self, connection: Session) -> None:
        super().__init__(connection)
        self._version, number_ = connection.query(self._sql("version"))[0]
        self._major = number(number_) // 10_000

    def version(self) -> Version:
        return Version("PostgreSQL", str(self._version), None)

    def placement(self) -> list[DatabaseFile] | Unavailable:
        rows = self._rows("placement", "files (role pg_monitor is needed)")
        if isinstance(rows, Unavailable):
            return rows
        return [
            DatabaseFile(
                str(database), str(name), cast("FileKind", kind), str(path), Bytes(number(size))
            )
            for database, name, kind, path, size in rows
        ]

    def labels(
        self, level: Level, machine: Machine, below: PurePosixPath | None
    ) -> Label | Unavailable:
        place = whereabouts.find(machine, self._connection, below)
        if isinstance(place, Unavailable):
            return place
        rows = self._rows("databases_by_oid", "pg_database")
        if isinstance(rows, Unavailable):
            return rows
        databases = {number(oid): str(name) for oid, name in rows}
        if level == "database":
            return file_labels.postgres(place.name, databases, None)
        rows = self._rows("relations", "pg_class")
        if isinstance(rows, Unavailable):
            return rows
        relations = {
            (number(oid), number(file)): (SystemName if number(own) else str)(name)
            for oid, file, name, own in rows
        }
        return file_labels.postgres(place.name, databases, relations)

    def offers(self, count: int) -> list[Offer]:
        rows = self._connection.query(self._sql("targets").format(top=count))
        return [Offer(str(name), None if size is None else number(size)) for name, size in rows]

    def find(self, machine: Machine, target: Target, below: PurePosixPath | None) -> list[str]:
        place = whereabouts.find(machine, self._connection, below)
        if isinstance(place, Unavailable):
            raise TargetError(f"{target.text}: {place.unavailable}", field="dsn")
        if target.kind != "database":
            return find_relation(machine, self._connection, place, target)
        if folders := folders_of(self._connection, place, target):
            return folders
        raise no_database(target, self.databases())

    def folders(self, machine: Machine, below: PurePosixPath | None) -> list[str]:
        place = whereabouts.find(machine, self._connection, below)
        return [] if isinstance(place, Unavailable) else [*map(str, place.folders)]

    def own_folders(self, machine: Machine) -> list[str] | Unavailable:
        name = "textsend(current_database()::text)"
        rows = self._connection.query(self._sql("database_folders").format(name=name))
        place = whereabouts.find(machine, self._connection, None)
        if isinstance(place, Unavailable):
            return place
        return [str(place.path(str(row[0]))) for row in rows]

    def memory(self) -> Memory | Unavailable:
        rows = self._rows("memory_cap", "pg_settings")
        if isinstance(rows, Unavailable):
            return rows
        return Memory(self._machine(), Bytes(number(rows[0][0])))

    def _machine(self) -> Bytes | Unavailable:
        rows = self._rows("machine_memory", "/proc/meminfo")
        if isinstance(rows, Unavailable):
            return rows
        if rows[0][0] is None:
            return Unavailable("PostgreSQL does not know its machine's memory")
        return Bytes(number(rows[0][0]))

    def move(self, folder: str, *, log: bool = False) -> Change | Unavailable:
        path = "'" + f"{folder.rstrip('/')}/hotset_temp".replace("'", "''") + "'"
        notes = [f"{path} must exist, be empty, and belong to the server's account"]
        if log:
            notes.append(
                f"the log (pg_wal) moves only while the server is stopped: move the"
                f" folder to {folder} and leave a symbolic link in its place"
            )
        statements = (
            self._sql("make_temp").format(path=path),
            self._sql("use_temp"),
            self._sql("reload"),
        )
        return Change(statements, notes=tuple(notes))

    def growth(self, log_size: Bytes) -> Change | Unavailable:
        """Data files grow as they must; the log keeps files for ``log_size``."""
        megabytes = max(32, log_size // _MIB)
        settings = ("max_wal_size", "min_wal_size")
        resize = [self._sql("log_size").format(setting=s, megabytes=megabytes) for s in settings]
        return Change((*resize, self._sql("reload")))

    def cap_memory(self, size: Bytes | None) -> Change | Unavailable:
        """`shared_buffers`; there is no rule, as the server does not know its machine."""
        if size is None:
            return Unavailable(
                "PostgreSQL does not know its machine's memory: name the size; a quarter of the"
                " memory is usual, since the system's page cache holds data too"
            )
        if size < _MIB:
            raise ValueError(f"{size}: shared_buffers needs at least 1 MiB")
        notes = require_machine(size, self._machine())
        change = self._sql("cap_memory").format(megabytes=size // _MIB)
        return Change((change,), restart=True, notes=("the size holds after a restart", *notes))

    def statistics(self) -> Change:
        return Change(("ANALYZE",))

    def clear_cache(self) -> Change | Unavailable:
        remedy = "restart it (the system's page cache is another matter)"
        if self._major < 17:
            return Unavailable(f"PostgreSQL {self._major} cannot empty its buffers: {remedy}")
        schema = extension_schema(self._connection, "pg_buffercache")
        if schema is None:
            return Unavailable(
                f"extension pg_buffercache is not installed: CREATE EXTENSION, or {remedy}"
            )
        evict = self._sql("evict_17" if self._major == 17 else "evict").format(place=schema)
        return Change(("CHECKPOINT", evict))

    def file_io(self) -> list[FileIo] | Unavailable:
        name = "file_io_15" if self._major < 16 else f"file_io_{16 if self._major < 18 else 18}"
        rows = self._rows(name, "pg_stat_io" if self._major >= 16 else "pg_stat_database")
        if isinstance(rows, Unavailable):
            return rows
        return [
            FileIo(
                str(what),
                "log" if what == "wal" else "temp" if "temp" in str(what) else "data",
                number(reads or 0),
                number(read_bytes or 0),
                _ms(read_ms),
                None if writes is None else number(writes),
                None if written is None else number(written),
                _ms(write_ms),
            )
            for what, reads, read_bytes, read_ms, writes, written, write_ms in rows
        ]

    def waits(self) -> list[Wait] | Unavailable:
        schema = extension_schema(self._connection, "pg_wait_sampling")
        if schema is None:
            return Unavailable(
                "extension pg_wait_sampling is not installed; PostgreSQL itself"
                " shows only what sessions wait for now"
            )
        return self._waits("waits", "pg_wait_sampling_profile", place=schema)

    def counters(self) -> list[Counter] | Unavailable:
        rows = self._rows("counters", "pg_stat_database")
        if isinstance(rows, Unavailable):
            return rows
        return [Counter(str(name), float(number(value or 0)), gauge=False) for name, value in rows]


def _ms(value: object) -> float | None:
    """Null where the server measures no times (track_io_timing is off)."""
    return None if value is None else float(str(value))


def find_relation(
    machine: Machine, connection: Session, place: Whereabouts, target: Target
) -> list[str]:
    """Files of a table or an index.

    :raises TargetError: there is no such thing in this database, or the server does not say.
    """
    rows = _rows(connection, "relation_files", target, _quote)
    if not rows:
        ((database,),) = connection.query("SELECT current_database()")
        raise TargetGoneError(
            f"{target.text}: database {database} has no such {target.kind}; is the schema in"
            f" the search path ({target.kind}:schema.name), is it this database?",
            Remedy("see those it has", "warmup targets", {"dsn": "…"}),
            field="targets",
        )
    kinds, wanted = str(rows[0][0]), _INDEXES if target.kind == "index" else _TABLES
    if kinds not in wanted:
        other = "index" if kinds in _INDEXES else "table" if kinds in _TABLES else None
        raise TargetError(
            f"{target.text} is no {target.kind}: "
            + (f"write {other}:{target.name}" if other else "it has no files of its own"),
            field="targets",
        )
    return segments(machine, [str(place.path(str(path))) for _, path in rows if path is not None])


def folders_of(connection: Session, place: Whereabouts, target: Target) -> list[str]:
    """Folders of a database; none where there is no such database."""
    rows = _rows(connection, "database_folders", target, _as_bytes)
    return [str(place.path(str(path))) for (path,) in rows]


def _rows(
    connection: Session, name: str, target: Target, quoted: Callable[[str], str]
) -> list[Row]:
    """Query rows about a target, by the first spelling that has any."""
    for spelling in _spellings(target.name):
        try:
            rows = connection.query(sql("postgres", name).format(name=quoted(spelling)))
        except Aborted as refused:
            raise TargetError(
                f"{target.text}: the server says: {refused.detail or refused.cause}",
                field="targets",
            ) from None
        if rows:
            return rows
    return []


def segments(machine: Machine, bases: Sequence[str]) -> list[str]:
    """The files of relations: main fork, further segments (``.1``), other forks (``_fsm``).

    Source: PostgreSQL's manual, "Database File Layout".
    """
    files: list[str] = []
    folders: dict[str, set[str]] = {}
    for base in map(PurePosixPath, bases):
        folders.setdefault(str(base.parent), set()).add(base.name)
    for folder, names in folders.items():
        argv = ["find", folder, "-maxdepth", "1", "-type", "f", "-size", "+0", "-print0"]
        for path in machine.run(argv).stdout.split("\0"):
            if re.split(r"[._]", PurePosixPath(path).name)[0] in names:
                files.append(path)
    return sorted(files)


def _spellings(name: str) -> Iterator[str]:
    r"""Yield the spellings of a name: itself, then, if it has escapes for bytes that are no UTF-8,
    the name with these bytes.

    >>> [spelling.encode(errors="surrogateescape") for spelling in _spellings(r"bl\xe4tter")]
    [b'bl\\xe4tter', b'bl\xe4tter']
    """
    yield name
    if (bare := _BYTE.sub(lambda match: chr(0xDC00 + int(match[1], 16)), name)) != name:
        yield bare


def _as_bytes(name: str) -> str:
    return f"'\\x{name.encode(errors='surrogateescape').hex()}'::bytea"


def _quote(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
