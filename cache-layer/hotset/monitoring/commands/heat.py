"""Heat: how often each region of an accelerated disk is accessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, Context, Kind, Lines, operation
from hotset.core.rights import Right
from hotset.core.units import parse_span
from hotset.disk import places

if TYPE_CHECKING:
    from hotset.hitratio.heat import Grid
    from hotset.hitratio.hit_report import Target

    from ..heat_view import HeatMap, HeatRanking

NoResident = Annotated[
    bool,
    Field(
        description="Do not look up what is cached (looking it up pauses dm-cache for a moment)."
    ),
]


class Start(places.OneDisk):
    half_life: Annotated[
        fields.Expression,
        Field(description="Time after which a request counts half as much, such as 8h or 7d."),
    ] = "1d"


@operation("heat start", Kind.JOB, Right.OPERATE, ("Start", "HotsetHeat"))
def start(request: Start, context: Context) -> Lines:
    """Start counting the disk's requests per region, in the kernel."""
    from hotset.hitratio import hit_report, region_counters

    seconds = fields.parse_field("half_life", lambda: parse_span(request.half_life))
    with hit_report.target_of(request.machine, request.disk) as target:
        counters = region_counters.find_counters(target.tier, target.disk.name)
        begun = counters.start()
        with target.store() as store:
            gained = store.fold(counters.read(), store.now(), seconds)
    words = "counting began" if begun else "was being counted already, and goes on"
    context.message(
        f"disk {target.disk.name}: {words}, in {gained.grid.count:,} regions of"
        f" {gained.grid.region}; heat top shows what is hot"
    )
    return Lines()


@operation("heat stop", Kind.JOB, Right.OPERATE, ("Stop", "HotsetHeat"))
def stop(request: places.OneDisk, context: Context) -> Lines:
    """Stop counting. What was counted so far is kept."""
    from hotset.hitratio import hit_report, region_counters
    from hotset.hitratio.tracepoints import NotCountedError

    with hit_report.target_of(request.machine, request.disk) as target:
        counters = region_counters.find_counters(target.tier, target.disk.name)
        try:
            reading = counters.read()
        except NotCountedError:
            reading = None
        if reading is not None:
            with target.store() as store:
                store.fold(reading, store.now())
        ended = counters.stop()
    if ended:
        words = "counting stopped; what was counted is kept"
    elif reading is None:
        words = "nothing was being counted: nothing changed"
    else:
        words = "still counted, as hotset's own engine always counts: nothing changed"
    context.message(f"disk {target.disk.name}: {words}")
    return Lines()


class Top(places.DiskAndServer):
    by: Annotated[
        Literal["file", "table", "database", "extent"],
        Field(description="What to list; tables are PostgreSQL's."),
    ] = "file"
    count: Annotated[
        int, Field(ge=1, le=10_000, description="How many to list."), Cli(short="-n")
    ] = 20
    no_resident: NoResident = False


@operation(
    "heat top",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetHeat"),
    result="monitoring.heat_view:HeatRanking",
)
def top(request: Top, context: Context) -> HeatRanking:
    """List the hottest files, tables, databases or extents of a disk."""
    from hotset.databases import connect
    from hotset.hitratio import attribution, hit_report

    from .. import heat_view

    with hit_report.target_of(request.machine, request.disk) as target:
        grid, heats = heats_of(target, context)
        cached = None if request.no_resident else target.tier.contents().cached
        if request.by == "extent":
            rows = heat_view.by_extent(heats, grid, cached)
        else:
            label = connect.label_of(target.machine, target.disk.device, request.by, request)
            files = attribution.files(target.machine, target.disk.device)
            groups = attribution.group_by(files, label)
            rows = heat_view.by_owner(heats, grid, groups, cached, request.by)
            with target.store() as store:
                begun = store.begun(store.now())
            shown = [row.name for row in rows[: request.count]]
            for note in hit_report.describe_younger(target, shown, label, begun):
                context.note(note)
    return heat_view.HeatRanking(request.by, tuple(rows[: request.count]))


class Map(places.OneDisk):
    cells: Annotated[
        int | None, Field(ge=1, le=10_000, description="How many sections to divide the disk into.")
    ] = None
    no_resident: NoResident = False


@operation(
    "heat map",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetHeatMap"),
    result="monitoring.heat_view:HeatMap",
)
def draw(request: Map, context: Context) -> HeatMap:
    """Show the disk as a strip: where it is hot, and how much of that is cached."""
    from hotset.hitratio import hit_report

    from .. import heat_view

    with hit_report.target_of(request.machine, request.disk) as target:
        grid, heats = heats_of(target, context)
        cached = None if request.no_resident else target.tier.contents().cached
    cells = heat_view.strip(heats, grid, cached, request.cells or 4 * heat_view.map_width())
    return heat_view.HeatMap(tuple(cells))


def heats_of(target: Target, context: Context) -> tuple[Grid, dict[int, float]]:
    """Read the counters, fold them in, and give the heat of now; what was kept where nothing
    counts any more."""
    from hotset.hitratio import region_counters
    from hotset.hitratio.tracepoints import NotCountedError

    with target.store() as store:
        now = store.now()
        try:
            reading = region_counters.find_counters(target.tier, target.disk.name).read()
        except NotCountedError as error:
            if store.grid is None:
                raise
            context.note(f"{error}; these are earlier counts")
            return store.grid, store.heats(now)
        gained = store.fold(reading, now)
        if gained.dropped:
            context.note(
                f"{gained.dropped:,} requests did not fit into the kernel's table and are not"
                " counted"
            )
        return reading.grid, store.heats(now)
