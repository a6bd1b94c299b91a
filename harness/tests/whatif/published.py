"""Published runs, and the same as if they had measured one number of users alone."""

from __future__ import annotations

from pathlib import Path

from hotset.reports.model.document import RunDocument
from hotset.whatif.demands import FlashPromise
from hotset.whatif.prediction import windows

FOLDER = Path(__file__).resolve().parents[3] / "reports/published"
NAS = {1: 118.15, 4: 366.3, 16: 808.8, 32: 1086.2}
"""nas-2014's promise on the disks of the published runs."""
CARD = FlashPromise(90e-6, 30e-6, 89_961)
"""pcie-flash-2014's."""


def published(name: str) -> RunDocument:
    return RunDocument.model_validate_json((FOLDER / name / "result.json").read_text())


def of_users(run: RunDocument, users: int) -> RunDocument:
    """The part of a curve that was measured with so many users."""
    assert run.database is not None
    arms = tuple(
        arm.model_copy(update={"repeats": tuple(windows(arm, run)[users]), "curve": ()})
        for arm in run.arms
    )
    database = run.database.model_copy(update={"users": users})
    return run.model_copy(update={"run": f"{run.run}-{users}", "arms": arms, "database": database})
