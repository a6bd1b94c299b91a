"""The accelerated disks as they are, and the flash devices that carry hotset's label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hotset.core.units import Bytes
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.render.plain import csv_text

from ..base import fields, places, records
from ..base.context import Context
from ..base.registry import Cli, Kind, Request, operation
from ..base.result import Result, Text, write
from ..base.rights import Right
from .tier import OneDisk

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from hotset.disk.adopt import Found
    from hotset.monitoring.explain import Explanation
    from hotset.monitoring.tier_status import DiskStatus


@dataclass(frozen=True, slots=True)
class Status(Result):
    """The accelerated disks, each as `tier_status.status_row` has it.

    :ivar problems: cards that cannot be read.
    """

    disks: list[DiskStatus]
    problems: tuple[str, ...] = ()

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.monitoring import tier_status

        return records.record_of("TierStatus", disks=list[tier_status.DiskStatus])

    def document(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "disks": self.disks}

    def show(self, console: Console) -> None:
        from hotset.monitoring import tier_status

        lines = tier_status.status_lines(self.disks) or ["no disk is accelerated here"]
        write(console, "\n".join(lines))

    def csv(self) -> str:
        from hotset.monitoring import tier_status

        names, rows = tier_status.COLUMNS, [dict(one) for one in self.disks]
        return csv_text(names, [[row[name] for name in names] for row in rows])

    def failure(self) -> Exception | None:
        from hotset.tier.base import TierFailedError

        failed = [row["disk"] for row in self.disks if row["state"] == "failed"]
        if not failed and not self.problems:
            return None
        return TierFailedError(f"failed: {', '.join(failed) or 'a card cannot be read'}")


@operation("tier status", Kind.QUERY, Right.READ, ("Get", "HotsetTier"))
def status(request: OneDisk, context: Context) -> Status:
    """Show kind, sizes, mode, use, hit ratio and state of the accelerated disks.

    Exit code 4 if one of them has failed.
    """
    from hotset.core.machines import locks
    from hotset.disk import cache_device as cards
    from hotset.disk import lifecycle
    from hotset.monitoring import tier_status

    with places.machine(request.machine) as there:
        known = cards.inventory(there)
        named = [cards.find(there, request.disk)] if request.disk else None
        shown = named or known.attached_disks(there)
        rows = [tier_status.status_row(lifecycle.inspect(one)) for one in shown]
        at_work = locks.holders(there)
    for problem in (*known.problems, *(f"running now: {one}" for one in at_work)):
        context.message(problem)
    return Status(rows, tuple(known.problems))


@dataclass(frozen=True, slots=True)
class Resident(Result):
    """``runs``: where cached bytes of the disk begin, and how many; the first ones of ``count``."""

    disk: str
    block: Bytes
    cached: Bytes
    count: int
    runs: list[tuple[int, int]]

    @classmethod
    def record(cls) -> type[BaseModel]:
        return records.record_of(
            "CachedRanges",
            disk=str,
            block_bytes=int,
            cached_bytes=int,
            count=int,
            runs=records.several("CachedRange", start_bytes=int, bytes=int),
        )

    def document(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "disk": self.disk,
            "block_bytes": int(self.block),
            "cached_bytes": int(self.cached),
            "count": self.count,
            "runs": [{"start_bytes": start, "bytes": length} for start, length in self.runs],
        }

    def show(self, console: Console) -> None:
        lines = [f"{self.disk}: {self.cached} cached in {self.count} runs"]
        lines += [f"  {start:>16}  {length:>12}" for start, length in self.runs]
        if len(self.runs) < self.count:
            lines.append(f"  … and {self.count - len(self.runs)} more (--limit)")
        write(console, "\n".join(lines))

    def csv(self) -> str:
        return csv_text(("start_bytes", "bytes"), self.runs)


class ResidentRequest(OneDisk):
    limit: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="Show at most this many ranges."),
        Cli(short="-n"),
    ] = 100_000


@operation("tier resident", Kind.QUERY, Right.READ, ("Get", "HotsetCachedRange"))
def resident(request: ResidentRequest, context: Context) -> Resident:  # noqa: ARG001
    """List what is cached, as ranges of bytes of the disk, in order."""
    from hotset.disk import lifecycle

    with places.disk_of(request.machine, request.disk, "tier resident", "shared") as found:
        one, runs = found.disk, lifecycle.active(found).resident()
    block = one.spec.block
    ranges = [(int(run.start.bytes(block)), int(run.count.bytes(block))) for run in runs]
    cached = Bytes(sum(length for _, length in ranges))
    return Resident(one.name, block, cached, len(ranges), ranges[: request.limit])


class Explain(Request):
    name: Annotated[
        fields.OnDisk,
        Field(description="A file on the disk, or a table (with --dsn)."),
        Cli(argument=True, metavar="FILE|TABLE"),
    ]
    disk: fields.Disk = None
    machine: fields.Machine = "local"
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@dataclass(frozen=True, slots=True)
class Explained(Text):
    found: Explanation

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.monitoring import explain as explaining

        return records.record_of("Explanation", explaining.Explanation)

    def text(self, form: str) -> str:
        from hotset.monitoring import explain as explaining

        return explaining.to_text(self.found, form)


@operation("tier explain", Kind.QUERY, Right.READ, ("Get", "HotsetExplanation"))
def explain(request: Explain, context: Context) -> Explained:  # noqa: ARG001
    """Would this hit? Show how much of a file or table is cached, and how hot it is.

    Also shows its hits so far, and what would happen to its next requests.
    """
    from hotset.monitoring import explain as explaining

    by = "file" if request.name.startswith("/") or request.dsn is None else "table"
    with places.target_of(request.machine, request.disk) as target:
        label = None
        if by == "table":
            label = places.label_of(
                by, request.engine, request.dsn, fields.secret(request.password)
            )
        return Explained(explaining.explain(target, request.name, label))


@dataclass(frozen=True, slots=True)
class Labelled(Result):
    """Flash devices that carry hotset's label."""

    found: list[Found]

    @classmethod
    def record(cls) -> type[BaseModel]:
        return records.record_of(
            "LabelledFlash",
            flash_devices=records.several(
                "FlashLabel",
                flash=str,
                card=str,
                uuid=str | None,
                machine=str,
                this_machine=bool,
                known_as=str | None,
                generation=int,
                disks=records.several("LabelledDisk", disk=str, origin=str),
            ),
        )

    def document(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, "flash_devices": self._rows()}

    def show(self, console: Console) -> None:
        lines = []
        for one in self.found:
            disks = ", ".join(f"{disk.name} over {disk.origin}" for disk in one.card.disks)
            known = f"registered here as {one.known_as}" if one.known_as else "not known here"
            lines.append(f"{one.flash}: card {one.card.name} of {one.card.host_name}, {known}")
            lines.append(f"  disks: {disks or 'none'}")
        write(console, "\n".join(lines) or "no flash device carries a hotset label")

    def csv(self) -> str:
        names = ("flash", "card", "uuid", "machine", "this_machine", "known_as", "generation")
        return csv_text(names, [[row[name] for name in names] for row in self._rows()])

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "flash": str(one.flash),
                "card": one.card.name,
                "uuid": one.card.uuid,
                "machine": one.card.host_name,
                "this_machine": one.ours,
                "known_as": one.known_as,
                "generation": one.card.generation,
                "disks": [
                    {"disk": disk.name, "origin": str(disk.origin)} for disk in one.card.disks
                ],
            }
            for one in self.found
        ]


class Scan(Request):
    machine: fields.Machine = "local"


@operation("tier scan", Kind.QUERY, Right.READ, ("Find", "HotsetCard"))
def scan(request: Scan, context: Context) -> Labelled:
    """Find flash devices that carry hotset's label, even those not registered on this machine."""
    from hotset.disk import adopt

    with places.machine(request.machine) as there:
        found, problems = adopt.scan(there)
    for problem in problems:
        context.message(problem)
    return Labelled(list(found))
