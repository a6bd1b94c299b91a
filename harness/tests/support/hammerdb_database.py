"""A database that is not there, as hotset asks it around HammerDB's runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hotset.core.sql import Aborted, Row

PASSWORD = "never-to-be-seen"  # noqa: S105 - of no server


class Session:
    """Answers what hotset asks the server around a run."""

    def __init__(self, answers: dict[str, Callable[[], list[Row]]]) -> None:
        self._answers = answers

    def query(self, sql: str) -> list[Row]:
        rows = next(rows() for mark, rows in self._answers.items() if mark in sql)
        if not rows:
            raise Aborted("error 42P01", False, "no such view")
        return rows

    def script(self, sql: str) -> None:
        raise NotImplementedError

    def call(self, procedure: str, args: object) -> Row:
        raise NotImplementedError

    def copy(self, table: str, columns: object, rows: object) -> int:
        raise NotImplementedError

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Connection:
    """A database that is not there; its error counters go up by 2 and 5 with each look."""

    host: str = "127.0.0.1"
    port: int = 5432
    user: str = "tester"
    password: str = field(default=PASSWORD, repr=False)
    dbname: str = "bench"
    engine: str = "postgres"
    hammerdb: str = "pg"
    counters: list[int] = field(default_factory=lambda: [0, 0])
    rows: dict[str, int] = field(default_factory=dict)
    orders: list[int] = field(default_factory=lambda: [2 * 10 * 3001 + 7])
    asked_at: list[float] = field(default_factory=list)
    has_counters: bool = True
    unable_from: int | None = None
    """The look from which on nobody can write; None: anybody can."""
    looks: list[int] = field(default_factory=lambda: [0])
    orders_each: Callable[[int], int] = lambda _: 600
    """Orders between two looks, by the number of the first."""
    ages: Callable[[int], list[float]] = lambda _: [0.0, 0.0, 0.0]
    """Of what each user is in, by the number of the look."""

    def looking(self) -> Connection:
        return self

    def _counted(self) -> list[Row]:
        self.counters[0] += 2
        self.counters[1] += 5
        return [tuple(self.counters)]

    def _ordered(self) -> int:
        self.asked_at.append(time.monotonic())
        self.orders.append(self.orders[-1] + self.orders_each(len(self.orders)))
        return self.orders[-2]

    def _able(self) -> str | None:
        self.looks[0] += 1
        late = self.unable_from is not None and self.looks[0] >= self.unable_from
        return "sessions of tester are read-only here" if late else None

    def session(self) -> Session:
        counts: list[Row] = list(self.rows.items())
        return Session(
            {
                "deadlocks": lambda: self._counted() if self.has_counters else [],
                "d_next_o_id": lambda: [(self._ordered(),)],
                "pg_is_in_recovery": lambda: [(self._able(),)],
                "pg_stat_activity": lambda: [(age,) for age in self.ages(self.looks[0])],
                "isolation": lambda: [("read committed",)],
                "UNION ALL": lambda: counts,
                "warehouse": lambda: [(2,)],
            }
        )
