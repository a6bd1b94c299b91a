"""Gain of modelled disks when the same files are read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.machines.local import Local
from hotset.core.operation import Context, Kind, Lock, Request, operation
from hotset.core.rights import Makes, Right
from hotset.core.units import Bytes

from . import disk

if TYPE_CHECKING:
    from ..disks.reread import DiskRereads


class RereadDisks(Request):
    model: Annotated[
        fields.DiskModels | None,
        Field(
            description="A disk model's name or JSON file. Repeatable; the plain disk, the hybrid"
            " disk and the SSD of the published test if left out."
        ),
    ] = None
    size: Annotated[
        fields.Size,
        Field(description="Size of each of the ten files; small ones stay in a disk's own buffer."),
        Makes(files=10),
    ] = "100MB"
    passes: Annotated[
        int, Field(ge=1, le=1000, description="Passes without the page cache; one with it follows.")
    ] = 2
    seed: Annotated[fields.Seed, Field(description="Seed of the drawing order.")] = 1
    page: disk.PageFile = None


@operation(
    "disk reread",
    Kind.JOB,
    Right.ADMIN,
    ("Measure", "HotsetDiskReread"),
    progress=True,
    lock=lambda request: Lock("disk", "reread"),  # noqa: ARG005
    result="bench.disks.reread:DiskRereads",
)
def reread(request: RereadDisks, context: Context) -> DiskRereads:
    """Read the same files again on modelled disks: what does a hybrid disk gain, and what memory?

    The raffle on each disk, first without the page cache, which would serve what is read again
    on any disk, then with it. Takes root.
    """
    from ..disks import mounted_model, serving_path
    from ..disks import reread as benchmark

    disk.check_page(request.page)
    disks, size = request.model or benchmark.DISKS, Bytes.parse(request.size)
    local = Local()
    mounted_model.require(local)
    paths = serving_path.measure(local, benchmark.WAYS, context.report)
    passes, seed = request.passes, request.seed
    rereads = benchmark.hold(local, disks, size, passes, seed, paths, context.report)
    result = benchmark.DiskRereads(tuple(rereads), paths)
    disk.write_page(request.page, "disk reread", result, context)
    return result
