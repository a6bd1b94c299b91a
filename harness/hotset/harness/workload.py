"""TPC-C on a database the user has: build, run, check, drop. What each does, without a terminal."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

from hotset.harness.progress import Reporter
from hotset.tpcc import consistency, schema
from hotset.tpcc.consistency import ConditionResult
from hotset.tpcc.database import Aborted, Database
from hotset.tpcc.load import LoadResult, load
from hotset.tpcc.record import Phase, RunFailed, RunOptions, RunResult, Tick

Observer: TypeAlias = Callable[[Tick | Phase], None]
Drive: TypeAlias = Callable[[Database, RunOptions, Observer], RunResult]
"""A driver: runs the options and returns the window, or raises `RunFailed`."""

DRIVER = "hotset"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run as it is printed and written: the window (what there is of it), why it failed, and the
    twelve conditions where they were checked."""

    driver: str
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


def run(
    drive: Drive,
    name: str,
    database: Database,
    options: RunOptions,
    observe: Observer,
) -> Outcome:
    """Run a driver; a run that fails leaves what it measured until then."""
    try:
        return Outcome(name, drive(database, options, observe))
    except RunFailed as failure:
        return Outcome(name, failure.partial, failure.cause)


def checked(outcome: Outcome, database: Database, report: Reporter) -> Outcome:
    """The outcome with the twelve conditions."""
    return replace(outcome, conditions=tuple(check(database, report)))


def check(database: Database, report: Reporter) -> list[ConditionResult]:
    """All twelve conditions, with progress."""

    def say(result: ConditionResult) -> None:
        report.figure(f"{result.number} of 12 conditions checked")

    with closing(database.session()) as session, report.task("checking the twelve conditions"):
        try:
            return consistency.check(database, session, observe=say)
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
