"""The accelerated disks as they are, and the flash devices that carry hotset's label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import HotsetError
from hotset.core.operation import Cli, Context, Kind, Recorded, Request, operation, write
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.disk import places
from hotset.disk.commands import OneDisk

if TYPE_CHECKING:
    from rich.console import Console

    from ..explain import Explanation
    from ..tier_status import CachedRanges, LabelledFlash, TierStatus


@dataclass(frozen=True, slots=True)
class Status(Recorded["TierStatus"]):
    """The accelerated disks.

    :ivar problems: cards that cannot be read.
    """

    rows = "disks"
    problems: tuple[str, ...] = ()

    @classmethod
    def record(cls) -> type[TierStatus]:
        from .. import tier_status

        return tier_status.TierStatus

    def show(self, console: Console) -> None:
        from .. import tier_status

        lines = tier_status.status_lines(self.found.disks) or ["no disk is accelerated here"]
        write(console, "\n".join(lines))

    def failure(self) -> Exception | None:
        from hotset.tier.base import TierFailedError

        failed = [disk.disk for disk in self.found.disks if disk.state == "failed"]
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

    from .. import tier_status

    with places.machine(request.machine) as there:
        known = cards.inventory(there)
        named = [cards.find(there, request.disk)] if request.disk else None
        shown = named or known.attached_disks(there)
        rows = cards.of_each(shown, lambda one: tier_status.status_row(lifecycle.inspect(one)))
        at_work = locks.holders(there)
    for problem in (*known.problems, *(f"running now: {one}" for one in at_work)):
        context.message(problem)
    return Status(tier_status.TierStatus(tuple(rows)), tuple(known.problems))


@dataclass(frozen=True, slots=True)
class Resident(Recorded["CachedRanges"]):
    """Where cached bytes of a disk begin, and how many; the first ones of all."""

    rows = "runs"

    @classmethod
    def record(cls) -> type[CachedRanges]:
        from .. import tier_status

        return tier_status.CachedRanges

    def show(self, console: Console) -> None:
        found = self.found
        lines = [f"{found.disk}: {found.cached_bytes} cached in {found.count} runs"]
        lines += [f"  {int(run.start_bytes):>16}  {int(run.bytes):>12}" for run in found.runs]
        if len(found.runs) < found.count:
            lines.append(f"  … and {found.count - len(found.runs)} more (--limit)")
        write(console, "\n".join(lines))


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

    from ..tier_status import CachedRange, CachedRanges

    with places.disk_of(request.machine, request.disk, "tier resident", "shared") as found:
        one, runs = found.disk, lifecycle.active(found).resident()
    block = one.spec.block
    ranges = [CachedRange(run.start.bytes(block), run.count.bytes(block)) for run in runs]
    cached = Bytes(sum(run.bytes for run in ranges))
    shown = tuple(ranges[: request.limit])
    return Resident(CachedRanges(one.name, block, cached, len(ranges), shown))


class Explain(Request):
    name: Annotated[
        fields.OnDisk,
        Field(description="A file on the disk, or a table (with --dsn)."),
        Cli(argument=True, metavar="FILE|TABLE"),
    ]
    disk: places.Disk = None
    machine: fields.Machine = "local"
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@dataclass(frozen=True, slots=True)
class Explained(Recorded["Explanation"]):
    """What is known of a file or table."""

    @classmethod
    def record(cls) -> type[Explanation]:
        from .. import explain as explaining

        return explaining.Explanation

    def show(self, console: Console) -> None:
        from .. import explain as explaining

        write(console, explaining.to_text(self.found))


@operation("tier explain", Kind.QUERY, Right.READ, ("Get", "HotsetExplanation"))
def explain(request: Explain, context: Context) -> Explained:  # noqa: ARG001
    """Would this hit? Show how much of a file or table is cached, and how hot it is.

    Also shows its hits so far, and what would happen to its next requests.
    """
    from hotset.databases import owners
    from hotset.hitratio import hit_report

    from .. import explain as explaining

    by = "file" if request.name.startswith("/") or request.dsn is None else "table"
    with hit_report.target_of(request.machine, request.disk) as target:
        label = None
        if by == "table":
            label = owners.label_of(target.machine, target.disk.device, by, request)
        return Explained(explaining.explain(target, request.name, label))


class NotLookedAtError(HotsetError):
    """Devices that could not be looked at; the message names them and says why."""


@dataclass(frozen=True, slots=True)
class Labelled(Recorded["LabelledFlash"]):
    """Flash devices that carry hotset's label."""

    rows = "flash_devices"

    @classmethod
    def record(cls) -> type[LabelledFlash]:
        from .. import tier_status

        return tier_status.LabelledFlash

    def show(self, console: Console) -> None:
        lines = []
        for device in self.found.flash_devices:
            disks = ", ".join(f"{disk.disk} over {disk.origin}" for disk in device.disks)
            known = f"registered here as {device.known_as}" if device.known_as else "not known here"
            lines.append(f"{device.flash}: card {device.card} of {device.machine}, {known}")
            lines.append(f"  disks: {disks or 'none'}")
        if not lines:
            which = "flash device that could be read" if self.found.unread else "flash device"
            lines.append(f"no {which} carries a hotset label")
        write(console, "\n".join(lines))

    def failure(self) -> Exception | None:
        """What could not be looked at may be a card."""
        unread = self.found.unread
        if not unread:
            return None
        said = "; ".join(f"{one.device}: {one.why}" for one in unread)
        return NotLookedAtError(f"whether these carry a label is not known: {said}")


class Scan(Request):
    machine: fields.Machine = "local"


@operation("tier scan", Kind.QUERY, Right.READ, ("Find", "HotsetCard"))
def scan(request: Scan, context: Context) -> Labelled:  # noqa: ARG001
    """Find flash devices that carry hotset's label, even those not registered on this machine.

    Exit code 4 if a device could not be looked at: the others are listed all the same.
    """
    from hotset.disk import adopt

    from ..tier_status import FlashLabel, LabelledFlash, UnreadFlash

    with places.machine(request.machine) as there:
        found, unread = adopt.scan(there)
    labels, others = map(FlashLabel.of, found), map(UnreadFlash.of, unread)
    return Labelled(LabelledFlash(tuple(labels), tuple(others)))
