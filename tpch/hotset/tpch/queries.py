"""The 22 queries: their texts per engine, with parameters put in."""

import re
from collections.abc import Sequence

from . import parameters, schema
from .parameters import Parameter

ALL = tuple(range(1, 23))

_PLACE = re.compile(r":(\d+)\b")

_KINDS = {
    1: "= = sum sum sum sum avg avg avg =",
    2: "= = = = = = = =",
    3: "= sum = =",
    4: "= =",
    5: "= sum",
    6: "sum",
    7: "= = = sum",
    8: "= avg",
    9: "= = sum",
    10: "= = sum = = = = =",
    11: "= sum",
    12: "= = =",
    13: "= =",
    14: "avg",
    15: "= = = = sum",
    16: "= = = =",
    17: "avg",
    18: "= = = = = sum",
    19: "sum",
    20: "= =",
    21: "= =",
    22: "= = sum",
}


def kinds(number: int) -> tuple[str, ...]:
    """How clause 2.1.3.5 compares each column: exactly, as a sum, or as an average or ratio."""
    return tuple(_KINDS[number].split())


def text(engine: str, number: int, scale: float, seed: int | None = None, stream: int = 0) -> str:
    """One query, ready to run; `seed` None gives the validation parameters (clause 2.4.x.4).

    Raises SetupError for an engine without SQL.
    """
    values = (
        parameters.validation(number, scale)
        if seed is None
        else parameters.draw(number, scale, seed, stream)
    )
    return fill(schema.statement(engine, f"{number:02d}"), values)


def fill(template: str, values: Sequence[Parameter]) -> str:
    """Put values in place of `:1`, `:2` …; the texts hold the quotes of their dialect.

    >>> fill("WHERE p_size = :1 AND p_type LIKE '%:2'", (15, "BRASS"))
    "WHERE p_size = 15 AND p_type LIKE '%BRASS'"
    """
    texts = [parameters.text(value) for value in values]
    return _PLACE.sub(lambda place: texts[int(place[1]) - 1], template)
