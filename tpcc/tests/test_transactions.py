"""What virtual users ask for: mix, ranges and rates of clauses 2.4 to 2.8."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.tpcc.data.nurand import Constants
from hotset.tpcc.transactions import UNUSED_ITEM, Kind, Terminal, home_of, hottest_fifth

CONSTANTS = Constants.for_run(1)


def terminal(
    user: int = 0, warehouses: int = 10, seed: int = 1, all_warehouses: bool = True
) -> Terminal:
    return Terminal(user, warehouses, seed, CONSTANTS, all_warehouses)


def drawn(kind: Kind, count: int, source: Terminal | None = None) -> list[tuple[Any, ...]]:
    """The inputs of the next `count` transactions of one type."""
    source = source or terminal()
    found: list[tuple[Any, ...]] = []
    while len(found) < count:
        dealt, inputs = source.next()
        if dealt == kind:
            found.append(inputs)
    return found


@given(seed=st.integers(0, 1000), decks=st.integers(1, 5))
def test_mix_is_exact_after_every_deck(seed: int, decks: int) -> None:
    user = terminal(seed=seed)
    dealt = Counter(user.next()[0] for _ in range(100 * decks))
    assert [dealt[kind] for kind in Kind] == [n * decks for n in (45, 43, 4, 4, 4)]


def test_users_are_reproducible_and_differ() -> None:
    def start(user: int, seed: int = 1) -> list[object]:
        source = terminal(user=user, seed=seed)
        return [source.next() for _ in range(50)]

    assert start(user=3) == start(user=3)
    assert start(user=3) != start(user=4)
    assert start(user=3, seed=2) != start(user=3, seed=1)


def test_new_order_lines_are_within_range_sorted_and_distinct() -> None:
    for w_id, d_id, c_id, all_local, items, supply, quantities in drawn(Kind.NEW_ORDER, 2000):
        assert 1 <= w_id <= 10
        assert 1 <= d_id <= 10
        assert 1 <= c_id <= 3000
        assert 5 <= len(items) == len(supply) == len(quantities) <= 15
        places = list(zip(supply, items, strict=True))
        assert places == sorted(set(places))
        assert all_local == all(place == w_id for place in supply)
        assert all(1 <= q <= 10 for q in quantities)
        assert all(1 <= item <= UNUSED_ITEM for item in items)


def test_new_order_rates() -> None:
    orders = drawn(Kind.NEW_ORDER, 20_000)
    lines = sum(len(order[4]) for order in orders)
    remote = sum(place != order[0] for order in orders for place in order[5])
    unused = sum(UNUSED_ITEM in order[4] for order in orders)
    assert lines / len(orders) == pytest.approx(10, rel=0.02)
    assert remote / lines == pytest.approx(0.01, rel=0.1)
    assert unused / len(orders) == pytest.approx(0.01, rel=0.25)


def test_payment_rates_and_ranges() -> None:
    payments = drawn(Kind.PAYMENT, 10_000)
    remote = sum(p[0] != p[2] for p in payments)
    by_name = sum(p[4] is None for p in payments)
    assert remote / len(payments) == pytest.approx(0.15, rel=0.1)
    assert by_name / len(payments) == pytest.approx(0.60, rel=0.05)
    assert all((p[4] is None) != (p[5] is None) for p in payments)
    assert all(Decimal("1.00") <= p[6] <= Decimal("5000.00") for p in payments)


def test_all_warehouses_are_used_unless_users_stay_at_home() -> None:
    everywhere = Counter(w_id for w_id, *_ in drawn(Kind.PAYMENT, 5000))
    assert set(everywhere) == set(range(1, 11))
    assert max(everywhere.values()) < 1.3 * min(everywhere.values())
    home = terminal(user=4, all_warehouses=False)
    assert {home.next()[1][0] for _ in range(500)} == {5}


def test_one_warehouse_has_no_remote_lines_or_customers() -> None:
    only = terminal(warehouses=1)
    assert all(set(order[5]) == {1} for order in drawn(Kind.NEW_ORDER, 300, only))
    assert all(p[0] == p[2] == 1 for p in drawn(Kind.PAYMENT, 300, only))


@given(warehouses=st.integers(1, 50), users=st.integers(1, 200))
def test_homes_are_distinct_while_there_are_warehouses(warehouses: int, users: int) -> None:
    homes = Counter(home_of(user, warehouses)[0] for user in range(users))
    assert max(homes.values()) == -(-users // warehouses)


def test_think_times_have_their_mean_and_limit() -> None:
    user = terminal()
    times = [user.think_s(Kind.PAYMENT) for _ in range(5000)]
    assert sum(times) / len(times) == pytest.approx(12, rel=0.05)
    assert max(times) <= 120


def test_uniform_items_are_hammerdbs_draw_and_mix() -> None:
    one = Terminal(0, 10, 1, CONSTANTS, True, "uniform")
    drawn: Counter[int] = Counter()
    kinds: Counter[Kind] = Counter()
    for _ in range(23 * 400):
        kind, inputs = one.next()
        kinds[kind] += 1
        if kind is Kind.NEW_ORDER:
            drawn.update(inputs[4])  # type: ignore[arg-type]
    assert {kind: count / 400 for kind, count in kinds.items()} == {
        Kind.NEW_ORDER: 10,
        Kind.PAYMENT: 10,
        Kind.ORDER_STATUS: 1,
        Kind.DELIVERY: 1,
        Kind.STOCK_LEVEL: 1,
    }
    tenth = sum(count for item, count in drawn.items() if item <= 10_000)
    assert tenth / drawn.total() == pytest.approx(0.1, abs=0.01)


def test_the_share_of_the_hottest_blocks() -> None:
    assert hottest_fifth("uniform") == 0.2
    assert hottest_fifth("nurand") == pytest.approx(0.62, abs=0.01)
