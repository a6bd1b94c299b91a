"""Shared by `tpcc run` and `sql run`: a window or a curve of them, kept as each ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, Context, check_output
from hotset.core.record import Result, document_of

from . import keeping, kits

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.core.progress import Reporter
    from hotset.databases.product import SqlDatabase
    from hotset.reports.model.document import RunDocument

    from ..kept.found import FoundDatabase
    from ..kept.measurement import Kept, Subject
    from ..ownership import Kit
    from ..runs import Runs
    from ..server.sampled import Watch
    from ..window import Options, Outcome


@dataclass(frozen=True, slots=True)
class Windows(Result):
    """A run, or a curve: a run for each number of users.

    :ivar points: how each ended.
    :ivar run: what they are as a run of the archive, kept there or not.
    """

    described_by = "reports.model.document:RunDocument"
    points: tuple[Outcome, ...]
    run: RunDocument

    def to_record(self) -> RunDocument:
        return self.run

    def require(self, outcome: Outcome) -> None:
        """Raises what it amounts to, where that is a failure."""
        from .. import window

        window.require(outcome)

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.summary(self.run, console)

    def csv(self) -> str:
        from hotset.reports.render import tables

        return tables.windows_csv(self.run)

    def failure(self) -> Exception | None:
        from .. import window

        return window.failure(self.points, self.require)

    def figures(self) -> Mapping[str, str]:
        from hotset.reports.analysis import measured

        return measured.figures(self.run)


class Request(kits.OneDatabase):
    """Which windows there are, and where they are written."""

    users: Annotated[
        fields.Users,
        Field(
            description="Number of virtual users, each with its own connection. A rising list,"
            " such as 1,2,4,8, measures a curve, with a ramp-up and a window for each number."
        ),
        Cli(short="-u"),
    ] = "8"
    duration: fields.Duration = 60
    find_rate: Annotated[
        fields.Expressions | None,
        Field(
            description="Search for the highest rate that meets this limit, such as 'p95<50ms'."
            " Each rate takes a ramp-up and a window. Repeatable."
        ),
    ] = None
    until_steady: fields.UntilSteady = None
    fresh: Annotated[
        bool,
        Field(
            description="Run on a copy of the database and drop it afterwards, so that the"
            " database stays as it is and every run starts the same. PostgreSQL only; needs disk"
            " space for the copy."
        ),
    ] = False
    threshold: Annotated[fields.Expressions | None, fields.thresholds("'p95<50ms'")] = None
    junit: fields.Junit = None
    sample: fields.SampledServer = None
    label: fields.RunLabel = None
    keep: fields.Keep = True
    output: fields.Output = None


def measure(
    request: Request,
    runs: Runs[Options],
    database: SqlDatabase,
    options: Options,
    context: Context,
    subject_of: Callable[[FoundDatabase], Subject],
    kit: Kit | None = None,
) -> tuple[tuple[Outcome, ...], RunDocument]:
    """The run, or the runs of a curve, each judged, and written as it ends: neither a later failure
    nor Ctrl-C loses any of it.

    :param subject_of: what they are kept as, by what the server tells of the database.
    :param kit: what nobody else may run at the same time.
    :return: how the windows ended, and the run of the archive that they are.
    """
    from .. import window
    from ..kept.found import find_database

    thresholds = runs.limits(request.threshold or [])
    _require_options(request, runs, database, options)
    drive = _drive(request, runs)
    check_output(request.output)
    check_output(request.junit, "junit")
    runs.check(database)
    points: list[Outcome] = []
    subject = subject_of(find_database(database))
    kept = keeping.begin(request.keep, subject, context)
    try:
        with _alone(request, kept, database, kit, context) as watch:
            for outcome in _each(request, runs, drive, database, options, context.report):
                warned = runs.warn(window.add_server_use(outcome, watch, kept.block), database)
                points.append(runs.with_verdicts(warned, thresholds))
                kept.keep_windows(points, subject.timed)
                _write(points, kept.document, runs.suite, request, context)
    except BaseException as error:
        # What closes behind the last window may fail as well.
        if not points or window.cause_of(error) is None:
            keeping.fail(kept, error)
            raise
        points[-1] = window.end_with(points[-1], error)
    if not request.fresh:
        points[-1] = runs.check_database(points[-1], database)
    kept.keep_windows(points, subject.timed)
    keeping.finish(kept, *runs.ending(points[-1]), context)
    _write(points, kept.document, runs.suite, request, context)
    return tuple(points), kept.document


@contextmanager
def _alone(
    request: Request, kept: Kept, database: SqlDatabase, kit: Kit | None, context: Context
) -> Iterator[Watch]:
    """Alone on the database, and its server and tier watched where the server is named."""
    from .. import alone

    # A copy is nobody else's anyway.
    with (
        alone.on(database, kit, context.report) if kit and not request.fresh else nullcontext(),
        keeping.watching(kept, request.sample, database, context) as watch,
    ):
        yield watch


def _require_options(
    request: Request,
    runs: Runs[Options],
    database: SqlDatabase,
    options: Options,
) -> None:
    """Before anything connects. Raises RequestError."""
    from .. import window

    if request.find_rate:
        window.require_one_number(fields.each_users(request.users))
    if request.fresh:
        database.require_copies()
    runs.require_options(
        options,
        until_steady=request.until_steady is not None,
        find_rate=bool(request.find_rate),
    )


def _each(
    request: Request,
    runs: Runs[Options],
    drive: Callable[[SqlDatabase, Options], Outcome],
    database: SqlDatabase,
    options: Options,
    report: Reporter,
) -> Iterator[Outcome]:

    each_users = fields.each_users(request.users)

    def measure(options: Options) -> Outcome:
        if not request.fresh:
            return drive(database, options)
        with database.copy(report) as copy:
            return runs.check_database(drive(copy, options), copy)

    if len(each_users) == 1:
        yield measure(options)
    else:
        yield from runs.curve(each_users, options, measure)


def _drive(request: Request, runs: Runs[Options]) -> Callable[[SqlDatabase, Options], Outcome]:
    """Drive one point of the curve."""
    from .. import window

    limits = request.find_rate or []
    runs.limits(limits)
    steady = request.until_steady
    limit_s = window.seconds(steady, "until_steady") if steady else None
    if limits:
        return lambda database, options: runs.find_rate(database, options, limits)
    if limit_s is not None:
        return lambda database, options: runs.run_until_steady(database, options, limit_s)
    return runs.run


def _write(
    points: Sequence[Outcome],
    document: RunDocument,
    suite: str,
    request: Request,
    context: Context,
) -> None:
    from ..window import junit_xml

    if request.output is not None:
        context.write(request.output, json.dumps(document_of(document), indent=1) + "\n")
    if request.junit is not None:
        context.write(request.junit, junit_xml(points, suite))
