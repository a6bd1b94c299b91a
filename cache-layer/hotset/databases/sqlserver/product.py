"""SQL Server, as a product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, Self

from hotset.core.errors import RequestError
from hotset.core.sql import Aborted, Row

from ..base import number, sql
from . import dsn, odbc
from .address import Address
from .admin import SqlServerEngine
from .client import SqlServerSession
from .freetds import is_freetds
from .readings import SqlServerReadings
from .statements import SqlServerStatements
from .tpch import SqlServerTpch

_EXPRESS = 4
_SQL_SERVER_2025 = 17
_BUILDING = 1.4
"""Every table is rebuilt into its clustered index: for a while the largest are there twice."""


def express_limit(edition: int, major: int) -> int | None:
    """Bytes that a database may have; None: any. Microsoft's editions and features of SQL Server.

    >>> express_limit(4, 16), express_limit(3, 16)
    (10737418240, None)
    """
    if edition != _EXPRESS:
        return None
    return (50 if major >= _SQL_SERVER_2025 else 10) * 1024**3


@dataclass(frozen=True, slots=True)
class SqlServerDatabase(Address):
    """A SQL Server database."""

    hammerdb: ClassVar[str] = "mssqls"

    def odbc_driver(self) -> str:
        """The driver's name or path, as this computer has it; raises PrerequisiteMissingError."""
        return odbc.driver(self.driver)

    def uses_freetds(self) -> bool:
        """True if the driver is FreeTDS, which other programs cannot have check a certificate."""
        return is_freetds(self.odbc_driver())

    @classmethod
    def parse(cls, dsn_: str, password: str) -> Self:
        parts = dsn.parse(dsn_)
        return cls(**parts, password="" if parts["trusted"] else password)

    @classmethod
    def files_of(cls, dsn_: str) -> Iterator[tuple[str, str]]:
        dsn.require_remote(dsn.parse(dsn_))
        return iter(())

    def session(self) -> SqlServerSession:
        """Open a connection. Raises CannotConnect with the server's reason, never the password."""
        connection, by_array = odbc.connect(self)
        return SqlServerSession(connection, by_array=by_array, where=self)

    def administer(self) -> SqlServerEngine:
        return SqlServerEngine(self.session(), self.dbname)

    def tpch(self) -> SqlServerTpch:
        return SqlServerTpch(self)

    def identify(self) -> tuple[str, Row]:
        with closing(self.session()) as session:
            (row,) = session.query(sql(self.engine, "measured_database"))
        return f"{self.host}:{self.port}", row

    def readings(self) -> SqlServerReadings:
        return SqlServerReadings(self.session())

    def require_room(self, estimated: int, what: str) -> None:
        with closing(self.session()) as session:
            try:
                ((edition, major),) = session.query(sql(self.engine, "edition"))
            except Aborted:
                return  # a compatible server, which has no editions
        if edition is None or major is None:
            return
        limit, needed = express_limit(number(edition), number(major)), estimated * _BUILDING
        if limit is not None and needed > limit:
            raise RequestError(
                f"about {needed / 1e9:.1f} GB while it is built, and SQL Server Express allows"
                f" {limit / 1024**3:.0f} GB a database: load less, or use another edition",
                field=what,
            )

    def statements(self, *, prepared: bool) -> SqlServerStatements:
        """Open a connection for statements of a user's own. Raises CannotConnect."""
        return SqlServerStatements(self, prepared=prepared)
