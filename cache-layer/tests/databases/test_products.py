"""A product that hotset does not have, added as one would be: a class and a line of the table.
What it has no answer of its own for is nobody else's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import pytest

from hotset.bench.kept.found import FoundDatabase, find_database
from hotset.bench.kept.tier import NOT_NAMED, _find_here
from hotset.bench.sql import driver
from hotset.bench.sql.workload import SqlWorkload
from hotset.core.errors import RequestError
from hotset.core.sql import Aborted, Argument, EngineName, Row, SetupError, Value
from hotset.databases import base, connect
from hotset.databases.base import Engine
from hotset.databases.connect import Product
from hotset.databases.product import DsnError, DsnKeywordError, SqlDatabase
from hotset.databases.readings import Readings
from hotset.hammerdb import settings
from hotset.hammerdb.process.failures import HammerdbRefused
from hotset.load.record import WindowOptions
from hotset.tpch.database import Database as TpchDatabase

NAME = cast("EngineName", "sqlite")


class Session:
    """One connection to SQLite."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)

    def script(self, sql: str) -> None:
        self._connection.executescript(sql)

    def query(self, sql: str) -> list[Row]:
        try:
            return self._connection.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise Aborted("error", False, str(error)) from None

    def call(self, procedure: str, args: Sequence[Argument]) -> Row:
        raise Aborted("error", False, f"no procedures: {procedure}{args}")

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> int:
        raise Aborted("error", False, f"not loaded: {table}{columns}{rows}")

    def close(self) -> None:
        self._connection.close()


@dataclass(frozen=True, slots=True)
class Sqlite(SqlDatabase):
    """SQLite as a product: it has no server."""

    engine: ClassVar[EngineName] = NAME
    title: ClassVar[str] = "SQLite"

    @classmethod
    def parse(cls, dsn: str, password: str) -> Self:
        if not dsn.startswith("sqlite:"):
            raise DsnError("the DSN is no sqlite:NAME", field="dsn")
        return cls("", 0, "", password, dsn.removeprefix("sqlite:"))

    @classmethod
    def files_of(cls, dsn: str) -> Iterator[tuple[str, str]]:
        raise DsnKeywordError(f"a file ({dsn})")

    @property
    def whose_password(self) -> str:
        raise NotImplementedError

    def needs_password(self) -> bool:
        return False

    def session(self) -> Session:
        return Session()

    def administer(self) -> Engine:
        raise NotImplementedError

    def tpch(self) -> TpchDatabase:
        raise NotImplementedError

    def identify(self) -> tuple[str, Row]:
        with closing(self.session()) as session:
            ((version,),) = session.query("SELECT sqlite_version()")
        return "here", (self.dbname, version, 4096, 0)

    def readings(self) -> Readings:
        raise NotImplementedError


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> SqlDatabase:
    monkeypatch.setattr(connect, "PRODUCTS", [*connect.PRODUCTS, Product(NAME, lambda: Sqlite)])
    return connect.database(NAME, "sqlite:shop", "")


def test_its_dsn_is_its_own(database: SqlDatabase) -> None:
    assert (database.dbname, database.looking().looks) == ("shop", True)
    with pytest.raises(DsnError, match="no sqlite:NAME"):
        connect.check_dsn(NAME, "postgresql://me@db/shop")


def test_it_is_found_as_it_says(database: SqlDatabase) -> None:
    assert find_database(database) == FoundDatabase(
        "sqlite", "here", "shop", sqlite3.sqlite_version, 4096
    )
    assert _find_here(database)[1].unknown == NOT_NAMED


def test_what_it_does_not_have_is_said_and_is_no_other_products(database: SqlDatabase) -> None:
    database.require_direct()
    database.require_room(1 << 60, "scale")
    assert database.limit() == ""
    with pytest.raises(RequestError, match="on SQLite restore a backup before each run"):
        database.require_copies()
    workload = SqlWorkload(database, (), WindowOptions(users=1, rampup_s=0, duration_s=1), {})
    with pytest.raises(RequestError, match="scripts are not run on SQLite"):
        driver.require(workload)
    with pytest.raises(HammerdbRefused, match="HammerDB is not driven for"):
        settings.dictionary(database, settings.Tpcc(1))


def test_a_statement_that_nobody_wrote_for_it_is_missed(database: SqlDatabase) -> None:
    with pytest.raises(SetupError, match="no administration SQL for engine 'sqlite'"):
        base.sql(database.engine, "deciding_settings")
