"""Substitution parameters of the 22 queries: validation (clause 2.4.x.4) or drawn (2.4.x.3).

A parameter is an integer, a decimal, a date or one of the specification's own words. `text` turns
it into the text of a query; a word that could end a literal is refused.
"""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from random import Random
from typing import TypeAlias

from . import words

Parameter: TypeAlias = int | Decimal | date | str

_WORD = re.compile(r"[A-Za-z0-9 #]+")


def text(value: Parameter) -> str:
    """How a parameter is written in a query.

    >>> text(Decimal("0.0001")), text(date(1995, 3, 15)), text("Brand#12")
    ('0.0001', '1995-03-15', 'Brand#12')

    Raises ValueError for text that is none of the specification's words.
    """
    if isinstance(value, str):
        if not _WORD.fullmatch(value):
            raise ValueError(f"not a word of clause 4.2.2.13: {value!r}")
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date) else str(int(value))


def fraction(scale: float) -> Decimal:
    """FRACTION of query 11: 0.0001 / SF (clause 2.4.11.3).

    >>> fraction(1), fraction(0.01), fraction(10)
    (Decimal('0.0001'), Decimal('0.01'), Decimal('0.00001'))
    """
    return (Decimal("0.0001") / Decimal(str(scale))).quantize(Decimal("1e-12")).normalize()


def validation(query: int, scale: float) -> tuple[Parameter, ...]:
    """The validation parameters of clause 2.4.x.4; query 11's fraction follows the scale."""
    return ("GERMANY", fraction(scale)) if query == 11 else _VALIDATION[query]


def draw(query: int, scale: float, seed: int, stream: int) -> tuple[Parameter, ...]:
    """Parameters after clause 2.4.x.3, the same for the same seed and stream.

    Each query has a generator of its own, so that running fewer queries changes none of them.
    """
    random = Random(f"{seed}/{stream}/{query}")
    return _DRAW[query](random, scale)


_VALIDATION: dict[int, tuple[Parameter, ...]] = {
    1: (90,),
    2: (15, "BRASS", "EUROPE"),
    3: ("BUILDING", date(1995, 3, 15)),
    4: (date(1993, 7, 1),),
    5: ("ASIA", date(1994, 1, 1)),
    6: (date(1994, 1, 1), Decimal("0.06"), 24),
    7: ("FRANCE", "GERMANY"),
    8: ("BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"),
    9: ("green",),
    10: (date(1993, 10, 1),),
    12: ("MAIL", "SHIP", date(1994, 1, 1)),
    13: ("special", "requests"),
    14: (date(1995, 9, 1),),
    15: (date(1996, 1, 1),),
    16: ("Brand#45", "MEDIUM POLISHED", 49, 14, 23, 45, 19, 3, 36, 9),
    17: ("Brand#23", "MED BOX"),
    18: (300,),
    19: (1, 10, 20, "Brand#12", "Brand#23", "Brand#34"),
    20: ("forest", date(1994, 1, 1), "CANADA"),
    21: ("SAUDI ARABIA",),
    22: ("13", "31", "23", "29", "30", "18", "17"),
}


def _brand(random: Random) -> str:
    return f"Brand#{random.randint(1, 5)}{random.randint(1, 5)}"


def _nation(random: Random) -> str:
    return random.choice(words.NATIONS)[0]


def _region(random: Random) -> str:
    return random.choice(words.REGIONS)


def _year(random: Random) -> date:
    return date(random.randint(1993, 1997), 1, 1)


def _month(random: Random, first: tuple[int, int], last: tuple[int, int]) -> date:
    """The first day of a month between two, both included, each given as (year, month)."""
    number = random.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return date(number // 12, number % 12 + 1, 1)


def _market_share(random: Random) -> tuple[Parameter, ...]:
    nation, region = random.choice(words.NATIONS)
    return nation, words.REGIONS[region], " ".join(map(random.choice, words.TYPES))


_DRAW: dict[int, Callable[[Random, float], tuple[Parameter, ...]]] = {
    1: lambda r, _: (r.randint(60, 120),),
    2: lambda r, _: (r.randint(1, 50), r.choice(words.TYPES[2]), _region(r)),
    3: lambda r, _: (r.choice(words.SEGMENTS), date(1995, 3, r.randint(1, 31))),
    4: lambda r, _: (_month(r, (1993, 1), (1997, 10)),),
    5: lambda r, _: (_region(r), _year(r)),
    6: lambda r, _: (_year(r), Decimal(r.randint(2, 9)) / 100, r.randint(24, 25)),
    7: lambda r, _: tuple(name for name, _region in r.sample(words.NATIONS, 2)),
    8: lambda r, _: _market_share(r),
    9: lambda r, _: (r.choice(words.COLOURS),),
    10: lambda r, _: (_month(r, (1993, 2), (1995, 1)),),
    11: lambda r, scale: (_nation(r), fraction(scale)),
    12: lambda r, _: (*r.sample(words.MODES, 2), _year(r)),
    13: lambda r, _: (
        r.choice(("special", "pending", "unusual", "express")),
        r.choice(("packages", "requests", "accounts", "deposits")),
    ),
    14: lambda r, _: (_month(r, (1993, 1), (1997, 12)),),
    15: lambda r, _: (_month(r, (1993, 1), (1997, 10)),),
    16: lambda r, _: (
        _brand(r),
        " ".join(map(r.choice, words.TYPES[:2])),
        *r.sample(range(1, 51), 8),
    ),
    17: lambda r, _: (_brand(r), " ".join(map(r.choice, words.CONTAINERS))),
    18: lambda r, _: (r.randint(312, 315),),
    19: lambda r, _: (
        r.randint(1, 10),
        r.randint(10, 20),
        r.randint(20, 30),
        _brand(r),
        _brand(r),
        _brand(r),
    ),
    20: lambda r, _: (r.choice(words.COLOURS), _year(r), _nation(r)),
    21: lambda r, _: (_nation(r),),
    22: lambda r, _: tuple(map(str, r.sample(range(10, 35), 7))),
}
