"""``hotset tier watch|explain``: a running tier looked at; :func:`register` hangs them up."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

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
    from hotset.harness.watch import Line


def register(app: typer.Typer) -> None:
    """Add the two verbs to `hotset tier`."""
    app.command("watch")(watch)
    app.command("explain")(explain)


def watch(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DISK] [INTERVAL [COUNT]]",
            help="The disk (the only one if left out), seconds between two lines (1), how many"
            " lines (until Ctrl-C).",
        ),
    ] = None,
    machine: HostOption = "local",
    format_: FormatOption = Format.TABLE,
) -> None:
    """A line an interval: requests a second, hit ratios, bypassed, moved, dirty, used."""
    import sys

    from hotset.harness import watch as watching
    from hotset.reports.tables import csv_text

    disk, interval, count = _watch_words(words or [])
    with target_of(machine, disk) as target:
        tier = target.tier
        if tier.kind == "bcache":
            typer.echo("note: bcache adds its hits up every 13 s: watch it at 15 s or more",
                       err=True)  # fmt: skip
        if format_ is Format.CSV:
            sys.stdout.write(csv_text(watching.FIELDS, []))
        try:
            for number, line in enumerate(watching.lines(tier, interval, count)):
                if format_ is Format.TABLE and number % watching.HEADER_EVERY == 0:
                    sys.stdout.write(watching.header() + "\n")
                sys.stdout.write(_one(line, format_))
                sys.stdout.flush()
        except KeyboardInterrupt:
            # How one ends it; nothing was made that would have to be taken down.
            raise typer.Exit(0) from None


def explain(
    name: Annotated[
        str, typer.Argument(metavar="FILE|TABLE", help="A file on the disk, or with --dsn a table.")
    ],
    disk: DiskArgument = None,
    machine: HostOption = "local",
    engine: ServerOption = "postgres",
    dsn: OptionalDsn = None,
    password_file: PasswordFileOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Would this hit? Its share in the cache, its heat, its hits, and what comes next."""
    from hotset.harness import explain as explaining
    from hotset.harness.progress import to_stdout

    by = "file" if name.startswith("/") or dsn is None else "table"
    with target_of(machine, disk) as target:
        label = None if by == "file" else label_of("table", engine, dsn, password_file)
        found = explaining.explain(target, name, label)
    to_stdout(explaining.to_text(found, format_.value))


def _watch_words(words: list[str]) -> tuple[str | None, float, int | None]:
    """Disk, interval, count: figures from the end, what is left is the disk."""
    figures: list[str] = []
    while words and len(figures) < 2 and _is_number(words[-1]):
        figures.insert(0, words[-1])
        words = words[:-1]
    if len(words) > 1:
        raise typer.BadParameter(
            f"{' '.join(words)!r} is more than a disk: write [DISK] [INTERVAL [COUNT]]"
        )
    interval = float(figures[0]) if figures else 1.0
    count = figures[1] if len(figures) > 1 else None
    if interval < 0.1:
        raise typer.BadParameter(f"INTERVAL {figures[0]}: at least 0.1 s")
    if count is not None and (not count.isdigit() or int(count) < 1):
        raise typer.BadParameter(f"COUNT {count}: a whole number from 1 on")
    return (words[0] if words else None), interval, int(count) if count else None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def _one(line: Line, format_: Format) -> str:
    from hotset.harness import watch as watching
    from hotset.reports.tables import csv_text

    if format_ is Format.JSON:
        return watching.as_json(line) + "\n"
    if format_ is Format.CSV:
        return csv_text(watching.FIELDS, [watching.values(line)]).split("\n", 1)[1]
    return watching.as_text(line) + "\n"
