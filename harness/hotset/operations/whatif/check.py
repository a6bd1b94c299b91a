"""Predictions held against what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hotset.reports.archive import Archive
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.render.plain import csv_text, text_table

from ..base import fields, records
from ..base.context import Context
from ..base.registry import Kind, Request, operation
from ..base.result import Result, write
from ..base.rights import Right
from ..experiment.runs import Run
from .models import SetUp, StorageIops, storages

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from hotset.reports.model.document import Predictions, RunDocument


class Check(Request):
    run: Run
    by: Annotated[
        fields.Word,
        Field(description="Another run, which the prediction is learned from."),
    ]
    storage_iops: StorageIops = None


@dataclass(frozen=True, slots=True)
class Checks(Result):
    run: str
    found: Predictions

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.reports.model.document import PredictedArm

        return records.record_of("PredictionCheck", run=str, by=str, arms=list[PredictedArm])

    def document(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "run": self.run,
            "by": self.found.learned_from,
            "arms": self._arms(),
        }

    def show(self, console: Console) -> None:
        from hotset.reports.analysis import predicted

        write(console, text_table(predicted.COLUMNS, map(predicted.row, self.found.arms)))
        write(console, f"\n{predicted.sentence(self.found)}")

    def csv(self) -> str:
        rows = self._arms()
        return csv_text(list(rows[0]), [list(one.values()) for one in rows])

    def _arms(self) -> list[dict[str, Any]]:
        return [one.model_dump() for one in self.found.arms]


@operation("whatif check", Kind.QUERY, Right.READ, ("Test", "HotsetPrediction"))
def check(request: Check, context: Context) -> Checks:  # noqa: ARG001
    """Compare what one run predicts with what another run measured.

    Predicts at the measured hit ratios, with the users, cores and slow storage of the measured run.
    """
    from hotset.reports.model.document import Predictions
    from hotset.whatif import checking
    from hotset.whatif.storage import own_flash

    archive = Archive.default()
    run, by = archive.load(request.run), archive.load(request.by)
    devices = checking.Devices(_iops(by, request), own_flash(by))
    arms = checking.check(run, by, _iops(run, request), devices)
    return Checks(run.run, Predictions(learned_from=by.run, arms=arms))


def _iops(run: RunDocument, request: Check) -> dict[int, float]:
    _, own, asked = storages(run, SetUp(storage_iops=request.storage_iops))
    return asked or own
