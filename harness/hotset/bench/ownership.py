"""Objects of a database that are hotset's own: the one place that decides what may be dropped.

`orders`, `customer` and `payment` are names that anybody's database has. An object is hotset's when
it carries hotset's mark (a comment, or an extended property on SQL Server) and has the columns, or
parameters, of what hotset makes. Databases that were loaded before there were marks, and servers
that take none, are known by the exact columns and types of all the tables together.

Looked at is only the schema in which hotset would make its tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

from hotset.core.errors import ConflictError, HotsetError, Remedy, RequestError
from hotset.core.sql import Aborted, DatabaseError
from hotset.databases.base import number, sql
from hotset.databases.connect import SqlDatabase
from hotset.tpcc import schema as tpcc
from hotset.tpcc.database import Session
from hotset.tpch import schema as tpch

_TABLE = re.compile(r"CREATE TABLE (\w+) \(\n(.*?)\n\)", re.DOTALL)
_COLUMN = re.compile(r"^ +(\w+ +\w+(?:\([\d, ]+\))?)", re.MULTILINE)
_ROUTINE = {
    "postgres": re.compile(r"CREATE FUNCTION (\w+)\((.*?)\) LANGUAGE", re.DOTALL),
    "sqlserver": re.compile(r"CREATE PROCEDURE (\w+)\s+(.*?)\s+AS\b", re.DOTALL),
}
_INDEX = re.compile(r"(?:CREATE (?:UNIQUE )?INDEX|ADD CONSTRAINT) (\w+)")
_ROUTINE_KINDS = ("function", "procedure")
_FULL_NAMES = {
    "postgres": {
        "varchar": "character varying",
        "char": "character",
        "decimal": "numeric",
        "int": "integer",
        "timestamp": "timestamp without time zone",
    },
    "sqlserver": {"integer": "int", "decimal": "numeric"},
}
_BENCHBASE_TABLE = "oorder"
_PADDING = frozenset(("padding",))
"""HammerDB's warehouses and districts have it on SQL Server, so that a row fills a page."""
_ANOTHER_SCHEMA = {
    "postgres": "(options=-csearch_path=NAME in the DSN)",
    "sqlserver": "(a user's default schema)",
}


class NotOurs(ConflictError):
    """An object that would have to go, or is in the way, is not hotset's."""


class AlreadyLoaded(RequestError):
    """hotset's own tables are there, which a load would destroy."""


@dataclass(frozen=True)
class Kit:
    """A benchmark as a database holds it.

    :ivar module: has TABLES, and the SQL files as `batches`.
    :ivar files: the SQL files that name indexes and constraints.
    :ivar also: a table beside those of the specification.
    :ivar hammerdbs: a routine that HammerDB makes beside these.
    """

    title: str
    word: str
    module: ModuleType
    files: tuple[str, ...] = ("indexes",)
    routines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    hammerdbs: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        return f"hotset: {self.title}"

    @property
    def hammerdbs_mark(self) -> str:
        """Mark of what HammerDB made for hotset: other types, and routines of its own."""
        return f"{self.mark} by HammerDB"

    @property
    def tables(self) -> tuple[str, ...]:
        """In an order in which they can be dropped: what refers to others comes first."""
        return (*self.also, *reversed(tuple(self.module.TABLES)))

    def columns(self, table: str) -> frozenset[str]:
        found = self.module.TABLES.get(table)
        return frozenset(found.columns if found else ("scale_factor",))

    def indexes(self, engine: str) -> frozenset[str]:
        texts = (batch for name in self.files for batch in self.module.batches(engine, name))
        return frozenset(name for text in texts for name in _INDEX.findall(text))


TPCC = Kit("TPC-C", "tpcc", tpcc, routines=tpcc.PROCEDURES, hammerdbs=("dbms_random",))
TPCH = Kit("TPC-H", "tpch", tpch, ("indexes", "foreign_keys"), also=("tpch_load",))
KITS = (TPCC, TPCH)


@dataclass(frozen=True, slots=True)
class Thing:
    """An object with a name that a benchmark needs.

    :ivar rows: None: not known.
    :ivar full_name: the name for DROP.
    :ivar definition: its columns or parameters with their types, in order.
    """

    name: str
    kind: str
    owner: str
    mark: str
    rows: int | None
    full_name: str
    id: int
    definition: tuple[str, ...] = ()

    @property
    def is_routine(self) -> bool:
        return self.kind in _ROUTINE_KINDS

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(one.split()[0] for one in self.definition)

    def __str__(self) -> str:
        return f"{self.kind} {self.full_name} (owner {self.owner})"


@dataclass(frozen=True)
class Holdings:
    """Objects in a database's schema that have the benchmarks' names."""

    engine: str
    server: str
    database: str
    schema: str
    things: tuple[Thing, ...]

    @property
    def place(self) -> str:
        product = "SQL Server" if self.engine == "sqlserver" else "PostgreSQL"
        return f"schema {self.schema} of database {self.database} on {product} at {self.server}"

    def ours(self, kit: Kit) -> list[Thing]:
        """List hotset's objects, in an order in which they can be dropped."""
        order = (*kit.tables, *kit.routines, *kit.hammerdbs)
        found = [
            thing for thing in self.things if thing.name in order and self._is_ours(kit, thing)
        ]
        return sorted(found, key=lambda one: order.index(one.name))

    def others(self, kit: Kit) -> list[Thing]:
        """List objects that have one of the kit's names but are not what the kit made."""
        ours = self.ours(kit)
        names = {*kit.tables, *kit.routines}
        if not ours:  # whose own indexes these are
            names |= kit.indexes(self.engine)
        return [thing for thing in self.things if thing.name in names and thing not in ours]

    def builder(self) -> str:
        """Whose procedures a TPC-C database has: "hotset", "hammerdb", another tool by a name of
        its own, or nothing that shows."""
        news = [
            thing for thing in self.things if thing.name == TPCC.routines[0] and thing.is_routine
        ]
        expected = _expected_columns(TPCC, self.engine)[TPCC.routines[0]]
        if any(one.definition == expected for one in news):
            return "hotset"
        if news:
            return "hammerdb"
        return self.maker(TPCC) if "TPC-C" in self.maker(TPCC) else ""

    def maker(self, kit: Kit) -> str:
        """Who may have made the others, as far as it shows; empty: it does not."""
        for other in KITS:
            if other is not kit and self.ours(other):
                return f"hotset's {other.title}"
        names = {thing.name for thing in self.things}
        tables = {thing.name: thing.columns for thing in self.things if not thing.is_routine}
        if kit is TPCC and {_BENCHBASE_TABLE, "warehouse", "district"} <= names:
            return "BenchBase's TPC-C"
        if any(
            not kit.columns(table) <= tables.get(table, frozenset()) for table in kit.module.TABLES
        ):
            return ""
        if {*kit.hammerdbs, *kit.routines} & names:
            return f"HammerDB's {kit.title}"
        return f"{kit.title} of another tool"

    def _is_ours(self, kit: Kit, one: Thing) -> bool:
        if one.mark == kit.hammerdbs_mark:
            is_table = one.kind == "table" and one.columns - _PADDING == kit.columns(one.name)
            return is_table or one.is_routine
        if one.name in kit.routines:
            same = (
                one.is_routine and one.definition == _expected_columns(kit, self.engine)[one.name]
            )
            return same and (one.mark == kit.mark or self.is_unmarked(kit))
        if one.kind != "table":
            return False
        if one.mark == kit.mark:
            return one.columns == kit.columns(one.name)
        return self.is_unmarked(kit)

    def is_unmarked(self, kit: Kit) -> bool:
        """True if all tables exist exactly as hotset makes them, but none has a mark."""
        expected = _expected_columns(kit, self.engine)
        found = {
            thing.name: thing for thing in self.things if thing.kind == "table" and not thing.mark
        }
        return all(
            name in found and sorted(found[name].definition) == sorted(expected[name])
            for name in (*kit.module.TABLES, *(one for one in kit.also if one in found))
        )


def holdings(database: SqlDatabase) -> Holdings:
    """Read the schema's objects from the server's catalog.

    :raises HotsetError: there is no schema to make anything in.
    :raises DatabaseError: the server says no.
    """
    with closing(database.session()) as session:
        return _holdings(session, database.engine)


def require_free(
    found: Holdings, kit: Kit, *, replacing: bool = False, by_hammerdb: bool = False
) -> None:
    """See that nothing is in a load's way but what may be replaced.

    :raises NotOurs: names what is in the way and what to do.
    :raises AlreadyLoaded: hotset's tables are there, and are not to be replaced.
    """
    others = found.others(kit)
    if by_hammerdb:
        others += [
            thing for thing in found.things if thing.name in kit.hammerdbs and not thing.mark
        ]
    if others:
        raise _not_ours(
            found,
            kit,
            others,
            f", which needs these names. Nothing was changed. Name another database, or another"
            f" schema {_ANOTHER_SCHEMA[found.engine]}",
        )
    ours = found.ours(kit)
    if ours and not replacing:
        raise AlreadyLoaded(
            f"{found.place} has hotset's {kit.title} already ({_names(ours)}{_since(found, kit)})",
            Remedy("drop these and load again", parameters={"replace": True}),
        )


def to_drop(database: SqlDatabase, kit: Kit) -> tuple[Holdings, list[Thing]]:
    """Find what a drop would remove; nothing where no object has the kit's names.

    :raises NotOurs: tables with the kit's names that are not hotset's, or something that needs
        ours and would go with them.
    """
    with closing(database.session()) as session:
        found = _holdings(session, database.engine)
        ours = found.ours(kit)
        others = [other for other in found.others(kit) if not ours or not other.is_routine]
        if others:
            raise _not_ours(found, kit, others, ". Nothing was dropped")
        needing = _needing(session, found.engine, ours)
    if needing:
        raise NotOurs(
            f"{found.place}: hotset's {kit.title} is needed by {', '.join(needing)}. Nothing was"
            " dropped; drop that first, if it is to go",
            field="dsn",
        )
    return found, ours


def question(database: SqlDatabase, kit: Kit) -> str | None:
    """Compose the question before a drop: server, database, schema, tables and rows; or None."""
    found, ours = to_drop(database, kit)
    if not ours:
        return None
    tables = [one for one in ours if not one.is_routine]
    routines = [one for one in ours if one.is_routine]
    lines = [f"In {found.place}:"]
    lines += [f"  {table}, {_rows(table)}" for table in tables]
    if routines:
        lines.append(f"  {_list_names(routines)}")
    whose = f"hotset's {kit.title}{_since(found, kit)}"
    return "\n".join([*lines, f"Drop these ({whose}) and all data in them?"])


def drop(database: SqlDatabase, kit: Kit) -> list[str]:
    """Remove what is hotset's, all or nothing; returns the names of the tables.

    :raises NotOurs: as `to_drop`.
    """
    _, ours = to_drop(database, kit)
    with closing(database.session()) as session:
        session.script("BEGIN TRANSACTION")
        for one in ours:
            session.script(f"DROP {one.kind.upper()} {one.full_name}")
        session.script("COMMIT TRANSACTION")
    return [one.name for one in ours if not one.is_routine]


@contextmanager
def marking_hammerdbs(database: SqlDatabase, kit: Kit) -> Iterator[None]:
    """Mark what HammerDB builds inside, well or not, in a schema without these names before."""
    try:
        yield
    finally:
        with suppress(DatabaseError, HotsetError):
            _mark_hammerdbs(database, kit)


def _mark_hammerdbs(database: SqlDatabase, kit: Kit) -> None:
    mark, names = kit.hammerdbs_mark, {*kit.tables, *kit.routines, *kit.hammerdbs}
    with closing(database.session()) as session:
        for thing in _holdings(session, database.engine).things:
            if (
                thing.name in names
                and not thing.mark
                and (thing.kind == "table" or thing.is_routine)
            ):
                words = {
                    "kind": thing.kind.upper(),
                    "full_name": thing.full_name,
                    "name": thing.name,
                }
                with suppress(Aborted):  # a compatible server may know no marks
                    session.script(sql(database.engine, "mark_object").format(mark=mark, **words))


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


def _not_ours(found: Holdings, kit: Kit, others: list[Thing], then: str) -> NotOurs:
    maker = found.maker(kit)
    looks = f" (it looks like {maker})" if maker else ""
    return NotOurs(
        f"{found.place} has {_list_names(others)}: not made by hotset for {kit.title}{looks}{then}",
        field="dsn",
    )


def _describe_leftovers(database: SqlDatabase, kit: Kit) -> str:
    try:
        found = holdings(database)
    except (DatabaseError, HotsetError) as error:
        return (
            f"whether half-loaded {kit.title} tables stay could not be found out ({error}):"
            f" `hotset {kit.word} drop` removes them"
        )
    ours = found.ours(kit)
    if not ours:
        return f"nothing of {kit.title} stays in {found.place}"
    return (
        f"half-loaded tables stay in {found.place}: {_names(ours)};"
        f" `hotset {kit.word} drop` removes them"
    )


def _holdings(session: Session, engine: str) -> Holdings:
    ((server, database, schema),) = session.query(sql(engine, "where_objects_go"))
    if schema is None:
        raise NotOurs(
            f"database {database} at {server} has no schema to make tables in: none of the"
            " search_path exists; create one, or name another",
            field="dsn",
        )
    names = {name for kit in KITS for name in (*kit.tables, *kit.indexes(engine))}
    routines = {name for kit in KITS for name in (*kit.routines, *kit.hammerdbs)}
    asked = sql(engine, "named_objects").format(
        names=_quote({*names, _BENCHBASE_TABLE}), routines=_quote(routines)
    )
    things = [
        Thing(
            str(name),
            str(kind),
            str(owner),
            str(mark or ""),
            None if rows is None else number(rows),
            str(full_name),
            number(id_),
        )
        for name, kind, owner, mark, rows, full_name, id_ in session.query(asked)
    ]
    defined: dict[int, tuple[str, ...]] = {}
    for id_, text, _ in session.query(_of_these(engine, "object_definitions", things)):
        defined[number(id_)] = (*defined.get(number(id_), ()), *_parts(engine, str(text)))
    things = [replace(thing, definition=defined.get(thing.id, ())) for thing in things]
    return Holdings(engine, str(server), str(database), str(schema), tuple(things))


def _needing(session: Session, engine: str, ours: list[Thing]) -> list[str]:
    if not ours:
        return []
    return [str(one) for (one,) in session.query(_of_these(engine, "dependent_objects", ours))]


def _of_these(engine: str, name: str, things: list[Thing]) -> str:
    tables = ", ".join(str(thing.id) for thing in things if not thing.is_routine)
    routines = ", ".join(str(thing.id) for thing in things if thing.is_routine)
    return sql(engine, name).format(tables=tables or "0", routines=routines or "0")


@cache
def _expected_columns(kit: Kit, engine: str) -> Mapping[str, tuple[str, ...]]:
    """By table and routine: its columns or parameters, as the SQL files have them."""
    found = {}
    for batch in kit.module.batches(engine, "schema"):
        for table, columns in _TABLE.findall(batch):
            found[table] = _parts(engine, ", ".join(_COLUMN.findall(columns)))
    for routine in kit.routines:
        for batch in kit.module.batches(engine, f"procedures/{routine}"):
            for name, parameters in _ROUTINE[engine].findall(batch):
                found[name] = _parts(engine, parameters)
    return found


def _parts(engine: str, text: str) -> tuple[str, ...]:
    """Columns or parameters, their types by the names that the catalog has for them.

    >>> _parts("postgres", "w_id integer, w_ytd decimal(12, 2)")
    ('w_id integer', 'w_ytd numeric(12,2)')
    >>> _parts("sqlserver", "@w_id int, @amount decimal(6, 2)")
    ('@w_id int', '@amount numeric')
    """
    text = re.sub(r"\((\d+), (\d+)\)", r"(\1,\2)", " ".join(text.split()))
    if engine == "sqlserver":
        text = re.sub(r"\(.*?\)", "", text)
    for short, full in _FULL_NAMES[engine].items():
        text = re.sub(rf"\b{short}\b(?! without)", full, text)
    return tuple(one.strip() for one in text.split(", ") if one)


def _quote(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _list_names(things: list[Thing]) -> str:
    return ", ".join(map(str, things))


def _names(things: list[Thing]) -> str:
    return ", ".join(thing.name for thing in things if not thing.is_routine)


def _rows(one: Thing) -> str:
    return "rows not counted" if one.rows is None else f"about {one.rows:,} rows"


def _since(found: Holdings, kit: Kit) -> str:
    if not found.is_unmarked(kit):
        return ""
    return "; loaded before hotset marked its tables, known by their columns"
