"""Targets as users write them: what they stand for, and the blocks they come to.

``/a/file``, ``/a/folder``, ``table:NAME``, ``index:NAME``, ``database:NAME``,
``region:OFFSET+LENGTH`` (a part of the disk), ``heat`` (hottest first) and ``snapshot:FILE`` (a
resident set saved before).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted, Row
from hotset.databases.base import Connection, Engine, Unavailable, sql
from hotset.databases.postgres import whereabouts

from .resolve import TargetError, TargetGoneError, region_of

Kind = Literal["path", "table", "index", "database", "region", "heat", "snapshot"]
_NAMED = re.compile(r"^(table|index|database|region|snapshot):(.+)$")
_FORMS = (
    "write a full path such as /srv/pg/base, table:NAME, index:NAME, database:NAME,"
    " region:OFFSET+LENGTH, heat or snapshot:FILE"
)
_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
_INDEXES, _TABLES = "iI", "rmtp"


@dataclass(frozen=True, slots=True)
class Target:
    """What a user named: its kind, and the name behind the colon (or the path)."""

    text: str
    kind: Kind
    name: str

    @property
    def of_database(self) -> bool:
        """Only a database server knows where it lies."""
        return self.kind in ("table", "index", "database")


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


@dataclass(frozen=True, slots=True)
class Server:
    """A database server that knows where tables lie; its files are on the disk's machine."""

    engine: Engine
    connection: Connection | None
    dbname: str

    def paths(
        self, machine: Machine, target: Target, below: PurePosixPath | None = None
    ) -> list[str]:
        """Files and folders of a table, an index or a database.

        :param below: where to look for the server's files, beside where it says that they are.
        :raises TargetError: there is no such thing in this database, or the server does not say.
        """
        if self.connection is None:
            return self._by_placement(target)
        place = whereabouts.find(machine, self.connection, below)
        if isinstance(place, Unavailable):
            raise TargetError(f"{target.text}: {place.reason}", field="dsn")
        if target.kind == "database":
            return [str(place.data / folder) for folder in self._folders(target)]
        rows = self._rows("relation_files", target, _quoted)
        if not rows:
            raise TargetGoneError(
                f"{target.text}: database {self.dbname} has no such {target.kind}; is the schema in"
                " the search path (table:schema.name), is it this database?",
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
        files = [str(place.data / str(path)) for _, path in rows if path is not None]
        return segments(machine, files)

    def folders(self, machine: Machine, below: PurePosixPath | None) -> list[str]:
        """All folders that have its data; none where it does not say."""
        if self.connection is None:
            placed = self.engine.placement()
            return [] if isinstance(placed, Unavailable) else [one.path for one in placed]
        place = whereabouts.find(machine, self.connection, below)
        return [] if isinstance(place, Unavailable) else [*map(str, place.folders)]

    def _folders(self, target: Target) -> list[str]:
        rows = self._rows("database_folders", target, _as_bytes)
        if not rows:
            raise TargetGoneError(
                f"{target.text}: the server has no such database; it has:"
                f" {', '.join(self.engine.databases())}",
                field="targets",
            )
        return [str(path) for (path,) in rows]

    def _rows(self, name: str, target: Target, quoted: Callable[[str], str]) -> list[Row]:
        """Of a statement about a target of PostgreSQL's, by the first spelling that has any."""
        assert self.connection is not None
        for spelling in _spellings(target.name):
            try:
                rows = self.connection.query(sql("postgres", name).format(name=quoted(spelling)))
            except Aborted as refused:
                raise TargetError(
                    f"{target.text}: the server says: {refused.detail or refused.cause}",
                    field="targets",
                ) from None
            if rows:
                return rows
        return []

    def _by_placement(self, target: Target) -> list[str]:
        """SQL Server: whole database files are what lies at a known place."""
        if target.kind != "database":
            raise TargetError(
                f"{target.text}: SQL Server keeps tables in shared files; warm the database up"
                f" (database:{self.dbname}) or name a file",
                field="targets",
            )
        placed = self.engine.placement()
        if isinstance(placed, Unavailable):
            raise TargetError(f"{target.text}: {placed.reason}", field="targets")
        paths = [one.path for one in placed if one.database == target.name and one.kind == "data"]
        if not paths:
            raise TargetGoneError(
                f"{target.text}: the server has no such database; it has:"
                f" {', '.join(self.engine.databases())}",
                field="targets",
            )
        return paths


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


def _spellings(name: str) -> Iterator[str]:
    r"""What a name stands for: itself, or where there is no such thing one that is no UTF-8, whose
    bytes are written as they are listed.

    >>> [spelling.encode(errors="surrogateescape") for spelling in _spellings(r"bl\xe4tter")]
    [b'bl\\xe4tter', b'bl\xe4tter']
    """
    yield name
    if (bare := _BYTE.sub(lambda found: chr(0xDC00 + int(found[1], 16)), name)) != name:
        yield bare


def _as_bytes(name: str) -> str:
    return f"'\\x{name.encode(errors='surrogateescape').hex()}'::bytea"


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
