"""Every device model that comes with hotset, held against itself in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.extras import Extra
from hotset.core.operation import Context, Kind, Lock, OnThisComputer, Request, operation
from hotset.core.paths import data_dir
from hotset.core.rights import Makes, Right
from hotset.core.units import Bytes

if TYPE_CHECKING:
    from ..disks.fidelity_table import DiskFidelity

_KEPT = "disk-models.jsonl"


class CalibrateAll(Request):
    only: Annotated[
        fields.Words,
        Field(
            description="Only cells whose name has all of these words, such as 'dc500m 4k QD8"
            " read' or '64k write'. Repeatable."
        ),
    ] = []
    size: Annotated[fields.Size, Field(description="Size of each device."), Makes()] = "1GiB"
    seconds: Annotated[
        int, Field(ge=2, le=3600, description="Seconds of a run at most; fast cells take fewer.")
    ] = 5
    again: Annotated[bool, Field(description="Measure what an earlier call has measured, too.")] = (
        False
    )
    kept: Annotated[
        Path | None,
        Field(
            description="File in which each cell is kept as it is measured; a call that was"
            " interrupted goes on from it [default: disk-models.jsonl among hotset's data]."
        ),
        OnThisComputer,
    ] = None


@operation(
    "disk calibrate-all",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetDiskModel"),
    progress=True,
    lock=lambda request: Lock("disk", "calibrate-all"),  # noqa: ARG005
    extras=(Extra.BENCH,),
    result="bench.disks.fidelity_table:DiskFidelity",
)
def calibrate_all(request: CalibrateAll, context: Context) -> DiskFidelity:
    """Measure every device model with fio, and compare it with what the model itself promises.

    4k, 8k, 64k and 1M requests, 1 to 64 at a time, read, written and mixed: some two hours. A call
    that was interrupted goes on where it ended. Exit code 5 when a cell is off by more than 10 %
    (5 % in MB/s of 1 MiB requests) and no reason was measured.
    """
    from hotset.block import flashdev
    from hotset.core.machines.local import Local

    from ..disks import fidelity, fidelity_table

    local, size = Local(), Bytes.parse(request.size)
    file = request.kept or data_dir() / _KEPT
    wanted = fidelity.points(flashdev.library(local), request.only)
    kept = fidelity.Kept(local, file, size, request.seconds)
    if request.again:
        kept.forget(wanted)
    cells = fidelity.measure(local, wanted, size, request.seconds, kept, context.report)
    by_point = {cell.point: cell for cell in cells}
    return fidelity_table.DiskFidelity.from_cells([by_point[point] for point in wanted])
