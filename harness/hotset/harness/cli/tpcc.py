"""``hotset tpcc build|run|check|drop``: TPC-C on a database that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.options import (
    DriverOption,
    DsnOption,
    EngineOption,
    Format,
    FormatOption,
    PasswordFileOption,
    QuietOption,
)

if TYPE_CHECKING:
    from hotset.harness.workload import Outcome
    from hotset.tpcc.consistency import ConditionResult

app = typer.Typer(
    help="TPC-C on a database of yours (results are TPROC-C, not audited TPC results).",
    no_args_is_help=True,
)
WarehousesOption = Annotated[
    int, typer.Option("--warehouses", "-w", min=1, help="Warehouses, about 105 MB each.")
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of every random choice.")]


@app.command("build")
def build(
    dsn: DsnOption,
    warehouses: WarehousesOption = 10,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    seed: SeedOption = 1,
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop the TPC-C tables that are there.")
    ] = False,
    driver: DriverOption = "hotset",
    quiet: QuietOption = False,
) -> None:
    """Load warehouses, then check the twelve consistency conditions (clause 3.3.2).

    Refuses when there are TPC-C tables already. Ends with code 4 when a condition does not hold.
    """
    from hotset.harness import workload
    from hotset.harness.engines import connect
    from hotset.harness.progress import Reporter
    from hotset.tpcc import consistency

    if driver == "hammerdb" and replace:
        raise typer.BadParameter(
            "HammerDB builds in an empty database; `hotset tpcc drop` empties it",
            param_hint="--replace",
        )
    database = connect.database(engine, dsn, password_file)
    report = Reporter(quiet)
    if driver == "hammerdb":
        results = workload.build_by_hammerdb(database, warehouses, report)
    else:
        _, results = workload.build(database, warehouses, seed, replace, report)
    consistency.require(results)
    report.say(f"all {len(results)} conditions hold")


@app.command("run")
def run(
    dsn: DsnOption,
    users: Annotated[int, typer.Option("--users", "-u", min=1, help="Virtual users.")] = 8,
    warehouses: WarehousesOption = 10,
    rampup: Annotated[float, typer.Option(min=0, help="Unmeasured seconds first.")] = 10,
    duration: Annotated[float, typer.Option(min=1, help="Seconds of the window.")] = 60,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    seed: SeedOption = 1,
    think_time: Annotated[
        bool, typer.Option("--think-time", help="Keying and think times (clause 5.2.5).")
    ] = False,
    home_warehouses: Annotated[
        bool,
        typer.Option(
            "--home-warehouses",
            help="Each user stays at a warehouse of its own: a working set as small as the number"
            " of users. Otherwise each transaction picks its warehouse.",
        ),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Check the twelve conditions afterwards.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write everything, as JSON, here, too.")
    ] = None,
    driver: DriverOption = "hotset",
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Run the five transactions and measure a window; CSV is the window second by second.

    A run that fails ends with code 4 and still prints what it measured; so does a database that
    the run leaves inconsistent.
    """
    from hotset.harness import workload
    from hotset.harness.engines import connect
    from hotset.harness.progress import Reporter
    from hotset.tpcc import consistency
    from hotset.tpcc.record import RunFailed, RunOptions

    options = RunOptions(users, warehouses, rampup, duration, seed, not home_warehouses, think_time)
    database = connect.database(engine, dsn, password_file)
    _check_output(output)
    report = Reporter(quiet)
    drive = workload.run_by_hammerdb if driver == "hammerdb" else workload.run
    outcome = drive(database, options, report)
    _write(outcome, output)
    if check and outcome.cause is None:
        numbers = workload.HAMMERDB_KEEPS if driver == "hammerdb" else consistency.ALL
        outcome = workload.checked(outcome, database, report, numbers)
        _write(outcome, output)
    _print(outcome, format_)
    if outcome.cause is not None:
        raise RunFailed(outcome.cause, outcome.result)
    consistency.require(list(outcome.conditions or ()))


@app.command("check")
def check_conditions(
    dsn: DsnOption,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Check the twelve consistency conditions on all warehouses; code 4 when one does not hold."""
    from hotset.harness import workload
    from hotset.harness.engines import connect
    from hotset.harness.progress import Reporter
    from hotset.tpcc import consistency

    database = connect.database(engine, dsn, password_file)
    results = workload.check(database, Reporter(quiet))
    _print_conditions(results, format_)
    consistency.require(results)


@app.command("drop")
def drop(
    dsn: DsnOption,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the TPC-C tables and procedures."""
    from hotset.harness import workload
    from hotset.harness.engines import connect

    database = connect.database(engine, dsn, password_file)
    if not yes and not typer.confirm("Drop the TPC-C tables and all they hold?", err=True):
        typer.echo("nothing dropped", err=True)
        raise typer.Exit(1)
    dropped = workload.drop(database)
    typer.echo(f"dropped {', '.join(dropped) or 'nothing: there was none'}", err=True)


def _check_output(output: Path | None) -> None:
    """Before the run, not after it."""
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise typer.BadParameter(f"{output} is not a file in a folder", param_hint="--output")


def _write(outcome: Outcome, output: Path | None) -> None:
    from hotset.harness import workload_text

    if output is not None:
        output.write_text(workload_text.run_json(outcome) + "\n", encoding="utf-8")


def _print(outcome: Outcome, format_: Format) -> None:
    from hotset.harness import workload_text
    from hotset.harness.progress import to_stdout

    if format_ is Format.JSON:
        to_stdout(workload_text.run_json(outcome))
    elif format_ is Format.CSV:
        to_stdout(workload_text.run_csv(outcome))
    else:
        workload_text.show(workload_text.run_table(outcome))


def _print_conditions(results: list[ConditionResult], format_: Format) -> None:
    from hotset.harness import workload_text
    from hotset.harness.progress import to_stdout

    if format_ is Format.JSON:
        to_stdout(workload_text.conditions_json(results))
    elif format_ is Format.CSV:
        to_stdout(workload_text.conditions_csv(results))
    else:
        workload_text.show(workload_text.conditions_table(results))
