"""Comparison of the arms' states, by the pages that the server itself counted.

The same workload on the same rows, with the same buffers, needs as many pages per transaction in
each arm. Where it did not, a factor tells of that as well as of the storage. Reads and writes are
compared apart and in each repeat: a server that still fills its buffers reads more and writes less,
which the sum hides, and so may a mean. `in-memory` has other buffers: it is not compared.

Buffers are full, at the earliest, when the server has read as much as they hold. What it had read
when a window opened is on record where its arm was prepared; of older runs it is reckoned at the
rate of the window itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum
from typing import Literal, TypeAlias

from hotset.core import words

from ..model.base import ArmName
from ..model.document import CACHED_ARMS, Arm, RunDocument
from ..model.windows import Preparation, Repeat

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
    :ivar reference: of `other`, with the most transactions: its buffers were renewed most often.
    """

    arm: ArmName
    window: Repeat
    other: ArmName
    direction: Direction
    here: float
    reference: float

    def describe(self) -> str:
        by = f" ({_by(self.here / self.reference - 1)})" if self.reference else ""
        verb = _VERB[self.direction]
        return f"{verb} {self.here:.1f} where {self.other} {verb} {self.reference:.1f}{by}"


@dataclass(frozen=True, slots=True)
class RampUp:
    """Reads of a server before a window.

    :ivar given_s: for how long.
    :ivar needed_s: how long it takes, at that rate, to read as much as its buffers hold; None: not
        known.
    """

    arm: ArmName
    given_s: float
    needed_s: float | None

    @property
    def short(self) -> bool:
        return self.needed_s is not None and self.given_s < self.needed_s


def list_comparable(document: RunDocument) -> list[Arm]:
    """Arms whose servers have the same buffers."""
    return [arm for arm in document.arms if arm.name != "in-memory"]


def differences(document: RunDocument) -> list[Difference]:
    """List differences of more than `AGREED`, first those between the windows of the factor."""
    return [
        difference
        for group in _groups(document)
        for direction in DIRECTIONS
        for difference in _differences(group, direction)
    ]


def describe(differences: list[Difference]) -> str:
    """By window, the first `NAMED` of them."""
    windows: dict[tuple[ArmName, int, int | None], list[str]] = {}
    for difference in differences:
        key = (difference.arm, difference.window.repeat, difference.window.users)
        windows.setdefault(key, []).append(difference.describe())
    several = len({users for _, _, users in windows}) > 1
    named = [
        f"{arm}{_with(users) if several else ''}, repeat {repeat}, {words.enumerate_words(parts)}"
        for (arm, repeat, users), parts in windows.items()
    ]
    more = len(named) - NAMED
    return "; ".join(named[:NAMED]) + (f"; and {more} more windows" if more > 0 else "")


def unknown(document: RunDocument) -> list[str]:
    """Arms, and what of their pages was not counted in which share of their windows."""
    groups = list(_groups(document))
    parts = []
    for arm in list_comparable(document):
        windows = [repeat for group in groups for name, repeat in group if name == arm.name]
        missing = {
            direction: sum(per_transaction(window, direction) is None for window in windows)
            for direction in DIRECTIONS
        }
        if any(missing.values()):
            parts.append(f"{arm.name}{_part(missing, len(windows))}")
    return parts


def factor_at_equal_work(document: RunDocument) -> float | None:
    """Compute the factor, had the baseline needed as many pages for a transaction as the
    accelerated arm, and got as many a second as it did. None where these two did not differ, or the
    baseline was not held back by its storage."""
    factor = document.factor()
    accelerated, baseline = document.arm("accelerated"), document.arm("baseline")
    if factor is None or accelerated is None or baseline is None or baseline.cpu_bound:
        return None
    if not in_factor(document):
        return None
    fast, slow = _pages(accelerated), _pages(baseline)
    return factor.ratio * fast / slow if fast and slow else None


def in_factor(document: RunDocument) -> bool:
    """True if the two arms that the factor is of did not do the same work."""
    pair = {"accelerated", "baseline"}
    return any({difference.arm, difference.other} == pair for difference in differences(document))


def per_transaction(repeat: Repeat, direction: Direction) -> float | None:
    """None: not counted, or no transaction ended."""
    io, done = repeat.server_io, _transactions(repeat)
    count = None if io is None else io.reads if direction == "reads" else io.writes
    return count / done if count is not None and done > 0 else None


def ramp_ups(document: RunDocument) -> list[RampUp]:
    """List the ramp-ups of all windows, a curve's as well."""
    size = _to_fill(document)
    return [
        _ramp_up(document, arm, repeat, size)
        for arm in list_comparable(document)
        for repeat in (*arm.repeats, *arm.curve)
    ]


def too_short(ramp_ups: list[RampUp]) -> list[str]:
    """By arm, with the worst of its windows."""
    texts = []
    for arm in dict.fromkeys(ramp_up.arm for ramp_up in ramp_ups):
        of_arm = [ramp_up for ramp_up in ramp_ups if ramp_up.arm == arm]
        short = [
            (ramp_up.given_s, ramp_up.needed_s)
            for ramp_up in of_arm
            if ramp_up.short and ramp_up.needed_s
        ]
        if short:
            given, needed = min(short, key=lambda each: each[0] / each[1])
            windows = words.plural(len(of_arm), "window")
            texts.append(
                f"{arm}, {len(short)} of {windows} (at worst {words.duration(given)} of the"
                f" {words.duration(needed)} that takes)"
            )
    return texts


def not_reckoned(ramp_ups: list[RampUp]) -> list[str]:
    """Arms with windows of which it is not known."""
    return list(dict.fromkeys(ramp_up.arm for ramp_up in ramp_ups if ramp_up.needed_s is None))


def _to_fill(document: RunDocument) -> int | None:
    """Bytes until a server's buffers are full, or hold the whole database."""
    database = document.database
    if database is None or not database.buffers_bytes:
        return None
    return min(database.buffers_bytes, database.bytes or database.buffers_bytes)


def _ramp_up(document: RunDocument, arm: Arm, repeat: Repeat, size: int | None) -> RampUp:
    rate, before = _read_rate(repeat), _read_before(arm, repeat)
    if repeat.preparation is not None:
        return _describe_ramp_up(arm, repeat, repeat.preparation, size, before)
    if size is None or rate is None or before is None:
        return RampUp(arm.name, repeat.rampup_s, None)
    if rate == 0:  # It had all that it needed.
        return RampUp(arm.name, repeat.rampup_s, 0.0)
    given = repeat.rampup_s + _probe_s(document, arm, repeat) + before / rate
    return RampUp(arm.name, given, size / rate)


def _describe_ramp_up(
    arm: Arm, repeat: Repeat, preparation: Preparation, size: int | None, before: float | None
) -> RampUp:
    """By what is on record."""
    given = preparation.seconds + repeat.rampup_s
    if preparation.level:
        return RampUp(arm.name, given, 0.0)
    read, ramp_up = preparation.read_bytes, repeat.rampup_read_bytes
    if size is None or read is None or ramp_up is None:
        return RampUp(arm.name, given, None)
    read += ramp_up
    if read < size and before is None:
        return RampUp(arm.name, given, None)
    read += round(before or 0)
    return RampUp(arm.name, given, given * size / read if read else None)


def levels(document: RunDocument) -> dict[bool | None, list[str]]:
    """Arms with repeats whose reads were level when their preparation ended, were not, or of which
    that is not known; and of how many repeats that is so."""
    by_answer: dict[bool | None, list[str]] = {}
    for arm in document.arms:
        for answer in (True, False, None):
            those = [repeat for repeat in arm.repeats if _level(repeat) is answer]
            if those:
                of = f"{len(those)} of {words.plural(len(arm.repeats), 'repeat')}"
                by_answer.setdefault(answer, []).append(f"{arm.name} ({of}, {_loaded_by(those)})")
    return by_answer


def _level(repeat: Repeat) -> bool | None:
    return repeat.preparation.level if repeat.preparation else None


def _loaded_by(repeats: list[Repeat]) -> str:
    """How long the load ran."""
    seconds = [repeat.preparation.seconds for repeat in repeats if repeat.preparation]
    if not seconds:
        return "not on record"
    low, high = words.duration(min(seconds)), words.duration(max(seconds))
    return f"after {low} of load" if low == high else f"after {low} to {high} of load"


def _read_rate(repeat: Repeat) -> float | None:
    """Bytes a second."""
    io = repeat.server_io
    return io.read_bytes / io.seconds if io is not None and io.read_bytes is not None else None


def _read_before(arm: Arm, repeat: Repeat) -> float | None:
    """Bytes that earlier windows of a curve read: all of a repeat run on the same server, unless it
    was prepared again, and each adds orders. None: not known."""
    total, opened = 0.0, repeat.orders_before
    for other in (*arm.repeats, *arm.curve):
        if (
            other is repeat
            or other.repeat != repeat.repeat
            or other.preparation != repeat.preparation
        ):
            continue
        rate, earlier = _read_rate(other), other.orders_before
        if rate is None or opened is None or earlier is None or earlier == opened:
            return None
        if earlier < opened:
            total += rate * (other.rampup_s + other.duration_s)
    return total


def _probe_s(document: RunDocument, arm: Arm, repeat: Repeat) -> float:
    """A cache that was warmed up is probed with the full load on the same server."""
    if arm.name not in CACHED_ARMS or document.warmup is None:
        return 0.0
    return fsum(
        each.probe_seconds for each in document.warmup.repeats if each.repeat == repeat.repeat
    )


def _transactions(repeat: Repeat) -> float:
    """Count the transactions in the time in which the server counted."""
    return repeat.tpm * repeat.server_io.seconds / 60 if repeat.server_io else 0.0


def _groups(document: RunDocument) -> Iterator[list[tuple[ArmName, Repeat]]]:
    """Windows to compare with each other: two or more."""
    for of_curve in (False, True):
        groups: defaultdict[tuple[int, int | None], list[tuple[ArmName, Repeat]]]
        groups = defaultdict(list)
        for arm in list_comparable(document):
            for repeat in arm.curve if of_curve else arm.repeats:
                groups[repeat.repeat, repeat.users].append((arm.name, repeat))
        yield from (group for group in groups.values() if len(group) > 1)


def _differences(group: list[tuple[ArmName, Repeat]], direction: Direction) -> Iterator[Difference]:
    counted = [
        (name, repeat, pages)
        for name, repeat in group
        if (pages := per_transaction(repeat, direction)) is not None
    ]
    if not counted:
        return
    other, most, reference = max(counted, key=lambda each: _transactions(each[1]))
    for arm, repeat, here in counted:
        apart = abs(here - reference) > AGREED * reference
        if apart and (_matters(repeat, direction) or _matters(most, direction)):
            yield Difference(arm, repeat, other, direction, here, reference)


def _matters(repeat: Repeat, direction: Direction) -> bool:
    """True if enough of all pages went that way for a difference to shift the work."""
    each = [per_transaction(repeat, way) or 0.0 for way in DIRECTIONS]
    return (per_transaction(repeat, direction) or 0.0) > AGREED * fsum(each)


def _pages(arm: Arm) -> float | None:
    """Read and written per transaction, over all repeats."""
    counted = [
        (io.reads + io.writes, _transactions(repeat))
        for repeat in arm.repeats
        if (io := repeat.server_io) is not None and io.reads is not None and io.writes is not None
    ]
    done = fsum(each for _, each in counted)
    if len(counted) < len(arm.repeats) or not done:
        return None
    return fsum(pages for pages, _ in counted) / done


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
    return f" ({words.enumerate_words(named)})"
