"""The arrays of a published test, modelled, beside the published table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.extras import Extra
from hotset.core.operation import Context, Kind, Lock, Recorded, Request, operation
from hotset.core.record import extended
from hotset.core.rights import Makes, Needs, Right
from hotset.core.units import Bytes

from . import disk

if TYPE_CHECKING:
    from rich.console import Console

    from ..disks.arrays import DiskArrays


class MeasureArrays(Request):
    size: Annotated[fields.Size, Field(description="Size of the test file."), Makes()] = "1GiB"
    seconds: Annotated[float, Field(ge=0.5, le=3600, description="Seconds of each run.")] = 5.0
    repeats: Annotated[
        int, Field(ge=1, le=1000, description="How often each line is measured.")
    ] = 5
    search: Annotated[
        bool,
        Field(
            description="Also search forum posts on each array while new ones come in. Takes root,"
            " as the arrays are mounted."
        ),
        Needs(Right.ADMIN),
    ] = False
    posts: Annotated[
        int, Field(ge=1000, le=10**8, description="Posts in the index that is searched.")
    ] = 500_000
    memory: Annotated[
        fields.Size, Field(description="Memory of the search, with what it keeps of the index.")
    ] = "128MiB"
    search_seconds: Annotated[
        float, Field(ge=1, le=3600, description="Seconds of the search on each array.")
    ] = 20.0
    page: disk.PageFile = None


@dataclass(frozen=True, slots=True)
class ArraysResult(Recorded["DiskArrays"]):
    """What the models of arrays do."""

    rows = "lines"

    @classmethod
    def record(cls) -> type[DiskArrays]:
        from ..disks.arrays import DiskArrays

        return DiskArrays

    def show(self, console: Console) -> None:
        from hotset.reports.render import disk_tables

        columns, rows = disk_tables.lines(self.document())
        without = [row[:-1] for row in rows]
        disk.print_table(console, "the published table and ours", columns[:-1], without)
        for line in self.found.lines:
            if line.reason:
                about = f"{line.array} {line.profile} {line.direction}, {line.unit}"
                console.print(f"{about}: {line.reason}", markup=False)
        disk.print_paths(console, self.found.paths)
        for failure in self.found.failures:
            rebuilt = "later" if failure.rebuilt_s is None else f"after {failure.rebuilt_s:.1f} s"
            console.print(
                f"{failure.array}, a member fails: {failure.before_iops:,.0f} reads a second"
                f" before, {failure.during_iops:,.0f} in the time after it; rebuilt {rebuilt}",
                markup=False,
            )
        for cut in self.found.cuts:
            kind = "with" if cut.protected else "without"
            console.print(
                f"power cut {kind} power-loss protection: {Bytes(cut.lost_bytes)} of answered"
                f" writes lost, {Bytes(cut.flushed_lost_bytes)} of what was flushed;"
                f" {sum(file.lost_bytes > 0 for file in cut.files)} of {len(cut.files)} files"
                " are not as they were answered",
                markup=False,
            )

        if self.found.searches:
            disk.print_table(
                console, "searching while posts come in", *disk_tables.searches(self.document())
            )

    def csv(self) -> str:
        from hotset.reports.render import disk_tables

        return disk_tables.csv(self.document())


@operation(
    "disk arrays",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetArrayTest"),
    progress=True,
    lock=lambda request: Lock("disk", "arrays"),  # noqa: ARG005
    extras=(Extra.BENCH,),
)
def measure_arrays(request: MeasureArrays, context: Context) -> ArraysResult:
    """Measure models of a published test's arrays: eight hard disks, and six SSDs in their place.

    The published table beside ours, a member that fails under load, a power cut with and without
    power-loss protection; with --search a full-text search on each array.
    """
    from hotset.core.machines.local import Local

    from ..disks import arrays, serving_path
    from ..disks.search import SearchLoad

    size, memory = Bytes.parse(request.size), Bytes.parse(request.memory)
    load = SearchLoad(request.posts, memory, request.search_seconds) if request.search else None
    disk.check_page(request.page)
    wanted = arrays.Load(size, request.seconds, request.repeats, load)
    local, parts = Local(), arrays.parts(request.search)
    arrays.require(local, wanted)
    paths = serving_path.measure(local, arrays.ways(parts), context.report)
    found = arrays.measure(local, parts, wanted, paths, context.report)
    whole = sum(found, arrays.Arrays(paths=paths))
    result = ArraysResult(extended(arrays.DiskArrays, whole))
    disk.write_page(request.page, "disk arrays", result, context)
    return result
