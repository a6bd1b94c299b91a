"""Runs of SQL scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotset.core import words
from hotset.core.progress import Reporter
from hotset.databases.product import SqlDatabase
from hotset.load.record import WindowOptions
from hotset.load.run import Observer
from hotset.reports.model.windows import Repeat

from .. import runs, window
from ..thresholds import Threshold, Values, read
from . import driver
from .workload import SqlWorkload


def options(*, rate: str | None, **named: float) -> WindowOptions:
    """
    :param rate: such as ``500/s``.
    :raises RequestError: one of them makes no run; the message names it.
    """
    return window.options(WindowOptions, rate, **named)


class Runs(runs.Runs[WindowOptions]):
    """By whichever driver the database has."""

    suite = "hotset.sql.run"

    def __init__(self, workload: SqlWorkload, report: Reporter) -> None:
        super().__init__(report)
        self._workload = workload

    def check(self, database: SqlDatabase) -> None:
        """Check the scripts as well."""
        driver.require(self._workload)
        super().check(database)
        driver.check(self._workload)

    def title(self, options: WindowOptions) -> str:
        return f"{', '.join(self._workload.kinds)}, {words.plural(options.users, 'user')}"

    def drive(
        self, database: SqlDatabase, options: WindowOptions, observe: Observer = lambda _: None
    ) -> Repeat:
        workload = replace(self._workload, database=database, options=options)
        return driver.run(workload, observe)

    def limits(self, texts: Sequence[str]) -> list[Threshold]:
        return limits(texts, self._workload.kinds)

    def values(self, result: Repeat) -> Values:
        return values(result)

    def rate(self, result: Repeat) -> str:
        return f"{result.tpm / 60:,.1f} TPS"


def values(result: Repeat) -> dict[str, float | None]:
    """Return the values that thresholds can refer to, by metric."""
    return {"tps": result.tpm / 60, **window.values(result)}


def limits(texts: Sequence[str], kinds: Sequence[str]) -> list[Threshold]:
    """Thresholds of a run.

    :raises ThresholdFormError: one cannot be read or names no metric of these scripts.
    """
    return read(texts, ("tps", *window.metrics(kinds)))
