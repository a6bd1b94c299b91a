"""TPC-C on a database the user has: build, run, check, drop. What each does, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Literal

from hotset.core.errors import Remedy, RequestError
from hotset.core.progress import Reporter
from hotset.core.sql import Aborted, DatabaseError, Locked, NotLoadedError
from hotset.core.words import plural
from hotset.databases.product import SqlDatabase
from hotset.hammerdb import tpcc as hammerdb
from hotset.hammerdb.process import progress
from hotset.hammerdb.process.failures import HammerdbRefused
from hotset.load.record import NotServed
from hotset.load.run import Observer
from hotset.reports.model.windows import Condition, Repeat
from hotset.tpcc import driver, plans, schema
from hotset.tpcc.data import consistency
from hotset.tpcc.data.load import LoadResult, load
from hotset.tpcc.record import RunOptions

from . import ownership, runs, tpcc_metrics, window
from .server.time_use import sample
from .thresholds import Threshold, Values
from .window import Outcome


def build(
    database: SqlDatabase, warehouses: int, seed: int, replace_: bool, report: Reporter
) -> tuple[LoadResult, list[Condition]]:
    """Load a database and check it.

    :raises AlreadyLoaded: hotset's TPC-C is there already and ``replace_`` is false.
    :raises NotOurs: somebody else made a schema of that name, or has something in it.
    """
    holdings = ownership.holdings(database, ownership.TPCC)
    ownership.require_free(holdings, replacing=replace_)
    database.require_room(schema.estimate_bytes(warehouses), "warehouses")
    if holdings.is_loaded:
        ownership.drop(database, ownership.TPCC)
    with (
        ownership.saying_what_stays(database, ownership.TPCC, report.say),
        report.task(f"loading {warehouses} warehouses"),
    ):
        done = load(database, warehouses, seed=seed, observe=report.on_step)
    report.say(f"loaded {done.rows:,} rows in {done.seconds:.1f} s")
    return done, check(database, report)


HAMMERDB_KEEPS = tuple(number for number in consistency.ALL if number not in (10, 11, 12))
"""The conditions that hold with either driver. HammerDB loads delivered orders
with amounts, and customers who owe nothing for them (10, 12), and its deliveries never count at the
customer (11: C_DELIVERY_CNT is in its CREATE TABLE and its load alone)."""


def build_by_hammerdb(database: SqlDatabase, warehouses: int, report: Reporter) -> list[Condition]:
    """Have HammerDB build its schema in an existing, empty database, and check it.

    :raises AlreadyLoaded: hotset's TPC-C is there already.
    :raises NotOurs: something else has one of its names.
    """
    ownership.require_free(ownership.holdings(database, ownership.TPCC), by_hammerdb=True)
    with (
        ownership.saying_what_stays(database, ownership.TPCC, report.say),
        ownership.marking_hammerdbs(database, ownership.TPCC),
        progress.task(report, "tpcc-build", f"HammerDB builds {warehouses} warehouses") as folder,
    ):
        done = hammerdb.build(database, warehouses, folder, observe=progress.observer(report))
    report.say(f"loaded {sum(done.rows.values()):,} rows in {done.seconds:.1f} s")
    return check(database, report, HAMMERDB_KEEPS)


def options(*, rate: str | None, **named: Any) -> RunOptions:  # noqa: ANN401 - RunOptions checks
    """Options of a run; see `window.options`."""
    return window.options(RunOptions, rate, **named)


class Runs(runs.Runs[RunOptions]):
    """By hotset's own driver."""

    suite = "hotset.tpcc.run"

    def __init__(
        self, report: Reporter, *, check: bool = False, numbers: Sequence[int] = consistency.ALL
    ) -> None:
        """:param check: check these conditions after a run."""
        super().__init__(report)
        self._numbers = numbers if check else ()

    def require_options(self, options: RunOptions, *, until_steady: bool, find_rate: bool) -> None:
        if find_rate and (options.rate_per_s is not None or options.think_time):
            raise RequestError("a search sets the rate itself: leave rate and think times out")
        super().require_options(options, until_steady=until_steady, find_rate=find_rate)

    def title(self, options: RunOptions) -> str:
        users, warehouses = options.users, options.warehouses
        return f"TPC-C, {plural(users, 'user')}, {plural(warehouses, 'warehouse')}"

    def drive(
        self, database: SqlDatabase, options: RunOptions, observe: Observer = lambda _: None
    ) -> Repeat:
        return driver.run(database, options, observe)

    def limits(self, texts: Sequence[str]) -> list[Threshold]:
        return tpcc_metrics.limits(texts)

    def values(self, result: Repeat) -> Values:
        return tpcc_metrics.values(result)

    def rate(self, result: Repeat) -> str:
        return f"{result.nopm:,.0f} NOPM"

    def ending(self, outcome: Outcome) -> tuple[window.State, str | None]:
        """End as any run, or by the conditions that do not hold."""
        if outcome.cause is None and outcome.broken:
            return "failed", str(consistency.Violated(outcome.broken))
        return super().ending(outcome)

    def check_afterwards(self, outcome: Outcome, database: SqlDatabase) -> Outcome:
        """With the conditions that its database has to keep, where they are wanted."""
        if not self._numbers:
            return outcome
        self._report.say("measured; the check that follows reads the tables, and the cache sees it")
        conditions = check(database, self._report, self._numbers)
        return outcome.amend(conditions=tuple(conditions))

    def run(self, database: SqlDatabase, options: RunOptions) -> Outcome:
        """With the plans that changed."""
        require_driver(database, "hotset")
        before = _plans(database)
        outcome = super().run(database, options)
        if outcome.result is None or outcome.cause is not None:
            return outcome
        try:
            after = _plans(database)
        except Locked:
            return outcome
        flips = plans.flips(before, after, outcome.result.steadiness)
        return outcome.amend(plan_changes=tuple(flips))


class HammerdbRuns(Runs):
    """By HammerDB, whose result is whole or none."""

    def __init__(self, report: Reporter, *, check: bool = False) -> None:
        super().__init__(report, check=check, numbers=HAMMERDB_KEEPS)

    def warn(self, outcome: Outcome, database: SqlDatabase) -> Outcome:
        """HammerDB's counters are its own."""
        return super(Runs, self).warn(outcome, database)

    def require_options(self, options: RunOptions, *, until_steady: bool, find_rate: bool) -> None:
        if until_steady:
            raise HammerdbRefused(
                "HammerDB does not tell its run by seconds: use hotset's own driver"
            )
        if find_rate or options.rate_per_s is not None:
            raise HammerdbRefused("HammerDB's users keep to no rate: use hotset's own driver")
        hammerdb.translate(options)

    def title(self, options: RunOptions) -> str:
        return f"HammerDB, {super().title(options)}"

    def drive(
        self,
        database: SqlDatabase,
        options: RunOptions,
        observe: Observer = lambda _: None,  # noqa: ARG002 - it tells no single seconds
    ) -> Repeat:
        with progress.folder(self._report, "tpcc-run") as folder:
            return hammerdb.run(database, options, folder, observe=progress.observer(self._report))

    def run(self, database: SqlDatabase, options: RunOptions) -> Outcome:
        require_driver(database, "hammerdb")
        with (
            self._report.task(self.title(options)),
            sample(database) as sampler,
        ):
            try:
                result = self.drive(database, options)
            except NotServed as failure:
                return Outcome(failure.partial, failure.cause)
        return Outcome(window.add_time(result, sampler))


def require_driver(database: SqlDatabase, name: Literal["hotset", "hammerdb"]) -> None:
    """
    :raises RequestError: another driver's procedures are in the database; names which.
    """
    try:
        holdings = ownership.holdings(database, ownership.TPCC)
    except DatabaseError:
        return  # the run says that better
    if name == "hotset" and not holdings.is_own and holdings.has_hammerdbs_procedures:
        raise RequestError(
            f"{holdings.place} has HammerDB's TPC-C, which has other procedures",
            Remedy("drive it with HammerDB", parameters={"driver": "hammerdb"}),
            field="driver",
        )
    if name == "hammerdb" and holdings.is_own:
        raise RequestError(
            f"{holdings.place} has hotset's TPC-C, which has other procedures: drive it with"
            " hotset's own driver, or build another database with HammerDB",
            field="driver",
        )


def _plans(database: SqlDatabase) -> dict[plans.Statement, str]:
    """None where the tables or the server are not there: the run says that better.

    :raises Locked: another session has one of the tables to itself: the run would wait for it.
    """
    try:
        return plans.shapes(database.looking())
    except Locked:
        raise
    except DatabaseError:
        return {}


def require(outcome: Outcome) -> None:
    """
    :raises RunFailed: there is no result, or not the whole of it.
    :raises Violated: a consistency condition does not hold.
    :raises ThresholdError: a threshold was missed, or no rate held the limits.
    """
    if outcome.cause is None:
        consistency.require(outcome.broken)
    window.require(outcome)


def check(
    database: SqlDatabase, report: Reporter, numbers: Sequence[int] = consistency.ALL
) -> list[Condition]:
    """The twelve conditions, or some of them, with progress.

    :raises SetupError: the tables are not all there, or their load was not finished.
    :raises Locked: another session has one of them to itself.
    """

    def say(result: Condition) -> None:
        report.figure(f"{result.number} of 12 conditions checked")

    database = database.looking()
    title = f"checking {'the twelve' if len(numbers) == 12 else len(numbers)} conditions"
    others = not ownership.holdings(database, ownership.TPCC).is_own
    with closing(database.session()) as session, report.task(title):
        if not others:
            schema.require_finished(database, session)
        try:
            return consistency.check(database, session, numbers, observe=say, by_hammerdb=others)
        except Aborted as error:
            if set(schema.present(session, by_hammerdb=others)) != set(schema.TABLES):
                raise NotLoadedError(
                    f"not all TPC-C tables are here ({error})", Remedy("load them", "tpcc build")
                ) from None
            raise
