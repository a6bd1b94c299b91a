"""Predictions of TPC-C: at other hit ratios, on other storage, with other users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Le
from pydantic import BeforeValidator, Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.fields import Run
from hotset.core.machines.local import Local
from hotset.core.operation import Context, Kind, Request, operation
from hotset.core.record import extend
from hotset.core.rights import Right
from hotset.disk import places
from hotset.monitoring.commands.heat import heats_of
from hotset.reports.archive import Archive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotset.reports.model.document import RunDocument

    from ..flash import FlashNeeds
    from ..prediction import PredictedRun
    from ..traffic import CacheKind

_DEFAULT = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)
_POINT = r"[1-9][0-9]{0,3}:[1-9][0-9]{0,8}(\.[0-9]{1,9})?"
_IOPS_PATTERN = rf"^ *{_POINT}( *, *{_POINT})* *$"


def _iops(text: Any) -> Any:  # noqa: ANN401 - whatever was given
    """Depths and IOPS as users write them, checked; requests keep the text."""
    from ..prediction import iops_from_text

    if isinstance(text, str):
        iops_from_text(text)
    return text


Ratios = Annotated[list[Annotated[float, Ge(0), Le(1)]], Field(max_length=100)]


Asked = Annotated[
    Ratios | None, Field(description="Predict for this hit ratio, 0 to 1. Repeatable.")
]


StorageIops = Annotated[
    Annotated[fields.Expression, Field(pattern=_IOPS_PATTERN), BeforeValidator(_iops)] | None,
    Field(
        description="Other slow storage: its random 8 KiB reads per second at each queue depth,"
        " such as 1:126,16:850."
    ),
]


class SetUp(Request):
    """The changes to a run's set-up."""

    users: Annotated[
        int | None, Field(ge=1, le=2000, description="Number of users; by default the run's.")
    ] = None
    cores: Annotated[
        int | None, Field(ge=1, le=1024, description="Number of cores, each as fast as the run's.")
    ] = None
    storage: Annotated[
        fields.DiskModel | None,
        Field(description="Other slow storage: a model's name (hotset disk models)."),
    ] = None
    storage_iops: StorageIops = None


class Predict(SetUp):
    run: Run
    hit_ratio: Asked = None


@operation(
    "whatif predict",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetPrediction"),
    result="whatif.prediction:PredictedRun",
)
def predict(request: Predict, context: Context) -> PredictedRun:  # noqa: ARG001
    """Predict TPC-C's throughput at other hit ratios, with other users, cores or storage.

    Learns from one run that measured before and after, such as the demo's.
    """
    return predict_run(request.run, request, request.hit_ratio or _DEFAULT)


class Flash(SetUp):
    hit_ratio: Asked = None
    disk: places.Disk = None
    machine: fields.Machine = "local"
    run: Annotated[
        fields.Word | None,
        Field(
            description="Also show the NOPM at each hit ratio, learned from this run (id or"
            " 'last')."
        ),
    ] = None


@operation(
    "whatif flash",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetFlashNeed"),
    result="whatif.flash:FlashNeeds",
)
def flash(request: Flash, context: Context) -> FlashNeeds:
    """Show how much flash a disk needs for each hit ratio, from its heat; --run adds the NOPM.

    First count for a working day: hotset heat start.
    """
    from hotset.hitratio import hit_report

    from .. import flash

    ratios = request.hit_ratio or _DEFAULT[1:]
    with hit_report.target_of(request.machine, request.disk) as target:
        grid, heats = heats_of(target, context)
        name = target.disk.name
    if not any(heat > 0 for heat in heats.values()):
        raise RequestError(f"{name} has had no requests since counting began", field="disk")
    predicted = None if request.run is None else predict_run(request.run, request, ratios)
    needs = tuple(flash.needs(heats, grid, ratios))
    return flash.FlashNeeds(name, grid.region, needs, predicted)


def predict_run(
    name: str, request: SetUp, ratios: Sequence[float], cache: CacheKind | None = None
) -> PredictedRun:
    """Predict a run's throughput at some hit ratios, its set-up changed as requested.

    :param cache: another one than the run's.
    """
    from .. import prediction
    from ..storage import own_flash

    run = Archive.default().load(name)
    if request.storage is not None and request.storage_iops is not None:
        raise RequestError("name a model or IOPS, not both", field="storage_iops")
    storage, iops, asked = storages(run, request)
    predicted = prediction.predict(
        run,
        iops,
        ratios,
        flash=own_flash(run),
        users=request.users,
        cores=request.cores,
        asked_iops=asked,
        cache=cache,
    )
    return extend(prediction.PredictedRun, predicted, run=run.run, storage=storage)


def storages(
    run: RunDocument, request: SetUp
) -> tuple[str, dict[int, float], dict[int, float] | None]:
    """The name of the storage that is asked about, the IOPS of the run's and, where it is another,
    its own."""
    from ..prediction import iops_from_text
    from ..storage import own_iops, read_promises

    given = None if request.storage_iops is None else iops_from_text(request.storage_iops)
    if given is not None and (run.storage is None or run.storage.kind != "modelled"):
        return run.storage.name if run.storage else "as given", given, None
    own = own_iops(run)
    if given is not None:
        return "as given", own, given
    if request.storage is not None:
        _require_known(request.storage)
        return request.storage, own, read_promises(run, request.storage)
    assert run.storage is not None
    return run.storage.name, own, None


def _require_known(model: str) -> None:
    from hotset.block import flashdev

    known = flashdev.library(Local())
    if model not in known:
        raise RequestError(
            f"no model is named {model!r}; there are: {', '.join(known)}", field="storage"
        )
