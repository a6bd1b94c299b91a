"""Looks at the accelerated disks of a machine. What cannot be looked at is a finding of its own:
one thing that fails hinders no other, and none of them counts as in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from hotset.core import clock
from hotset.core.clock import Moment
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine, MachineGoneError
from hotset.disk import flash_devices, lifecycle
from hotset.disk.flash_devices import AttachedDisk
from hotset.disk.lifecycle import DiskState, FlashState
from hotset.hitratio.hit_report import Label, Target
from hotset.warmup.plan import Request as Planning

from . import heat_now, recorded, tier_now, warm_ups
from .findings import Ask, Finding, Health, Subject
from .heat_now import Heat

Look = Callable[[Ask], list[Finding]]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A disk and what is known of it; how tables are named, None: nobody was asked."""

    target: Target
    state: DiskState
    label: Label | None
    server: Planning
    now: Moment

    @property
    def attached(self) -> AttachedDisk:
        return self.target.attached


def examine(machine: Machine, disk: str | None, label: Label | None, server: Planning) -> Health:
    """Find what is to be done, could be better, and is not known; nothing is changed, but that the
    reading of the heat is kept, as each look at it does.

    :param disk: None: every disk of the machine.
    :param label: function that names the table of a file; None: heat is reported by file.
    :param server: the machine as ``--machine`` has it, and who is asked where pinned tables lie.
    :raises FlashError: there is no such disk.
    """
    inventory = flash_devices.inventory(machine)
    findings = [Finding("", "flash", "critical", problem) for problem in inventory.problems]
    named = [flash_devices.find(machine, disk)] if disk else None
    shown = named or inventory.list_disks(machine)
    answers = lifecycle.inspect_each(
        shown, lambda attached, flash: _of_disk(attached, flash, label, server)
    )
    findings += [finding for of_one in answers for finding in of_one]
    return Health(server.machine, tuple(attached.disk.name for attached in shown), tuple(findings))


def _of_disk(
    attached: AttachedDisk, flash: FlashState, label: Label | None, server: Planning
) -> list[Finding]:
    machine, disk = server.machine, attached.disk.name
    try:
        state = lifecycle.inspect(attached, flash)
    except MachineGoneError:
        raise
    except HotsetError as error:
        # Nothing else of it can be told then.
        return [Ask(machine, disk, "state").unknown(error)]
    seen = _Seen(Target(machine, attached), state, label, server, clock.moment())
    return [
        finding
        for subject, look in _looks(seen)
        for finding in _guard(machine, disk, subject, look)
    ]


def _guard(machine: str, disk: str, subject: Subject, look: Look) -> list[Finding]:
    """Run a check; a failure is a finding, whatever the reason: a damaged file, a
    program that is missing."""
    ask = Ask(machine, disk, subject)
    try:
        return look(ask)
    except MachineGoneError:
        raise
    except (HotsetError, OSError, ValueError, sqlite3.Error) as error:
        return [ask.unknown(error)]


def _looks(seen: _Seen) -> Sequence[tuple[Subject, Look]]:
    attached, state = seen.attached, seen.state
    # Each is read once, by the first that needs it.
    heat = cache(lambda: heat_now.read(seen.target))
    past = cache(lambda: recorded.read(seen.target.machine_name, attached.disk, seen.now))
    return (
        ("state", lambda ask: tier_now.state(ask, state, attached)),
        ("hit ratio", lambda ask: recorded.hit_ratio(ask, past(), seen.now.wall)),
        ("hot data", lambda ask: _became_hot(ask, heat(), seen)),
        ("size and policy", lambda ask: _outlook(ask, heat(), seen)),
        ("dirty data", lambda ask: recorded.dirty(ask, past(), seen.now.wall)),
        ("pins and shares", lambda ask: tier_now.preferences(ask, attached, seen.server)),
        ("warm-ups", lambda ask: warm_ups.warm_ups(ask, attached)),
        ("metadata", lambda ask: tier_now.metadata(ask, state)),
        ("thin pools", lambda ask: tier_now.pools(ask, attached)),
        ("flash wear", lambda ask: tier_now.flash_wear(ask, attached)),
    )


def _became_hot(ask: Ask, heat: Heat | None, seen: _Seen) -> list[Finding]:
    if heat is None:
        return [ask.unknown("what became hot: nothing was counted in the last day")]
    return heat_now.became_hot(ask, heat, seen.target, seen.label)


def _outlook(ask: Ask, heat: Heat | None, seen: _Seen) -> list[Finding]:
    counters = seen.state.report.counters
    if heat is None or counters is None:
        return [ask.unknown("nothing was counted in the last day")]
    return heat_now.outlook(ask, heat, seen.target, counters)
