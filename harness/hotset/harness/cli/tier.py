"""``hotset tier``: a flash cache in front of a disk of a server, its whole life."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hotset.harness.cli import watching
from hotset.harness.cli.options import (
    DiskArgument,
    Format,
    FormatOption,
    HostOption,
    QuietOption,
    size_of,
)

if TYPE_CHECKING:
    from hotset.cachelayer.card import Card, Disk
    from hotset.cachelayer.machine import Machine
    from hotset.cachelayer.units import Bytes

app = typer.Typer(help="The flash cache of a server's disks: make it, look at it, take it away.",
                  no_args_is_help=True)  # fmt: skip
watching.register(app)
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Give up what the message named.")]
RehearseOption = Annotated[
    bool, typer.Option("--dry-run", help="Print every command that changes something; run none.")
]


@app.command("create")
def create(
    disk: Annotated[str, typer.Argument(metavar="DISK", help="A name for the accelerated disk.")],
    flash: Annotated[str, typer.Option(help="The flash device, by /dev/disk/by-id/….")],
    origin: Annotated[str, typer.Option(help="The slow device; its data stay where they are.")],
    cache: Annotated[str, typer.Option(help="How much flash caches this disk, such as 100GiB.")],
    database: Annotated[
        Literal["oltp", "warehouse"],
        typer.Option(help="What lies on it: picks block, write mode and bypass."),
    ],
    kind: Annotated[
        Literal["dm-cache", "bcache"], typer.Option(help="The kernel's cache to use.")
    ] = "dm-cache",
    volume: Annotated[
        str | None,
        typer.Option(help="A part of the flash without cache, for logs and temporary space."),
    ] = None,
    mode: Annotated[
        Literal["writeback", "writethrough"] | None, typer.Option(help="Overrides the choice.")
    ] = None,
    block: Annotated[
        str | None, typer.Option(help="dm-cache's block; overrides the choice.")
    ] = None,
    machine: HostOption = "local",
    yes: YesOption = False,
    dry_run: RehearseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Put a flash cache in front of a disk, in place: the data on it stay as they are.

    A second disk on the same flash takes what is left of it.
    """
    from pathlib import PurePosixPath

    from hotset.cachelayer import creation
    from hotset.cachelayer.creation import Wanted
    from hotset.harness.progress import Reporter

    report = Reporter(quiet)
    wanted = Wanted(disk, PurePosixPath(flash), PurePosixPath(origin), kind, database,
                    size_of(cache, "--cache"), _maybe(volume, "--volume"), mode,
                    _maybe(block, "--block"))  # fmt: skip
    with _machine(machine, dry_run) as there:
        creation.create(there, wanted, yes, report.say)
    if dry_run:
        report.say("that was a rehearsal: nothing was changed")


@app.command("status")
def status(
    disk: DiskArgument = None, machine: HostOption = "local", format_: FormatOption = Format.TABLE
) -> None:
    """Kind, sizes, mode, use, hit ratio and state of the accelerated disks.

    Ends with code 4 when one of them has failed.
    """
    from hotset.cachelayer import card as cards
    from hotset.cachelayer import lifecycle, machines
    from hotset.cachelayer.tier import TierFailedError
    from hotset.harness import tierview
    from hotset.harness.progress import to_stdout
    from hotset.reports.document import SCHEMA_VERSION
    from hotset.reports.tables import csv_text

    with machines.opened(machine) as there:
        pairs = [cards.find(there, disk)] if disk else cards.pairs(there)
        rows = [tierview.status_row(lifecycle.look(there, *pair)) for pair in pairs]
    if format_ is Format.JSON:
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, "disks": rows}, indent=1))
    elif format_ is Format.CSV:
        names = tierview.COLUMNS
        to_stdout(csv_text(names, [[row[name] for name in names] for row in rows]))
    else:
        lines = tierview.status_lines(rows) or ["no disk is accelerated here"]
        to_stdout("\n".join(lines))
    failed = [row["disk"] for row in rows if row["state"] == "failed"]
    if failed:
        raise TierFailedError(f"failed: {', '.join(failed)}")


@app.command("activate")
def activate(
    disk: DiskArgument = None,
    unit: Annotated[
        bool, typer.Option("--unit", help="Also write a systemd unit that does so at every boot.")
    ] = False,
    machine: HostOption = "local",
    dry_run: RehearseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make the devices again after a reboot; all disks unless one is named.

    Damaged metadata is found before it is used.
    """
    from hotset.cachelayer import bootunit, creation, lifecycle
    from hotset.cachelayer import card as cards
    from hotset.harness.progress import Reporter

    report = Reporter(quiet)
    with _machine(machine, dry_run) as there:
        creation.need_root(there)
        for card, one in [cards.find(there, disk)] if disk else cards.pairs(there):
            lifecycle.activate(there, card, one, report.say)
            if unit:
                report.say(f"written: {bootunit.install(there, card, one)}")


@app.command("deactivate")
def deactivate(
    disk: DiskArgument = None, machine: HostOption = "local", quiet: QuietOption = False
) -> None:
    """Remove a disk's devices; what is cached stays on the flash, dirty blocks among it."""
    from hotset.cachelayer import lifecycle
    from hotset.harness.progress import Reporter

    with _found(machine, disk) as (there, card, one):
        lifecycle.deactivate(there, card, one, Reporter(quiet).say)


@app.command("flush")
def flush(
    disk: DiskArgument = None, machine: HostOption = "local", quiet: QuietOption = False
) -> None:
    """Write everything that is dirty back to the origin, and go on as before."""
    from hotset.cachelayer import lifecycle
    from hotset.harness.progress import FlushWatch, Reporter

    report = Reporter(quiet)
    with _found(machine, disk) as (there, card, one):
        with report.task(f"writing back what is dirty on {one.device}"):
            dirty = lifecycle.flush(there, card, one, FlushWatch(report, one.spec.block))
        report.say(f"{dirty} blocks of {one.spec.block} were dirty; none is")


@app.command("resize")
def resize(
    disk: DiskArgument = None,
    cache: Annotated[str | None, typer.Option(help="The cache's new size.")] = None,
    may_flush: Annotated[
        bool, typer.Option("--flush", help="Write back first what is dirty, if that must be.")
    ] = False,
    machine: HostOption = "local",
    quiet: QuietOption = False,
) -> None:
    """Follow an origin that has grown; with --cache, give the cache another size.

    The file system may stay mounted.
    """
    from hotset.cachelayer import resizing
    from hotset.harness.progress import FlushWatch, Reporter

    report = Reporter(quiet)
    with _found(machine, disk) as (there, card, one):
        watch = FlushWatch(report, one.spec.block)
        resizing.resize(there, card, one, _maybe(cache, "--cache"), may_flush, watch, report.say)


@app.command("detach")
def detach(
    disk: DiskArgument = None,
    dead: Annotated[
        bool,
        typer.Option("--flash-is-dead", help="Nothing can be written back; says what is lost."),
    ] = False,
    machine: HostOption = "local",
    yes: YesOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write back what is dirty and give the origin back as a plain disk."""
    from hotset.cachelayer import lifecycle
    from hotset.harness.progress import FlushWatch, Reporter

    report = Reporter(quiet)
    with _found(machine, disk) as (there, card, one):
        watch = FlushWatch(report, one.spec.block)
        lifecycle.detach(there, card, one, dead, yes, watch, report.say)


@app.command("repair")
def repair(
    disk: DiskArgument = None, machine: HostOption = "local", quiet: QuietOption = False
) -> None:
    """Mend cache metadata that an activation found damaged, as far as no write is lost by it."""
    from hotset.cachelayer import lifecycle
    from hotset.harness.progress import Reporter

    with _found(machine, disk) as (there, card, one):
        lifecycle.repair(there, card, one, Reporter(quiet).say)


@app.command("destroy")
def destroy(
    card: Annotated[
        str | None,
        typer.Argument(metavar="[CARD]", help="The card, by its name or by that of a disk on it;"
                       " the only one if left out."),
    ] = None,
    machine: HostOption = "local",
    yes: YesOption = False,
    quiet: QuietOption = False,
) -> None:  # fmt: skip
    """Detach all disks of a card, and give up its volume and the card."""
    from hotset.cachelayer import card as cards
    from hotset.cachelayer import creation, lifecycle, machines
    from hotset.harness.progress import FlushWatch, Reporter

    report = Reporter(quiet)
    with machines.opened(machine) as there:
        creation.need_root(there)
        found = cards.find_card(there, card)
        lifecycle.destroy(there, found, yes, lambda disk: FlushWatch(report, disk.spec.block),
                          report.say)  # fmt: skip


@app.command("resident")
def resident(
    disk: DiskArgument = None, machine: HostOption = "local", format_: FormatOption = Format.TABLE
) -> None:
    """What is cached: runs of the disk's bytes, in order."""
    from hotset.cachelayer import card as cards
    from hotset.cachelayer import machines
    from hotset.cachelayer.units import Bytes
    from hotset.harness.progress import to_stdout
    from hotset.reports.document import SCHEMA_VERSION
    from hotset.reports.tables import csv_text

    with machines.opened(machine) as there:
        card, one = cards.find(there, disk)
        runs = cards.built(there, card, one).resident()
    block = one.spec.block
    rows = [(int(run.start.bytes(block)), int(run.count.bytes(block))) for run in runs]
    total = Bytes(sum(length for _, length in rows))
    if format_ is Format.JSON:
        listed = [{"start_bytes": start, "bytes": length} for start, length in rows]
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, "disk": one.name,
                              "block_bytes": int(block), "cached_bytes": int(total),
                              "runs": listed}, indent=1))  # fmt: skip
    elif format_ is Format.CSV:
        to_stdout(csv_text(("start_bytes", "bytes"), rows))
    else:
        to_stdout(f"{one.name}: {total} cached in {len(rows)} runs")
        for start, length in rows:
            to_stdout(f"  {start:>16}  {length:>12}")


@contextmanager
def _machine(name: str, rehearse: bool) -> Iterator[Machine]:
    """The machine, or its rehearsal, whose commands go to standard output."""
    from hotset.cachelayer import machines
    from hotset.cachelayer.rehearsal import Rehearsal
    from hotset.harness.progress import to_stdout

    with machines.opened(name) as there:
        yield Rehearsal(there, to_stdout) if rehearse else there


@contextmanager
def _found(name: str, disk: str | None) -> Iterator[tuple[Machine, Card, Disk]]:
    """A disk of a machine on which hotset is root."""
    from hotset.cachelayer import card as cards
    from hotset.cachelayer import creation, machines

    with machines.opened(name) as there:
        creation.need_root(there)
        yield there, *cards.find(there, disk)


def _maybe(text: str | None, option: str) -> Bytes | None:
    return None if text is None else size_of(text, option)
