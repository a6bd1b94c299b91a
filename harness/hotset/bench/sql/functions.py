"""Operators and functions of expressions, as in pgbench (its pgbench.c, evalStandardFunc).

Random distributions, hashes and the ways of rounding are pgbench's; the streams of random numbers
are hotset's own, so equal seeds give other numbers than there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

Plain: TypeAlias = bool | int | float | None
Some: TypeAlias = bool | int | float
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1
_MASK = 2**64 - 1


class ValueProblem(ValueError):
    """A value is out of range or of another type; says which."""


@dataclass(frozen=True, slots=True)
class Context:
    """What functions take beside their arguments."""

    random: Random
    seed: int


@dataclass(frozen=True, slots=True)
class Function:
    """``least`` and ``most``: how many arguments it takes."""

    least: int
    most: int
    apply: Callable[..., Plain]

    @property
    def takes(self) -> str:
        if self.most > _MANY // 2:
            return f"{self.least} or more arguments"
        span = f"{self.least} to {self.most}" if self.most > self.least else str(self.least)
        return f"{span} argument{'' if span == '1' else 's'}"


_MANY = 1_000


def in_range(value: int) -> int:
    """
    :raises ValueProblem: it does not fit 64 bits.
    """
    if not _LOWEST <= value <= _HIGHEST:
        raise ValueProblem(f"{value} does not fit a bigint")
    return value


def as_int(value: Some) -> int:
    """
    :raises ValueProblem: a boolean, or too large.
    """
    if isinstance(value, bool):
        raise ValueProblem("a boolean is no number")
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        raise ValueProblem(f"{value} is no integer")
    return in_range(round(value))


def as_double(value: Some) -> float:
    """
    :raises ValueProblem: a boolean.
    """
    if isinstance(value, bool):
        raise ValueProblem("a boolean is no number")
    return float(value)


def as_bool(value: Some) -> bool:
    """
    :raises ValueProblem: a number.
    """
    if not isinstance(value, bool):
        raise ValueProblem(f"{value} is no boolean: compare it, such as … <> 0")
    return value


def _arithmetic(
    of_ints: Callable[[int, int], int], of_doubles: Callable[[float, float], float]
) -> Callable[[Some, Some], Plain]:
    """Of doubles where one is a double."""

    def apply(left: Some, right: Some) -> Plain:
        if isinstance(left, float) or isinstance(right, float):
            return of_doubles(as_double(left), as_double(right))
        return in_range(of_ints(as_int(left), as_int(right)))

    return apply


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Some, Some], Plain]:
    def apply(left: Some, right: Some) -> Plain:
        if isinstance(left, float) or isinstance(right, float):
            return compare(as_double(left), as_double(right))
        return compare(as_int(left), as_int(right))

    return apply


def _of_ints(apply: Callable[[int, int], int]) -> Callable[[Some, Some], Plain]:
    return lambda left, right: apply(as_int(left), as_int(right))


def _quotient(left: int, right: int) -> int:
    """Towards zero, as C divides."""
    if right == 0:
        raise ValueProblem("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _quotient(left, right)


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if math.isnan(left) or not left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _signed(value: int) -> int:
    """The lowest 64 bits, as a number with a sign.

    >>> _signed(2**64 - 1)
    -1
    """
    low = value & _MASK
    return low - 2**64 if low > _HIGHEST else low


OPERATORS: dict[str, Callable[[Some, Some], Plain]] = {
    "+": _arithmetic(operator.add, operator.add),
    "-": _arithmetic(operator.sub, operator.sub),
    "*": _arithmetic(operator.mul, operator.mul),
    "/": _arithmetic(_quotient, _divided),
    "%": _of_ints(_remainder),
    "|": _of_ints(operator.or_),
    "&": _of_ints(operator.and_),
    "#": _of_ints(operator.xor),
    "<<": _of_ints(lambda left, right: _signed(left << (right & 63))),
    ">>": _of_ints(lambda left, right: left >> (right & 63)),
    "=": _compared(operator.eq),
    "<>": _compared(operator.ne),
    "!=": _compared(operator.ne),
    "<": _compared(operator.lt),
    "<=": _compared(operator.le),
    ">": _compared(operator.gt),
    ">=": _compared(operator.ge),
}


def _random(context: Context, low: Some, high: Some) -> int:
    """All alike."""
    first, count = _range(low, high)
    return first + context.random.randrange(count)


def _range(low: Some, high: Some) -> tuple[int, int]:
    first, last = as_int(low), as_int(high)
    if first > last:
        raise ValueProblem(f"from {first} to {last} there is no number")
    return first, last - first + 1


def _parameter(value: Some, least: float, most: float = math.inf) -> float:
    found = as_double(value)
    if not least <= found <= most:
        limits = f"{least:g} to {most:g}" if math.isfinite(most) else f"at least {least:g}"
        raise ValueProblem(f"the parameter is {limits}, not {found:g}")
    return found


def _gaussian(context: Context, low: Some, high: Some, parameter: Some) -> int:
    """The middle most often; ``parameter`` standard deviations to either end."""
    (first, count), width = _range(low, high), _parameter(parameter, 2.0)
    while True:
        deviation = context.random.gauss(0.0, 1.0)
        if -width <= deviation < width:
            return first + int(count * (deviation + width) / (2 * width))


def _exponential(context: Context, low: Some, high: Some, parameter: Some) -> int:
    """The first most often."""
    first, count = _range(low, high)
    steepness = as_double(parameter)
    if steepness <= 0:
        raise ValueProblem(f"the parameter is above 0, not {steepness:g}")
    cut = math.exp(-steepness)
    uniform = 1.0 - context.random.random()
    return first + int(count * (-math.log(cut + (1.0 - cut) * uniform) / steepness))


def _zipfian(context: Context, low: Some, high: Some, parameter: Some) -> int:
    """The first most often, the second 1/2^s times that (Devroye, "Non-Uniform Random Variate
    Generation", 1986, page 551)."""
    (first, count), skew = _range(low, high), _parameter(parameter, 1.001, 1000.0)
    if count == 1:
        return first
    scale = 2.0 ** (skew - 1.0)
    while True:
        uniform, second = 1.0 - context.random.random(), context.random.random()
        try:
            place = int(uniform ** (-1.0 / (skew - 1.0)))
        except OverflowError:
            continue
        if place > count:
            continue
        ratio = (1.0 + 1.0 / place) ** (skew - 1.0)
        if second * place * (ratio - 1.0) / (scale - 1.0) <= ratio / scale:
            return first - 1 + place


def _fnv1a(context: Context, value: Some, seed: Some | None = None) -> int:
    result = 0xCBF29CE484222325 ^ _seed(context, seed)
    rest = as_int(value) & _MASK
    for _ in range(8):
        result = ((result ^ (rest & 0xFF)) * 0x100000001B3) & _MASK
        rest >>= 8
    return _signed(result)


def _murmur2(context: Context, value: Some, seed: Some | None = None) -> int:
    multiplier, shift = 0xC6A4A7935BD1E995, 47
    result = _seed(context, seed) ^ (8 * multiplier & _MASK)
    mixed = (as_int(value) * multiplier) & _MASK
    mixed = ((mixed ^ (mixed >> shift)) * multiplier) & _MASK
    result = ((result ^ mixed) * multiplier) & _MASK
    result = ((result ^ (result >> shift)) * multiplier) & _MASK
    return _signed(result ^ (result >> shift))


def _seed(context: Context, given: Some | None) -> int:
    return (context.seed if given is None else as_int(given)) & _MASK


def _permute(context: Context, value: Some, size: Some, seed: Some | None = None) -> int:
    """A permutation of 0 to ``size`` - 1 that the seed chooses: Feistel's network, walked until it
    stays below the size."""
    count = as_int(size)
    if count < 1:
        raise ValueProblem(f"the size is at least 1, not {count}")
    half = max(1, (count - 1).bit_length() + 1 >> 1)
    mask, found = (1 << half) - 1, as_int(value) % count
    while True:
        left, right = found >> half, found & mask
        for turn in range(4):
            mixed = _murmur2(context, _signed(right << 3 | turn), seed)
            left, right = right, left ^ (mixed & mask)
        found = left << half | right
        if found < count:
            return found


def _double_of(apply: Callable[[float], float], at_fault: float) -> Callable[..., Plain]:
    """As C's: where Python raises there is a value."""

    def call(_: Context, value: Some) -> Plain:
        number = as_double(value)
        try:
            return apply(number)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if number == 0 else at_fault

    return call


def _power(_: Context, base: Some, exponent: Some) -> float:
    try:
        return math.pow(as_double(base), as_double(exponent))
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if as_double(base) == 0 else math.nan


def _best(choose: Callable[[Sequence[Any]], Some]) -> Callable[..., Plain]:
    def call(_: Context, *values: Some) -> Plain:
        if any(isinstance(one, float) for one in values):
            return choose([as_double(one) for one in values])
        return choose([as_int(one) for one in values])

    return call


def _absolute(_: Context, value: Some) -> Plain:
    return abs(value) if isinstance(value, float) else in_range(abs(as_int(value)))


FUNCTIONS: dict[str, Function] = {
    "abs": Function(1, 1, _absolute),
    "double": Function(1, 1, lambda _, value: as_double(value)),
    "exp": Function(1, 1, _double_of(math.exp, math.nan)),
    "greatest": Function(1, _MANY, _best(max)),
    "hash": Function(1, 2, _murmur2),
    "hash_fnv1a": Function(1, 2, _fnv1a),
    "hash_murmur2": Function(1, 2, _murmur2),
    "int": Function(1, 1, lambda _, value: as_int(value)),
    "least": Function(1, _MANY, _best(min)),
    "ln": Function(1, 1, _double_of(math.log, math.nan)),
    "mod": Function(2, 2, lambda _, left, right: OPERATORS["%"](left, right)),
    "permute": Function(2, 3, _permute),
    "pi": Function(0, 0, lambda _: math.pi),
    "pow": Function(2, 2, _power),
    "power": Function(2, 2, _power),
    "random": Function(2, 2, _random),
    "random_exponential": Function(3, 3, _exponential),
    "random_gaussian": Function(3, 3, _gaussian),
    "random_zipfian": Function(3, 3, _zipfian),
    "sqrt": Function(1, 1, _double_of(math.sqrt, math.nan)),
}
