"""Hit ratios and metrics of accelerated disks."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.machines import names as machines
from hotset.core.operation import (
    Context,
    Kind,
    Lines,
    OnThisComputer,
    OutputError,
    Request,
    check_output,
    operation,
)
from hotset.core.paths import write_whole
from hotset.core.rights import Needs, Right
from hotset.disk import places

if TYPE_CHECKING:
    from hotset.hitratio.report import HitRatios


class HitRatio(Request):
    disk: places.Disk = None
    machine: fields.Machine = "local"
    by: Annotated[
        Literal["total", "volume", "file", "database", "table"],
        Field(
            description="total: the whole disk; file, database, on PostgreSQL table: its parts"
            " (these need `hotset heat start`); volume: all disks of the flash device, and its"
            " volume."
        ),
    ] = "total"
    since: Annotated[
        fields.Expression,
        Field(
            description="boot: since the counters started; last: since the report that was marked"
            " last; or a time (08:00, 2026-11-21T08:00) or span (8h), if readings from then were"
            " kept."
        ),
    ] = "boot"
    mark: Annotated[
        bool,
        Field(description="Have reports since last count from this one on."),
        Needs(Right.OPERATE),
    ] = False
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@operation(
    "report hit-ratio",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetHitRatio"),
    result="hitratio.report:HitRatios",
)
def hit_ratio(request: HitRatio, context: Context) -> HitRatios:  # noqa: ARG001
    """Show reads, writes, hits and bypassed requests, from counter differences."""
    from hotset.databases import connect
    from hotset.hitratio import hit_report

    start = fields.parse_field("since", lambda: hit_report.parse_since(request.since, time.time()))
    if request.by == "volume" and request.since != "boot":
        raise RequestError("a flash device's volume is counted only since boot", field="since")
    if request.by == "volume" and request.mark:
        raise RequestError("a flash device's volume is counted only since boot", field="mark")
    with hit_report.target_of(request.machine, request.disk) as target:
        if request.by == "total":
            return hit_report.of_disk(target, start, mark=request.mark)
        if request.by == "volume":
            return hit_report.of_flash(target)
        label = connect.label_of(target.machine, target.disk.device, request.by, request)
        return hit_report.of_parts(target, request.by, label, start, mark=request.mark)


class Metrics(Request):
    machine: fields.Machine = "local"
    output: Annotated[
        Path | None,
        Field(
            description="Write them to this file, atomically, for a textfile collector"
            " (node_exporter wants a name that ends in .prom)."
        ),
        OnThisComputer,
    ] = None


@operation("report metrics", Kind.QUERY, Right.METRICS, ("Get", "HotsetMetric"))
def metrics(request: Metrics, context: Context) -> Lines:  # noqa: ARG001
    """Print the counters of all accelerated disks, and their condition, as OpenMetrics text.

    Condition: state, metadata, pins, thin pools, wear and warm-ups, as `tier health` has them.
    """
    from .. import conditions, tier_metrics
    from ..metrics import text

    output = request.output
    check_output(output)
    with machines.open_machine(request.machine) as machine:
        condition = conditions.inspect(machine)
    measured = [disk.measured for disk in condition]
    tier_metrics.keep(request.machine, measured)
    page = text([*tier_metrics.families(measured), *conditions.families(condition)])
    if output is None:
        return Lines((page.removesuffix("\n"),))
    try:
        write_whole(output, page)
    except OSError as error:
        raise OutputError(output, error) from None
    return Lines()
