"""Findings from a disk's tier: its state, its metadata, what it keeps of pins and shares; and the
devices below it: thin pools, wear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hotset.block import devices
from hotset.block.condition import thin_pools, wear
from hotset.core.errors import Remedy
from hotset.core.units import Bytes
from hotset.core.words import percent
from hotset.disk import flash_devices
from hotset.disk.flash_devices import AttachedDisk
from hotset.disk.lifecycle import DiskState
from hotset.tier import kinds, pins
from hotset.tier.division import Divisible
from hotset.warmup import division
from hotset.warmup.division import Kept, Location, part_of
from hotset.warmup.plan import Request as Planning
from hotset.warmup.text import describe_place

from . import thresholds as limits
from .findings import Ask, Finding, State

_GRAVE: Mapping[str, State] = {
    "inactive": "warning",
    "restarting": "warning",
    "degraded": "critical",
    "failed": "critical",
}


def state(ask: Ask, seen: DiskState, attached: AttachedDisk) -> list[Finding]:
    """Check that the tier works as requested."""
    state = seen.report.state
    if state == "active":
        return [ask.unknown(seen.doubt) if seen.doubt else ask.say("ok", "active")]
    notes = "; ".join(seen.report.notes) or "its devices are not there"
    return [ask.say(_GRAVE[state], f"{state}: {notes}", *_ways_out(ask, seen, attached))]


def _ways_out(ask: Ask, seen: DiskState, attached: AttachedDisk) -> Iterator[Remedy]:
    machine, origin = attached.machine, attached.disk.origin
    if seen.disk.phase == "detaching":
        yield ask.remedy("end its detach", "tier detach")
    elif not seen.flash_answers:
        given = {"disk": ask.disk, "flash_is_dead": True}
        yield ask.remedy("give the origin back, if the flash is dead", "tier detach", **given)
    elif seen.disk.phase != "ready" or devices.type_of(machine, origin) is None:
        return  # what to do takes what only people know; the state says it
    elif not flash_devices.is_ours(machine, attached.flash):
        flash = str(attached.flash.path)
        yield ask.remedy("take over the flash, if nobody else uses it", "tier import", flash=flash)
    else:
        if seen.report.state == "degraded":
            yield ask.remedy("take it down, once nobody uses it", "tier deactivate")
        yield ask.remedy("check it and make it active", "tier activate")
        if seen.report.state == "failed":
            yield ask.remedy("take it down first, where that changes nothing", "tier deactivate")


def metadata(ask: Ask, seen: DiskState) -> list[Finding]:
    """How full the room for metadata is, where it could become full."""
    share = seen.report.metadata
    if seen.report.counters is None:
        return [ask.unknown("the tier does not answer")]
    if share is None:
        return [ask.say("ok", "this kind of cache has none that could become full")]
    if share < limits.METADATA_FULL:
        return [ask.say("ok", f"{percent(share, 0)} used")]
    text = f"{percent(share, 0)} of the room for metadata is used; once it is full, the cache"
    text += " becomes read-only, and the disk has to be made again with a larger one"
    return [ask.say("critical", text, ask.remedy("write back and take it off", "tier detach"))]


def pools(ask: Ask, attached: AttachedDisk) -> list[Finding]:
    """How full the thin pools below origin and flash are."""
    places = (attached.disk.origin, attached.flash.path)
    measured = thin_pools.measure(attached.machine, places)
    return [_pool(ask, pool) for pool in measured] or [ask.say("ok", "it lies on none")]


def _pool(ask: Ask, pool: thin_pools.ThinPool) -> Finding:
    if pool.data is None or pool.metadata is None or pool.trouble:
        return ask.say("critical", f"{pool.name}: {pool.trouble}")
    used = f"{percent(pool.data, 0)} of its data, {percent(pool.metadata, 0)} of its metadata used"
    if max(pool.data, pool.metadata) < limits.POOL_FULL:
        return ask.say("ok", f"{pool.name}: {used}")
    which = "its metadata" if pool.metadata >= limits.POOL_FULL else "it"
    text = f"{pool.name}: {used}; extend {which} (`lvextend`), or writes will fail"
    return ask.say("critical", text)


def flash_wear(ask: Ask, attached: AttachedDisk) -> list[Finding]:
    """How worn the drives below the flash say they are."""
    return [
        _judge_wear(ask, drive) for drive in wear.measure(attached.machine, attached.flash.path)
    ]


def _judge_wear(ask: Ask, drive: wear.Wear) -> Finding:
    used = f"{drive.drive} has used {percent(drive.used, 0)} of its endurance"
    if drive.failing:
        return ask.say("critical", f"{used}, and {drive.failing}: replace it", _move_remedy(ask))
    if drive.used >= 1:
        return ask.say(
            "critical", f"{used}: its maker warrants nothing more, replace it", _move_remedy(ask)
        )
    if drive.used >= limits.WEAR_HIGH:
        return ask.say("warning", f"{used}: order another", _move_remedy(ask))
    return ask.say("ok", used)


def _move_remedy(ask: Ask) -> Remedy:
    return ask.remedy("write back and take the cache off, before another flash", "tier detach")


def preferences(ask: Ask, attached: AttachedDisk, server: Planning) -> list[Finding]:
    """Check that the cache has what is pinned and leaves shares their guarantee, and that both
    name what lies there now.

    :param server: the one that is asked where tables lie.
    """
    wanted = pins.read_preferences(attached.machine, attached.disk.name)
    if not wanted.targets:
        return [ask.say("ok", "nothing is pinned or shared")]
    now = division.find_again(attached, wanted, server)
    if not kinds.kind_of_name(attached.disk.kind).divides:
        return [
            ask.unknown(
                f"{attached.disk.kind} does not say what it has of each target; only warm-ups keep"
                " to pins"
            ),
            *_judge_places(ask, now, server.dsn),
        ]
    cache = attached.tier.divisible()
    if cache is None or not attached.tier.is_active():
        return [ask.unknown("the tier does not answer")]
    findings = [
        *_unkept(ask, cache, wanted, division.measure_kept(attached)),
        *_judge_places(ask, now, server.dsn),
    ]
    return findings or [ask.say("ok", f"all of {len(wanted.targets)} targets are kept")]


def _judge_places(ask: Ask, now: Mapping[str, Location], dsn: str | None) -> Iterator[Finding]:
    for target, place in now.items():
        if place.lies in ("gone", "elsewhere"):
            helps = division.ways_out({target: place}, ask.disk, ask.machine, dsn)
            yield ask.say("warning", f"{target}: {describe_place(place)}", *helps)
    by_reason: dict[str, list[str]] = {}
    for target, place in now.items():
        if place.lies == "not known":
            by_reason.setdefault(place.why, []).append(target)
    for why, targets in by_reason.items():
        yield ask.unknown(f"where {', '.join(targets)} lies now: {why}")


def _unkept(
    ask: Ask, cache: Divisible, wanted: pins.Preferences, kept: Mapping[str, Kept]
) -> Iterator[Finding]:
    divided = cache.division()
    again = ask.remedy("look it up and fetch it again", "warmup refresh")
    for target in (*wanted.pinned, *(share.target for share in wanted.shares)):
        if target not in kept:
            yield ask.say("warning", f"{target} is not kept: it was not found last time", again)
    for target in wanted.pinned:
        usage = kept.get(target)
        if usage is not None and usage.cached < usage.size:
            text = f"{usage.cached} of {usage.size} of {target} are cached, though it is pinned"
            yield ask.say("warning", text, again)
    for share in wanted.shares:
        usage = kept.get(share.target)
        asked = part_of(share.guarantee, divided.total, divided.block).bytes(divided.block)
        if usage is None or usage.guaranteed is None:
            continue
        if usage.guaranteed < min(asked, usage.size):
            text = f"{share.target} is guaranteed {usage.guaranteed} of {Bytes(asked)}"
            yield ask.say("warning", text, again)
