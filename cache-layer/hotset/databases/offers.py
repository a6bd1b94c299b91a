"""Targets for warm-ups and pins on a database server, for word completion."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from . import connect
from .base import sql
from .connect import EngineName
from .postgres.client import PostgresDatabase


@dataclass(frozen=True, slots=True)
class Offer:
    """A target. ``bytes``: of its files, None where the server does not tell at once."""

    target: str
    bytes: int | None


def list_offers(engine: EngineName, dsn: str, password: str | None, count: int) -> list[Offer]:
    """The first so many: databases, then tables and indexes, the largest first. SQL Server's tables
    lie in shared files: it has databases alone."""
    database = connect.database(engine, dsn, password)
    if isinstance(database, PostgresDatabase):
        with closing(database.looking().session()) as session:
            rows = session.query(sql("postgres", "targets").format(top=count))
        return [Offer(str(name), None if size is None else int(str(size))) for name, size in rows]
    with closing(connect.engine(database.looking())) as server:
        return [Offer(f"database:{name}", None) for name in server.databases()[:count]]
