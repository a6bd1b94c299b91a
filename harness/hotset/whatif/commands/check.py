"""Predictions held against what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.fields import Run
from hotset.core.operation import Context, Kind, Request, operation
from hotset.core.rights import Right
from hotset.reports.archive import Archive

from .models import SetUp, StorageIops, storages

if TYPE_CHECKING:
    from hotset.reports.model.document import RunDocument

    from ..checking import PredictionCheck


class Check(Request):
    run: Run
    by: Annotated[
        fields.Word,
        Field(description="Another run, which the prediction is learned from."),
    ]
    storage_iops: StorageIops = None


@operation(
    "whatif check",
    Kind.QUERY,
    Right.READ,
    ("Test", "HotsetPrediction"),
    result="whatif.checking:PredictionCheck",
)
def check(request: Check, context: Context) -> PredictionCheck:  # noqa: ARG001
    """Compare what one run predicts with what another run measured.

    Predicts at the measured hit ratios, with the users, cores and slow storage of the measured run.
    """
    from .. import checking
    from ..storage import own_flash

    archive = Archive.default()
    run, by = archive.load(request.run), archive.load(request.by)
    devices = checking.Devices(_iops(by, request), own_flash(by))
    arms = checking.check(run, by, _iops(run, request), devices)
    return checking.PredictionCheck(run.run, by.run, arms)


def _iops(run: RunDocument, request: Check) -> dict[int, float]:
    _, own, asked = storages(run, SetUp(storage_iops=request.storage_iops))
    return asked or own
