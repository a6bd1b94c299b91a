"""TPC-C on a database the user has: build, run, check, drop. What each does, without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from hotset.harness.engines.connect import SqlDatabase
from hotset.harness.hammerdb import kept
from hotset.harness.hammerdb import tpcc as hammerdb
from hotset.harness.live import following
from hotset.harness.progress import Reporter
from hotset.tpcc import consistency, driver, schema
from hotset.tpcc.consistency import ConditionResult
from hotset.tpcc.database import Aborted, Database
from hotset.tpcc.load import LoadResult, load
from hotset.tpcc.record import RunFailed, RunOptions, RunResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run as it is printed and written: the window (what there is of it), why it failed, and the
    twelve conditions where they were checked."""

    result: RunResult | None
    cause: str | None = None
    conditions: tuple[ConditionResult, ...] | None = None

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
            " loads afresh"
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
        done = hammerdb.build(database, warehouses, folder, observe=report.on_hammerdb)
    report.say(f"loaded {sum(done.rows.values()):,} rows in {done.seconds:.1f} s")
    return check(database, report, HAMMERDB_KEEPS)


def run(database: Database, options: RunOptions, report: Reporter) -> Outcome:
    """Run hotset's own driver; a run that fails leaves what it measured until then."""
    try:
        with following(report, options) as observe:
            return Outcome(driver.run(database, options, observe))
    except RunFailed as failure:
        return Outcome(failure.partial, failure.cause)


def run_by_hammerdb(database: SqlDatabase, options: RunOptions, report: Reporter) -> Outcome:
    """Run HammerDB, whose result is whole or none."""
    title = f"HammerDB, {options.users} users, {options.warehouses} warehouses"
    with kept.task(report, "tpcc-run", title) as folder:
        return Outcome(hammerdb.run(database, options, folder, observe=report.on_hammerdb))


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
