"""Output of ``hotset tier status`` and ``resident``: records in, rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotset.block import devicemapper
from hotset.core.errors import HotsetError
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import ABSENT, percent, size
from hotset.disk.adopt import LabelledDevice, Unread
from hotset.disk.lifecycle import DiskState
from hotset.tier import kinds
from hotset.tier.base import State, TierFailedError


@dataclass(frozen=True, slots=True)
class DiskStatus:
    """A disk's state; sizes in bytes, ratios 0-1, None where nothing is known."""

    disk: str
    kind: str
    state: State
    database: str
    device: str
    origin: str
    flash: str
    flash_answers: bool
    flash_name: str
    flash_free_bytes: int
    volume: str | None
    volume_bytes: int
    mode: str
    policy: str
    block_bytes: int
    cache_bytes: int
    metadata_bytes: int
    bypass_bytes: int | None
    used_bytes: int | None
    dirty_bytes: int | None
    hit_ratio: float | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    hit_ratio_of: str | None
    read_hits: int | None
    read_misses: int | None
    write_hits: int | None
    write_misses: int | None
    bypassed: int | None
    tunables: dict[str, str]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TierStatus(Versioned):
    """The accelerated disks of a machine."""

    csv_rows = "disks"

    disks: tuple[DiskStatus, ...]

    def to_text(self) -> str:
        lines = status_lines(self.disks) or ["no disk is accelerated here"]
        return "\n".join(lines)

    def failure(self) -> Exception | None:
        failed = [disk.disk for disk in self.disks if disk.state == "failed"]
        return TierFailedError(f"failed: {', '.join(failed)}") if failed else None


@dataclass(frozen=True, slots=True)
class CachedRange:
    """A run of bytes of a disk that is cached."""

    start_bytes: Bytes
    bytes: Bytes


@dataclass(frozen=True)
class CachedRanges(Versioned):
    """Cached ranges of a disk, in order: the first of ``count``; ``cached_bytes`` are of all."""

    csv_rows = "runs"

    disk: str
    block_bytes: Bytes
    cached_bytes: Bytes
    count: int
    runs: tuple[CachedRange, ...]

    def to_text(self) -> str:
        lines = [f"{self.disk}: {self.cached_bytes} cached in {self.count} runs"]
        lines += [f"  {int(run.start_bytes):>16}  {int(run.bytes):>12}" for run in self.runs]
        if len(self.runs) < self.count:
            lines.append(f"  … and {self.count - len(self.runs)} more (--limit)")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class LabelledDisk:
    """A disk of a flash device, and its origin as the label has it."""

    disk: str
    origin: str


@dataclass(frozen=True, slots=True)
class FlashLabel:
    """A flash device with a label. ``known_as``: this machine's name for it, if it knows it."""

    flash: str
    flash_name: str
    uuid: str | None
    machine: str
    this_machine: bool
    known_as: str | None
    generation: int
    disks: tuple[LabelledDisk, ...]

    @classmethod
    def from_label(cls, label: LabelledDevice) -> FlashLabel:
        flash = label.flash
        disks = tuple(LabelledDisk(disk.name, str(disk.origin)) for disk in flash.disks)
        where = (str(label.path), flash.name, flash.uuid, flash.host_name)
        return cls(*where, label.ours, label.known_as, flash.generation, disks)


@dataclass(frozen=True, slots=True)
class UnreadFlash:
    """A device of which it is not known whether it carries a label."""

    device: str
    why: str

    @classmethod
    def from_device(cls, unread: Unread) -> UnreadFlash:
        return cls(str(unread.device), unread.why)


class NotLookedAtError(HotsetError):
    """Devices that could not be looked at; the message names them and says why."""


@dataclass(frozen=True)
class LabelledFlash(Versioned):
    """The flash devices that carry hotset's label, and those that could not be looked at."""

    csv_rows = "flash_devices"

    flash_devices: tuple[FlashLabel, ...]
    unread: tuple[UnreadFlash, ...] = ()

    def to_text(self) -> str:
        lines = []
        for device in self.flash_devices:
            disks = ", ".join(f"{disk.disk} over {disk.origin}" for disk in device.disks)
            known = f"registered here as {device.known_as}" if device.known_as else "not known here"
            lines.append(
                f"{device.flash}: flash device {device.flash_name} of {device.machine}, {known}"
            )
            lines.append(f"  disks: {disks or 'none'}")
        if not lines:
            which = "flash device that could be read" if self.unread else "flash device"
            lines.append(f"no {which} carries a hotset label")
        return "\n".join(lines)

    def failure(self) -> Exception | None:
        """Return the failure for devices that could not be read, as they may be flash devices."""
        if not self.unread:
            return None
        reasons = "; ".join(f"{flash.device}: {flash.why}" for flash in self.unread)
        return NotLookedAtError(f"whether these carry a label is not known: {reasons}")


def status_row(state: DiskState) -> DiskStatus:
    """A disk's state as it is shown."""
    disk, spec, counters = state.disk, state.disk.spec, state.report.counters
    hits = counters.hits if counters else None
    since = kinds.kind_of_name(disk.kind).counted_since
    return DiskStatus(
        disk=disk.name,
        kind=disk.kind,
        state=state.report.state,
        database=disk.database,
        device=str(disk.device),
        origin=str(disk.origin),
        flash=str(state.flash.path),
        flash_answers=state.flash_answers,
        flash_name=state.flash.name,
        flash_free_bytes=int(devicemapper.total(state.flash.free())),
        volume=str(state.flash.volume_slice.path) if state.flash.volume else None,
        volume_bytes=int(devicemapper.total(state.flash.volume)),
        mode=spec.mode,
        policy=spec.policy,
        block_bytes=int(spec.block),
        cache_bytes=int(spec.cache),
        metadata_bytes=int(spec.metadata),
        bypass_bytes=None if spec.bypass is None else int(spec.bypass),
        used_bytes=int(counters.used.bytes(spec.block)) if counters else None,
        dirty_bytes=int(counters.dirty.bytes(spec.block)) if counters else None,
        hit_ratio=hits.ratio if hits else None,
        read_hit_ratio=hits.read_ratio if hits else None,
        write_hit_ratio=hits.write_ratio if hits else None,
        hit_ratio_of=f"hits / (hits + misses) {since}" if hits else None,
        read_hits=hits.read_hits if hits else None,
        read_misses=hits.read_misses if hits else None,
        write_hits=hits.write_hits if hits else None,
        write_misses=hits.write_misses if hits else None,
        bypassed=hits.bypassed if hits else None,
        tunables=dict(state.report.tunables),
        notes=tuple(state.report.notes),
    )


def status_lines(rows: Sequence[DiskStatus]) -> list[str]:
    """The table: a paragraph for each disk, the state first."""
    lines: list[str] = []
    for row in rows:
        lines += [f"{row.disk}: {row.state} ({row.kind}, {row.database})"]
        lines += [f"  ! {note}" for note in row.notes]
        bypass = f", bypass above {size(row.bypass_bytes)}" if row.bypass_bytes else ""
        volume = f"{row.volume}, {size(row.volume_bytes)}" if row.volume else "none"
        free = f"flash device {row.flash_name}, {size(row.flash_free_bytes)} free"
        asked = f"{row.mode}, {row.policy}, block {size(row.block_bytes)}{bypass}"
        reads = f"{percent(row.read_hit_ratio)} ({row.hit_ratio_of or 'not known'})"
        writes = percent(row.write_hit_ratio)
        if row.state == "active" and row.write_hits is None:
            writes = "not counted by this kind"
        kernel = ", ".join(f"{name} {value}" for name, value in row.tunables.items())
        pairs = [
            ("device", f"{row.device} over {row.origin}"),
            ("flash", f"{row.flash} ({free})"),
            ("volume", volume),
            (
                "cache",
                f"{size(row.cache_bytes)}, {size(row.used_bytes)} used,"
                f" {size(row.dirty_bytes)} dirty",
            ),
            ("asked for", asked),
            ("reads hit", reads),
            ("writes hit", writes),
            (f"{kinds.kind_of_name(row.kind).counted_by} says", kernel or ABSENT),
        ]
        lines += [f"  {name:12}{text}" for name, text in pairs]
    return lines
