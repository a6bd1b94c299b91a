"""Substitution parameters, orders of streams, and the texts they make."""

import re
from datetime import date
from decimal import Decimal
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.sql import EngineName, SetupError
from hotset.tpch import parameters, queries, schema, words
from hotset.tpch.queries import ALL
from hotset.tpch.run.streams import MAX_STREAMS, ORDERS, minimum_streams

ENGINES = get_args(EngineName)


def month(first: date, last: date) -> set[date]:
    """The first days of the months between two, both included."""
    return {
        date(y, m, 1)
        for y in range(first.year, last.year + 1)
        for m in range(1, 13)
        if first <= date(y, m, 1) <= last
    }


NAMES = {name for name, _ in words.NATIONS}
YEARS = {date(year, 1, 1) for year in range(1993, 1998)}
BRANDS = {f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6)}
CODES = {str(code) for code in range(10, 35)}
# Clause 2.4.x.3, one set per parameter.
DOMAINS: dict[int, tuple[object, ...]] = {
    1: (range(60, 121),),
    2: (range(1, 51), words.TYPES[2], words.REGIONS),
    3: (words.SEGMENTS, {date(1995, 3, day) for day in range(1, 32)}),
    4: (month(date(1993, 1, 1), date(1997, 10, 1)),),
    5: (words.REGIONS, YEARS),
    6: (YEARS, {Decimal(n) / 100 for n in range(2, 10)}, (24, 25)),
    7: (NAMES, NAMES),
    8: (
        NAMES,
        words.REGIONS,
        {f"{a} {b} {c}" for a in words.TYPES[0] for b in words.TYPES[1] for c in words.TYPES[2]},
    ),
    9: (words.COLOURS,),
    10: (month(date(1993, 2, 1), date(1995, 1, 1)),),
    11: (NAMES, {Decimal("0.0001")}),
    12: (words.MODES, words.MODES, YEARS),
    13: (
        {"special", "pending", "unusual", "express"},
        {"packages", "requests", "accounts", "deposits"},
    ),
    14: (month(date(1993, 1, 1), date(1997, 12, 1)),),
    15: (month(date(1993, 1, 1), date(1997, 10, 1)),),
    16: (BRANDS, {f"{a} {b}" for a in words.TYPES[0] for b in words.TYPES[1]}, *[range(1, 51)] * 8),
    17: (BRANDS, {f"{a} {b}" for a in words.CONTAINERS[0] for b in words.CONTAINERS[1]}),
    18: (range(312, 316),),
    19: (range(1, 11), range(10, 21), range(20, 31), BRANDS, BRANDS, BRANDS),
    20: (words.COLOURS, YEARS, NAMES),
    21: (NAMES,),
    22: (CODES,) * 7,
}


@given(st.integers(), st.integers(0, MAX_STREAMS), st.sampled_from(ALL))
def test_drawn_parameters_keep_to_the_clauses(seed: int, stream: int, query: int) -> None:
    values = parameters.draw(query, 1, seed, stream)
    assert len(values) == len(DOMAINS[query])
    for value, domain in zip(values, DOMAINS[query], strict=True):
        assert value in domain  # type: ignore[operator]
    distinct = {7: values, 12: values[:2], 16: values[2:], 22: values}.get(query, ())
    assert len(set(distinct)) == len(distinct)
    if query == 8:
        assert words.REGIONS[dict(words.NATIONS)[str(values[0])]] == values[1]


def test_every_value_of_a_domain_is_drawn(subtests: pytest.Subtests) -> None:
    """At least the ends of small domains: an off-by-one in a range would miss one."""
    for query in ALL:
        with subtests.test(query=str(query)):
            seen = [
                set(column)
                for column in zip(
                    *(parameters.draw(query, 1, seed, 0) for seed in range(1500)), strict=True
                )
            ]
            for values, domain in zip(seen, DOMAINS[query], strict=True):
                if len(domain) <= 120:  # type: ignore[arg-type]
                    assert values == set(domain)  # type: ignore[call-overload]


def test_a_seed_means_the_same_for_ever() -> None:
    drawn = [parameters.draw(query, 1, 2026, 3) for query in (1, 6, 7, 16, 22)]
    assert drawn == PINNED
    assert parameters.draw(6, 1, 2026, 4) != drawn[1]
    assert parameters.draw(6, 1, 2027, 3) != drawn[1]


@pytest.mark.parametrize("text", ["", "it's", "a;b", "x'--", "100%", "a\nb", 'a"b', "a\\"])
def test_what_could_end_a_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a word"):
        parameters.text(text)


def test_each_text_takes_all_its_parameters(subtests: pytest.Subtests) -> None:
    for query in ALL:
        for engine in ENGINES:
            with subtests.test(engine=str(engine), query=str(query)):
                template = schema.statement(engine, f"{query:02d}")
                places = {int(place) for place in re.findall(r":(\d+)", template)}
                assert places == set(range(1, len(parameters.validation(query, 1)) + 1))
                assert ":" not in queries.text(engine, query, 1)
                assert ":" not in queries.text(engine, query, 1, seed=5, stream=2)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(SetupError, match=r"'oracle'; there is postgres, sqlserver"):
        queries.text("oracle", 1, 1)


def test_orders_of_streams() -> None:
    assert len(ORDERS) == 41
    assert all(sorted(order) == list(ALL) for order in ORDERS)
    assert ORDERS[0][:4] == (14, 2, 9, 20)
    assert ORDERS[1][:4] == (21, 3, 18, 5)
    assert ORDERS[40][-4:] == (10, 12, 5, 19)
    assert len(set(ORDERS)) == 41
    assert minimum_streams(1) == 2


PINNED: list[tuple[parameters.Parameter, ...]] = [
    (66,),
    (date(1995, 1, 1), Decimal("0.07"), 24),
    ("INDONESIA", "CANADA"),
    ("Brand#41", "SMALL PLATED", 5, 40, 6, 11, 47, 14, 22, 10),
    ("20", "32", "26", "27", "17", "34", "16"),
]
