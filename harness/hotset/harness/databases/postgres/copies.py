"""A copy of a database for the length of a run: the database itself stays as it was loaded.

PostgreSQL copies a database that is named as the template of a new one, statistics included, so
every run begins with the same rows, the same files and the same plans. Autovacuum, which looks into
a database once a minute, would come at another second of each run and turn plans in the middle of
it: it leaves the copy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from hotset.cachelayer.common.errors import HotsetError
from hotset.reports.model import words
from hotset.tpcc.database import Aborted

from ..base import number, sql
from .client import PostgresDatabase, PostgresSession

_SUFFIX = "_hotset_fresh"
_MARK = "hotset: a copy for the length of a run"
_MAINTENANCE = ("postgres", "template1")
_NAME_BYTES = 63
_MAY_COPY_FILES = 150_000
"""From this version on (server_version_num) a copy goes through the log unless told otherwise."""
_TRIES = 4
"""The server waits 5 s for sessions that are ending, which on a busy computer is too short."""
_IN_USE, _NOT_PERMITTED = "error 55006", "error 42501"


class CopyFailed(HotsetError):
    """The database cannot be copied; the message says what would help."""


@contextmanager
def of(database: PostgresDatabase, say: Callable[[str], None]) -> Iterator[PostgresDatabase]:
    """A copy of the database, dropped again afterwards; one that a killed run left goes first.

    Nobody may be connected to the database while it is copied. Settings of the database itself
    (ALTER DATABASE … SET) are not copied, which is PostgreSQL's way.

    :raises CopyFailed: somebody is connected, the role may not, or another database has the name.
    """
    with closing(database.session()) as session:
        name = str(session.query("SELECT current_database()")[0][0])
    copy = replace(database, dbname=_shortened(name) + _SUFFIX)
    maintenance = next(one for one in _MAINTENANCE if one != name)
    with closing(replace(database, dbname=maintenance).session()) as server:
        _drop(server, copy.dbname)
        say(f"copying database {name}")
        _create(server, copy.dbname, name)
    try:
        _leave_alone(copy, say)
        yield copy
    finally:
        with closing(replace(database, dbname=maintenance).session()) as server:
            _drop(server, copy.dbname)


def _create(server: PostgresSession, copy: str, name: str) -> None:
    version = number(server.query("SELECT current_setting('server_version_num')")[0][0])
    strategy = " STRATEGY FILE_COPY" if version >= _MAY_COPY_FILES else ""
    create = f"CREATE DATABASE {_quoted(copy)} TEMPLATE {_quoted(name)}{strategy}"
    for last in (False,) * (_TRIES - 1) + (True,):
        try:
            server.script(create)
            break
        except Aborted as error:
            if last or error.cause != _IN_USE:
                raise CopyFailed(f"{name} cannot be copied: {_remedy(error, name)}") from None
    server.script(f"COMMENT ON DATABASE {_quoted(copy)} IS '{_MARK}'")


def _leave_alone(copy: PostgresDatabase, say: Callable[[str], None]) -> None:
    with closing(copy.session()) as session:
        session.script(sql("postgres", "not_vacuumed"))
        others = number(session.query(sql("postgres", "vacuumed"))[0][0])
    if others:
        say(
            f"autovacuum stays as it is for {words.plural(others, 'table')} of the copy:"
            f" {copy.user or 'the role'} does not own them"
        )


def _remedy(error: Aborted, name: str) -> str:
    if error.cause == _IN_USE:
        return f"others are connected to it ({error.detail}): disconnect them first"
    if error.cause == _NOT_PERMITTED:
        return (
            f"{error.detail}: ALTER ROLE … CREATEDB permits it, and ALTER DATABASE {name}"
            " IS_TEMPLATE true if the role does not own it"
        )
    return str(error)


def _drop(server: PostgresSession, copy: str) -> None:
    """:raises CopyFailed: it is no copy of hotset's."""
    found = server.query(
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
        f" WHERE datname = '{_escaped(copy)}'"
    )
    if not found:
        return
    if found[0][0] != _MARK:
        raise CopyFailed(
            f"there is a database {copy} that is no copy of hotset's: rename or drop it"
        )
    server.script(f"DROP DATABASE {_quoted(copy)} WITH (FORCE)")


def _shortened(name: str) -> str:
    """So much of a name that the copy's fits."""
    return name.encode()[: _NAME_BYTES - len(_SUFFIX)].decode(errors="ignore")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escaped(text: str) -> str:
    return text.replace("'", "''")
