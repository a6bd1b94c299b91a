"""Whether the arms were measured in the same state, by the pages that the server itself counted.

The same workload on the same rows, with the same buffers, needs as many pages per transaction in
each arm. Where it did not, a factor tells of that as well as of the storage. Reads and writes are
compared apart and in each repeat: a server that still fills its buffers reads more and writes less,
which the sum hides, and so may a mean. `in-memory` has other buffers: it is not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias

from ..model import words
from ..model.base import ArmName
from ..model.document import Arm, RunDocument
from ..model.windows import Repeat

AGREED = 0.05
NAMED = 4
Direction: TypeAlias = Literal["reads", "writes"]
DIRECTIONS: tuple[Direction, ...] = ("reads", "writes")
_VERB: dict[Direction, str] = {"reads": "read", "writes": "wrote"}
_PAGES: dict[Direction, str] = {"reads": "pages read", "writes": "pages written"}


@dataclass(frozen=True, slots=True)
class Difference:
    """Pages per transaction of two arms in the same repeat with as many users.

    :ivar window: of `arm`.
    :ivar there: of `other`, which did the most transactions: its buffers were renewed most often.
    """

    arm: ArmName
    window: Repeat
    other: ArmName
    direction: Direction
    here: float
    there: float

    def said(self) -> str:
        by = f" ({_by(self.here / self.there - 1)})" if self.there else ""
        verb = _VERB[self.direction]
        return f"{verb} {self.here:.1f} where {self.other} {verb} {self.there:.1f}{by}"


def compared(document: RunDocument) -> list[Arm]:
    """Arms whose servers have the same buffers."""
    return [arm for arm in document.arms if arm.name != "in-memory"]


def differences(document: RunDocument) -> list[Difference]:
    """Of more than `AGREED`; those of the windows that the factor is of come first."""
    return [
        one
        for group in _groups(document)
        for direction in DIRECTIONS
        for one in _differences(group, direction)
    ]


def said(found: list[Difference]) -> str:
    """By window, the first `NAMED` of them."""
    windows: dict[tuple[ArmName, int, int | None], list[str]] = {}
    for one in found:
        key = (one.arm, one.window.repeat, one.window.users)
        windows.setdefault(key, []).append(one.said())
    several = len({users for _, _, users in windows}) > 1
    named = [
        f"{arm}{_with(users) if several else ''}, repeat {repeat}, {words.listed(parts)}"
        for (arm, repeat, users), parts in windows.items()
    ]
    more = len(named) - NAMED
    return "; ".join(named[:NAMED]) + (f"; and {more} more windows" if more > 0 else "")


def unknown(document: RunDocument) -> list[str]:
    """Arms, and what of their pages was not counted in which share of their windows."""
    groups = list(_groups(document))
    found = []
    for arm in compared(document):
        windows = [one for group in groups for name, one in group if name == arm.name]
        missing = {
            direction: sum(per_transaction(one, direction) is None for one in windows)
            for direction in DIRECTIONS
        }
        if any(missing.values()):
            found.append(f"{arm.name}{_part(missing, len(windows))}")
    return found


def factor_at_equal_work(document: RunDocument, found: list[Difference]) -> float | None:
    """What the factor would be, had the baseline needed as many pages for a transaction as the
    accelerated arm, and got as many a second as it did. None where these two did not differ, or
    the baseline was not held back by its storage."""
    factor = document.factor()
    accelerated, baseline = document.arm("accelerated"), document.arm("baseline")
    if factor is None or accelerated is None or baseline is None or baseline.cpu_bound:
        return None
    if not any({one.arm, one.other} == {"accelerated", "baseline"} for one in found):
        return None
    fast, slow = _pages(accelerated), _pages(baseline)
    return factor.ratio * fast / slow if fast and slow else None


def per_transaction(one: Repeat, direction: Direction) -> float | None:
    """None: not counted, or no transaction ended."""
    io, done = one.server_io, _transactions(one)
    count = None if io is None else io.reads if direction == "reads" else io.writes
    return count / done if count is not None and done > 0 else None


def _transactions(one: Repeat) -> float:
    """Of the time in which the server counted."""
    return one.tpm * one.server_io.seconds / 60 if one.server_io else 0.0


def _groups(document: RunDocument) -> Iterator[list[tuple[ArmName, Repeat]]]:
    """Windows to compare with each other: two or more."""
    for of_curve in (False, True):
        found: defaultdict[tuple[int, int | None], list[tuple[ArmName, Repeat]]]
        found = defaultdict(list)
        for arm in compared(document):
            for one in arm.curve if of_curve else arm.repeats:
                found[one.repeat, one.users].append((arm.name, one))
        yield from (group for group in found.values() if len(group) > 1)


def _differences(group: list[tuple[ArmName, Repeat]], direction: Direction) -> Iterator[Difference]:
    counted = [
        (name, one, pages)
        for name, one in group
        if (pages := per_transaction(one, direction)) is not None
    ]
    if not counted:
        return
    other, most, there = max(counted, key=lambda each: _transactions(each[1]))
    for arm, one, here in counted:
        apart = abs(here - there) > AGREED * there
        if apart and (_matters(one, direction) or _matters(most, direction)):
            yield Difference(arm, one, other, direction, here, there)


def _matters(one: Repeat, direction: Direction) -> bool:
    """Whether enough of all pages went that way for a difference to shift the work."""
    each = [per_transaction(one, way) or 0.0 for way in DIRECTIONS]
    return (per_transaction(one, direction) or 0.0) > AGREED * fsum(each)


def _pages(arm: Arm) -> float | None:
    """Read and written per transaction, over all repeats."""
    counted = [
        (io.reads + io.writes, _transactions(one))
        for one in arm.repeats
        if (io := one.server_io) is not None and io.reads is not None and io.writes is not None
    ]
    done = fsum(each for _, each in counted)
    if len(counted) < len(arm.repeats) or not done:
        return None
    return sum(pages for pages, _ in counted) / done


def about(factor: float) -> str:
    """An estimate, without the digits of a measured factor.

    >>> about(41.46), about(131.4), about(1.234)
    ('41×', '131×', '1.2×')
    """
    return f"{factor:,.0f}×" if factor >= 10 else f"{factor:.1f}×"


def _with(users: int | None) -> str:
    return f" with {words.plural(users, 'user')}" if users else ""


def _by(share: float) -> str:
    return f"{words.percent(abs(share), 0)} {'more' if share > 0 else 'less'}"


def _part(missing: dict[Direction, int], windows: int) -> str:
    """Empty where nothing was counted in any window."""
    if set(missing.values()) == {windows}:
        return ""
    named = [
        f"{_PAGES[direction]} in {number} of {words.plural(windows, 'window')}"
        for direction, number in missing.items()
        if number
    ]
    return f" ({words.listed(named)})"
