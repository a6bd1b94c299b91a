"""A database server: its files, memory and counters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import Remedy, RequestError
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.operation import Context, Kind, Lines, Lock, Request, operation
from hotset.core.rights import Right

if TYPE_CHECKING:
    from hotset.databases.base import Change, Engine, Unavailable
    from hotset.databases.report import DatabaseCounters, DatabaseServer

_STATEMENTS = "Print the statements without running them."


class Server(Request):
    engine: fields.Product
    dsn: fields.Dsn
    password: fields.Password = None


class ChangeServer(Server):
    dry_run: Annotated[bool, Field(description=_STATEMENTS)] = False
    yes: Annotated[bool, Field(description="Run the statements.")] = False


@dataclass(frozen=True, slots=True)
class Changed(Lines):
    """The statements, in order.

    :ivar refused: they were not run, as nobody said yes.
    """

    refused: bool = False

    def failure(self) -> Exception | None:
        if not self.refused:
            return None
        remedy = Remedy("run these", parameters={"yes": True})
        return RequestError("nothing was changed", remedy, field="yes")


def _lock(request: Server) -> Lock:
    return Lock("database", request.dsn)


@operation(
    "database show",
    Kind.QUERY,
    Right.OPERATE,
    ("Get", "HotsetDatabase"),
    result="databases.report:DatabaseServer",
)
def show(request: Server, context: Context) -> DatabaseServer:  # noqa: ARG001
    """Show the version, the memory, and where the files of each database are."""
    from hotset.databases.report import DatabaseServer

    with _opened(request) as server:
        return DatabaseServer.from_server(server)


class Place(ChangeServer):
    folder: Annotated[
        fields.ReadFile, Field(description="A folder on the server's machine, on the flash volume.")
    ]
    log: Annotated[bool, Field(description="Move the database's log as well.")] = False
    log_size: Annotated[
        fields.Size | None,
        Field(description="Size of the log, such as 30GiB; its files then grow by 10 %."),
    ] = None


@operation(
    "database place",
    Kind.JOB,
    Right.ADMIN,
    ("Move", "HotsetDatabaseFile"),
    needs_yes=True,
    lock=_lock,
    stops=True,
)
def place(request: Place, context: Context) -> Changed:
    """Move temporary space (tempdb) and the log to a folder."""
    folder = request.folder
    if folder[:1] not in "/\\" and folder[1:2] != ":":
        raise RequestError(
            f"{folder!r} is not a full path: write one such as /volume/tempdb or F:\\tempdb",
            field="folder",
        )
    size = fields.maybe_size(request.log_size)
    with _opened(request) as server:
        changes = [server.move(folder, log=request.log)]
        if size is not None:
            changes.append(server.growth(size))
        return _change(server, changes, request, context)


class Memory(ChangeServer):
    size: Annotated[
        fields.Size | None,
        Field(description="The limit; 75 % of the machine's memory if left out (SQL Server)."),
    ] = None


@operation(
    "database memory",
    Kind.JOB,
    Right.ADMIN,
    ("Set", "HotsetDatabaseMemory"),
    needs_yes=True,
    lock=_lock,
    stops=True,
)
def memory(request: Memory, context: Context) -> Changed:
    """Limit the server's memory."""
    cap = fields.maybe_size(request.size)
    with _opened(request) as server:
        try:
            change = server.cap_memory(cap)
        except ValueError as error:
            raise RequestError(str(error), field="size") from None
        return _change(server, [change], request, context)


@operation(
    "database statistics",
    Kind.JOB,
    Right.OPERATE,
    ("Update", "HotsetDatabaseStatistic"),
    needs_yes=True,
    lock=_lock,
)
def statistics(request: ChangeServer, context: Context) -> Changed:
    """Update the planner's statistics of the database's tables, as after a load."""
    with _opened(request) as server:
        return _change(server, [server.statistics()], request, context)


@operation(
    "database clear-cache",
    Kind.JOB,
    Right.OPERATE,
    ("Clear", "HotsetDatabaseCache"),
    needs_yes=True,
    lock=_lock,
)
def clear_cache(request: ChangeServer, context: Context) -> Changed:
    """Empty the server's buffers, so that the next run reads from the disk."""
    with _opened(request) as server:
        return _change(server, [server.clear_cache()], request, context)


class Counters(Server):
    interval: Annotated[
        float,
        Field(
            ge=0.0,
            le=600,
            description="Seconds between the two readings. 0: everything since the server started.",
        ),
    ] = 10.0


@operation(
    "database counters",
    Kind.QUERY,
    Right.OPERATE,
    ("Measure", "HotsetDatabase"),
    result="databases.report:DatabaseCounters",
)
def counters(request: Counters, context: Context) -> DatabaseCounters:
    """Show I/O per file, waits and performance counters during an interval."""
    from hotset.databases.report import DatabaseCounters, Reading

    with _opened(request) as server:
        reading = Reading.take(server)
        if request.interval:
            context.message(f"counting for {request.interval:g} s")
            time.sleep(request.interval)
            reading = Reading.take(server).since(reading)
        return DatabaseCounters.from_reading(reading, request.interval)


@contextmanager
def _opened(request: Server) -> Iterator[Engine]:
    from hotset.databases import connect

    with closing(connect.of_request(request).administer()) as server:
        yield server


def _change(
    server: Engine,
    changes: Sequence[Change | Unavailable],
    request: ChangeServer,
    context: Context,
) -> Changed:
    """Tell what would be done; do it only if the user said so."""
    from hotset.databases.base import Unavailable

    planned: list[Change] = []
    for change in changes:
        if isinstance(change, Unavailable):
            raise PrerequisiteMissingError(change.unavailable)
        planned.append(change)
    for change in planned:
        if request.yes and not request.dry_run:
            server.apply(change)
        for note in change.notes:
            context.note(note)
        if change.restart:
            context.note("restart the server for this to take effect")
    statements = tuple(statement for change in planned for statement in change.statements)
    if not statements:
        context.message("nothing to do: it is already set")
    elif request.dry_run:
        context.message("dry run: nothing was changed")
    return Changed(statements, bool(statements) and not request.yes and not request.dry_run)
