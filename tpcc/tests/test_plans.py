"""Plan flips on a real server: an index that goes within a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from hotset.reports.model.windows import PlanChange, Steadiness
from hotset.tpcc import plans
from hotset.tpcc.plans import Statement
from tests.postgres_cluster import PostgresDatabase

LATEST = Statement("order_status", "a customer's latest order")


@pytest.fixture
def index(database: PostgresDatabase) -> Iterator[str]:
    """What drops the index of a customer's orders; it is made again."""
    yield "DROP INDEX hotset_tpcc.orders_by_customer"
    with closing(database.session()) as session:
        session.script(
            "CREATE UNIQUE INDEX IF NOT EXISTS orders_by_customer"
            " ON hotset_tpcc.orders (o_w_id, o_d_id, o_c_id, o_id)"
        )


@pytest.mark.database
def test_a_plan_that_turns_is_named_with_both_times(database: PostgresDatabase, index: str) -> None:
    before = plans.shapes(database)
    assert len(before) == 7
    assert "orders_by_customer" in before[LATEST]
    assert plans.flips(before, plans.shapes(database), ()) == []
    with closing(database.session()) as session:
        session.script(index)
    slower = Steadiness(
        of="order_status",
        measure="latency_ms",
        rounds=(1.9, 2.0, 12.0, 51.0, 50.0),
        excursion=9.0,
        slope=9.0,
        second=3,
        steady=False,
    )
    (flip,) = plans.flips(before, plans.shapes(database), [slower])
    assert (flip.kind, flip.what, flip.latency_ms) == (*vars_of(LATEST), (1.9, 50.0))
    assert "orders_by_customer" in flip.before
    assert "orders_by_customer" not in flip.after


def vars_of(one: Statement) -> tuple[str, str]:
    return one.kind, one.what


def test_a_statement_that_could_not_be_asked_about_has_not_flipped() -> None:
    assert plans.flips({LATEST: "a"}, {}, ()) == []
    change = PlanChange(kind=LATEST.kind, what=LATEST.what, before="a", after="b")
    assert plans.flips({LATEST: "a"}, {LATEST: "b"}, ()) == [change]
