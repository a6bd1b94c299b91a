"""The workload of many users that an experiment has, as its file says it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from hotset.bench import tpcc
from hotset.bench.live import line_printer
from hotset.bench.runs import Runs
from hotset.bench.sql import pgbench
from hotset.bench.sql import run as sql_runs
from hotset.bench.sql.workload import SqlWorkload
from hotset.core import words
from hotset.core.progress import Reporter
from hotset.databases.postgres.pgbench import find
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hammerdb import release
from hotset.load.record import Phase, Tick, WindowOptions
from hotset.load.run import Observer
from hotset.reports.model.base import TimedWorkload
from hotset.reports.model.windows import Repeat
from hotset.tpcc.record import RunOptions

from .file.spec import Spec
from .file.workload_tables import SqlTable, TpccTable


class Timed(ABC):
    """
    :cvar name: its database's, too.
    """

    want: TpccTable | SqlTable
    name: ClassVar[TimedWorkload]

    @property
    def by_seconds(self) -> bool:
        """True if its driver reports each second as it ends."""
        return True

    @abstractmethod
    def title(self, users: int) -> str:
        """Describe the run, for people."""

    @abstractmethod
    def options(
        self, users: int, rampup_s: float, duration_s: float, seed: int
    ) -> WindowOptions: ...

    @abstractmethod
    def runs(self, database: PostgresDatabase, report: Reporter) -> Runs[Any]:
        """Return the driver of its runs."""

    def require(self) -> None:  # noqa: B027 - hotset's own driver is there
        """See that this computer has what drives it, and that this can read it.

        :raises PrerequisiteMissingError: it has not.
        :raises RequestError: a script cannot be read; names file and line.
        """

    def drive(
        self,
        database: PostgresDatabase,
        options: WindowOptions,
        report: Reporter,
        observe: Observer = lambda _: None,
    ) -> Repeat:
        """Drive as `Runs.drive` does, and show it in the report as well."""
        show = line_printer(report, options.rampup_s + options.duration_s)

        def both(event: Tick | Phase) -> None:
            show(event)
            observe(event)

        return self.runs(database, report).drive(database, options, both)


@dataclass(frozen=True, slots=True)
class Tpcc(Timed):
    """TPC-C by hotset's own driver, or by HammerDB on a database that it built."""

    want: TpccTable
    name = "tpcc"

    @property
    def by_seconds(self) -> bool:
        return self.want.driver == "hotset"

    def title(self, users: int) -> str:
        return self._runs(Reporter(quiet=True)).title(self.options(users, 0, 1, 1))

    def options(self, users: int, rampup_s: float, duration_s: float, seed: int) -> RunOptions:
        """HammerDB's clock ticks in minutes: a probe takes a whole one."""
        if not self.by_seconds:
            rampup_s, duration_s = (
                math.ceil(seconds / 60) * 60 for seconds in (rampup_s, duration_s)
            )
        return RunOptions(
            users=users,
            warehouses=self.want.warehouses,
            rampup_s=rampup_s,
            duration_s=duration_s,
            seed=seed,
            think_time=self.want.think_time,
            items=self.want.items,
        )

    def require(self) -> None:
        if not self.by_seconds:
            release.find()

    def runs(self, database: PostgresDatabase, report: Reporter) -> tpcc.Runs:  # noqa: ARG002
        return self._runs(report)

    def _runs(self, report: Reporter) -> tpcc.Runs:
        return tpcc.Runs(report) if self.by_seconds else tpcc.HammerdbRuns(report)


@dataclass(frozen=True, slots=True)
class Sql(Timed):
    """Scripts of one's own."""

    want: SqlTable
    name = "sql"

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

    def require(self) -> None:
        pgbench.check(find(), self.want.scripts)

    def runs(self, database: PostgresDatabase, report: Reporter) -> sql_runs.Runs:
        want, options = self.want, self.options(1, 0, 1, self.want.seed)
        workload = SqlWorkload(database, want.scripts, options, want.define, want.protocol)
        return sql_runs.Runs(workload, report)


def find_timed(spec: Spec) -> Timed | None:
    """None where the experiment has the 22 queries alone."""
    if spec.tpcc is not None:
        return Tpcc(spec.tpcc)
    return Sql(spec.sql) if spec.sql is not None else None
