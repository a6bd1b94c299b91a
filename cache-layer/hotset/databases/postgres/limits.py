"""Limits of time for a statement, named where one ends one of hotset's: the server's own, and how
long a session that only looks waits for a lock.

PostgreSQL says "canceling statement due to statement timeout" and not whose limit that is; the
SQLSTATE is that of a statement which somebody cancelled. So the limit is asked for as a session
begins (in a transaction that has failed nothing can be asked), and the time says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg

from hotset.core.sql import Locked

from ..base import LOOK_WAIT_S, sql

CANCELLED = "57014"
"""SQLSTATE of a statement that was ended from outside, by a limit or by somebody."""
LOCKED = "55P03"
"""SQLSTATE of a statement that did not get a lock in time."""
_WHO = {
    "default": "the server's default",
    "environment variable": "an environment variable of the server",
    "configuration file": "the server's configuration",
    "command line": "the server's command line",
    "global": "the settings of all roles (ALTER ROLE ALL)",
    "database": "the database's settings (ALTER DATABASE)",
    "user": "the role's settings (ALTER ROLE)",
    "database user": "the role's settings in this database (ALTER ROLE … IN DATABASE)",
    "client": "the connection's options (DSN, service or PGOPTIONS)",
    "session": "a SET of this session",
}
"""Descriptions of the values in the column `source` of pg_settings."""


@dataclass(frozen=True, slots=True)
class StatementLimit:
    """
    :ivar limit_ms: after which the server ends a statement; 0: never.
    :ivar source: as pg_settings has it.
    """

    limit_ms: int
    source: str

    def __str__(self) -> str:
        """
        >>> str(StatementLimit(2500, "user"))[:75]
        "statement_timeout is 2,500 ms, by the role's settings (ALTER ROLE): lift it"
        """
        who = _WHO.get(self.source, self.source)
        return (
            f"statement_timeout is {self.limit_ms:,} ms, by {who}: lift it, or add"
            " options='-c statement_timeout=0' to the DSN"
        )

    def explain(self, message: str, state: str | None, seconds: float) -> str:
        """Return the server's message on a failed statement, with this limit where it, and nobody's
        cancelling, ended it.

        >>> StatementLimit(0, "default").explain("canceled", CANCELLED, 3.0)
        'canceled'
        """
        was_it = state == CANCELLED and 0 < self.limit_ms <= seconds * 1000
        return f"{message}; {self}" if was_it else message


NONE = StatementLimit(0, "session")
"""Limit of a session that has set its own."""


def read_limit(connection: psycopg.Connection) -> StatementLimit:
    """The limit that a session begins with. Raises what psycopg raises."""
    row = connection.execute(sql("postgres", "statement_limit").encode()).fetchone()
    assert row is not None
    return StatementLimit(int(row[0]), str(row[1]))


def limit_lock_wait(connection: psycopg.Connection) -> None:
    """For a session that only looks. Raises what psycopg raises."""
    connection.execute(sql("postgres", "limit_lock_wait").format(seconds=LOOK_WAIT_S).encode())


def lock_error(connection: psycopg.Connection) -> Locked:
    """Build the error for a lock that was not obtained in time, with its holders."""
    try:
        rows = connection.execute(sql("postgres", "lock_holders").encode()).fetchall()
    except psycopg.Error as error:
        rows = [(f"who has it is not known ({' '.join(str(error).split())})",)]
    held = "; ".join(str(holder) for (holder,) in rows) or "it is free again by now"
    return Locked(f"a table was not to be had for {LOOK_WAIT_S} s: {held}. Try again after that")
