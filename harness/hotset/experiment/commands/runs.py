"""List, show, compare and delete finished runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import ConflictError, Remedy, RequestError, ThresholdError
from hotset.core.fields import Run
from hotset.core.operation import Cli, Context, Kind, Lines, Recorded, Request, operation
from hotset.core.record import Result
from hotset.core.rights import Right
from hotset.core.words import csv_text
from hotset.reports.archive import Archive, RunningError

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.reports.analysis.comparison.compare import Difference
    from hotset.reports.analysis.comparison.trend import Trend, TrendReport
    from hotset.reports.model.document import RunDocument

_LISTED, _SHOWN = 1000, 100
"""Drawing a table of a thousand runs takes longer than finding them."""


@dataclass(frozen=True, slots=True)
class Listing(Recorded[Any]):
    """The runs of the archive, the newest first.

    :ivar shown: how many of them people are shown; programs get all.
    :ivar total: how many the archive has.
    """

    described_by = "reports.render.tables:Runs"
    csv_rows = "runs"
    shown: int
    total: int

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.listing(self.content.runs[: self.shown], console)
        if self.total > self.shown:
            console.print(f"The newest {self.shown:,} of {self.total:,} runs.", highlight=False)


class List(Request):
    limit: Annotated[
        int | None,
        Field(
            ge=1,
            le=10_000,
            description=f"How many runs to list, newest first; default: {_LISTED:,}, of which the"
            f" table shows {_SHOWN}.",
        ),
        Cli(short="-n"),
    ] = None


@operation("runs list", Kind.QUERY, Right.READ, ("Get", "HotsetRun"))
def list_runs(request: List, context: Context) -> Listing:  # noqa: ARG001
    """List the runs, newest first."""
    from hotset.reports.render.tables import Runs

    archive = Archive.default()
    runs = Runs(tuple(archive.listing(request.limit or _LISTED)))
    return Listing(runs, request.limit or _SHOWN, archive.count())


class Show(Request):
    run: Run
    queries: Annotated[
        bool, Field(description="CSV of TPC-H instead, with a line for each arm, repeat and query.")
    ] = False


@dataclass(frozen=True, slots=True)
class RunResult(Result):
    """The measurements of a run.

    :ivar queries: its CSV is TPC-H's.
    """

    described_by = "reports.model.document:RunDocument"
    run: RunDocument
    queries: bool = False

    def to_record(self) -> RunDocument:
        self._refuse_queries()
        return self.run

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        self._refuse_queries()
        terminal.summary(self.run, console)

    def csv(self) -> str:
        from hotset.reports.render import tables

        return tables.queries_csv(self.run) if self.queries else tables.summary_csv(self.run)

    def _refuse_queries(self) -> None:
        if self.queries:
            raise RequestError(
                "only CSV chooses between runs and queries; tables and JSON have both",
                field="queries",
            )


@operation("runs show", Kind.QUERY, Right.READ, ("Get", "HotsetRunResult"))
def show(request: Show, context: Context) -> RunResult:  # noqa: ARG001
    """Show what a run measured. CSV has a line for each arm and repeat of TPC-C."""
    return RunResult(Archive.default().load(request.run), request.queries)


class Compare(Request):
    runs: Annotated[
        fields.Words,
        Field(
            min_length=1,
            description="The runs to compare; the first is the reference. A label stands for all"
            " complete measurements that have it, as repeats of one.",
        ),
        Cli(argument=True, metavar="RUN"),
    ]
    force: Annotated[bool, Field(description="Compare runs even if their set-ups differ.")] = False


@dataclass(frozen=True, slots=True)
class Compared(Recorded[Any]):
    """How many times faster each arm is.

    :ivar differences: the differences between the set-ups.
    """

    described_by = "reports.analysis.comparison.compare:RunComparison"
    csv_rows = "lines"
    differences: tuple[Difference, ...]

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        for labelled in self.content.labels:
            console.print(str(labelled), highlight=False, markup=False)
        terminal.comparison(self.content.lines, self.differences, console)


@operation("runs compare", Kind.QUERY, Right.READ, ("Compare", "HotsetRun"))
def compare_runs(request: Compare, context: Context) -> Compared:  # noqa: ARG001
    """Compare runs: how many times faster each arm is.

    A factor from three repeats or more has a 95 % confidence interval; from fewer it is not known
    whether it is chance. Runs with different set-ups are refused. The measurements of a label are
    repeats: after three with --label before and three with --label after, compare before after.
    """
    from hotset.reports.analysis.comparison import compare

    from .. import history

    archive = Archive.default()
    try:
        loaded = [history.load(archive, run, request.force) for run in request.runs]
    except compare.SetUpsDiffer as error:
        remedy = Remedy("compare them anyway", parameters={"force": True})
        raise ConflictError(str(error), remedy) from None
    first, *others = documents = [document for document, _ in loaded]
    if not others:
        raise RequestError("name at least two runs", field="runs")
    if running := [document.run for document in documents if document.state == "running"]:
        raise RunningError(running[0])
    if of_disks := [
        document.run for document in documents if document.disks and not document.measurement
    ]:
        raise RequestError(
            f"run {of_disks[0]} is of modelled disks and has no arms: compare runs of a database",
            field="runs",
        )
    for other in () if request.force else others:
        try:
            compare.require_same(first, other)
        except compare.SetUpsDiffer as error:
            remedy = Remedy("compare them anyway", parameters={"force": True})
            raise ConflictError(str(error), remedy) from None
    differing = [difference for other in others for difference in compare.differences(first, other)]
    differences, lines = (
        tuple(map(str, differing)),
        tuple(compare.lines(documents, history.way_to_know)),
    )
    labels = tuple(labelled for _, labelled in loaded if labelled is not None)
    return Compared(compare.RunComparison(differences, lines, labels), tuple(differing))


class TrendOf(Request):
    run: Annotated[
        fields.Word,
        Field(description="A run of the set-up: its id, the beginning of one, or 'last'."),
        Cli(argument=True, metavar="RUN"),
    ] = "last"
    metric: Annotated[
        fields.Expression | None,
        Field(
            description="The value to track: a metric as in an experiment's thresholds, such as"
            " factor, 'p95(accelerated)' or queries. Default: nopm, or tps for your own SQL."
        ),
    ] = None
    limit: Annotated[
        int,
        Field(ge=1, le=10_000, description="How many of the newest runs to look at."),
        Cli(short="-n"),
    ] = 100
    fail: Annotated[
        bool, Field(description="Exit with code 5 if the last change was for the worse.")
    ] = False


@dataclass(frozen=True, slots=True)
class TrendResult(Result):
    """:ivar with_it: what else was not the same from the run before, of each change.

    :ivar fail: True if a change for the worse is a failure.
    """

    described_by = "reports.analysis.comparison.trend:TrendReport"
    trend: Trend
    with_it: tuple[tuple[str, ...], ...]
    fail: bool = False

    def to_record(self) -> TrendReport:
        from hotset.reports.analysis.comparison.trend import TrendReport

        return TrendReport.from_trend(self.trend, self.with_it)

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.trend(self.trend, self.with_it, console)

    def csv(self) -> str:
        from hotset.reports.analysis.comparison import trend

        return csv_text(trend.COLUMNS, trend.rows(self.trend))

    def failure(self) -> Exception | None:
        if not self.fail or not self.trend.is_worse:
            return None
        return ThresholdError(self.trend.sentence(self.trend.changes[-1]))


@operation("runs trend", Kind.QUERY, Right.READ, ("Measure", "HotsetTrend"))
def trend_of(request: TrendOf, context: Context) -> TrendResult:  # noqa: ARG001
    """Track one value over the runs of a set-up, and show where its level changed.

    Runs belong to one set-up if their settings and machines are the same. Versions and kernels may
    differ; they are named where the level changed. That is told of three runs in a row, not all of
    one day, that lie beyond all eight or more before them by as much as those span, so that better
    and worse days are no change. Exit code 5 with --fail.
    """
    from .. import history

    archive = Archive.default()
    trend, with_it = history.trend(
        archive, archive.load(request.run), request.metric, request.limit
    )
    return TrendResult(trend, with_it, request.fail)


class Remove(Request):
    run: Run
    yes: fields.Yes = False


@operation(
    "runs rm",
    Kind.QUERY,
    Right.ADMIN,
    ("Remove", "HotsetRun"),
    destroys=True,
    question=lambda request: f"Delete run {Archive.default().resolve_removable(request.run)}?",
)
def remove(request: Remove, context: Context) -> Lines:
    """Delete a run and all its files in the archive.

    A deletion that was interrupted is finished in the same way: `runs list` shows it.
    """
    archive = Archive.default()
    name = archive.remove(request.run)
    context.message(f"deleted {name}")
    return Lines()
