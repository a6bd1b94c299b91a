"""The arrays of a published test, modelled, beside the published table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hotset.cachelayer.common.units import Bytes
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.render.plain import csv_text

from ...jobs.lock import Lock
from ..base import fields, records
from ..base.context import Context
from ..base.registry import Kind, Request, operation
from ..base.result import Result
from ..base.rights import Needs, Right
from . import disk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import BaseModel
    from rich.console import Console

    from ...benchmarks.disks.arrays import Arrays


class MeasureArrays(Request):
    size: Annotated[fields.Size, Field(description="Size of the test file.")] = "1GiB"
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
class ArraysResult(Result):
    found: Arrays

    @classmethod
    def record(cls) -> type[BaseModel]:
        from ...benchmarks.disks.arrays import Cut, Failure, Line
        from ...benchmarks.disks.search import Heat
        from ...benchmarks.disks.search_engine import Searched

        return records.of(
            "DiskArrays",
            lines=records.several("DiskArrayLine", Line, off=float | None),
            failures=records.several("DiskArrayFailure", Failure),
            cuts=records.several("DiskPowerFailure", Cut),
            searches=records.several(
                "DiskArraySearch",
                array=str,
                searches_per_s=float,
                searched=records.part("Searched", Searched),
                heat=records.part("DiskArrayHeat", Heat),
            ),
        )

    def document(self) -> dict[str, Any]:
        found = asdict(self.found)
        lines = [asdict(one) | {"off": one.off} for one in self.found.lines]
        searches = [
            asdict(one) | {"searches_per_s": one.searches_per_s} for one in self.found.searches
        ]
        return {"schema_version": SCHEMA_VERSION, **found, "lines": lines, "searches": searches}

    def show(self, console: Console) -> None:
        columns, rows = self._table
        without = [row[:-1] for row in rows]
        disk.print_table(console, "the published table and ours", columns[:-1], without)
        for line in self.found.lines:
            if line.reason:
                about = f"{line.array} {line.profile} {line.direction}"
                console.print(f"{about}: {line.reason}", markup=False)
        for one in self.found.failures:
            rebuilt = "later" if one.rebuilt_s is None else f"after {one.rebuilt_s:.1f} s"
            console.print(
                f"{one.array}, a member fails: {one.before_iops:,.0f} reads a second before,"
                f" {one.during_iops:,.0f} in the time after it; rebuilt {rebuilt}",
                markup=False,
            )
        for cut in self.found.cuts:
            kind = "with" if cut.protected else "without"
            console.print(
                f"power cut {kind} power-loss protection: {Bytes(cut.lost_bytes)} of answered"
                f" writes lost, {Bytes(cut.flushed_lost_bytes)} of what was flushed",
                markup=False,
            )

        if self.found.searches:
            disk.print_table(console, "searching while posts come in", *self._searches)

    def csv(self) -> str:
        tables = [csv_text(*self._table)]
        if self.found.searches:
            tables.append(csv_text(*self._searches))
        return "\n".join(tables)

    @property
    def _searches(self) -> tuple[Sequence[str], list[disk.Row]]:
        columns = ("array", "searches/s", "p50 ms", "p99 ms", "commit ms", "reads", "writes")
        rows: list[disk.Row] = [
            (
                one.array,
                one.searches_per_s,
                one.searched.p50_ms,
                one.searched.p99_ms,
                one.searched.commit_ms,
                one.heat.reads,
                one.heat.writes,
                f"{one.heat.hottest_share:.0%}",
            )
            for one in self.found.searches
        ]
        return (*columns, "to the hottest tenth"), rows

    @property
    def _table(self) -> tuple[Sequence[str], list[disk.Row]]:
        columns = ("array", "profile", "direction", "unit", "published", "ours", "off", "because")
        rows: list[disk.Row] = [
            (
                one.array,
                one.profile,
                one.direction,
                one.unit,
                one.published,
                one.ours,
                None if one.off is None else f"{one.off:+.0%}",
                one.reason,
            )
            for one in self.found.lines
        ]
        return columns, rows


@operation(
    "disk arrays",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetArrayTest"),
    progress=True,
    lock=lambda request: Lock("disk", "arrays"),  # noqa: ARG005
)
def measure_arrays(request: MeasureArrays, context: Context) -> ArraysResult:
    """Measure models of a published test's arrays: eight hard disks, and six SSDs in their place.

    The published table beside ours, a member that fails under load, a power cut with and without
    power-loss protection; with --search a full-text search on each array.
    """
    from hotset.cachelayer.hosts.local import Local

    from ...benchmarks.disks import arrays
    from ...benchmarks.disks.search import SearchLoad

    size, memory = Bytes.parse(request.size), Bytes.parse(request.memory)
    load = SearchLoad(request.posts, memory, request.search_seconds) if request.search else None
    disk.check_page(request.page)
    result = ArraysResult(
        arrays.measure(Local(), size, request.seconds, request.repeats, load, context.report)
    )
    disk.write_page(request.page, "disk arrays", result)
    return result
