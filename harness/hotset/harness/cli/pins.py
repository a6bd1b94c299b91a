"""``hotset warmup pin|exclude|unpin|list``: what a disk's warm-ups always and never take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hotset.harness.cli.options import (
    DiskArgument,
    DiskOption,
    Format,
    FormatOption,
    HostOption,
    disk_of,
)

if TYPE_CHECKING:
    from hotset.cachelayer.preferences import Kind

PreferredArgument = Annotated[
    list[str], typer.Argument(metavar="TARGET...", help="Files, folders, tables, databases.")
]


def pin_targets(
    targets: PreferredArgument, disk: DiskOption = None, machine: HostOption = "local"
) -> None:
    """Have every warm-up of the disk take these first.

    The kernel's policies cannot pin: what they push out comes back with the next warm-up, so
    schedule one.
    """
    _prefer(targets, disk, machine, "pinned")


def exclude_targets(
    targets: PreferredArgument, disk: DiskOption = None, machine: HostOption = "local"
) -> None:
    """Have no warm-up of the disk take these. The policy may still promote them when used."""
    _prefer(targets, disk, machine, "excluded")


def unpin_targets(
    targets: PreferredArgument, disk: DiskOption = None, machine: HostOption = "local"
) -> None:
    """Neither pin nor exclude these any more."""
    _prefer(targets, disk, machine, None)


def list_preferences(
    disk: DiskArgument = None, machine: HostOption = "local", format_: FormatOption = Format.TABLE
) -> None:
    """What is pinned and excluded for a disk."""
    from hotset.cachelayer import preferences
    from hotset.harness.progress import to_stdout
    from hotset.harness.warmups import text

    with disk_of(machine, disk) as (there, _, found):
        to_stdout(text.preferred(preferences.of(there, found.name), format_.value))


def _prefer(targets: list[str], disk: str | None, machine: str, kind: Kind | None) -> None:
    from hotset.cachelayer import preferences
    from hotset.harness.warmups.targets import parse

    for text in targets:
        parse(text)
    with disk_of(machine, disk) as (there, _, found):
        wanted = preferences.of(there, found.name)
        for text in targets:
            wanted = wanted.without(text) if kind is None else wanted.having(kind, text)
        preferences.save(there, found.name, wanted)
