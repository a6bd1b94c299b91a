"""Expressions of scripts, as in pgbench: integers of 64 bits, doubles, booleans and null.

Operators and precedences are those of pgbench's exprparse.y. An expression becomes a function of
its scope, which is the user's variables and random numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import TypeAlias

from hotset.core.sql import Value

from . import functions
from .functions import Plain, as_bool, as_int, in_range

BUILT_IN = ("client_id", "default_seed", "random_seed", "scale")
"""Variables that every user has."""


class ExpressionError(ValueError):
    """It cannot be read, or has no value; says why."""


@dataclass(slots=True)
class Scope:
    """What an expression sees.

    :ivar variables: a user's; those read from a table hold whatever a row holds.
    """

    variables: MutableMapping[str, Value]
    random: Random

    def number(self, name: str) -> Plain:
        """
        :raises ExpressionError: it is not set, or is text.
        """
        if name not in self.variables:
            raise ExpressionError(f"variable {name} is not set")
        value = self.variables[name]
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Decimal):
            return float(value)
        return _of_text(name, str(value))


def _of_text(name: str, text: str) -> Plain:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return in_range(int(text))
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ExpressionError(f"variable {name} is {text!r}, not a number") from None


Evaluate: TypeAlias = Callable[[Scope], Plain]

_WORDS: dict[str, Plain] = {"true": True, "false": False, "null": None}
_TOKEN = re.compile(
    r"\s*(?:(?P<double>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
    r"|(?P<int>[0-9]+)|:(?P<variable>[A-Za-z_][A-Za-z_0-9]*)|(?P<word>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign><<|>>|<=|>=|<>|!=|[-+*/%|#&~<>=(),]))"
)
_OR, _AND, _NOT, _IS, _COMPARE, _BITS, _SUM, _PRODUCT, _UNARY = range(1, 10)
_BINARY: dict[str, int] = {
    "or": _OR,
    "and": _AND,
    "is": _IS,
    "isnull": _IS,
    "notnull": _IS,
    **dict.fromkeys(("=", "<>", "!=", "<", "<=", ">", ">="), _COMPARE),
    **dict.fromkeys(("|", "#", "&", "<<", ">>"), _BITS),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys("*/%", _PRODUCT),
}
_ONCE = (_IS, _COMPARE)
"""Of these there is one in a row: ``1 < 2 < 3`` is no expression."""


def parse(text: str) -> tuple[Evaluate, frozenset[str]]:
    """What an expression comes to, and the variables it takes.

    >>> from random import Random
    >>> evaluate, names = parse("1 + :a * 2 > 5 and not null is null")
    >>> evaluate(Scope({"a": 3}, Random(1))), sorted(names)
    (False, ['a'])

    :raises ExpressionError: it cannot be read.
    """
    parser = _Parser(text)
    found = parser.expression(0)
    if parser.kind != "end":
        raise ExpressionError(f"nothing belongs behind the expression, but there is {parser.text}")
    return found, frozenset(parser.names)


class _Parser:
    """By precedence, from the text's tokens; ``kind`` and ``text`` are of the one at hand."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self._tokens = _tokens(text)
        self.kind, self.text = next(self._tokens)

    def _advance(self) -> str:
        before = self.text
        self.kind, self.text = next(self._tokens)
        return before

    def _expect(self, text: str) -> None:
        if self.text != text:
            raise ExpressionError(f"{text!r} is missing before {self.text}")
        self._advance()

    def expression(self, least: int) -> Evaluate:
        """Of operators that bind more than ``least``."""
        left, last = self._operand(), 0
        while self.kind in ("sign", "word"):
            power = _BINARY.get(self.text, 0)
            if power <= least:
                break
            if power == last and power in _ONCE:
                raise ExpressionError(f"{self.text} needs brackets here")
            last = power
            left = self._operated(left, self._advance(), power)
        return left

    def _operated(self, left: Evaluate, sign: str, power: int) -> Evaluate:
        if sign == "is":
            return self._is(left)
        if sign in ("isnull", "notnull"):
            wanted = sign == "isnull"
            return lambda scope: (left(scope) is None) == wanted
        right = self.expression(power)
        if sign in ("and", "or"):
            return _logical(sign, left, right)
        apply = functions.OPERATORS[sign]

        def operate(scope: Scope) -> Plain:
            one, other = left(scope), right(scope)
            return None if one is None or other is None else apply(one, other)

        return operate

    def _is(self, left: Evaluate) -> Evaluate:
        negated = self.text == "not"
        if negated:
            self._advance()
        if self.text not in _WORDS:
            raise ExpressionError(f"IS takes NULL, TRUE or FALSE, not {self.text}")
        wanted = _WORDS[self._advance()]
        return lambda scope: _same(left(scope), wanted) != negated

    def _operand(self) -> Evaluate:
        kind, text = self.kind, self.text
        if kind == "end":
            raise ExpressionError("it ends too early")
        self._advance()
        if kind == "int":
            return _constant(in_range(int(text)))
        if kind == "double":
            return _constant(float(text))
        if kind == "variable":
            self.names.add(text)
            return lambda scope: scope.number(text)
        if kind == "word":
            return self._word(text)
        return self._prefixed(text)

    def _prefixed(self, sign: str) -> Evaluate:
        if sign == "(":
            found = self.expression(0)
            self._expect(")")
            return found
        if sign == "-" and self.kind == "int" and int(self.text) == 2**63:
            self._advance()
            return _constant(-(2**63))
        if sign not in _SIGNS:
            raise ExpressionError(f"a value is missing before {sign}")
        apply = _SIGNS[sign]
        operand = self.expression(_BITS if sign == "~" else _PRODUCT)
        return lambda scope: _unless_null(apply, operand(scope))

    def _word(self, word: str) -> Evaluate:
        if word in _WORDS:
            return _constant(_WORDS[word])
        if word == "not":
            operand = self.expression(_NOT - 1)
            return lambda scope: _unless_null(lambda value: not as_bool(value), operand(scope))
        if word == "case":
            return self._case()
        return self._call(word)

    def _case(self) -> Evaluate:
        branches: list[tuple[Evaluate, Evaluate]] = []
        while self.text == "when":
            self._advance()
            condition = self.expression(0)
            self._expect("then")
            branches.append((condition, self.expression(0)))
        if not branches:
            raise ExpressionError("CASE needs WHEN")
        otherwise = _constant(None)
        if self.text == "else":
            self._advance()
            otherwise = self.expression(0)
        self._expect("end")

        def choose(scope: Scope) -> Plain:
            for condition, value in branches:
                if truth(condition(scope)):
                    return value(scope)
            return otherwise(scope)

        return choose

    def _call(self, name: str) -> Evaluate:
        found = functions.FUNCTIONS.get(name)
        if found is None or self.text != "(":
            known = ", ".join(sorted(functions.FUNCTIONS))
            raise ExpressionError(f"there is no function {name}; there are {known}")
        self._advance()
        arguments: list[Evaluate] = []
        while self.text != ")":
            if arguments:
                self._expect(",")
            arguments.append(self.expression(0))
        self._advance()
        if not found.least <= len(arguments) <= found.most:
            raise ExpressionError(f"{name} takes {found.takes}, not {len(arguments)}")

        def call(scope: Scope) -> Plain:
            values = [argument(scope) for argument in arguments]
            if any(one is None for one in values):
                return None
            seed = scope.variables.get("default_seed", 0)
            context = functions.Context(scope.random, int(str(seed)))
            return found.apply(context, *values)

        return call


def truth(value: Plain) -> bool:
    """What a condition comes to: not zero, not null."""
    return bool(value)


def _same(value: Plain, wanted: Plain) -> bool:
    return value is None if wanted is None else value is not None and as_bool(value) == wanted


def _unless_null(apply: Callable[[bool | int | float], Plain], value: Plain) -> Plain:
    return None if value is None else apply(value)


def _constant(value: Plain) -> Evaluate:
    return lambda _: value


def _logical(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """The right side is asked only where the left does not decide. As in pgbench, and not as in
    SQL, a null on the left makes the whole null."""
    decides = sign == "or"

    def decide(scope: Scope) -> Plain:
        one = left(scope)
        if one is None or as_bool(one) == decides:
            return one
        other = right(scope)
        return None if other is None else as_bool(other)

    return decide


def _negative(value: bool | int | float) -> Plain:
    return -value if isinstance(value, float) else in_range(-as_int(value))


_SIGNS: dict[str, Callable[[bool | int | float], Plain]] = {
    "-": _negative,
    "+": lambda value: value,
    "~": lambda value: operator.invert(as_int(value)),
}


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    rest = text.rstrip()
    while place < len(rest):
        found = _TOKEN.match(rest, place)
        if found is None or found.lastgroup is None:
            raise ExpressionError(f"{rest[place:].strip()[:20]!r} is no part of an expression")
        kind = found.lastgroup
        yield kind, found[kind].lower() if kind == "word" else found[kind]
        place = found.end()
    while True:
        yield "end", "the end"
