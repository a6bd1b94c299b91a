"""Objects of a database that are hotset's own: the one place that decides what may be dropped.

A benchmark is in a schema of its own, which has hotset's mark (a comment, or an extended property
on SQL Server) and goes as a schema, without CASCADE: the server itself keeps what somebody else put
into it, or on top of it. HammerDB's tables are where HammerDB makes them, which is where an
unqualified CREATE makes things; those that it made for hotset have a mark each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType

from hotset.core.errors import ConflictError, HotsetError, Remedy, RequestError
from hotset.core.sql import Aborted, DatabaseError
from hotset.core.sql.files import run_whole
from hotset.databases.base import number, sql
from hotset.databases.product import SqlDatabase
from hotset.tpcc import schema as tpcc
from hotset.tpcc.database import Session
from hotset.tpch import schema as tpch


class NotOurs(ConflictError):
    """An object that would have to go, or is in the way, is not hotset's."""


class AlreadyLoaded(RequestError):
    """hotset's own tables are there, which a load would destroy."""


@dataclass(frozen=True)
class Kit:
    """A benchmark as a database holds it.

    :ivar module: has SCHEMA, TABLES, and `drop`.
    :ivar also: a table beside those of the specification.
    :ivar routines: of hotset and of HammerDB.
    """

    title: str
    word: str
    module: ModuleType
    also: tuple[str, ...] = ()
    routines: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        return str(self.module.SCHEMA)

    @property
    def mark(self) -> str:
        return f"hotset: {self.title}"

    @property
    def hammerdbs_mark(self) -> str:
        """Mark of each object that HammerDB made for hotset."""
        return f"{self.mark} by HammerDB"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of tables and routines, in an order in which they can be dropped."""
        return (*self.also, *reversed(tuple(self.module.TABLES)), *self.routines)


TPCC = Kit("TPC-C", "tpcc", tpcc, routines=(*tpcc.PROCEDURES, "dbms_random"))
TPCH = Kit("TPC-H", "tpch", tpch, also=("tpch_load",))
KITS = (TPCC, TPCH)


@dataclass(frozen=True, slots=True)
class Thing:
    """A table or a routine with a name of a benchmark's.

    :ivar rows: None: not known.
    :ivar full_name: the name for DROP.
    """

    name: str
    kind: str
    owner: str
    mark: str
    rows: int | None
    full_name: str

    @property
    def is_routine(self) -> bool:
        return self.kind != "table"

    def __str__(self) -> str:
        return f"{self.kind} {self.full_name} (owner {self.owner})"


@dataclass(frozen=True)
class Holdings:
    """A benchmark's objects in a database.

    :ivar place: the database and its server, in words.
    :ivar mark: of the benchmark's schema; empty: it has none; None: there is no such schema.
    :ivar own: objects with the benchmark's names there.
    :ivar beside: those with these names where HammerDB makes its own.
    """

    kit: Kit
    place: str
    mark: str | None
    own: tuple[Thing, ...]
    beside: tuple[Thing, ...]

    @property
    def is_own(self) -> bool:
        """hotset made the schema."""
        return self.mark == self.kit.mark

    @property
    def hammerdbs(self) -> tuple[Thing, ...]:
        """Tables and routines that HammerDB made for hotset."""
        return tuple(thing for thing in self.beside if thing.mark == self.kit.hammerdbs_mark)

    @property
    def ours(self) -> tuple[Thing, ...]:
        """Objects that a drop removes; a build by either refuses while there is the other's."""
        return self.own if self.is_own else self.hammerdbs

    @property
    def is_loaded(self) -> bool:
        """There is something for a drop to remove."""
        return self.is_own or bool(self.hammerdbs)

    @property
    def has_hammerdbs_procedures(self) -> bool:
        """HammerDB's driver could call them, whichever driver made them."""
        return any(
            thing.is_routine and thing.name in self.kit.routines[:1] for thing in self.beside
        )

    def require_marked(self) -> None:
        """
        :raises NotOurs: somebody else made a schema of this name.
        """
        if self.mark is not None and not self.is_own:
            raise NotOurs(
                f"{self.place} has a schema {self.kit.schema} without hotset's mark: not made by"
                f" hotset for {self.kit.title}. Nothing was changed. Rename or drop that schema"
                " yourself, or name another database",
                field="dsn",
            )


def holdings(database: SqlDatabase, kit: Kit) -> Holdings:
    """Read a benchmark's objects from the server's catalog.

    :raises DatabaseError: the server says no.
    """
    with closing(database.session()) as session:
        asked = sql(database.engine, "benchmark_schema").format(schema=f"'{kit.schema}'")
        ((server, name, mark),) = session.query(asked)
        return Holdings(
            kit,
            f"database {name} on {database.title} at {server}",
            None if mark is None else str(mark),
            *(_things(session, database.engine, kit, own=own) for own in (True, False)),
        )


def require_free(holdings: Holdings, *, replacing: bool = False, by_hammerdb: bool = False) -> None:
    """See that nothing is in a load's way but what may be replaced.

    :raises NotOurs: names what is in the way and what to do.
    :raises AlreadyLoaded: hotset's tables are there, and are not to be replaced.
    """
    holdings.require_marked()
    if holdings.is_loaded and not replacing:
        raise AlreadyLoaded(
            f"{holdings.place} has hotset's {holdings.kit.title} already ({_names(holdings.ours)})",
            Remedy("drop these and load again", parameters={"replace": True}),
        )
    if by_hammerdb and holdings.beside:
        raise NotOurs(
            f"{holdings.place} has {_list_names(holdings.beside)}: not made by hotset for"
            f" {holdings.kit.title}, and HammerDB needs these names. Nothing was changed. Drop"
            " these yourself, or name another database",
            field="dsn",
        )


def question(database: SqlDatabase, kit: Kit) -> str | None:
    """Compose the question before a drop: server, database, schema, tables and rows; or None.

    :raises NotOurs: somebody else made the schema.
    """
    held = holdings(database, kit)
    held.require_marked()
    if not held.is_loaded:
        return None
    routines = [thing for thing in held.ours if thing.is_routine]
    lines = [f"In {held.place}:"]
    lines += [f"  schema {kit.schema}"] if held.is_own else []
    lines += [f"  {thing}, {_rows(thing)}" for thing in held.ours if not thing.is_routine]
    lines += [f"  {_list_names(routines)}"] if routines else []
    return "\n".join([*lines, f"Drop these (hotset's {kit.title}) and all data in them?"])


def drop(database: SqlDatabase, kit: Kit) -> list[str]:
    """Remove what is hotset's, all or nothing; returns the names of the tables.

    :raises NotOurs: somebody else made the schema, put something into it, or needs what is in it.
    """
    held = holdings(database, kit)
    held.require_marked()
    with closing(database.session()) as session:
        try:
            if held.is_own:
                kit.module.drop(database, session)
            else:
                drops = (f"DROP {thing.kind.upper()} {thing.full_name}" for thing in held.hammerdbs)
                run_whole(session, drops)
        except Aborted as refused:
            words = str(refused).split("; HINT")[0]  # which is to add CASCADE
            raise NotOurs(
                f"{held.place}: hotset's {kit.title} was not dropped, and nothing of it is gone:"
                f" {words}. If that is somebody else's, move or drop it first, or name another"
                " database",
                field="dsn",
            ) from None
    return [thing.name for thing in held.ours if not thing.is_routine]


@contextmanager
def marking_hammerdbs(database: SqlDatabase, kit: Kit) -> Iterator[None]:
    """Mark what HammerDB builds inside, well or not, in a schema without these names before."""
    try:
        yield
    finally:
        with suppress(DatabaseError, HotsetError), closing(database.session()) as session:
            for thing in _things(session, database.engine, kit, own=False):
                marking = sql(database.engine, "mark_object").format(
                    kind=thing.kind.upper(),
                    full_name=thing.full_name,
                    name=thing.name,
                    mark=kit.hammerdbs_mark,
                )
                with suppress(Aborted):  # a compatible server may know no marks
                    session.script(marking)


@contextmanager
def saying_what_stays(
    database: SqlDatabase, kit: Kit, say: Callable[[str], None]
) -> Iterator[None]:
    """When a load fails or is interrupted: whether its tables were dropped, as the server tells."""
    try:
        yield
    except BaseException:
        say(_describe_leftovers(database, kit))
        raise


def _describe_leftovers(database: SqlDatabase, kit: Kit) -> str:
    try:
        held = holdings(database, kit)
    except (DatabaseError, HotsetError) as error:
        return (
            f"whether half-loaded {kit.title} tables stay could not be found out ({error}):"
            f" `hotset {kit.word} drop` removes them"
        )
    if not held.is_loaded:
        return f"nothing of {kit.title} stays in {held.place}"
    return (
        f"half-loaded tables stay in {held.place}: {_names(held.ours)};"
        f" `hotset {kit.word} drop` removes them"
    )


def _things(session: Session, engine: str, kit: Kit, *, own: bool) -> tuple[Thing, ...]:
    """Objects with the kit's names, in its own schema or where HammerDB makes things; in an order
    in which they can be dropped."""
    asked = sql(engine, "named_objects").format(
        schema=f"'{kit.schema}'" if own else "NULL",
        names=", ".join(f"'{name}'" for name in kit.names),
    )
    things = (
        Thing(
            str(name),
            str(kind),
            str(owner),
            str(mark or ""),
            None if rows is None else number(rows),
            str(full_name),
        )
        for name, kind, owner, mark, rows, full_name in session.query(asked)
    )
    return tuple(sorted(things, key=lambda thing: kit.names.index(thing.name)))


def _list_names(things: Iterable[Thing]) -> str:
    return ", ".join(map(str, things))


def _names(things: Iterable[Thing]) -> str:
    return ", ".join(thing.name for thing in things if not thing.is_routine)


def _rows(thing: Thing) -> str:
    return "rows not counted" if thing.rows is None else f"about {thing.rows:,} rows"
