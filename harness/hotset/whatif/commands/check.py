"""Predictions held against what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.fields import Run
from hotset.core.operation import Context, Kind, Recorded, Request, operation, write
from hotset.core.rights import Right
from hotset.core.words import text_table
from hotset.reports.archive import Archive

from .models import SetUp, StorageIops, storages

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.reports.model.document import RunDocument

    from ..checking import PredictionCheck


class Check(Request):
    run: Run
    by: Annotated[
        fields.Word,
        Field(description="Another run, which the prediction is learned from."),
    ]
    storage_iops: StorageIops = None


@dataclass(frozen=True, slots=True)
class Checks(Recorded["PredictionCheck"]):
    """Predictions beside what was measured."""

    rows = "arms"

    @classmethod
    def record(cls) -> type[PredictionCheck]:
        from ..checking import PredictionCheck

        return PredictionCheck

    def show(self, console: Console) -> None:
        from hotset.reports.analysis import predicted

        write(console, text_table(predicted.COLUMNS, map(predicted.row, self.found.arms)))
        write(console, f"\n{predicted.sentence(self.found.predictions)}")


@operation("whatif check", Kind.QUERY, Right.READ, ("Test", "HotsetPrediction"))
def check(request: Check, context: Context) -> Checks:  # noqa: ARG001
    """Compare what one run predicts with what another run measured.

    Predicts at the measured hit ratios, with the users, cores and slow storage of the measured run.
    """
    from .. import checking
    from ..storage import own_flash

    archive = Archive.default()
    run, by = archive.load(request.run), archive.load(request.by)
    devices = checking.Devices(_iops(by, request), own_flash(by))
    arms = checking.check(run, by, _iops(run, request), devices)
    return Checks(checking.PredictionCheck(run.run, by.run, arms))


def _iops(run: RunDocument, request: Check) -> dict[int, float]:
    _, own, asked = storages(run, SetUp(storage_iops=request.storage_iops))
    return asked or own
