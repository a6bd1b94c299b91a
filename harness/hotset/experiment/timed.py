"""The workload of many users that an experiment has: what runs it, and what it is called."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hotset.bench import tpcc_metrics
from hotset.bench.sql import run as sql_runs
from hotset.bench.sql.users import SqlWorkload
from hotset.bench.thresholds import Values
from hotset.core import words
from hotset.core.progress import Reporter
from hotset.databases.postgres.client import PostgresDatabase
from hotset.hammerdb import kept, release
from hotset.hammerdb import tpcc as hammerdb
from hotset.hammerdb.process.progress import observer
from hotset.load.live import line_printer
from hotset.load.record import Phase, Tick, WindowOptions, WindowResult
from hotset.load.run import Observer, run_workload
from hotset.reports.model.base import TimedWorkload
from hotset.tpcc import driver
from hotset.tpcc.record import RunOptions

from .file.spec import Spec
from .file.workload_tables import SqlTable, TpccTable


class Timed(Protocol):
    """One of the two below."""

    @property
    def want(self) -> TpccTable | SqlTable:
        """As the experiment file has it."""

    @property
    def name(self) -> TimedWorkload:
        """Its database's, too."""

    def title(self, users: int) -> str:
        """What is run, for people."""

    def options(
        self, users: int, rampup_s: float, duration_s: float, seed: int
    ) -> WindowOptions: ...

    def check(self, database: PostgresDatabase) -> None:
        """Have the server read what is not hotset's own.

        :raises ScriptError: a statement is no SQL there; names file and line.
        """

    def require(self) -> None:
        """See that this computer has what drives it.

        :raises PrerequisiteMissingError: it has not.
        """

    @property
    def by_seconds(self) -> bool:
        """Whether its driver tells of each second as it ends."""

    def drive(
        self,
        database: PostgresDatabase,
        options: WindowOptions,
        report: Reporter,
        observe: Observer = lambda _: None,
    ) -> WindowResult:
        """Run it and measure a window.

        :param observe: is told of each second, too, where the driver tells of them. What it raises
            ends the run.
        :raises RunFailed: the server died or stalled; there is no result.
        """

    def values(self, result: Any) -> Values:  # noqa: ANN401 - of `drive`
        """What limits can name."""


@dataclass(frozen=True, slots=True)
class Tpcc:
    """TPC-C by hotset's own driver."""

    want: TpccTable
    name: TimedWorkload = "tpcc"
    values: Callable[[Any], Values] = tpcc_metrics.values

    def title(self, users: int) -> str:
        return (
            f"TPC-C, {words.plural(users, 'user')},"
            f" {words.plural(self.want.warehouses, 'warehouse')}"
        )

    def options(self, users: int, rampup_s: float, duration_s: float, seed: int) -> RunOptions:
        return RunOptions(
            users=users,
            warehouses=self.want.warehouses,
            rampup_s=rampup_s,
            duration_s=duration_s,
            seed=seed,
            think_time=self.want.think_time,
            items=self.want.items,
        )

    def check(self, database: PostgresDatabase) -> None:
        """There is nothing to read."""

    def require(self) -> None:
        """Nothing more."""

    @property
    def by_seconds(self) -> bool:
        return True

    def drive(
        self,
        database: PostgresDatabase,
        options: WindowOptions,
        report: Reporter,
        observe: Observer = lambda _: None,
    ) -> WindowResult:
        assert isinstance(options, RunOptions)
        return driver.run(database, options, _observer(options, report, observe))


class Hammerdb(Tpcc):
    """TPC-C by HammerDB, on a database that it built."""

    def title(self, users: int) -> str:
        return f"HammerDB, {Tpcc.title(self, users)}"

    def options(self, users: int, rampup_s: float, duration_s: float, seed: int) -> RunOptions:
        """Its clock ticks in minutes: a probe takes a whole one."""
        return Tpcc.options(self, users, _minutes_s(rampup_s), _minutes_s(duration_s), seed)

    def require(self) -> None:
        release.find()

    @property
    def by_seconds(self) -> bool:
        return False

    def drive(
        self,
        database: PostgresDatabase,
        options: WindowOptions,
        report: Reporter,
        observe: Observer = lambda _: None,  # noqa: ARG002
    ) -> WindowResult:
        assert isinstance(options, RunOptions)
        with kept.folder(report, "tpcc-run") as folder:
            return hammerdb.run(database, options, folder, observe=observer(report))


def _minutes_s(seconds: float) -> float:
    return math.ceil(seconds / 60) * 60


def _observer(options: WindowOptions, report: Reporter, more: Observer) -> Observer:
    """Tells both."""
    show = line_printer(report, options.rampup_s + options.duration_s)

    def observe(event: Tick | Phase) -> None:
        show(event)
        more(event)

    return observe


@dataclass(frozen=True, slots=True)
class Sql:
    """Scripts of one's own."""

    want: SqlTable
    name: TimedWorkload = "sql"
    values: Callable[[Any], Values] = sql_runs.values

    def title(self, users: int) -> str:
        names = ", ".join(script.name for script in self.want.scripts)
        return f"{names}, {words.plural(users, 'user')}"

    def options(self, users: int, rampup_s: float, duration_s: float, seed: int) -> WindowOptions:
        return WindowOptions(
            users=users,
            rampup_s=rampup_s,
            duration_s=duration_s,
            seed=seed,
            max_errors=self.want.max_errors,
        )

    def check(self, database: PostgresDatabase) -> None:
        self._on(database, self.options(1, 0, 1, self.want.seed)).check()

    def require(self) -> None:
        """Nothing more."""

    @property
    def by_seconds(self) -> bool:
        return True

    def drive(
        self,
        database: PostgresDatabase,
        options: WindowOptions,
        report: Reporter,
        observe: Observer = lambda _: None,
    ) -> WindowResult:
        workload = self._on(database, options)
        return run_workload(workload, _observer(options, report, observe))

    def _on(self, database: PostgresDatabase, options: WindowOptions) -> SqlWorkload:
        want = self.want
        return SqlWorkload(database, want.scripts, options, want.define, want.protocol)


def find_timed(spec: Spec) -> Timed | None:
    """None where the experiment has the 22 queries alone."""
    if spec.tpcc is not None:
        return Hammerdb(spec.tpcc) if spec.tpcc.driver == "hammerdb" else Tpcc(spec.tpcc)
    return Sql(spec.sql) if spec.sql is not None else None
