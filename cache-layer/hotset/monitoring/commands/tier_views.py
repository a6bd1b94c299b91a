"""The accelerated disks as they are, and the flash devices that carry hotset's label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.operation import Cli, Context, Kind, Request, operation
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.disk import places
from hotset.disk.commands import OneDisk

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..tier_status import CachedRanges, LabelledFlash, TierStatus


@operation(
    "tier status",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetTier"),
    result="monitoring.tier_status:TierStatus",
)
def status(request: OneDisk, context: Context) -> TierStatus:
    """Show kind, sizes, mode, use, hit ratio and state of the accelerated disks.

    Exit code 4 if one of them has failed.
    """
    from hotset.core.machines import locks
    from hotset.disk import flash_devices, lifecycle
    from hotset.tier.base import TierFailedError

    from .. import tier_status

    with machines.open_machine(request.machine) as machine:
        known = flash_devices.inventory(machine)
        named = [flash_devices.find(machine, request.disk)] if request.disk else None
        shown = named or known.list_disks(machine)
        states = lifecycle.inspect_each(shown, lifecycle.inspect)
        at_work = locks.holders(machine)
    for problem in (*known.problems, *(f"running now: {holder}" for holder in at_work)):
        context.message(problem)
    if known.problems:
        context.faults.append(TierFailedError("failed: a flash device cannot be read"))
    return tier_status.TierStatus(tuple(map(tier_status.status_row, states)))


class ResidentRequest(OneDisk):
    limit: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="Show at most this many ranges."),
        Cli(short="-n"),
    ] = 100_000


@operation(
    "tier resident",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetCachedRange"),
    result="monitoring.tier_status:CachedRanges",
)
def resident(request: ResidentRequest, context: Context) -> CachedRanges:  # noqa: ARG001
    """List what is cached, as ranges of bytes of the disk, in order."""
    from hotset.disk import lifecycle

    from ..tier_status import CachedRange, CachedRanges

    with places.disk_of(request.machine, request.disk, "tier resident", "shared") as attached:
        disk, runs = attached.disk, lifecycle.active(attached).resident()
    block = disk.spec.block
    ranges = [CachedRange(run.start.bytes(block), run.count.bytes(block)) for run in runs]
    cached = Bytes(sum(run.bytes for run in ranges))
    shown = tuple(ranges[: request.limit])
    return CachedRanges(disk.name, block, cached, len(ranges), shown)


class Explain(Request):
    name: Annotated[
        fields.OnDisk,
        Field(description="A file on the disk, or a table (with --dsn)."),
        Cli(argument=True, metavar="FILE|TABLE"),
    ]
    disk: places.DiskOption = None
    machine: fields.Machine = "local"
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@operation(
    "tier explain",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetExplanation"),
    result="monitoring.explain:Explanation",
)
def explain(request: Explain, context: Context) -> Explanation:  # noqa: ARG001
    """Would this hit? Show how much of a file or table is cached, and how hot it is.

    Also shows its hits so far, and what would happen to its next requests.
    """
    from hotset.databases import connect
    from hotset.hitratio import hit_report

    from .. import explain as explaining

    by = "file" if request.name.startswith("/") or request.dsn is None else "table"
    with hit_report.target_of(request.machine, request.disk) as target:
        label = None
        if by == "table":
            label = connect.label_of(target.machine, target.disk.device, by, request)
        return explaining.explain(target, request.name, label)


class Scan(Request):
    machine: fields.Machine = "local"


@operation(
    "tier scan",
    Kind.QUERY,
    Right.READ,
    ("Find", "HotsetFlash"),
    result="monitoring.tier_status:LabelledFlash",
)
def scan(request: Scan, context: Context) -> LabelledFlash:  # noqa: ARG001
    """Find flash devices that carry hotset's label, even those not registered on this machine.

    Exit code 4 if a device could not be looked at: the others are listed all the same.
    """
    from hotset.disk import adopt

    from ..tier_status import FlashLabel, LabelledFlash, UnreadFlash

    with machines.open_machine(request.machine) as machine:
        labelled, unread = adopt.scan(machine)
    labels, others = map(FlashLabel.from_label, labelled), map(UnreadFlash.from_device, unread)
    return LabelledFlash(tuple(labels), tuple(others))
