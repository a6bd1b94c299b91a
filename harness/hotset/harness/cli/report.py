"""``hotset report RUN``: of a run; ``hotset report hit-ratio|metrics``: what the tiers did."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from hotset.harness.cli.heat import OptionalDsn, label_of, target_of
from hotset.harness.cli.options import (
    DiskArgument,
    Format,
    FormatOption,
    HostOption,
    PasswordFileOption,
    ServerOption,
)

if TYPE_CHECKING:
    from hotset.reports.document import RunDocument


class _RunUnlessNamed(TyperGroup):
    """``hotset report last`` is ``hotset report run last``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - click's own
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_RunUnlessNamed,
    help="`hotset report RUN`: the report of a run (as `report run`). And hit ratios and metrics of"
    " accelerated disks.",
    no_args_is_help=True,
)


@app.command("run")
def of_run(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or 'last'.")
    ],
    format_: Annotated[
        Literal["html", "md", "json"],
        typer.Option("--format", "-f", help="A page, Markdown, or all figures."),
    ] = "html",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write it here. Otherwise the page goes to the archive"
                     " and its path is printed; Markdown and JSON go to standard output."),
    ] = None,
    price: Annotated[
        list[str],
        typer.Option("--price", metavar="KEY=VALUE", help="A price of the set-up, as in the"
                     " experiment's table of prices: currency, server, origin, flash_per_gb,"
                     " split_disk, memory_per_gb. Repeatable; kept with the run."),
    ] = [],  # noqa: B006 - typer copies it
    publish: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the run as a reference into a folder of its own"
                     " in this one: figures, Markdown, the command that made it, the machine."),
    ] = None,
) -> None:  # fmt: skip
    """The report of a run, made afresh from its figures."""
    from hotset.harness.archive import REPORT, Archive
    from hotset.harness.progress import to_stdout
    from hotset.reports import html, markdown
    from hotset.reports import publish as publishing

    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise typer.BadParameter(f"{output} is not a file in a folder", param_hint="--output")
    if output is not None and publish is not None:
        raise typer.BadParameter(
            "a published run has its own files: leave --output out", param_hint="--publish"
        )
    archive = Archive.default()
    document = archive.load(run)
    if price:
        document = _priced(document, price)
        archive.save(document)
    if publish is not None:
        to_stdout(str(publishing.write(document, publish)))
        return
    if format_ == "html":
        page = output or archive.path(document.run) / REPORT
        page.write_text(html.render(document), encoding="utf-8")
        if output is None:
            to_stdout(str(page))
        return
    said = markdown.render(document) if format_ == "md" else document.model_dump_json(indent=1)
    if output is None:
        to_stdout(said)
    else:
        output.write_text(said, encoding="utf-8")


def _priced(document: RunDocument, words: list[str]) -> RunDocument:
    """The document with these prices over those it has."""
    from pydantic import ValidationError

    from hotset.reports import prices
    from hotset.reports.document import Prices

    given = document.prices.model_dump() if document.prices else {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise typer.BadParameter(f"{word}: write it as key=value, for instance server=6000",
                                     param_hint="--price")  # fmt: skip
        given[key.strip()] = value.strip()
    try:
        return prices.with_prices(document, Prices.model_validate(given))
    except ValidationError as error:
        said = [
            f"{one['loc'][0]} is missing"
            if one["type"] == "missing"
            else f"{one['loc'][0]} = {one['input']!r}: {one['msg']}"
            for one in error.errors()
        ]
        raise typer.BadParameter("; ".join(said), param_hint="--price") from None


@app.command("hit-ratio")
def hit_ratio(
    disk: DiskArgument = None,
    machine: HostOption = "local",
    by: Annotated[
        Literal["total", "volume", "file", "database", "table"],
        typer.Option("--by", help="The whole disk, or its parts (these need `hotset heat start`);"
                     " volume: all disks of the card and its flash volume."),
    ] = "total",
    since: Annotated[
        str,
        typer.Option(help="boot: since the counters began; last: since the last report; or a time"
                     " (08:00, 2026-11-21T08:00) or span (8h) of which readings are kept."),
    ] = "boot",
    engine: ServerOption = "postgres",
    dsn: OptionalDsn = None,
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:  # fmt: skip
    """Reads, writes, hits and what was bypassed, as differences of counters."""
    from hotset.harness import hit_report
    from hotset.harness.progress import to_stdout
    from hotset.reports import hits

    try:
        start = hit_report.parse_since(since, time.time())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None
    if by == "volume" and since != "boot":
        raise typer.BadParameter("a card's volume is counted since boot only", param_hint="--since")
    with target_of(machine, disk) as target:
        if by == "total":
            report = hit_report.of_disk(target, start)
        elif by == "volume":
            report = hit_report.of_card(target)
        else:
            label = label_of(by, engine, dsn, password_file)
            report = hit_report.of_parts(target, by, label, start)
    to_stdout(hits.render(report, format_.value))


@app.command("metrics")
def metrics(
    machine: HostOption = "local",
    output: Annotated[
        Path | None,
        typer.Option(help="Write them to this file, whole or not at all, for a textfile collector"
                     " (its name must end in .prom for node_exporter)."),
    ] = None,
) -> None:  # fmt: skip
    """The counters of all accelerated disks as OpenMetrics text."""
    from hotset.cachelayer import machines
    from hotset.cachelayer.paths import write_whole
    from hotset.harness import tier_metrics
    from hotset.harness.progress import to_stdout
    from hotset.reports.metrics import text

    if output is not None and not output.parent.is_dir():
        raise typer.BadParameter(f"{output}: there is no folder {output.parent}",
                                 param_hint="--output")  # fmt: skip
    with machines.opened(machine) as there:
        measured = tier_metrics.measure(there)
        tier_metrics.keep(machine, measured, time.time())
    said = text(tier_metrics.families(measured))
    if output is None:
        to_stdout(said)
    else:
        write_whole(output, said)
