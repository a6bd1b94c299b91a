"""``hotset heat start|stop|top|map``: which parts of an accelerated disk are hot."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hotset.harness.cli.options import (
    DiskArgument,
    Format,
    FormatOption,
    HostOption,
    PasswordFileOption,
    ServerOption,
    disk_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hotset.cachelayer.heat import Grid
    from hotset.harness.hit_report import Label, Target

app = typer.Typer(
    help="Heat: how often each region of an accelerated disk is asked for, the older the less."
    " The kernel counts by itself once it was started, until it is stopped or reboots.",
    no_args_is_help=True,
)
OptionalDsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        envvar="HOTSET_DSN",
        help="The database, to tell tables or databases by their files (no password in it).",
    ),
]
NoResidentOption = Annotated[
    bool,
    typer.Option(
        "--no-resident",
        help="Do not ask what is cached (dm-cache pauses for a moment to tell).",
    ),
]


@app.command("start")
def start(
    disk: DiskArgument = None,
    machine: HostOption = "local",
    half_life: Annotated[
        str, typer.Option(help="After what time a request counts half, for instance 8h, 7d.")
    ] = "1d",
) -> None:
    """Let the kernel count the disk's requests per region."""
    from hotset.cachelayer import counting
    from hotset.harness.hit_report import parse_span

    try:
        seconds = parse_span(half_life)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--half-life") from None
    with target_of(machine, disk) as target:
        counters = counting.of(target.machine, target.disk)
        begun = counters.start()
        with target.store() as store:
            gained = store.fold(counters.read(), time.time(), seconds)
    words = "counts" if begun else "counted already"
    typer.echo(
        f"disk {target.disk.name}: {words} in {gained.grid.count:,} regions of"
        f" {gained.grid.region}; read it with `hotset heat top`",
        err=True,
    )


@app.command("stop")
def stop(disk: DiskArgument = None, machine: HostOption = "local") -> None:
    """End the counting; what was counted so far is kept."""
    from hotset.cachelayer import counting
    from hotset.cachelayer.traced import NotCountedError

    with target_of(machine, disk) as target:
        counters = counting.of(target.machine, target.disk)
        try:
            reading = counters.read()
        except NotCountedError:
            reading = None
        if reading is not None:
            with target.store() as store:
                store.fold(reading, time.time())
        ended = counters.stop()
    typer.echo(f"disk {target.disk.name}: {'stopped' if ended else 'was not counted'}", err=True)


@app.command("top")
def top(
    disk: DiskArgument = None,
    machine: HostOption = "local",
    by: Annotated[
        Literal["file", "table", "database", "extent"], typer.Option("--by", help="What to list.")
    ] = "file",
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 20,
    engine: ServerOption = "postgres",
    dsn: OptionalDsn = None,
    password_file: PasswordFileOption = None,
    no_resident: NoResidentOption = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """The hottest files, tables, databases or extents of the disk."""
    from hotset.cachelayer import owners
    from hotset.harness import heat_view
    from hotset.harness.progress import to_stdout

    with target_of(machine, disk) as target:
        grid, heats = _heats(target)
        cached = None if no_resident else target.tier.contents().cached
        if by == "extent":
            rows = heat_view.by_extent(heats, grid, cached)
        else:
            label = label_of(by, engine, dsn, password_file)
            found = owners.grouped(owners.files(target.machine, target.disk.device), label)
            rows = heat_view.by_owner(heats, grid, found, cached)
    to_stdout(heat_view.top_text(rows[:count], by, format_.value))


@app.command("map")
def draw(
    disk: DiskArgument = None,
    machine: HostOption = "local",
    cells: Annotated[
        int | None, typer.Option(min=1, help="Into how many stretches the disk is cut.")
    ] = None,
    no_resident: NoResidentOption = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """The disk as a strip: where it is hot, and what of it is in the cache."""
    import shutil

    from hotset.harness import heat_view
    from hotset.harness.progress import to_stdout

    width = max(20, shutil.get_terminal_size().columns - 12)
    with target_of(machine, disk) as target:
        grid, heats = _heats(target)
        cached = None if no_resident else target.tier.contents().cached
    stretches = heat_view.strip(heats, grid, cached, cells or 4 * width)
    to_stdout(heat_view.map_text(stretches, format_.value, width))


@contextmanager
def target_of(machine: str, disk: str | None) -> Iterator[Target]:
    """The disk a user means."""
    from hotset.harness.hit_report import Target

    with disk_of(machine, disk) as found:
        yield Target(machine, *found)


def label_of(
    by: str, engine: Literal["postgres", "sqlserver"], dsn: str | None, password_file: Path | None
) -> Label:
    """What names the owner of a file: itself, its database or its table.

    :raises EnvironmentLacksError: the server does not tell.
    """
    from contextlib import closing

    from hotset.cachelayer.machine import EnvironmentLacksError
    from hotset.harness.engines import connect
    from hotset.harness.engines.engine import Unavailable

    if by not in ("database", "table"):
        return str
    if dsn is None:
        raise typer.BadParameter(
            f"by {by} a database server is needed that knows its files: name it (--dsn or"
            " HOTSET_DSN), or ask --by file",
            param_hint="--by",
        )
    with closing(connect.engine(connect.database(engine, dsn, password_file))) as server:
        label = server.labels("database" if by == "database" else "table")
    if isinstance(label, Unavailable):
        raise EnvironmentLacksError(label.reason)
    return label


def _heats(target: Target) -> tuple[Grid, dict[int, float]]:
    """Read the counters, fold them in, and give the heat of now; what was kept where nothing
    counts any more."""
    from hotset.cachelayer import counting
    from hotset.cachelayer.traced import NotCountedError

    with target.store() as store:
        now = time.time()
        try:
            reading = counting.of(target.machine, target.disk).read()
        except NotCountedError as error:
            if store.grid is None:
                raise
            typer.echo(f"note: {error}; this is what was counted before", err=True)
            return store.grid, store.heats(now)
        gained = store.fold(reading, now)
        if gained.dropped:
            typer.echo(f"note: {gained.dropped:,} requests found no room in the kernel's table and"
                       " heat nothing", err=True)  # fmt: skip
        return reading.grid, store.heats(now)
