"""A plan that turns within a run is told with the run's result."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing

import pytest
from rich.console import Console

from hotset.bench import tpcc as workload
from hotset.bench.commands.tpcc import RunOutcome
from hotset.core.progress import Reporter
from hotset.core.record import model_of
from hotset.databases.postgres.client import PostgresDatabase
from hotset.tpcc.record import RunOptions

pytestmark = pytest.mark.database
OPTIONS = RunOptions(users=2, warehouses=2, rampup_s=0, duration_s=2)


class DropsAnIndex(Reporter):
    """Once the run is under way, the planner loses its choice."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(quiet=True)
        self._database = database
        self._waiting = True

    def figure(self, *_: object) -> None:
        if self._waiting:
            self._waiting = False
            with closing(self._database.session()) as session:
                session.script("DROP INDEX orders_by_customer")


@pytest.fixture
def indexed(database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """With the index of a customer's orders, which is made again."""
    yield database
    with closing(database.session()) as session:
        session.script(
            "CREATE UNIQUE INDEX IF NOT EXISTS orders_by_customer"
            " ON orders (o_w_id, o_d_id, o_c_id, o_id)"
        )


def shown(outcomes: tuple[workload.Outcome, ...]) -> str:
    screen = io.StringIO()
    RunOutcome(outcomes).show(Console(file=screen, width=400))
    return screen.getvalue()


def test_a_plan_that_turns_within_a_run_is_told(indexed: PostgresDatabase) -> None:
    steady = workload.Runs(Reporter(quiet=True)).run(indexed, OPTIONS)
    assert (steady.cause, steady.flips) == (None, ())
    assert "PLAN_CHANGED" not in shown((steady,))
    outcome = workload.Runs(DropsAnIndex(indexed)).run(indexed, OPTIONS)
    assert [one.what for one in outcome.flips] == ["a customer's latest order"]
    line = "PLAN_CHANGED: order-status, a customer's latest order: "
    assert line in shown((outcome,))
    assert "PLAN_CHANGED with 2 users: order-status" in shown((steady, outcome))
    found = RunOutcome((outcome,)).document()
    model_of(RunOutcome.record()).model_validate(found)
    assert found["plan_changes"][0]["kind"] == "order_status"
