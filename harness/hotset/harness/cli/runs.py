"""``hotset runs list|show|compare|rm``: the archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from hotset.reports.document import RunDocument

app = typer.Typer(help="The archive of runs.", no_args_is_help=True)
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or 'last'.")
]


@app.command("list")
def list_runs(format_: FormatOption = Format.TABLE) -> None:
    """All runs, the newest first."""
    from pydantic import TypeAdapter
    from rich.console import Console

    from hotset.harness.archive import Archive
    from hotset.harness.progress import to_stdout
    from hotset.reports import tables, terminal
    from hotset.reports.document import SCHEMA_VERSION

    rows = Archive.default().listing()
    if format_ is Format.JSON:
        listed = TypeAdapter(list[tables.ListingRow]).dump_json(rows, indent=1).decode()
        to_stdout(f'{{"schema_version": {SCHEMA_VERSION}, "runs": {listed}}}')
    elif format_ is Format.CSV:
        to_stdout(tables.listing_csv(rows))
    else:
        terminal.listing(rows, Console())


@app.command("show")
def show(
    run: RunArgument,
    format_: FormatOption = Format.TABLE,
    queries: Annotated[
        bool,
        typer.Option("--queries", help="The CSV of TPC-H: a line per arm, repeat and query."),
    ] = False,
) -> None:
    """What a run measured; CSV has a line per arm and repeat of TPC-C."""
    from hotset.harness.archive import Archive
    from hotset.harness.progress import to_stdout
    from hotset.reports import tables

    if queries and format_ is not Format.CSV:
        raise typer.BadParameter(
            "tables and JSON have the queries anyhow; for their CSV add --format csv",
            param_hint="--queries",
        )
    document = Archive.default().load(run)
    if queries:
        to_stdout(tables.queries_csv(document))
    else:
        show_document(document, format_)


@app.command("compare")
def compare_runs(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN RUN…", help="The first is what others stand beside.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs with different set-ups, too.")
    ] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """How many times faster each arm became, with its interval; different set-ups are refused."""
    from rich.console import Console

    from hotset.harness.archive import Archive
    from hotset.harness.progress import to_stdout
    from hotset.reports import compare, tables, terminal
    from hotset.reports.document import SCHEMA_VERSION

    archive = Archive.default()
    first, *others = documents = [archive.load(run) for run in runs]
    if not others:
        raise typer.BadParameter("name two runs or more", param_hint="RUN")
    if not force:
        for other in others:
            compare.require_same(first, other)
    lines = compare.lines(documents)
    differing = [one for other in others for one in compare.differences(first, other)]
    if format_ is Format.JSON:
        found = {
            "schema_version": SCHEMA_VERSION,
            "differences": [str(one) for one in differing],
            "lines": [compare.as_dict(line) for line in lines],
        }
        to_stdout(json.dumps(found, indent=1))
    elif format_ is Format.CSV:
        rows = ([compare.as_dict(line)[name] for name in compare.COLUMNS] for line in lines)
        to_stdout(tables.csv_text(compare.COLUMNS, rows))
    else:
        terminal.comparison(lines, differing, Console())


@app.command("rm")
def remove(
    run: RunArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a run and everything it left in the archive."""
    from hotset.harness.archive import Archive

    archive = Archive.default()
    name = archive.resolve(run)
    if not yes and not typer.confirm(f"Delete run {name}?", err=True):
        typer.echo("nothing deleted", err=True)
        raise typer.Exit(1)
    archive.remove(name)
    typer.echo(f"deleted {name}", err=True)


def show_document(document: RunDocument, format_: Format) -> None:
    """Print a run's document to standard output."""
    from rich.console import Console

    from hotset.harness.progress import to_stdout
    from hotset.reports import tables, terminal

    if format_ is Format.JSON:
        to_stdout(document.model_dump_json(indent=1))
    elif format_ is Format.CSV:
        to_stdout(tables.summary_csv(document))
    else:
        terminal.summary(document, Console())
