"""The record of a run as it grows; saved after every step, so that a failure loses none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from typing import IO, Any, Literal, Self

from hotset import __version__
from hotset.bench.thresholds import Threshold
from hotset.core.errors import Remedy, interruption_reason
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.cleanup import BusyError
from hotset.core.paths import read_commit
from hotset.reports.analysis import caveats
from hotset.reports.archive import REPORT, Archive
from hotset.reports.model.base import ArmName
from hotset.reports.model.disks import DiskResults
from hotset.reports.model.document import (
    Arm,
    Failure,
    Phase,
    PowerArm,
    RunDocument,
    WarmUp,
    WarmUpRepeat,
    Workload,
)
from hotset.reports.model.setup import Experiment, Script
from hotset.reports.model.windows import HighestRate, PowerRun, Repeat
from hotset.whatif import checking

from . import verdicts
from .file.disk_spec import DiskSpec
from .file.spec import Spec, SpecError

_REFUSALS = (BusyError, PrerequisiteMissingError)
"""In a run's first phase they say that it cannot begin: nothing has been changed by then."""


class Journal:
    """One run's document and where it is kept."""

    def __init__(
        self,
        archive: Archive,
        document: RunDocument,
        hold: IO[bytes],
        before: RunDocument | None = None,
    ) -> None:
        """:param hold: of the run, see :meth:`Archive.hold`.
        :param before: the archived document of a run that is resumed.
        """
        self.archive = archive
        self.document = document
        self._hold = hold
        self._before = before
        self._phase: tuple[str, float] | None = None
        """The one under way, and when it began."""
        self._begun = time.monotonic() - document.seconds
        self._state: Literal["new", "going on", "refused"] = "new"

    @classmethod
    def begin(cls, archive: Archive, spec: Spec | DiskSpec, command: Sequence[str] = ()) -> Self:
        """A new run; its folder holds the resolved spec from the first moment.

        :param command: the command line, to be kept with the run.
        :raises PrerequisiteMissingError: the archive cannot be written; nothing is left in it.
        """
        now = datetime.now(UTC)
        run = archive.new(spec.name, now)
        document = RunDocument(
            hotset_version=__version__,
            hotset_commit=read_commit(),
            run=run,
            state="interrupted",
            started_at=now,
            seconds=0,
            command=tuple(command),
            prices=None if isinstance(spec, DiskSpec) else spec.prices,
            experiment=_experiment(spec),
            disks=DiskResults(scenario=spec.scenario) if isinstance(spec, DiskSpec) else None,
        )
        try:
            journal = cls(archive, document, archive.hold(run))
            journal.change()
        except PrerequisiteMissingError:
            shutil.rmtree(archive.path(run))
            raise
        return journal

    @classmethod
    def resume(cls, archive: Archive, spec: Spec | DiskSpec, run: str) -> Self:
        """A run that failed or was interrupted goes on at its first missing phase.

        :raises SpecError: the experiment is not the one that run was made with.
        :raises RunningError: it is under way.
        """
        with ExitStack() as stack:
            name = archive.resolve(run)
            hold = stack.enter_context(archive.hold(name))
            journal = cls._resume(archive, spec, archive.read(name), hold)
            stack.pop_all()
        return journal

    @classmethod
    def _resume(
        cls, archive: Archive, spec: Spec | DiskSpec, document: RunDocument, hold: IO[bytes]
    ) -> Self:
        if document.state == "complete":
            raise SpecError(f"run {document.run} is complete: there is nothing to resume")
        if document.experiment != _experiment(spec):
            raise SpecError(
                f"run {document.run} is of another experiment: resume it with the same file and the"
                " same replaced values",
                Remedy("see them", "runs show", {"run": document.run}),
                field="resume",
            )
        kept = tuple(phase for phase in document.phases if phase.state == "done")
        resumed = document.model_copy(update={"phases": kept, "failure": None})
        journal = cls(archive, resumed, hold, before=document)
        journal.change(state="interrupted")
        return journal

    def change(self, **fields: Any) -> None:  # noqa: ANN401 - whatever the document's fields are
        """Replace fields of the document, check the whole again and save it."""
        fields["seconds"] = time.monotonic() - self._begun
        if self._phase is not None:
            # As it will have been, should this process be killed in it.
            fields["phases"] = self._phases("interrupted")
        changed = self.document.model_copy(update=fields)
        self.document = RunDocument.model_validate(changed.model_dump())
        self.archive.save(self.document)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """One phase: how long it took and how it ended goes into the record.

        A run whose first phase is refused (code 3) leaves no record, one that was to be resumed
        the record it had.
        """
        try:
            self._phase = name, time.monotonic()
            self.change()
            yield
        except BaseException as error:
            if self._state == "new" and isinstance(error, _REFUSALS):
                self._withdraw()
                raise
            interrupted = isinstance(error, KeyboardInterrupt)
            failure = Failure(phase=name, text=_describe(error))
            self._end_phase("interrupted" if interrupted else "failed", failure)
            raise
        self._end_phase("done")
        self._state = "going on"

    def has(
        self, arm: ArmName, repeat: int, workload: Workload, each_users: Sequence[int] = ()
    ) -> bool:
        """True if the windows of an arm's repeat are kept, with all these numbers of users."""
        if workload == "tpch":
            power_arm = self.document.power_arm(arm)
            return power_arm is not None and any(run.repeat == repeat for run in power_arm.repeats)
        windows = [
            run.users
            for each in self.document.arms
            if each.name == arm
            for run in (*each.repeats, *each.curve)
            if run.repeat == repeat
        ]
        # None: of a document that knew no curve, so there is no other number of users.
        return bool(windows) and (None in windows or set(each_users) <= set(windows))

    def add_repeat(self, arm: ArmName, repeat: Repeat, most_users: bool = True) -> None:
        """Keep one measured window.

        :param most_users: of a curve, the window with the most users.
        """
        name = "repeats" if most_users else "curve"
        self._replace(
            arm, lambda old: {name: tuple(sorted((*getattr(old, name), repeat), key=_place))}
        )

    def _replace(self, arm: ArmName, changed: Callable[[Arm], dict[str, Any]]) -> None:
        """:param changed: fields of the arm as it is until now."""
        arms = {arm.name: arm for arm in self.document.arms}
        old = arms.get(arm, Arm(name=arm, workload=self.document.timed or "tpcc"))
        arms[arm] = old.model_copy(update=changed(old))
        self.change(arms=tuple(arms.values()))

    def has_rate(self, arm: ArmName, repeat: int) -> bool:
        """True if the highest rate of an arm's repeat is kept."""
        return any(
            rate.repeat == repeat
            for each in self.document.arms
            if each.name == arm
            for rate in each.rates
        )

    def add_rate(self, arm: ArmName, rate: HighestRate) -> None:
        """Keep the highest rate that was found, beside the windows of its arm."""
        self._replace(arm, lambda old: {"rates": tuple(sorted((*old.rates, rate), key=_number))})

    def add_power_run(self, arm: ArmName, run: PowerRun) -> None:
        """Keep one power run of TPC-H."""
        arms = {arm.name: arm for arm in self.document.power_arms}
        old = arms.get(arm, PowerArm(name=arm))
        arms[arm] = PowerArm(name=arm, repeats=tuple(sorted((*old.repeats, run), key=_number)))
        self.change(power_arms=tuple(arms.values()))

    def add_warmup(self, warmup: WarmUpRepeat) -> None:
        """Keep one warm-up; the figures over all repeats are means."""
        old = self.document.warmup.repeats if self.document.warmup else ()
        others = [other for other in old if other.repeat != warmup.repeat]
        self.change(warmup=_over_all(tuple(sorted((*others, warmup), key=_number))))

    def finish(self, order: Sequence[ArmName] = (), limits: Sequence[Threshold] = ()) -> None:
        """The factors and the state, and whether the limits were met.

        :param order: of the arms.
        """
        from hotset.reports.analysis import stats

        document = self.document
        self.change(
            state="complete",
            **stats.compare_arms(document),
            arms=tuple(arm for name in order for arm in document.arms if arm.name == name),
            power_arms=tuple(
                arm for name in order for arm in document.power_arms if arm.name == name
            ),
        )
        self.change(thresholds=verdicts.judge_run(self.document, limits))
        self.change(predictions=checking.of_an_earlier_run(self.archive, self.document))

    def write_report(self) -> None:
        """Fill in the caveats and write the page, unless the run was refused; with it the run has
        ended."""
        from hotset.reports.analysis import prices
        from hotset.reports.render import html

        with closing(self._hold):
            if self._state == "refused":
                return
            if self.document.prices is not None:
                self.change(costs=prices.costs(self.document, self.document.prices))
            self.change(warnings=caveats.list_caveats(self.document))
            page = self.archive.path(self.document.run) / REPORT
            page.write_text(html.render(self.document), encoding="utf-8")

    def _withdraw(self) -> None:
        self._state = "refused"
        if self._before is None:
            self._hold.close()
            self.archive.remove(self.document.run)
        else:
            self.archive.save(self._before)

    def _end_phase(
        self, state: Literal["done", "failed", "interrupted"], failure: Failure | None = None
    ) -> None:
        phases, self._phase = self._phases(state), None
        ended = {} if state == "done" else {"state": state, "failure": failure}
        self.change(phases=phases, **ended)

    def _phases(self, state: Literal["done", "failed", "interrupted"]) -> tuple[Phase, ...]:
        """Return the phases that are done, and the current one in this state."""
        assert self._phase is not None
        name, begun = self._phase
        done = (phase for phase in self.document.phases if phase.state == "done")
        return (*done, Phase(name=name, state=state, seconds=time.monotonic() - begun))


def _experiment(spec: Spec | DiskSpec) -> Experiment:
    experiment = Experiment(name=spec.name, title=spec.title, spec=spec.model_dump(mode="json"))
    if isinstance(spec, DiskSpec):
        return experiment
    scripts = spec.sql.scripts if spec.sql else ()
    texts = tuple(
        Script(name=script.name, weight=script.weight, text=script.text) for script in scripts
    )
    return experiment.model_copy(update={"scripts": texts, "published": spec.published})


def _over_all(repeats: tuple[WarmUpRepeat, ...]) -> WarmUp:
    def mean(name: str) -> float:
        return float(sum(getattr(repeat, name) for repeat in repeats) / len(repeats))

    probes = [repeat.probe_hit_ratio for repeat in repeats if repeat.probe_hit_ratio is not None]
    return WarmUp(
        method=repeats[0].method,
        order=repeats[0].order,
        bytes=round(mean("bytes")),
        seconds=mean("seconds"),
        mb_per_s=mean("mb_per_s"),
        origin_mb_per_s=mean("origin_mb_per_s"),
        sampled_blocks=sum(repeat.sampled_blocks for repeat in repeats),
        differing_blocks=sum(repeat.differing_blocks for repeat in repeats),
        probe_hit_ratio=min(probes) if probes else None,
        probe_hit_ratio_min=repeats[0].probe_hit_ratio_min,
        probe_seconds=mean("probe_seconds"),
        repeats=repeats,
    )


def _place(window: Repeat) -> tuple[int, int]:
    return window.repeat, window.users or 0


def _number(record: PowerRun | WarmUpRepeat | HighestRate) -> int:
    return record.repeat


def _describe(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return interruption_reason(error) or "stopped by the user"
    return f"{type(error).__name__.removesuffix('Error')}: {error}"
