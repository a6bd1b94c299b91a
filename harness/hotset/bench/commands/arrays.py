"""The arrays of a published test, modelled, beside the published table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.extras import Extra
from hotset.core.machines.local import Local
from hotset.core.operation import Context, Kind, Lock, Request, operation
from hotset.core.record import extend
from hotset.core.rights import Makes, Needs, Right
from hotset.core.units import Bytes

from . import disk

if TYPE_CHECKING:
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
        Extra.SEARCH,
    ] = False
    posts: Annotated[
        int,
        Field(ge=1000, le=10**8, description="Posts in the index that is searched."),
        Extra.SEARCH,
    ] = 500_000
    memory: Annotated[
        fields.Size,
        Field(description="Memory of the search, with what it keeps of the index."),
        Extra.SEARCH,
    ] = "128MiB"
    search_seconds: Annotated[
        float,
        Field(ge=1, le=3600, description="Seconds of the search on each array."),
        Extra.SEARCH,
    ] = 20.0
    page: disk.PageFile = None


@operation(
    "disk arrays",
    Kind.JOB,
    Right.OPERATE,
    ("Measure", "HotsetArrayTest"),
    progress=True,
    lock=lambda request: Lock("disk", "arrays"),  # noqa: ARG005
    extras=(Extra.BENCH,),
    result="bench.disks.arrays:DiskArrays",
)
def measure_arrays(request: MeasureArrays, context: Context) -> DiskArrays:
    """Measure models of a published test's arrays: eight hard disks, and six SSDs in their place.

    The published table beside ours, a member that fails under load, a power cut with and without
    power-loss protection; with --search a full-text search on each array.
    """

    from ..disks import arrays, serving_path
    from ..disks.search import SearchLoad

    size, memory = Bytes.parse(request.size), Bytes.parse(request.memory)
    load = SearchLoad(request.posts, memory, request.search_seconds) if request.search else None
    disk.check_page(request.page)
    wanted = arrays.Load(size, request.seconds, request.repeats, load)
    local, parts = Local(), arrays.parts(request.search)
    arrays.require(local, wanted)
    paths = serving_path.measure(local, arrays.ways(parts), context.report)
    measured = arrays.measure(local, parts, wanted, paths, context.report)
    whole = sum(measured, arrays.Arrays(paths=paths))
    result = extend(arrays.DiskArrays, whole)
    disk.write_page(request.page, "disk arrays", result, context)
    return result
