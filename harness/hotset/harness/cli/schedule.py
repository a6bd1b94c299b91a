"""``hotset warmup schedule add|list|remove``: warm-ups by systemd."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hotset.harness.cli.options import (
    DiskOption,
    Format,
    FormatOption,
    HostOption,
    PasswordFileOption,
    ServerOption,
)

app = typer.Typer(
    help="Warm-ups at set times, at the machine's start and at its shutdown, by systemd.",
    no_args_is_help=True,
)


@app.command("add")
def add(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TARGET...]", help="As for `warmup run`, with --at."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="When, as systemd.time(7) writes it, for instance 'Mon..Fri 07:00'."),
    ] = None,
    on_boot: Annotated[
        bool, typer.Option("--on-boot", help="Restore the last snapshot when the machine starts.")
    ] = False,
    on_shutdown: Annotated[
        bool, typer.Option("--on-shutdown", help="Save what is cached when the machine goes down.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="What to call it; made from disk and occasion if left out.")
    ] = None,
    disk: DiskOption = None,
    machine: HostOption = "local",
    method: Annotated[
        Literal["auto", "offline", "online"], typer.Option(help="As for `warmup run`.")
    ] = "auto",
    rate: Annotated[str | None, typer.Option(help="At most so much, such as 50MB/s.")] = None,
    engine: ServerOption = "postgres",
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="As the machine itself reaches the database.")
    ] = None,
    password_file: PasswordFileOption = None,
    program: Annotated[
        str | None, typer.Option(help="Where hotset is on the machine, as a full path.")
    ] = None,
    no_enable: Annotated[
        bool, typer.Option("--no-enable", help="Write the units, do not switch them on.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the units, write nothing.")
    ] = False,
) -> None:
    """Write a systemd service (and a timer for --at) on the disk's machine.

    hotset has to be installed there: the units run it. Passwords never stand in a unit; give
    --password-file, a path on that machine.
    """
    from hotset.cachelayer import card, machines
    from hotset.harness.progress import to_stdout
    from hotset.harness.warmups import schedule
    from hotset.harness.warmups.schedule import Wanted

    wanted = Wanted(tuple(targets or ()), at, on_boot, on_shutdown, name, method, rate, engine, dsn,
                    None if password_file is None else str(password_file))  # fmt: skip
    schedule.check(wanted)
    with machines.opened(machine) as there:
        _, found = card.find(there, disk)
        if program is None:
            hotset = schedule.program_on(there)
        else:
            hotset = schedule.check_program(there, program)
        units = schedule.units(wanted, found.name, hotset)
        if wanted.at is not None:
            schedule.check_calendar(there, schedule.calendar(wanted.at))
        if dry_run:
            for unit in units:
                to_stdout(f"# {unit.path}\n{unit.text}")
            return
        schedule.install(there, units, enable=not no_enable)
    for unit in units:
        typer.echo(f"{unit.path}{' (not enabled)' * no_enable}", err=True)


@app.command("list")
def list_schedules(machine: HostOption = "local", format_: FormatOption = Format.TABLE) -> None:
    """The schedules on a machine, with the command each runs."""
    from hotset.cachelayer import machines
    from hotset.harness.progress import to_stdout
    from hotset.harness.warmups import schedule
    from hotset.harness.warmups.text import SCHEMA_VERSION
    from hotset.reports.tables import records

    with machines.opened(machine) as there:
        rows = schedule.rows(schedule.installed(there))
    columns = ("name", "when", "command")
    to_stdout(records("schedules", SCHEMA_VERSION, columns, rows, format_.value))


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(help="As `schedule list` calls it.")],
    machine: HostOption = "local",
) -> None:
    """Switch a schedule off and remove its units."""
    from hotset.cachelayer import machines
    from hotset.harness.warmups import schedule

    with machines.opened(machine) as there:
        for unit in schedule.remove(there, name):
            typer.echo(f"removed {unit}", err=True)
