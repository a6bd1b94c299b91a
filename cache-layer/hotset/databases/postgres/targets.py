"""Files of PostgreSQL's tables, indexes and databases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted, Row, Session

from ..base import sql
from ..targets import Target, TargetError, TargetGoneError
from .whereabouts import Whereabouts

_BYTE = re.compile(r"\\x([89a-f][0-9a-f])")
_INDEXES, _TABLES = "iI", "rmtp"


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
