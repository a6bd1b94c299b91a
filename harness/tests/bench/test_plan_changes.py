"""A plan that turns within a run is told with the run's result."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing

import pytest
from rich.console import Console

from hotset.bench import tpcc as workload
from hotset.bench.window import Outcome
from hotset.core.progress import Reporter
from hotset.databases.postgres.product import PostgresDatabase
from hotset.reports.model.document import RunDocument
from hotset.tpcc.record import RunOptions
from tests.benchmark_results import run_of

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
                session.script("DROP INDEX hotset_tpcc.orders_by_customer")


@pytest.fixture
def indexed(database: PostgresDatabase) -> Iterator[PostgresDatabase]:
    """With the index of a customer's orders, which is made again."""
    yield database
    with closing(database.session()) as session:
        session.script(
            "CREATE UNIQUE INDEX IF NOT EXISTS orders_by_customer"
            " ON hotset_tpcc.orders (o_w_id, o_d_id, o_c_id, o_id)"
        )


def shown(*outcomes: Outcome) -> str:
    screen = io.StringIO()
    run_of(*outcomes).show(Console(file=screen, width=400))
    return screen.getvalue()


def test_a_plan_that_turns_within_a_run_is_told(indexed: PostgresDatabase) -> None:
    steady = workload.Runs(Reporter(quiet=True)).run(indexed, OPTIONS)
    assert steady.cause is None
    assert "A plan changed" not in shown(steady)
    outcome = workload.Runs(DropsAnIndex(indexed)).run(indexed, OPTIONS)
    assert outcome.result is not None
    assert [one.what for one in outcome.result.plan_changes] == ["a customer's latest order"]
    what = "A plan changed within the run: with 2 users, order-status, a customer's latest order: "
    for whole in (shown(outcome), shown(steady, outcome)):
        assert what in " ".join(whole.split())
    found = RunDocument.model_validate(run_of(outcome).document())
    assert found.arms[0].repeats[0].plan_changes[0].kind == "order_status"
    assert "PLAN_CHANGED" in {one.code for one in found.warnings}
