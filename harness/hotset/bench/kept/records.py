"""A power run as the document of a run has it: of an experiment's arm, or of a database as it
was found."""

from __future__ import annotations

from datetime import UTC, datetime

from hotset.hitratio.sampler import Window
from hotset.reports.model import windows
from hotset.tpch.record import PowerResult

from ..server.sampled import window_fields


def power_record(
    number: int, result: PowerResult, window: Window | None, others: float
) -> windows.PowerRun:
    """A power run as the result document has it.

    :param others: share of this computer's CPU that was busy before the arm was set up.
    """
    return windows.PowerRun(
        repeat=number,
        opened_at=datetime.fromtimestamp(result.started, UTC),
        duration_s=result.ended - result.started,
        **({} if window is None else window_fields(window)),
        others_cpu=others,
        queries=result.queries,
    )
