"""Condition of the tiers, the devices below them and their warm-ups, as OpenMetrics
families beside their counters. What a disk does not report has no line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from hotset.block.condition import thin_pools, wear
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine, MachineGoneError
from hotset.disk import flash_devices
from hotset.disk.boot import schedules
from hotset.disk.flash_devices import AttachedDisk
from hotset.tier.base import Report, State

from .metrics import Family, Sample
from .tier_metrics import Measured

Line = tuple[str, Sample]
Look = Callable[[AttachedDisk, Mapping[str, str]], Iterator[Line]]
_FAMILIES: Mapping[str, tuple[str, str]] = {
    "hotset_tier_state": ("Whether the tier is in this state: 1 for one of them, else 0.", ""),
    "hotset_cache_metadata_used_ratio": ("Used share of the room for metadata, 0 to 1.", ""),
    "hotset_cache_pinned_bytes": ("Bytes that are pinned.", "bytes"),
    "hotset_cache_pinned_resident_bytes": ("Bytes that are pinned and cached.", "bytes"),
    "hotset_thin_pool_data_used_ratio": ("Used share of a thin pool's data, 0 to 1.", ""),
    "hotset_thin_pool_metadata_used_ratio": ("Used share of a thin pool's metadata.", ""),
    "hotset_flash_wear_ratio": ("Used share of a drive's endurance; may exceed 1.", ""),
    "hotset_flash_failing": ("Whether a drive warns that it fails.", ""),
    "hotset_warmup_failed": ("Whether a schedule's last run failed.", ""),
    "hotset_warmup_duration_seconds": ("How long a schedule's last run took, or runs.", "seconds"),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A disk, its counters (None: its tier has none to give), and its lines."""

    measured: Measured
    lines: tuple[Line, ...]


def inspect(machine: Machine) -> list[Condition]:
    """The condition of all accelerated disks of a machine; each tier is asked once."""
    return flash_devices.of_each(flash_devices.list_disks(machine), _of_disk)


def families(conditions: Sequence[Condition]) -> list[Family]:
    """Return the families of disks."""
    lines = [line for condition in conditions for line in condition.lines]
    return [
        Family(name, "gauge", text, tuple(sample for mine, sample in lines if mine == name), unit)
        for name, (text, unit) in _FAMILIES.items()
    ]


def _of_disk(attached: AttachedDisk) -> Condition:
    report, disk = attached.tier.report(), {"disk": attached.disk.name}
    of_cache = (_pins,) if report.state in ("active", "degraded") else ()
    lines = [*_tier(attached, report, disk)]
    looks = (*of_cache, _pools, _wear, _schedules)
    lines += [line for look in looks for line in _conditions_of(look, attached, disk)]
    return Condition(Measured(attached.disk, report.counters), tuple(lines))


def _conditions_of(look: Look, attached: AttachedDisk, disk: Mapping[str, str]) -> list[Line]:
    """Nothing where it does not tell."""
    try:
        return list(look(attached, disk))
    except MachineGoneError:
        raise
    except (HotsetError, ValueError):
        return []


def _tier(attached: AttachedDisk, report: Report, disk: Mapping[str, str]) -> Iterator[Line]:
    labels = {**disk, "tier": attached.disk.kind}
    for state in get_args(State):
        is_so = float(state == report.state)
        yield "hotset_tier_state", Sample({**labels, "state": state}, is_so)
    yield "hotset_cache_metadata_used_ratio", Sample(labels, report.metadata)


def _pins(attached: AttachedDisk, disk: Mapping[str, str]) -> Iterator[Line]:
    cache = attached.tier.divisible()
    if cache is not None:
        division = cache.division()
        labels, pinned = {**disk, "tier": attached.disk.kind}, division.pinned
        sizes = (("", pinned.blocks), ("_resident", pinned.resident))
        for what, blocks in sizes:
            size = float(blocks.bytes(division.block))
            yield f"hotset_cache_pinned{what}_bytes", Sample(labels, size)


def _pools(attached: AttachedDisk, disk: Mapping[str, str]) -> Iterator[Line]:
    places = (attached.disk.origin, attached.flash.path)
    for pool in thin_pools.measure(attached.machine, places):
        labels = {**disk, "pool": pool.name}
        yield "hotset_thin_pool_data_used_ratio", Sample(labels, pool.data)
        yield "hotset_thin_pool_metadata_used_ratio", Sample(labels, pool.metadata)


def _wear(attached: AttachedDisk, disk: Mapping[str, str]) -> Iterator[Line]:
    for drive in wear.measure(attached.machine, attached.flash.path):
        labels = {**disk, "drive": str(drive.drive)}
        yield "hotset_flash_wear_ratio", Sample(labels, drive.used)
        yield "hotset_flash_failing", Sample(labels, float(bool(drive.failing)))


def _schedules(attached: AttachedDisk, disk: Mapping[str, str]) -> Iterator[Line]:
    for schedule, run in schedules.runs_of_disk(attached.machine, attached.disk.name):
        labels = {**disk, "schedule": schedule.name}
        if schedule.last in ("done", "failed"):
            yield "hotset_warmup_failed", Sample(labels, float(schedule.last == "failed"))
        if run is not None and run.seconds:
            yield "hotset_warmup_duration_seconds", Sample(labels, run.seconds)
