"""Update sets: the rules of clauses 2.5 and 4.2.3, without a server."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from hotset.tpch.run.refresh import MAX_SETS, update_set
from hotset.tpch.schema import TABLES


def rows(text: bytes) -> list[list[str]]:
    return [line.split("|") for line in text.decode().splitlines()]


def test_keys_are_free_ones_and_no_two_sets_share_any() -> None:
    seen: set[int] = set()
    for number in range(MAX_SETS):
        keys = update_set(0.01, number).keys
        assert len(keys) == 15
        # The generator uses keys whose last five bits are 0 to 7, up to 4 × the orders.
        assert all(key % 32 >= 8 and key < 4 * 15_000 for key in keys)
        assert not seen & set(keys)
        seen |= set(keys)


def test_a_set_is_the_same_each_time_and_as_large_as_it_should_be() -> None:
    assert update_set(0.01, 3) == update_set(0.01, 3)
    assert update_set(0.01, 3).lines != update_set(0.01, 4).lines
    assert len(update_set(1, 0).keys) == 1500
    assert len(update_set(0.001, 0).keys) >= 1


@pytest.mark.parametrize("scale", [0.01, 1])
def test_rows_keep_the_rules(scale: float) -> None:
    update = update_set(scale, 1)
    orders, lines = rows(update.orders), rows(update.lines)
    assert {len(row) for row in orders} == {len(TABLES["orders"].columns)}
    assert {len(row) for row in lines} == {len(TABLES["lineitem"].columns)}
    assert [int(row[0]) for row in orders] == list(update.keys)
    for order in orders:
        own = [line for line in lines if line[0] == order[0]]
        assert [int(line[3]) for line in own] == list(range(1, len(own) + 1))
        assert 1 <= len(own) <= 7
        assert int(order[1]) % 3 != 0
        assert int(order[1]) <= 150_000 * scale
        states = {line[9] for line in own}
        assert order[2] == (states.pop() if len(states) == 1 else "P")
        total = sum(
            Decimal(line[5]) * (1 - Decimal(line[6])) * (1 + Decimal(line[7])) for line in own
        )
        # The generator cuts twice to whole cents in every line.
        assert abs(total - Decimal(order[3])) < Decimal("0.03") * len(own)
        ordered = date.fromisoformat(order[4])
        for line in own:
            shipped, due, received = map(date.fromisoformat, line[10:13])
            assert timedelta(1) <= shipped - ordered <= timedelta(121)
            assert timedelta(30) <= due - ordered <= timedelta(90)
            assert timedelta(1) <= received - shipped <= timedelta(30)
            assert (line[9] == "O") == (shipped > date(1995, 6, 17))
            assert (line[8] == "N") == (received > date(1995, 6, 17))
    assert {len([line for line in lines if line[0] == order[0]]) for order in orders} >= {1, 7}
