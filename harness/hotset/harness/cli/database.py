"""``hotset database show|place|memory|counters``: a database server as it stands."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.options import (
    DsnOption,
    EngineOption,
    Format,
    FormatOption,
    PasswordFileOption,
    size_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from hotset.harness.engines.connect import EngineName
    from hotset.harness.engines.engine import Change, Engine, Unavailable

app = typer.Typer(
    help="A database server: its files, memory and counters. Changes nothing without --yes.",
    no_args_is_help=True,
)
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the statements and run none.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Run the statements.")]


@app.command("show")
def show(
    engine: EngineOption,
    dsn: DsnOption,
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Version, memory, and which file of which database lies where."""
    from hotset.harness.engines.report import to_show
    from hotset.harness.progress import to_stdout

    with _opened(engine, dsn, password_file) as server:
        to_stdout(to_show(server, format_.value))


@app.command("place")
def place(
    engine: EngineOption,
    dsn: DsnOption,
    folder: Annotated[
        str, typer.Option(help="A folder of the server's machine, on the flash volume.")
    ],
    log: Annotated[bool, typer.Option("--log", help="Move the database's log as well.")] = False,
    log_size: Annotated[
        str | None,
        typer.Option(help="Make the log so large, and let files grow by 10 %, for instance 30GiB."),
    ] = None,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Move temporary space (tempdb) and the log to a folder."""
    if folder[:1] not in "/\\" and folder[1:2] != ":":
        raise typer.BadParameter(
            f"{folder!r} is not a full path: write one such as /volume/tempdb or F:\\tempdb",
            param_hint="--folder",
        )
    wanted = None if log_size is None else size_of(log_size, "--log-size")
    with _opened(engine, dsn, password_file) as server:
        changes = [server.move(folder, log=log)]
        if wanted is not None:
            changes.append(server.growth(wanted))
        _change(server, changes, dry_run=dry_run, yes=yes)


@app.command("memory")
def memory(
    engine: EngineOption,
    dsn: DsnOption,
    size: Annotated[
        str | None,
        typer.Option(help="The cap; without it 75 % of the machine's memory (SQL Server)."),
    ] = None,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Cap the server's memory."""
    cap = None if size is None else size_of(size, "--size")
    with _opened(engine, dsn, password_file) as server:
        try:
            change = server.cap_memory(cap)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--size") from None
        _change(server, [change], dry_run=dry_run, yes=yes)


@app.command("statistics")
def statistics(
    engine: EngineOption,
    dsn: DsnOption,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Let the planner know the tables of the database, as after a load."""
    with _opened(engine, dsn, password_file) as server:
        _change(server, [server.statistics()], dry_run=dry_run, yes=yes)


@app.command("clear-cache")
def clear_cache(
    engine: EngineOption,
    dsn: DsnOption,
    password_file: PasswordFileOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Empty the server's own buffers, so that the next run reads from the disk."""
    with _opened(engine, dsn, password_file) as server:
        _change(server, [server.clear_cache()], dry_run=dry_run, yes=yes)


@app.command("counters")
def counters(
    engine: EngineOption,
    dsn: DsnOption,
    interval: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds between two readings; 0: all since the server began."),
    ] = 10.0,
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """I/O per file, waits and performance counters: what an interval added."""
    from hotset.harness.engines.report import Reading, to_counters
    from hotset.harness.progress import to_stdout

    with _opened(engine, dsn, password_file) as server:
        reading = Reading.of(server)
        if interval:
            typer.echo(f"counting for {interval:g} s", err=True)
            time.sleep(interval)
            reading = Reading.of(server).since(reading)
        to_stdout(to_counters(reading, interval, format_.value))


@contextmanager
def _opened(engine: EngineName, dsn: str, password_file: Path | None) -> Iterator[Engine]:
    from hotset.harness.engines import connect

    with closing(connect.engine(connect.database(engine, dsn, password_file))) as server:
        yield server


def _change(
    server: Engine, changes: list[Change | Unavailable], *, dry_run: bool, yes: bool
) -> None:
    """Print what would be done; do it only if the user said so."""
    from hotset.cachelayer.machine import EnvironmentLacksError
    from hotset.harness.engines.engine import Unavailable
    from hotset.harness.progress import to_stdout

    planned: list[Change] = []
    for change in changes:
        if isinstance(change, Unavailable):
            raise EnvironmentLacksError(change.reason)
        planned.append(change)
    for change in planned:
        for statement in change.statements:
            to_stdout(statement)
        if yes and not dry_run:
            server.apply(change)
        for note in change.notes:
            typer.echo(f"note: {note}", err=True)
        if change.restart:
            typer.echo("note: restart the server for this to take effect", err=True)
    if not any(change.statements for change in planned):
        typer.echo("nothing to do: it is so already", err=True)
    elif dry_run:
        typer.echo("dry run: nothing was changed", err=True)
    elif not yes:
        raise typer.BadParameter("nothing was changed: add --yes to run these", param_hint="--yes")
