"""A copy of a database for the length of a run: the database itself stays as it was loaded.

PostgreSQL copies a database that is named as the template of a new one, statistics included, so
every run begins with the same rows, the same files and the same plans. Autovacuum, which looks into
a database once a minute, would come at another second of each run and turn plans in the middle of
it: it leaves the copy alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from hotset.core import words
from hotset.core.errors import HotsetError
from hotset.core.sql import Aborted, DatabaseError

from ..base import number, sql
from ..product import Says
from .client import Address, PostgresSession

Database = TypeVar("Database", bound=Address)
_SUFFIX = "_hotset_fresh"
_MARK = "hotset: a copy for the length of a run"
_MAINTENANCE = ("postgres", "template1")
_NAME_BYTES = 63
_MAY_COPY_FILES = 150_000
"""From this version on (server_version_num) a copy goes through the log unless told otherwise."""
_TRIES = 4
"""The server waits 5 s for sessions that are ending, which on a busy computer is too short."""
_LEAVING_S = 5.0
"""How long sessions of a run that was killed may take to end."""
_IN_USE, _NOT_PERMITTED = "error 55006", "error 42501"


class CopyFailed(HotsetError):
    """The database cannot be copied; the message says what would help."""


@dataclass(frozen=True, slots=True)
class _Copy:
    """A copy, and the database it is created and dropped from."""

    database: Address
    maintenance: Address
    original: str

    @property
    def name(self) -> str:
        return self.database.dbname

    @contextmanager
    def locked(self) -> Iterator[PostgresSession]:
        """One at a time creates or drops it; who does both in between has a session in it."""
        with closing(self.maintenance.session()) as server:
            server.query(f"SELECT pg_advisory_lock(hashtext('{_escape(self.name)}'))")
            yield server


@contextmanager
def copy_database(database: Database, report: Says) -> Iterator[Database]:
    """A copy of the database, dropped again afterwards; one that a killed run left goes first, one
    that somebody uses stays.

    Nobody may be connected to the database while it is copied. A copy that cannot be dropped is
    named; it costs nobody the run.

    :raises CopyFailed: somebody is connected to either, the role may not copy, or another database
        has the name.
    """
    with closing(database.session()) as session:
        name = str(session.query("SELECT current_database()")[0][0])
    made = replace(database, dbname=_shorten(name) + _SUFFIX)
    maintenance = next(database for database in _MAINTENANCE if database != name)
    copy = _Copy(made, replace(database, dbname=maintenance), name)
    with copy.locked() as server:
        _drop_left_over(server, copy.name)
        report.say(f"copying database {name}")
        _create(server, copy.name, name)
        try:
            server.script(f"COMMENT ON DATABASE {_quote(copy.name)} IS '{_MARK}'")
            keeper = copy.database.session()
        except BaseException:
            _remove(copy, server, report)
            raise
    try:
        keeper.script(sql("postgres", "keep_session").format(whose="keeps the copy of a run"))
        _take_over_settings(copy, report)
        _leave_alone(copy.database, report)
        yield made
    finally:
        _end(copy, keeper, report)


def _end(copy: _Copy, keeper: PostgresSession, report: Says) -> None:
    try:
        with copy.locked() as server:
            keeper.close()
            _remove(copy, server, report)
    except DatabaseError as error:
        keeper.close()
        _warn_of(copy, error, report)


def _remove(copy: _Copy, server: PostgresSession, report: Says) -> None:
    try:
        server.script(f"DROP DATABASE {_quote(copy.name)} WITH (FORCE)")
    except DatabaseError as error:
        _warn_of(copy, error, report)


def _warn_of(copy: _Copy, error: DatabaseError, report: Says) -> None:
    report.warn(
        f"the copy {copy.name} could not be dropped ({error}): the next run on a fresh copy drops"
        f" it, and so does DROP DATABASE {_quote(copy.name)}"
    )


def _take_over_settings(copy: _Copy, report: Says) -> None:
    """Settings of the database itself (ALTER DATABASE … SET) and of roles in it, which the server
    does not copy: the schemas that are searched, what plans are made with."""
    with closing(copy.maintenance.session()) as server:
        for role, setting, value in server.query(
            sql("postgres", "database_settings").format(name=_escape(copy.original))
        ):
            whose = f"ROLE {_quote(str(role))} IN " if role is not None else ""
            # What is a list is read as one by set_config, and quoted by the server itself.
            read = f"SELECT set_config('{_escape(str(setting))}', '{_escape(str(value))}', true)"
            keep = f"ALTER {whose}DATABASE {_quote(copy.name)} SET {setting} FROM CURRENT"
            try:
                server.script(f"BEGIN; {read}; {keep}; COMMIT")
            except Aborted as error:
                server.script("ROLLBACK")
                report.say(f"the copy lacks {copy.original}'s setting {setting}: {error}")


def _create(server: PostgresSession, copy: str, name: str) -> None:
    version = number(server.query("SELECT current_setting('server_version_num')")[0][0])
    strategy = " STRATEGY FILE_COPY" if version >= _MAY_COPY_FILES else ""
    create = f"CREATE DATABASE {_quote(copy)} TEMPLATE {_quote(name)}{strategy}"
    for last in (False,) * (_TRIES - 1) + (True,):
        try:
            server.script(create)
            break
        except Aborted as error:
            if last or error.cause != _IN_USE:
                raise CopyFailed(f"{name} cannot be copied: {_remedy(error, name)}") from None


def _leave_alone(copy: Address, report: Says) -> None:
    with closing(copy.session()) as session:
        session.script(sql("postgres", "not_vacuumed"))
        others = number(session.query(sql("postgres", "vacuumed"))[0][0])
    if others:
        report.say(
            f"autovacuum stays as it is for {words.plural(others, 'table')} of the copy:"
            f" {copy.user or 'the role'} does not own them"
        )


def _remedy(error: Aborted, name: str) -> str:
    if error.cause == _IN_USE:
        return f"others are connected to it ({error.detail}): disconnect them first"
    if error.cause == _NOT_PERMITTED:
        return (
            f"{error.detail}: ALTER ROLE … CREATEDB permits it, and ALTER DATABASE"
            f" {_quote(name)} IS_TEMPLATE true if the role does not own it"
        )
    return str(error)


def _drop_left_over(server: PostgresSession, copy: str) -> None:
    """:raises CopyFailed: it is no copy of hotset's, or somebody uses it."""
    rows = server.query(
        "SELECT shobj_description(oid, 'pg_database') FROM pg_database"
        f" WHERE datname = '{_escape(copy)}'"
    )
    if not rows:
        return
    if rows[0][0] != _MARK:
        raise CopyFailed(
            f"there is a database {copy} without the mark of hotset's copies: a run that was killed"
            f" while it copied leaves one. If nobody needs it, DROP DATABASE {_quote(copy)};"
            " otherwise rename it"
        )
    if users := _users_of(server, copy):
        raise CopyFailed(
            f"another run on a fresh copy uses {copy} ({users}): wait until it has ended, or end it"
        )
    server.script(f"DROP DATABASE {_quote(copy)}")


def _users_of(server: PostgresSession, copy: str) -> str:
    """Who stays connected to it, in words; empty where nobody is."""
    deadline = time.monotonic() + _LEAVING_S
    while rows := server.query(sql("postgres", "database_users").format(name=_escape(copy))):
        is_kept, pid, user, program, since = rows[0]
        if is_kept or time.monotonic() > deadline:
            others = f", and {words.plural(len(rows) - 1, 'more session')}" if rows[1:] else ""
            return f"process {pid} of {user}, {program}, since {since}{others}"
        time.sleep(0.2)
    return ""


def _shorten(name: str) -> str:
    """So much of a name that the copy's fits."""
    return name.encode()[: _NAME_BYTES - len(_SUFFIX)].decode(errors="ignore")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _escape(text: str) -> str:
    return text.replace("'", "''")
