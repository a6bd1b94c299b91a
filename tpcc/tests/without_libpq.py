"""A database whose users are threads of Python, as SQL Server's are.

A module of its own, because worker processes import it.
"""

from dataclasses import dataclass

from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase


@dataclass(frozen=True)
class WithoutLibpq:
    """PostgreSQL, but not for the compiled driver."""

    inner: PostgresDatabase
    engine: str = "postgres"

    def session(self) -> PostgresSession:
        return self.inner.session()
