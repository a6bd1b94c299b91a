"""A resident set saved to a file, so that a cache can be made as it was.

Byte ranges by level (smq's, the hottest first), with the identity of the disk they belong to and,
where its file system was mounted, the files they lie in: what was deleted since is skipped by name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotset.block.extents import Extent, Run, difference, intersection, to_runs, whole_runs
from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine
from hotset.core.units import SECTOR_BYTES, Bytes
from hotset.hitratio.attribution import FILE_SYSTEM, Owner

from .targets import MountedView

SCHEMA_VERSION = 1
_SECTOR = Bytes(SECTOR_BYTES)


class SnapshotError(RequestError):
    """Not a snapshot, or one of another disk; the message says which."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of a disk: its file system's UUID and its size."""

    uuid: str
    size: Bytes


@dataclass(frozen=True, slots=True)
class Layer:
    """Byte ranges of one level."""

    level: int
    extents: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A resident set: ``layers`` the hottest first; ``files`` that have a part in it."""

    disk: str
    taken_at: str
    identity: Identity
    layers: tuple[Layer, ...]
    files: tuple[Owner, ...]

    @property
    def bytes(self) -> Bytes:
        return Bytes(sum(extent.length for layer in self.layers for extent in layer.extents))

    def render(self) -> str:
        """Its file's text."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}) + "\n"


@dataclass(frozen=True, slots=True)
class Kept:
    """Part of a snapshot that is left today, hottest first, and which files are gone."""

    layers: tuple[list[Run], ...]
    deleted: tuple[str, ...]


def identity(machine: Machine, inspect: MountedView) -> Identity:
    """Identify the disk of a view.

    :raises SnapshotError: it has no file system, so nothing does.
    """
    if inspect.kind is None:
        raise SnapshotError(
            f"{inspect.device} has no file system that tells it from another disk: a snapshot of"
            " it could be restored to the wrong one. Name what to cache as region:OFFSET+LENGTH",
            field="disk",
        )
    argv = ["blkid", "--probe", "--match-tag", "UUID", "--output", "value", str(inspect.device)]
    return Identity(machine.run(argv).stdout.strip(), inspect.size)


def take(
    disk: str,
    at: str,
    inspect: MountedView,
    by_level: dict[int, list[Run]],
    files: Sequence[Owner],
) -> Snapshot:
    """A snapshot of what is cached.

    :param at: when, as ISO 8601.
    :param files: of the disk, with their extents; those without a cached block are left out.
    """
    layers = tuple(
        Layer(level, _extents(by_level[level], inspect.block))
        for level in sorted(by_level, reverse=True)
    )
    resident = _sectors([extent for layer in layers for extent in layer.extents], inspect)
    parts = []
    for file in files:
        cached = intersection(_sectors(file.extents, inspect), resident)
        if cached and file.name != FILE_SYSTEM:
            parts.append(Owner(file.name, _extents(cached, _SECTOR)))
    return Snapshot(disk, at, identity(inspect.machine, inspect), layers, tuple(parts))


def parse(text: str) -> Snapshot:
    """:raises SnapshotError: not a snapshot's text."""
    try:
        fields: dict[str, Any] = json.loads(text)
        if fields.pop("schema_version") != SCHEMA_VERSION:
            raise SnapshotError(f"not of schema_version {SCHEMA_VERSION}")
        return Snapshot(
            str(fields["disk"]),
            str(fields["taken_at"]),
            Identity(str(fields["identity"]["uuid"]), Bytes(fields["identity"]["size"])),
            tuple(
                Layer(int(field["level"]), _parse_extents(field["extents"]))
                for field in fields["layers"]
            ),
            tuple(
                Owner(str(field["name"]), _parse_extents(field["extents"]))
                for field in fields["files"]
            ),
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise SnapshotError(f"not a snapshot of a cache ({error!r})") from None


def is_snapshot(file: Path) -> bool:
    """Tell whether a file looks like one, of whatever version."""
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(held, dict) and {"disk", "identity", "layers"} <= set(held)


def keep_allocated(snapshot: Snapshot, inspect: MountedView) -> Kept:
    """Keep what of a snapshot is worth fetching today: not what lies where nothing is any more.

    :raises SnapshotError: it is of another disk.
    """
    today = identity(inspect.machine, inspect)
    if snapshot.identity != today:
        raise SnapshotError(
            f"the snapshot is of disk {snapshot.disk} with file system {snapshot.identity.uuid}"
            f" ({snapshot.identity.size}), and {inspect.device} has {today.uuid} ({today.size}):"
            " name the disk it was taken of",
            field="disk",
        )
    free = inspect.free()
    blocks = whole_runs(free, inspect.block)
    layers = tuple(difference(inspect.runs(layer.extents), blocks) for layer in snapshot.layers)
    # To the sector: a file's last block may have a part of its neighbour in it.
    sectors = whole_runs(free, _SECTOR)
    deleted = tuple(
        file.name
        for file in snapshot.files
        if not difference(_sectors(file.extents, inspect), sectors)
    )
    return Kept(layers, deleted)


def _sectors(extents: Sequence[Extent], inspect: MountedView) -> list[Run]:
    return to_runs(extents, _SECTOR, inspect.size)


def _extents(runs: Sequence[Run], block: Bytes) -> tuple[Extent, ...]:
    return tuple(Extent(run.start.bytes(block), run.count.bytes(block)) for run in runs)


def _parse_extents(extents: Sequence[dict[str, int]]) -> tuple[Extent, ...]:
    return tuple(Extent(Bytes(extent["start"]), Bytes(extent["length"])) for extent in extents)
