"""TPC-C on a database the user has: build, run, check, drop. What each does, without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from hotset.cachelayer.common.errors import RequestError
from hotset.reports.model import words
from hotset.tpcc import driver, schema
from hotset.tpcc.data import consistency
from hotset.tpcc.data.consistency import ConditionResult
from hotset.tpcc.data.load import LoadResult, load
from hotset.tpcc.database import Aborted, Database, DatabaseError
from hotset.tpcc.window import plans
from hotset.tpcc.window.plans import Flip
from hotset.tpcc.window.record import RunFailed, RunOptions, RunResult

from ..databases.connect import SqlDatabase
from ..databases.time_use import TimeSampler, readings
from ..hammerdb import kept
from ..hammerdb import tpcc as hammerdb
from ..hammerdb.process.failures import HammerdbRefused
from ..hammerdb.process.progress import observer
from ..terminal.live import following
from ..terminal.progress import Reporter
from ..thresholds import Threshold
from . import tpcc_metrics, window


@dataclass(frozen=True, slots=True)
class Outcome(window.Outcome[RunResult]):
    """With the twelve conditions where they were checked, and the plans that changed."""

    conditions: tuple[ConditionResult, ...] | None = None
    flips: tuple[Flip, ...] = ()

    @property
    def broken(self) -> list[ConditionResult]:
        """The conditions that do not hold."""
        return [one for one in self.conditions or () if not one.holds]


def build(
    database: Database, warehouses: int, seed: int, replace_: bool, report: Reporter
) -> tuple[LoadResult, list[ConditionResult]]:
    """Load a database and check it.

    :raises AlreadyLoaded: there are TPC-C tables already and ``replace_`` is false.
    """
    there = _tables(database)
    if there and not replace_:
        raise schema.AlreadyLoaded(
            f"the database has TPC-C tables already ({', '.join(there)}): --replace drops them and"
            " loads again"
        )
    with report.task(f"loading {warehouses} warehouses"):
        done = load(database, warehouses, seed=seed, observe=report.on_load)
    report.say(f"loaded {done.rows:,} rows in {done.seconds:.1f} s")
    return done, check(database, report)


HAMMERDB_KEEPS = tuple(number for number in consistency.ALL if number not in (10, 12))
"""HammerDB loads delivered orders with amounts, and customers who owe nothing for them: of the
conditions its databases break these two from the start."""


def build_by_hammerdb(
    database: SqlDatabase, warehouses: int, report: Reporter
) -> list[ConditionResult]:
    """Have HammerDB build its schema in an existing, empty database, and check it.

    :raises AlreadyLoaded: there are TPC-C tables already; HammerDB drops none.
    """
    there = _tables(database)
    if there:
        raise schema.AlreadyLoaded(
            f"the database has TPC-C tables already ({', '.join(there)}): HammerDB builds in an"
            " empty one; `hotset tpcc drop` empties it"
        )
    with kept.task(report, "tpcc-build", f"HammerDB builds {warehouses} warehouses") as folder:
        done = hammerdb.build(database, warehouses, folder, observe=observer(report))
    report.say(f"loaded {sum(done.rows.values()):,} rows in {done.seconds:.1f} s")
    return check(database, report, HAMMERDB_KEEPS)


_NO_RATE = "HammerDB's users keep to no rate: use hotset's own driver"


def options(*, rate: str | None, **named: Any) -> RunOptions:  # noqa: ANN401 - RunOptions checks
    """Options of a run; see `window.options`."""
    return window.options(RunOptions, rate, **named)


def run(database: SqlDatabase, options: RunOptions, report: Reporter) -> Outcome:
    """Run hotset's own driver; a run that fails leaves what it measured until then."""
    before = _plans(database)
    try:
        with TimeSampler(readings(database)) as sampler:
            result = _drive(database, options, report)
    except RunFailed as failure:
        return _failed(failure)
    flips = plans.flips(before, _plans(database), result.steadiness)
    return Outcome(result, time_use=window.time_use(sampler, result), flips=tuple(flips))


def _drive(database: Database, options: RunOptions, report: Reporter) -> RunResult:
    title = f"TPC-C, {options.users} users, {options.warehouses} warehouses"
    with following(report, options, title) as observe:
        return driver.run(database, options, observe)


def _failed(failure: RunFailed) -> Outcome:
    """With what there is of the window."""
    partial = failure.partial
    assert partial is None or isinstance(partial, RunResult)
    return Outcome(partial, failure.cause)


def _plans(database: Database) -> dict[plans.Statement, str]:
    """None where the tables or the server are not there: the run says that better."""
    try:
        return plans.shapes(database)
    except DatabaseError:
        return {}


def run_curve(
    each_users: Sequence[int],
    options: RunOptions,
    drive: Callable[[RunOptions], Outcome],
    say: Callable[[str], None],
) -> Iterator[Outcome]:
    """A run for each number of users; one that fails is the last.

    :param drive: runs one, by either driver.
    """

    def say_it(outcome: Outcome) -> None:
        if (result := outcome.result) is not None:
            say(f"{words.plural(result.options.users, 'user')}: {result.nopm:,.0f} NOPM")

    def failed(cause: str) -> Outcome:
        return Outcome(None, cause)

    return window.curve(each_users, options, drive, failed, say_it)


def run_until_steady(
    database: SqlDatabase,
    options: RunOptions,
    limit_s: float,
    report: Reporter,
    driver_name: str = "hotset",
) -> Outcome:
    """Windows one after the other until one is steady or ``limit_s`` are over; the last counts.

    :raises RequestError: the window is too short to be judged, or HammerDB is to drive.
    """
    if driver_name != "hotset":
        raise HammerdbRefused("HammerDB does not tell its run by seconds: use hotset's own driver")
    return window.until_steady(lambda one: run(database, one, report), options, limit_s, report)


def find_rate(
    database: Database,
    options: RunOptions,
    limits: Sequence[Threshold],
    report: Reporter,
    driver_name: str = "hotset",
) -> Outcome:
    """Search for the highest rate of transactions at which all limits hold.

    :raises RequestError: the options give a rate or think times already, or HammerDB is to drive.
    """
    if driver_name != "hotset":
        raise HammerdbRefused(_NO_RATE)
    if options.rate_per_s is not None or options.think_time:
        raise RequestError("a search sets the rate itself: leave rate and think times out")

    def one(options: RunOptions) -> RunResult:
        return _drive(database, options, report)

    try:
        found = window.find_rate(one, options, tpcc_metrics.missed(limits), report)
    except RunFailed as failure:
        return _failed(failure)
    return Outcome(found.highest.result if found.highest else None, found=found)


def judged(outcome: Outcome, wanted: Sequence[Threshold]) -> Outcome:
    """The outcome with a verdict on each threshold, where there is a result to judge."""
    return window.judged(outcome, wanted, tpcc_metrics.values)


def require(outcome: Outcome) -> None:
    """
    :raises RunFailed: there is no result, or not the whole of it.
    :raises Violated: a consistency condition does not hold.
    :raises ThresholdError: a threshold was missed, or no rate held the limits.
    """
    if outcome.cause is None:
        consistency.require(list(outcome.conditions or ()))
    window.require(outcome)


def run_by_hammerdb(database: SqlDatabase, options: RunOptions, report: Reporter) -> Outcome:
    """Run HammerDB, whose result is whole or none."""
    title = f"HammerDB, {options.users} users, {options.warehouses} warehouses"
    if options.rate_per_s is not None:
        raise HammerdbRefused(_NO_RATE)
    with (
        kept.task(report, "tpcc-run", title) as folder,
        TimeSampler(readings(database)) as sampler,
    ):
        result = hammerdb.run(database, options, folder, observe=observer(report))
    return Outcome(result, time_use=window.time_use(sampler, result))


def checked(
    outcome: Outcome, database: Database, report: Reporter, numbers: Sequence[int] = consistency.ALL
) -> Outcome:
    """The outcome with the conditions."""
    return replace(outcome, conditions=tuple(check(database, report, numbers)))


def check(
    database: Database, report: Reporter, numbers: Sequence[int] = consistency.ALL
) -> list[ConditionResult]:
    """The twelve conditions, or some of them, with progress."""

    def say(result: ConditionResult) -> None:
        report.figure(f"{result.number} of 12 conditions checked")

    title = f"checking {'the twelve' if len(numbers) == 12 else len(numbers)} conditions"
    with closing(database.session()) as session, report.task(title):
        try:
            return consistency.check(database, session, numbers, observe=say)
        except Aborted as error:
            if set(schema.present(session)) != set(schema.TABLES):
                raise schema.SetupError(
                    f"not all TPC-C tables are here ({error}): `hotset tpcc build` loads them"
                ) from None
            raise


def drop(database: Database) -> list[str]:
    """Remove the tables and procedures; returns the tables there were."""
    there = _tables(database)
    with closing(database.session()) as session:
        schema.drop(database, session)
    return there


def _tables(database: Database) -> list[str]:
    with closing(database.session()) as session:
        return schema.present(session)
