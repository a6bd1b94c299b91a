"""From what a user types (`--engine`, `--dsn`) to a database that workloads can open. A product is
loaded when one of its databases is named.

A password is never taken from the command line, where every user of the computer can read it:
it comes from the environment (HOTSET_PASSWORD), from a file, from libpq's own places, or is asked
for on a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from hotset.core import environment
from hotset.core.errors import RequestError
from hotset.core.sql import EngineName

from .product import SqlDatabase

if TYPE_CHECKING:
    from pydantic import SecretStr


def _postgres() -> type[SqlDatabase]:
    from .postgres.product import PostgresDatabase

    return PostgresDatabase


def _sqlserver() -> type[SqlDatabase]:
    from .sqlserver.product import SqlServerDatabase

    return SqlServerDatabase


@dataclass(frozen=True, slots=True)
class Product:
    """A product: its name on the command line, and its databases."""

    name: EngineName
    load: Callable[[], type[SqlDatabase]]


PRODUCTS = [
    Product("postgres", _postgres),
    Product("sqlserver", _sqlserver),
]
"""One a line."""


def product_of_name(name: EngineName) -> type[SqlDatabase]:
    """Databases of the product of that name."""
    return next(product for product in PRODUCTS if product.name == name).load()


class NamesDatabase(Protocol):
    """A request that names a database."""

    @property
    def engine(self) -> EngineName: ...
    @property
    def dsn(self) -> str | None: ...
    @property
    def password(self) -> SecretStr | None: ...


def database(engine: EngineName, dsn: str, password: str | None = None) -> SqlDatabase:
    """The database a DSN names; nothing is connected yet.

    :param dsn: of the form that the product has.
    :param password: None: of the environment (HOTSET_PASSWORD), or of the terminal.
    :raises DsnError: it cannot be understood, or holds a password.
    """
    given = environment.password() if password is None else password
    named = product_of_name(engine).parse(dsn, given)
    if password is None and environment.can_ask() and named.needs_password():
        return replace(named, password=environment.ask_password(named.whose_password))
    return named


def of_request(request: NamesDatabase) -> SqlDatabase:
    """The same of the database a request names.

    :raises RequestError: it names none.
    """
    if request.dsn is None:
        raise RequestError("no database server is named", field="dsn")
    given = None if request.password is None else request.password.get_secret_value()
    return database(request.engine, request.dsn, given)


def check_dsn(engine: EngineName, dsn: str) -> None:
    """See that a DSN names a database and holds no password, before it is kept anywhere.

    :raises DsnError: it does not, or does.
    """
    database(engine, dsn, "")
