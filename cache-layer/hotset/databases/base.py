"""Interface to a database engine for all but running a workload on it, whatever the product.

Reading verbs return records, or `Unavailable` with the reason where a server has no such view or
the user may not see it: never zeros. Verbs that change something return a `Change`, the statements
first; nothing happens until it is given to `apply`. So a dry run prints what a real one runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted, EngineName, Row, Session
from hotset.core.units import Bytes

from .file_labels import Label, Level

FileKind: TypeAlias = Literal["data", "log", "temp"]
LOOK_WAIT_S = 10
"""A look at a table ends then, and says who has it: to build one again takes hours."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A figure this server does not give, and why."""

    unavailable: str


@dataclass(frozen=True, slots=True)
class Version:
    """Product, version as the server writes it, edition (None: the product has none)."""

    product: str
    version: str
    edition: str | None


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """A file or folder of a database, as the server names it; ``name`` is its logical name."""

    database: str
    name: str
    kind: FileKind
    path: str
    size: Bytes


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the server's machine (as far as the server knows) and the server's limit
    (None: no limit)."""

    machine: Bytes | Unavailable
    cap: Bytes | None


@dataclass(frozen=True, slots=True)
class FileIo:
    """I/O of a file (or of what the server counts instead) since the server started.

    Times are what callers waited, in milliseconds; None: not counted.
    """

    name: str
    kind: FileKind
    reads: int
    read_bytes: int
    read_ms: float | None
    writes: int | None
    written_bytes: int | None
    write_ms: float | None


@dataclass(frozen=True, slots=True)
class Wait:
    """A kind of wait: how often and how long since the server started."""

    name: str
    count: int
    wait_ms: float


@dataclass(frozen=True, slots=True)
class Counter:
    """A performance counter. A ``gauge`` is a state; others only grow, and differences count."""

    name: str
    value: float
    gauge: bool


@dataclass(frozen=True, slots=True)
class Change:
    """Statements that would change a server, in order, and what else the user must do."""

    statements: tuple[str, ...]
    restart: bool = False
    notes: tuple[str, ...] = ()


class Engine(Protocol):
    """One server of one product, over one connection; each product derives its own, with its
    statements in files.

    :cvar name: the product's.
    """

    name: ClassVar[EngineName]
    _connection: Session

    def __init__(self, connection: Session) -> None:
        self._connection = connection

    def version(self) -> Version:
        """Product, version, edition."""

    def databases(self) -> list[str]:
        """Databases of the server, its own ones included."""
        return [str(row[0]) for row in self._connection.query(self._sql("databases"))]

    def placement(self) -> list[DatabaseFile] | Unavailable:
        """Which files lie where."""

    def labels(
        self, level: Level, machine: Machine, below: PurePosixPath | None
    ) -> Label | Unavailable:
        """Return a function that maps a file's path to its database or its table.

        :param machine: the one whose paths are told.
        :param below: where to look for the server's files, beside where it says that they are.
        """

    def offers(self, count: int) -> list[Offer]:
        """The first so many targets: databases, then tables and indexes, the largest first."""

    def find(self, machine: Machine, target: Target, below: PurePosixPath | None) -> list[str]:
        """Files and folders of a table, an index or a database, by the machine's paths.

        :param below: as of `labels`.
        :raises TargetError: there is no such thing in this database, or the server does not say.
        """

    def folders(self, machine: Machine, below: PurePosixPath | None) -> list[str]:
        """All files and folders that have its data; none where it does not say."""

    def own_folders(self, machine: Machine) -> list[str] | Unavailable:
        """Every file or folder with data of the database that one is connected to."""

    def memory(self) -> Memory | Unavailable:
        """Memory of the machine and the server's cap."""

    def move(self, folder: str, *, log: bool = False) -> Change | Unavailable:
        """Temporary space to a folder of the server's machine; with `log`, the log as well."""

    def growth(self, log_size: Bytes) -> Change | Unavailable:
        """Files grow in large steps; the log is made large enough beforehand."""

    def cap_memory(self, size: Bytes | None) -> Change | Unavailable:
        """Limit the server's memory; None: by the product's rule."""

    def statistics(self) -> Change:
        """Let the planner know the tables."""

    def clear_cache(self) -> Change | Unavailable:
        """Empty the server's own buffers, so that reads go to the disk."""

    def file_io(self) -> list[FileIo] | Unavailable:
        """I/O counters per file."""

    def waits(self) -> list[Wait] | Unavailable:
        """Wait statistics."""

    def counters(self) -> list[Counter] | Unavailable:
        """Performance counters."""

    def apply(self, change: Change) -> None:
        """Run the statements; raises `Aborted` at the first that the server refuses."""
        for statement in change.statements:
            self._connection.script(statement)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _rows(self, name: str, view: str, **filled: str) -> list[Row] | Unavailable:
        """Rows of a view that may be missing or forbidden.

        :param filled: values for the placeholders in the statement.
        """
        text = self._sql(name)
        try:
            return self._connection.query(text.format(**filled) if filled else text)
        except Aborted as refused:
            return Unavailable(f"{view}: {refused.detail or refused.cause}")

    def _waits(self, name: str, view: str, **filled: str) -> list[Wait] | Unavailable:
        rows = self._rows(name, view, **filled)
        if isinstance(rows, Unavailable):
            return rows
        return [Wait(str(name), number(count), float(number(ms))) for name, count, ms in rows]

    def _sql(self, name: str) -> str:
        return sql(self.name, name)


@cache
def sql(engine: str, name: str) -> str:
    """The statement of ``sql/<engine>/<name>.sql``; what stands in braces is filled in."""
    folder = files("hotset.databases") / "sql" / engine
    return (folder / f"{name}.sql").read_text(encoding="utf-8").strip()


def number(value: object) -> int:
    """An integer out of what a driver returns for a count (int, Decimal or text)."""
    return int(str(value).split(".", maxsplit=1)[0])


Figure = TypeVar("Figure", FileIo, Wait, Counter)
_COUNTED: dict[type, tuple[str, ...]] = {
    FileIo: ("reads", "read_bytes", "read_ms", "writes", "written_bytes", "write_ms"),
    Wait: ("count", "wait_ms"),
    Counter: ("value",),
}


def difference(before: Sequence[Figure], after: Sequence[Figure]) -> list[Figure]:
    """Subtract two readings, in the order of the second; gauges as they are.

    A name that the first reading lacks starts at zero there (a wait that had not happened yet);
    what fell (the server was restarted) counts from zero.
    """
    known = {counter.name: counter for counter in before}
    return [
        _since(known[counter.name], counter) if counter.name in known else counter
        for counter in after
    ]


def _since(old: Figure, new: Figure) -> Figure:
    if isinstance(new, Counter) and new.gauge:
        return new
    gained: dict[str, Any] = {}
    for name in _COUNTED[type(new)]:
        was, now = getattr(old, name), getattr(new, name)
        if was is not None and now is not None and now < was:
            return new
        gained[name] = None if was is None or now is None else now - was
    return replace(new, **gained)


Kind = Literal["path", "table", "index", "database", "region", "heat", "snapshot"]


@dataclass(frozen=True, slots=True)
class Target:
    """Target as a user named it: its kind, and the name behind the colon (or the path)."""

    text: str
    kind: Kind
    name: str

    @property
    def of_database(self) -> bool:
        """Only a database server knows where it lies."""
        return self.kind in ("table", "index", "database")


@dataclass(frozen=True, slots=True)
class Offer:
    """A target that there is. ``bytes``: of its files, None where the server does not tell at
    once."""

    target: str
    bytes: int | None


class TargetError(RequestError):
    """A target that cannot be warmed; the message names it and what would do."""


class TargetGoneError(TargetError):
    """Where it was looked for, there is no such thing (any more)."""


def no_database(target: Target, databases: list[str]) -> TargetGoneError:
    """Build the error for a database that the server does not have."""
    return TargetGoneError(
        f"{target.text}: the server has no such database; it has: {', '.join(databases)}",
        field="targets",
    )
