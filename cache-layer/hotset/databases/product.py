"""A database of a product: what is done with one, whichever product it is of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from hotset.core.errors import ForbiddenError, PrerequisiteError, RequestError

if TYPE_CHECKING:
    from hotset.core.sql import EngineName, Row
    from hotset.tpcc.database import Session
    from hotset.tpch.database import Database as TpchDatabase

    from .base import Engine
    from .readings import Readings

A_PASSWORD = "a password, which logs and process lists would show: give it separately"  # noqa: S105


class DsnError(RequestError):
    """The DSN does not say where the database is; the message names the part."""


class DsnKeywordError(ForbiddenError):
    """A keyword that only the command line may use."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the DSN has {what}: the API and the console do not take that", field="dsn"
        )


class Says(Protocol):
    """Where a user hears of it."""

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class SqlDatabase(ABC):
    """Where a database is and who asks; nothing is connected yet. Each product has its own in its
    folder, and :mod:`.connect` lists them.

    :cvar engine: the product's name, and that of its folders of SQL.
    :cvar title: what people call the product.
    :cvar hammerdb: HammerDB's name of the product; empty: it is not driven for it.
    :cvar cancelled: cause of a statement that the server's own limit of time has ended; empty: it
        has no such limit.
    :cvar tells_its_files: they are told from those of another server with the same paths, so that
        a database is found on this computer without being named.
    :ivar looks: it does not wait for long for a table that another session has to itself: it
        raises `Locked`.
    """

    engine: ClassVar[EngineName]
    title: ClassVar[str]
    hammerdb: ClassVar[str] = ""
    cancelled: ClassVar[str] = ""
    tells_its_files: ClassVar[bool] = False

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    dbname: str
    looks: bool = field(default=False, kw_only=True)

    @classmethod
    @abstractmethod
    def parse(cls, dsn: str, password: str) -> Self:
        """The database a DSN names.

        :raises DsnError: it cannot be understood, or holds a password.
        """

    @classmethod
    @abstractmethod
    def files_of(cls, dsn: str) -> Iterator[tuple[str, str]]:
        """Keyword and path of the files that a DSN from elsewhere names.

        :param dsn: one that was found to be well-formed.
        :raises DsnKeywordError: it has a keyword of the command line alone, leads to the server's
            own socket, or logs in as who runs the server.
        """

    @property
    @abstractmethod
    def whose_password(self) -> str:
        """Whose password it is, as who is asked for it is told."""

    @abstractmethod
    def needs_password(self) -> bool:
        """True if the server asks for a password, and neither this nor the client's own places
        have one."""

    @abstractmethod
    def session(self) -> Session:
        """Open a connection. Raises CannotConnect with the server's reason, never the password."""

    @abstractmethod
    def administer(self) -> Engine:
        """Connect, to look at the server itself. Raises CannotConnect."""

    @abstractmethod
    def tpch(self) -> TpchDatabase:
        """The same database, as TPC-H wants it."""

    @abstractmethod
    def identify(self) -> tuple[str, Row]:
        """The server's address as it was reached, and the row of ``measured_database.sql``.

        :raises DatabaseError: it does not answer.
        """

    @abstractmethod
    def readings(self) -> Readings:
        """How its users spend their time, over a connection of its own. Raises CannotConnect."""

    def looking(self) -> Self:
        """The same for who only looks, and is not to wait for whoever has a table to himself."""
        return replace(self, looks=True)

    def is_pooled(self) -> bool:
        """True if something such as pgbouncer answers in the server's place."""
        return False

    def require_direct(self) -> None:
        """See that a run measures the server itself.

        :raises PrerequisiteError: a connection pooler answers in its place.
        """
        if self.is_pooled():
            raise PrerequisiteError(
                "a connection pooler (such as pgbouncer) answers in the server's place: prepared"
                " statements and settings need not hold behind it, and its queue would be measured"
                " as the server's time. Name the server's own host and port in the DSN"
            )

    def require_room(self, estimated: int, what: str) -> None:  # noqa: B027 - it may hold any
        """See that the server's edition can hold so much.

        :param estimated: bytes of the loaded database.
        :param what: the field that asks for it.
        :raises RequestError: it cannot, or not while it is built.
        """

    def limit(self) -> str:
        """The server's own limit of time for a statement, in words; empty: it has none.

        :raises CannotConnect: it does not answer.
        """
        return ""

    def require_copies(self) -> None:
        """:raises RequestError: the server makes no copies of a database."""
        raise RequestError(
            f"copies are made on PostgreSQL; on {self.title} restore a backup before each run",
            field="fresh",
        )

    def copy(self, report: Says) -> AbstractContextManager[SqlDatabase]:  # noqa: ARG002
        """A copy of the database for one run.

        :raises RequestError: the server makes none.
        :raises CopyFailed: it cannot be copied.
        """
        self.require_copies()
        raise NotImplementedError
