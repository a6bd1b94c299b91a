"""Pins, exclusions and shares that the cache itself keeps to: hotset's own engine.

Targets are looked up when they are named, at every warm-up of the disk and by ``warmup refresh``: a
table that has grown lies in more blocks then. What cannot be looked up (the server is down, or not
named) stays as it was looked up last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hotset.block.extents import Run, count, difference, intersection, union
from hotset.core.errors import Remedy, RequestError
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.databases.base import Target, TargetGoneError
from hotset.disk.flash_devices import AttachedDisk
from hotset.tier.division import Divisible, Division, Owner, Owners, SharedOwner
from hotset.tier.filling import Filling
from hotset.tier.pins import Preferences, Share

from . import plan as planning
from .plan import CANNOT_BE_LOOKED_UP, Request
from .targets import parse

MOVED_SHARE = 0.1
"""Share of a target's blocks that moved: a table in use gains some and a vacuum cuts some off,
which the next warm-up finds; what is rewritten (VACUUM FULL, CLUSTER) has moved as a whole."""
_PERCENT = re.compile(r"^(\d{1,3}(?:\.\d+)?)%$")


def part_of(text: str, total: Blocks, block: Bytes) -> Blocks:
    """A part of the cache, in blocks of it.

    >>> part_of("25%", Blocks(1000), Bytes(65536)), part_of("1GiB", Blocks(1000), Bytes(2**20))
    (Blocks(250), Blocks(1000))

    :raises ValueError: neither a percentage of at most 100 nor a size.
    """
    percent = _PERCENT.match(text)
    if percent is None:
        try:
            return Blocks(min(int(total), -(-Bytes.parse(text) // int(block))))
        except ValueError:
            raise ValueError(
                f"{text!r} is no part of a cache: write a percentage such as 30%, or a size such as"
                " 20GiB"
            ) from None
    if float(percent[1]) > 100:
        raise ValueError(f"{text!r} is more than all of the cache: write at most 100%")
    return Blocks(int(int(total) * float(percent[1]) / 100))


def divide(
    attached: AttachedDisk,
    wanted: Preferences,
    request: Request,
    renewed: Collection[str],
    report: Reporter,
) -> list[str]:
    """Have the running engine keep to what is wanted, and wait until it does.

    :param request: where the database server is, and where the disk is mounted.
    :param renewed: the targets that are looked up; one that never was has to be there.
    :returns: what is worth knowing: targets that could not be looked up.
    :raises TargetError: a target that is new is not there.
    :raises RequestError: it does not fit the cache, or the cache keeps to none of it.
    """
    cache = _divisible(attached)
    notes: list[str] = []
    before, owners, division = cache.owners(), Owners(), cache.division()
    if wanted.targets:
        request = replace(request, targets=wanted.targets)
        with planning.looking_up(attached, request, notes) as maker:
            owners = _owners(maker, wanted, before, renewed, division, notes)
    notes += _describe_exclusions(owners, renewed, division.block)
    if owners != before:
        cache.divide(owners, lambda left: report.say(f"{int(left)} blocks have still to leave"))
    return notes


def fetch(attached: AttachedDisk, report: Reporter, rate: Bytes | None = None) -> None:
    """Bring in what is pinned and not cached.

    :param rate: fetch at most so many bytes a second.
    """
    tier, owners = attached.tier, _divisible(attached).owners()
    pinned = union(*(owner.runs for owner in owners.pinned))
    excluded = union(*(owner.runs for owner in owners.excluded))
    missing = difference(difference(pinned, excluded), tier.resident())
    if missing:
        with report.task(f"fetching what is pinned on {attached.disk.name}"):
            tier.fill(Filling(missing, 0, report.on_step, rate))


def _divisible(attached: AttachedDisk) -> Divisible:
    cache, kind = attached.tier.divisible(), attached.disk.kind
    if cache is None:
        raise RequestError(f"{kind} keeps to no pins, exclusions and shares", field="disk")
    return cache


@dataclass(frozen=True, slots=True)
class Kept:
    """Cached part of a target.

    :ivar size: of the target; ``cached``: of its cached part.
    :ivar guaranteed: what others leave a share, with what is promised inside it; None: it is none.
    """

    size: Bytes
    cached: Bytes
    guaranteed: Bytes | None


def measure_kept(attached: AttachedDisk) -> dict[str, Kept]:
    """Measure what is cached of each pinned, excluded or shared target; nothing where the cache
    does not know of targets."""
    tier = attached.tier
    cache = tier.divisible()
    if cache is None or not tier.is_active():
        return {}
    owners, resident, block = cache.owners(), tier.resident(), attached.disk.spec.block
    shares = {share.name: share.guaranteed.bytes(block) for share in cache.division().shares}
    return {
        owner.name: Kept(
            count(owner.runs).bytes(block),
            count(intersection(owner.runs, resident)).bytes(block),
            shares.get(owner.name),
        )
        for owner in owners.every
    }


Lies = Literal["where it was", "elsewhere", "gone", "not known"]


@dataclass(frozen=True, slots=True)
class Location:
    """Where a target lies now, beside where the cache keeps to, which is where it was looked up
    last.

    :ivar unused: kept for it, and none of its own any more; ``outside``: its own, and not kept.
        Both None where it is not known.
    :ivar why: it is gone or not known.
    """

    lies: Lies
    unused: Bytes | None = None
    outside: Bytes | None = None
    why: str = ""


def find_again(
    attached: AttachedDisk, wanted: Preferences, request: Request
) -> dict[str, Location]:
    """Where pinned, excluded and shared targets lie now; those that are no places of their own
    (``heat``, a snapshot) are not among them. Nothing is changed.

    :param request: where the database server is, and where the disk is mounted.
    """
    targets = [text for text in wanted.targets if parse(text).kind not in ("heat", "snapshot")]
    if not targets:
        return {}
    if not attached.tier.is_active():
        return dict.fromkeys(targets, Location("not known", why="the disk is not active"))
    cache = attached.tier.divisible()
    owners = None if cache is None else cache.owners()
    request, find_runs = replace(request, targets=tuple(targets)), {}
    with planning.looking_up(attached, request, []) as maker:
        for text in targets:
            last = () if owners is None else owners.runs_of(text) or ()
            look = maker.whole_runs if text in wanted.excluded else maker.runs
            try:
                now = look(parse(text))
                # A cache that keeps to nothing itself has no place of it to remember.
                find_runs[text] = _compare(
                    now if owners is None else last, now, maker.inspect.block
                )
            except TargetGoneError as error:
                find_runs[text] = _not_found(maker, parse(text), last, error)
            except CANNOT_BE_LOOKED_UP as error:
                find_runs[text] = Location("not known", why=str(error))
    return find_runs


def ways_out(
    find_runs: Mapping[str, Location], disk: str, machine: str, dsn: str | None
) -> tuple[Remedy, ...]:
    """List the remedies for targets that are not where they were.

    :param machine: as ``--machine`` names it; ``dsn``: of the server that was asked.
    """
    where = {"disk": disk} | ({} if machine == "local" else {"machine": machine})
    server = {} if dsn is None else {"dsn": dsn}
    again = Remedy("keep to where it lies now", "warmup refresh", {**where, **server})
    gone = [text for text, place in find_runs.items() if place.lies == "gone"]
    return (
        *([again] if any(place.lies == "elsewhere" for place in find_runs.values()) else []),
        *(
            Remedy("keep nothing for it any more", "warmup unpin", {"targets": text, **where})
            for text in gone
        ),
    )


def _not_found(
    maker: planning._Maker, target: Target, last: Sequence[Run], why: TargetGoneError
) -> Location:
    if target.of_database and not maker.is_server_here():
        return Location("not known", why="the server that was asked has no files on this disk")
    return Location("gone", count(last).bytes(maker.inspect.block), Bytes(0), str(why))


def _compare(last: Sequence[Run], now: Sequence[Run], block: Bytes) -> Location:
    unused, outside = count(difference(last, now)), count(difference(now, last))
    moved = unused > MOVED_SHARE * count(last) or outside > MOVED_SHARE * count(now)
    return Location(
        "elsewhere" if moved else "where it was", unused.bytes(block), outside.bytes(block)
    )


def _owners(
    maker: planning._Maker,
    wanted: Preferences,
    before: Owners,
    renewed: Collection[str],
    division: Division,
    notes: list[str],
) -> Owners:
    """:raises TargetError: a target that is new is not there."""

    def find_runs(text: str, look: Callable[..., list[Run]]) -> tuple[Run, ...] | None:
        last = before.runs_of(text)
        if last is not None and text not in renewed:
            return last
        try:
            return tuple(look(parse(text)))
        except CANNOT_BE_LOOKED_UP as error:
            if last is None and text in renewed:
                raise
            kept = "left out" if last is None else "left as it was looked up last"
            notes.append(f"{text} is {kept}: {error}")
            return last

    def name_owners(texts: Collection[str], look: Callable[..., list[Run]]) -> tuple[Owner, ...]:
        every = ((text, find_runs(text, look)) for text in texts)
        return tuple(Owner(text, runs) for text, runs in every if runs is not None)

    def limits(share: Share) -> tuple[Blocks, Blocks]:
        guaranteed, most = (
            part_of(text, division.total, division.block) for text in (share.guarantee, share.limit)
        )
        if guaranteed > most:
            raise RequestError(
                f"{share.target}: a guarantee of {share.guarantee} is more than the limit,"
                f" {share.limit}",
                field="guarantee",
            )
        return guaranteed, most

    shares = [(share, find_runs(share.target, maker.runs)) for share in wanted.shares]
    return Owners(
        name_owners(wanted.pinned, maker.runs),
        name_owners(wanted.excluded, maker.whole_runs),
        tuple(
            SharedOwner(share.target, runs, *limits(share))
            for share, runs in shares
            if runs is not None
        ),
    )


def _describe_exclusions(owners: Owners, renewed: Collection[str], block: Bytes) -> list[str]:
    """Describe what an exclusion keeps out of a pin or a share, where one of them is new."""
    notes = []
    for excluded in owners.excluded:
        for owner in (*owners.pinned, *owners.shares):
            if owner.name not in renewed and excluded.name not in renewed:
                continue
            both = count(intersection(owner.runs, excluded.runs))
            if both:
                notes.append(
                    f"{both.bytes(block)} of {owner.name} are excluded with {excluded.name}, which"
                    " wins: they are not cached"
                )
    return notes
