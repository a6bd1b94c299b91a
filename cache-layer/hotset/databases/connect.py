"""From what a user types (`--engine`, `--dsn`) to a database that workloads can open. A product is
loaded when one of its databases is named.

A password is never taken from the command line, where every user of the computer can read it:
it comes from the environment (HOTSET_PASSWORD), from a file, from libpq's own places, or is asked
for on a terminal.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

from hotset.core import environment
from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.sql import EngineName
from hotset.hitratio import attribution

from .base import Unavailable
from .file_labels import Label
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


def label_of(
    machine: Machine, device: PurePosixPath | None, by: str, request: NamesDatabase
) -> Label:
    """Return a function that names the owner of a file: itself, its database or its table.

    :param device: the accelerated disk, where one is meant: the server's files may be there under
        other names than the server has for them.
    :raises PrerequisiteMissingError: the server does not tell, or has no file there.
    """
    if by not in ("database", "table"):
        return str
    if request.dsn is None:
        raise RequestError(
            f"by {by} hotset has to ask the database server for its files: name the server, or use"
            " by file",
            field="by",
        )
    below = None if device is None else attribution.mount_point(machine, device)
    with closing(of_request(request).administer()) as server:
        label = server.labels("database" if by == "database" else "table", machine, below)
    if isinstance(label, Unavailable):
        raise PrerequisiteMissingError(label.unavailable)
    return label
