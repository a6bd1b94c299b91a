"""``hotset tier watch``: a line an interval of a running tier."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.core.words import csv_text

from .options import DiskOption, Format, FormatOption, HostOption, one_disk

if TYPE_CHECKING:
    from hotset.monitoring.watch import Line


def watch(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DISK [INTERVAL [COUNT]]",
            help="The disk (may be left out if there is only one), seconds between lines (1),"
            " number of lines (until Ctrl-C).",
        ),
    ] = None,
    named: DiskOption = None,
    machine: HostOption = "local",
    format_: FormatOption = Format.TABLE,
) -> None:
    """Print a line per interval: requests per second, hit ratios, bypassed, moved, dirty, used."""
    import sys

    from hotset.hitratio.hit_report import target_of
    from hotset.monitoring import watch as watching

    argument, interval, count = _watch_words(words or [])
    disk = one_disk(argument, named)
    with target_of(machine, disk) as target:
        tier = target.tier
        if late := tier.counting.late:
            typer.echo(f"note: {late}: use an interval of a minute or more", err=True)
        if format_ is Format.CSV:
            sys.stdout.write(csv_text(watching.FIELDS, []))
        try:
            for number, line in enumerate(watching.lines(tier, interval, count)):
                if format_ is Format.TABLE and number % watching.HEADER_EVERY == 0:
                    sys.stdout.write(watching.header() + "\n")
                sys.stdout.write(_render(line, format_))
                sys.stdout.flush()
        except KeyboardInterrupt:
            # How one ends it; nothing was made that would have to be taken down.
            raise typer.Exit(0) from None


def _watch_words(words: list[str]) -> tuple[str | None, float, int | None]:
    """Disk, interval, count: figures from the end, what is left is the disk."""
    figures: list[str] = []
    while words and len(figures) < 2 and _is_number(words[-1]):
        figures.insert(0, words[-1])
        words = words[:-1]
    if len(words) > 1:
        raise typer.BadParameter(
            f"{' '.join(words)!r} names more than one disk: write [DISK] [INTERVAL [COUNT]]"
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


def _render(line: Line, format_: Format) -> str:
    from hotset.monitoring import watch as watching

    if format_ is Format.JSON:
        return watching.as_json(line) + "\n"
    if format_ is Format.CSV:
        return csv_text(watching.FIELDS, [watching.values(line)]).split("\n", 1)[1]
    return watching.as_text(line) + "\n"
