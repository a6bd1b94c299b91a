"""Where a SQL Server database is: what a DSN says and a connection string is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hotset.core.sql import EngineName

from ..product import SqlDatabase


@dataclass(frozen=True, slots=True)
class Address(SqlDatabase):
    """Where a SQL Server database is and who asks.

    :param encrypt: the driver's own words: yes, no, strict, mandatory, optional.
    :param trust: take the server's certificate unseen.
    :param trusted: log in as who runs this (Windows, Kerberos): no user, no password.
    :param driver: the ODBC driver's name or path; None takes what there is.
    """

    engine: ClassVar[EngineName] = "sqlserver"
    title: ClassVar[str] = "SQL Server"

    encrypt: str = "yes"
    trust: bool = False
    trusted: bool = False
    driver: str | None = None

    @property
    def where(self) -> str:
        """For messages: which database, where, as whom."""
        who = "with a trusted connection" if self.trusted else f"as {self.user!r}"
        return f"SQL Server database {self.dbname!r} at {self.host}:{self.port} {who}"

    @property
    def whose_password(self) -> str:
        """Whose password it is, as who is asked for it is told."""
        return f"SQL Server's password of {self.user!r} at {self.host}"

    def needs_password(self) -> bool:
        """True if it has none, and logs in with one."""
        return not self.trusted and not self.password
