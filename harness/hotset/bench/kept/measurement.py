"""A measurement as a run of the archive, written as each of its windows ends.

It has one arm, ``measured``: nothing is set up, so there is nothing to compare it with in the same
run. What cannot be kept costs nobody what was measured: see :attr:`Kept.fault`.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, Final

from pydantic import JsonValue, ValidationError

from hotset import __version__
from hotset.core.errors import PrerequisiteError, Remedy, RequestError
from hotset.core.paths import read_commit
from hotset.core.units import Bytes
from hotset.reports.analysis import caveats
from hotset.reports.archive import Archive, run_name
from hotset.reports.model import setup
from hotset.reports.model.base import ArmName, TimedWorkload
from hotset.reports.model.disks import DiskResults
from hotset.reports.model.document import Arm, Failure, PowerArm, RunDocument, State
from hotset.reports.model.measurement import Measured as Operation
from hotset.reports.model.measurement import Measurement
from hotset.reports.model.windows import PowerRun, ThroughputRun, Verdict

from .. import window
from ..disks.disk_bench import DiskBench

ARM: Final[ArmName] = "measured"
REFUSALS = (RequestError, PrerequisiteError)
"""Before anything was measured they say that it cannot be: nothing of that is kept."""
_NOT_KEPT = (OSError, PrerequisiteError, sqlite3.Error, ValidationError)


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a measurement.

    :ivar name: of such runs, which forms their ids and their trend.
    :ivar settings: any change makes it another measurement; without secrets.
    """

    of: Operation
    name: str
    title: str
    settings: dict[str, JsonValue]
    command: tuple[str, ...] = ()
    scripts: tuple[setup.Script, ...] = ()
    label: str | None = None
    timed: TimedWorkload = "tpcc"
    database: setup.Database | None = None


class NotKeptError(PrerequisiteError):
    """The measurement is not in the archive, or not completely; the message says why."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            f"the measurement is not kept as a run: {error}. Its result is printed all the same",
            Remedy("measure without keeping it", parameters={"keep": False}),
        )


@dataclass(slots=True)
class Kept:
    """A measurement, kept as a run of the archive unless that is not wanted.

    :ivar archive: None: it is not to be kept.
    :ivar fault: why the archive has not all of it.
    """

    document: RunDocument
    archive: Archive | None = None
    fault: NotKeptError | None = None
    hold: IO[bytes] | None = None
    """Lock of the run, while it is under way."""
    _begun: float = field(default_factory=time.monotonic)

    @property
    def block(self) -> Bytes:
        """Block size of the cache below the database; one byte where there is none."""
        tier = self.measurement.tier
        return Bytes(tier.block_bytes if tier else 1)

    @property
    def measurement(self) -> Measurement:
        """The document's record of the measurement."""
        assert self.document.measurement is not None
        return self.document.measurement

    @property
    def run(self) -> str | None:
        """Its id; None where it is not kept."""
        return self.document.run if self.archive is not None and self.fault is None else None

    def change(self, **fields: Any) -> None:  # noqa: ANN401 - whatever the document's fields are
        """Replace fields of the document and save it."""
        fields["seconds"] = time.monotonic() - self._begun
        self.document = self.document.model_copy(update=fields)
        if self.archive is None:
            return
        try:
            self.document = RunDocument.model_validate(self.document.model_dump())
            self.archive.save(self.document)
            self.fault = None
        except _NOT_KEPT as error:
            self.fault = NotKeptError(error)

    def keep_windows(self, points: Sequence[window.Outcome], workload: TimedWorkload) -> None:
        """The windows that there are until now, of one run or of a curve."""
        each = [point.result for point in points if point.result is not None]
        rates = [point.rate for point in points if point.rate is not None]
        arm = Arm(
            name=ARM,
            workload=workload,
            repeats=tuple(each[-1:]),
            curve=tuple(each[:-1]),
            rates=tuple(rates[-1:]),
        )
        self.change(arms=(arm,), thresholds=_verdicts(points))

    def keep_queries(
        self, run: PowerRun, throughput: ThroughputRun | None, verdicts: Sequence[Verdict]
    ) -> None:
        """The 22 queries, or those that there are; another scale makes it another measurement."""
        experiment, database = self.document.experiment, self.document.database
        queries = experiment.spec["tpch"]
        assert isinstance(queries, dict)
        spec = {**experiment.spec, "tpch": {**queries, "scale": run.scale}}
        arm = PowerArm(name=ARM, repeats=(run,), throughput=throughput)
        self.change(
            power_arms=(arm,) if run.queries else (),
            thresholds=tuple(verdicts),
            experiment=experiment.model_copy(update={"spec": spec}),
            database=database and database.model_copy(update={"tpch_scale": run.scale}),
        )

    def keep_lines(self, bench: DiskBench) -> None:
        """The lines of a benchmark of a disk that there are until now."""
        self.change(disks=DiskResults(scenario="bench", bench=bench.cells, paths=bench.paths))

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Record the verdicts on its thresholds."""
        self.change(thresholds=tuple(verdicts))

    def finish(self, state: State, cause: str | None) -> None:
        """How it ended, and what is doubtful about it."""
        failure = cause and Failure(phase=self.measurement.of, text=cause)
        self.change(state=state, failure=failure or None)
        self.change(warnings=caveats.list_caveats(self.document))
        if self.fault is not None:
            if self.archive is not None:
                # Of what was never written only the folder is there.
                with suppress(OSError):
                    self.archive.path(self.document.run).rmdir()
            measurement = self.measurement.model_copy(update={"kept": False})
            self.document = self.document.model_copy(update={"measurement": measurement})
        self._release()

    def _release(self) -> None:
        if self.hold is not None:
            self.hold.close()

    @property
    def _has_any(self) -> bool:
        """True if anything was measured."""
        document = self.document
        return bool(document.arms or document.power_arms or document.disks)

    def fail(self, error: BaseException) -> None:
        """It ended without a result; a refusal leaves no record."""
        if self.archive is None:
            return
        if isinstance(error, REFUSALS) and not self._has_any:
            shutil.rmtree(self.archive.path(self.document.run), ignore_errors=True)
            self.archive.forget(self.document.run)
            self.archive = None
            self._release()
            return
        interrupted = isinstance(error, KeyboardInterrupt)
        self.finish(
            "interrupted" if interrupted else "failed", window.cause_of(error) or repr(error)
        )


def _verdicts(points: Sequence[window.Outcome]) -> tuple[Verdict, ...]:
    """Collect the verdicts; those of a curve carry their number of users."""
    if len(points) == 1:
        return points[0].verdicts
    return tuple(
        verdict.model_copy(update={"users": point.result.users})
        for point in points
        if point.result is not None
        for verdict in point.verdicts
    )


def begin(keep: bool, subject: Subject) -> Kept:
    """A new run; what cannot be written is no reason not to measure."""
    now = datetime.now(UTC)
    kept = Kept(_empty_document(subject, now, keep))
    if not keep:
        return kept
    try:
        kept.archive = archive = Archive.default()
        run = archive.new(subject.name, now)
        kept.hold = archive.hold(run)
        kept.document = kept.document.model_copy(update={"run": run})
        archive.save(kept.document)
    except _NOT_KEPT as error:
        kept.fault = NotKeptError(error)
        if kept.hold is None:
            # Another run may have the id.
            kept.archive = None
    return kept


def _empty_document(subject: Subject, now: datetime, keep: bool) -> RunDocument:
    return RunDocument(
        hotset_version=__version__,
        hotset_commit=read_commit(),
        run=run_name(subject.name, now),
        state="interrupted",
        started_at=now,
        seconds=0,
        command=subject.command,
        experiment=setup.Experiment(
            name=subject.name,
            title=subject.title,
            spec=subject.settings,
            scripts=subject.scripts,
        ),
        measurement=Measurement(
            of=subject.of, label=subject.label, kept=keep, tier_unknown="nobody has looked"
        ),
        database=subject.database,
    )
