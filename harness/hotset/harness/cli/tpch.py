"""``hotset tpch build|run|check|drop``: TPC-H in a database the user names."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.codes import MISSED
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
    from collections.abc import Sequence

    from hotset.harness.engines.connect import EngineName
    from hotset.harness.hammerdb.settings import Connection
    from hotset.harness.progress import Reporter
    from hotset.tpch.database import Database
    from hotset.tpch.record import PowerResult, ThroughputResult

_HELP = (
    "TPC-H in a database of yours: data, the 22 queries, refresh functions, answers. Results are"
    " TPROC-H figures, derived from TPC-H; they are not audited TPC results."
)
app = typer.Typer(help=_HELP, no_args_is_help=True)

QueriesOption = Annotated[
    str, typer.Option("--queries", metavar="N,N…", help="Which of the 22; default: all.")
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", min=0.001, help="Seconds a query may take; it is then cancelled."),
]
LoadedScaleOption = Annotated[
    float | None, typer.Option("--scale", help="What is loaded; a different one is an error.")
]


@app.callback()
def tpch() -> None:
    """TPC-H in a database of yours."""


@app.command("build")
def build(
    dsn: DsnOption,
    scale: Annotated[float, typer.Option("--scale", help="1 is about 1 GB of text.")] = 1.0,
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop the TPC-H tables that are there.")
    ] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Loading at once; default: one per CPU.")
    ] = None,
    driver: DriverOption = "hotset",
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make the eight tables with their rows, keys, indexes and statistics.

    The generated text stays in the cache folder for the next build.
    """
    from hotset.harness.progress import Reporter
    from hotset.tpch import load, schema

    try:
        load.require_scale(scale)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--scale") from None
    database, report = _database(engine, dsn, password_file), Reporter(quiet)
    with closing(database.session()) as session:
        if not replace and schema.holds_tables(session):
            raise schema.SetupError(
                "the database holds TPC-H tables already: --replace drops them, or name another"
                " database in --dsn"
            )
    if driver == "hammerdb":
        _refuse({"--replace": replace})
        _build_by_hammerdb(_plain(engine, dsn, password_file), scale, report)
        return
    size = schema.estimated_bytes(scale) / 1e9
    with report.task(f"building TPC-H at scale {scale:g}, about {size:.2g} GB in the database"):
        made = load.load(database, scale, _folder(), report.on_tpch_load, processes=processes)
    report.say(
        f"loaded {sum(made.rows.values()):,} rows in {made.seconds:.1f} s"
        f" (rows {made.rows_s:.1f} s, then keys and statistics); data ready in {made.data_s:.1f} s"
    )


@app.command("run")
def run(
    dsn: DsnOption,
    streams: Annotated[
        str | None,
        typer.Option(
            "--streams",
            metavar="N|min",
            help="After the power run, a throughput run with so many query streams at once;"
            " min: the fewest clause 5.3.4 allows.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Draw the queries' parameters; default: the validation ones."),
    ] = None,
    queries: QueriesOption = "",
    timeout: TimeoutOption = None,
    refresh: Annotated[
        bool | None,
        typer.Option(
            "--refresh/--no-refresh",
            help="Insert and delete 0.1 % of the orders around the queries; default: with all 22.",
        ),
    ] = None,
    scale: LoadedScaleOption = None,
    driver: DriverOption = "hotset",
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Run the 22 queries one after the other; with --streams also several streams at once.

    Ends with code 4 when a query failed or timed out; what did finish is printed.
    """
    from hotset.harness import tpch_tables
    from hotset.harness.progress import Reporter
    from hotset.tpch import power, throughput

    numbers, count = _queries(queries), _streams(streams)
    if count is not None and len(numbers) < 22:
        raise typer.BadParameter("a throughput run takes all 22 queries", param_hint="--queries")
    database, report = _database(engine, dsn, password_file), Reporter(quiet)
    refreshing = len(numbers) == 22 if refresh is None else refresh
    if driver == "hammerdb":
        _refuse({"--streams": streams, "--seed": seed, "--timeout": timeout, "--queries": queries})
        plain = _plain(engine, dsn, password_file)
        hammered = _run_by_hammerdb(plain, scale, refreshing, report)
        tpch_tables.print_run(hammered, None, format_)
        _require_finished(numbers, hammered, None)
        return
    with report.task(f"power run, {len(numbers)} queries"):
        first = power.run(
            database, scale, seed=seed, queries=numbers, timeout_s=timeout, refresh=refreshing,
            observe=report.on_tpch_run,
        )  # fmt: skip
    second: ThroughputResult | None = None
    try:
        if count is not None and not first.cause:
            with report.task("throughput run"):
                second = throughput.run(
                    database, first.scale, streams=count or None, seed=seed, timeout_s=timeout,
                    refresh=refreshing, observe=report.on_tpch_run,
                )  # fmt: skip
    finally:
        tpch_tables.print_run(first, second, format_)
    _require_finished(numbers, first, second)


@app.command("check")
def check(
    dsn: DsnOption,
    queries: QueriesOption = "",
    timeout: TimeoutOption = None,
    scale: LoadedScaleOption = None,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
    quiet: QuietOption = False,
) -> None:
    """Count rows, look for broken foreign keys, and hold the answers against DuckDB's.

    DuckDB reads the generated text. Ends with code 5 when something is not as it should be.
    """
    from hotset.harness import tpch_tables
    from hotset.harness.progress import Reporter
    from hotset.tpch import check as checks

    numbers, report = _queries(queries), Reporter(quiet)
    database = _database(engine, dsn, password_file)
    with report.task("checking rows, references and answers"):
        found = checks.check(
            database, scale, _folder(), numbers=numbers, timeout_s=timeout,
            on_data=report.on_tpch_load,
            observe=lambda part: report.figure(f"checked {part.title}"),
        )  # fmt: skip
    tpch_tables.print_check(found, format_)
    if not found.holds:
        raise typer.Exit(MISSED)


@app.command("drop")
def drop(
    dsn: DsnOption,
    engine: EngineOption = "postgres",
    password_file: PasswordFileOption = None,
) -> None:
    """Drop the TPC-H tables, and nothing else."""
    from hotset.tpch import schema

    database = _database(engine, dsn, password_file)
    with closing(database.session()) as session:
        there = schema.holds_tables(session)
        schema.drop(database, session)
    typer.echo("dropped the TPC-H tables" if there else "there were no TPC-H tables", err=True)


def _database(engine: EngineName, dsn: str, password_file: Path | None) -> Database:
    from hotset.harness.engines import connect

    return connect.tpch_database(engine, dsn, password_file)


def _refuse(given: dict[str, object]) -> None:
    """Options that only hotset's own driver has."""
    for option, value in given.items():
        if value:
            raise typer.BadParameter("HammerDB has no such option", param_hint=option)


def _build_by_hammerdb(connection: Connection, scale: float, report: Reporter) -> None:
    from hotset.harness.hammerdb import kept
    from hotset.harness.hammerdb import tpch as hammerdb

    with kept.task(report, "tpch-build", f"HammerDB builds TPC-H at scale {scale:g}") as folder:
        done = hammerdb.build(connection, scale, folder, observe=report.on_hammerdb)
    report.say(f"loaded {sum(done.rows.values()):,} rows in {done.seconds:.1f} s")


def _run_by_hammerdb(
    connection: Connection, scale: float | None, refresh: bool, report: Reporter
) -> PowerResult:
    from hotset.harness.hammerdb import kept
    from hotset.harness.hammerdb import tpch as hammerdb

    if scale is None:
        raise typer.BadParameter("HammerDB must be told what is loaded", param_hint="--scale")
    with kept.task(report, "tpch-run", "HammerDB, 22 queries") as folder:
        return hammerdb.run(connection, scale, folder, refresh=refresh, observe=report.on_hammerdb)


def _plain(engine: EngineName, dsn: str, password_file: Path | None) -> Connection:
    """The database as HammerDB wants it."""
    from hotset.harness.engines import connect

    return connect.database(engine, dsn, password_file)


def _folder() -> Path:
    from hotset.cachelayer.paths import cache_dir

    return cache_dir() / "tpch"


def _queries(text: str) -> tuple[int, ...]:
    from hotset.tpch.queries import ALL

    if not text:
        return ALL
    numbers = []
    for part in text.split(","):
        if not part.strip().isdecimal() or int(part) not in ALL:
            raise typer.BadParameter(
                f"{part.strip()!r} is no query: give numbers from 1 to 22, as in 1,6,14",
                param_hint="--queries",
            )
        numbers.append(int(part))
    return tuple(dict.fromkeys(numbers))


def _streams(text: str | None) -> int | None:
    """How many streams; 0 for the fewest allowed, None for no throughput run."""
    from hotset.tpch.streams import MAX_STREAMS

    if text is None:
        return None
    if text == "min":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= MAX_STREAMS:
        raise typer.BadParameter(
            f"{text!r}: give a number from 1 to {MAX_STREAMS}, or min", param_hint="--streams"
        )
    return int(text)


def _require_finished(
    numbers: Sequence[int], power: PowerResult, throughput: ThroughputResult | None
) -> None:
    """Raises RunFailed unless everything that was asked for came to its end."""
    from hotset.tpch.record import RunFailed

    for cause in (power.cause, throughput.cause if throughput else ""):
        if cause:
            raise RunFailed(f"the run ended early: {cause}")
    streams = {0: power.queries} | {
        one.number: one.queries for one in (throughput.streams if throughput else ())
    }
    missing = [
        f"query {number}" + (f" of stream {stream}" if stream else "")
        for stream, results in streams.items()
        for number in numbers
        if number not in {one.number for one in results if one.outcome == "ok"}
    ]
    if missing:
        raise RunFailed(f"the run is incomplete: {', '.join(missing)} did not finish")
