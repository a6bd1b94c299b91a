"""PostgreSQL, as a product."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import ClassVar, Self

import psycopg
from psycopg.pq import DiagnosticField

from hotset.core.sql import Row

from ..base import sql
from ..product import Says
from . import dsn, limits
from .admin import PostgresEngine
from .client import Address
from .copies import copy_database
from .readings import PostgresReadings, WaitSamplingReadings, open_readings
from .tpch import PostgresTpch

_WRONG = ("42601", "42703", "42P01", "42883", "42725", "42P18")
"""SQLSTATEs of a statement that no run gets through: no SQL, no such column, table or function, or
parameters of which the server cannot tell the type."""


@dataclass(frozen=True, slots=True)
class PostgresDatabase(Address):
    """A PostgreSQL database."""

    hammerdb: ClassVar[str] = "pg"
    cancelled: ClassVar[str] = f"error {limits.CANCELLED}"
    tells_its_files: ClassVar[bool] = True

    @classmethod
    def parse(cls, dsn_: str, password: str) -> Self:
        parts = dsn.parse(dsn_)
        return cls(
            host=str(parts.pop("host", "")),
            port=dsn.take_port(parts),
            user=str(parts.pop("user", "")),
            password=password,
            dbname=str(parts.pop("dbname", "")),
            more=tuple((key, str(value)) for key, value in parts.items()),
        )

    @classmethod
    def files_of(cls, dsn_: str) -> Iterator[tuple[str, str]]:
        return dsn.files_of(dsn_)

    def administer(self) -> PostgresEngine:
        return PostgresEngine(self.session())

    def tpch(self) -> PostgresTpch:
        return PostgresTpch(self)

    def identify(self) -> tuple[str, Row]:
        # By the connection: libpq takes what the DSN leaves out from its environment and services.
        with closing(self.session()) as session:
            (row,) = session.query(sql(self.engine, "measured_database"))
            return session.server, row

    def readings(self) -> PostgresReadings | WaitSamplingReadings:
        return open_readings(self.session(), self.user)

    def limit(self) -> str:
        with closing(self.session()) as session:
            return str(session.limit) if session.limit.limit_ms else ""

    def describe(self, statements: Iterable[str]) -> list[str | None]:
        """Return what the server has against each statement, which it reads and does not run; None:
        nothing that is lasting."""
        refusals = list[str | None]()
        try:
            with closing(self.connect("")) as connection:
                for statement in statements:
                    description = connection.pgconn.prepare(b"", statement.encode())
                    state = (description.error_field(DiagnosticField.SQLSTATE) or b"").decode()
                    message = description.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
                    refusals.append(message.decode() if state in _WRONG else None)
        except psycopg.Error as error:
            raise self.unreached(error) from None
        return refusals

    def require_copies(self) -> None:
        """It makes them."""

    def copy(self, report: Says) -> AbstractContextManager[PostgresDatabase]:
        return copy_database(self, report)

    def is_pooled(self) -> bool:
        with closing(self.session()) as session:
            return session.is_pooled()
