"""Settings of a database and its server that decide what a commit costs."""

from __future__ import annotations

from contextlib import closing

from hotset.core.sql import DatabaseError
from hotset.databases.base import sql
from hotset.databases.product import SqlDatabase


def read(database: SqlDatabase) -> dict[str, str] | None:
    """By name, as a session like the users' has them; None: the server does not tell."""
    try:
        with closing(database.session()) as session:
            rows = session.query(sql(database.engine, "deciding_settings"))
    except DatabaseError:
        return None
    return {str(name): str(value) for name, value in rows if value is not None} or None
