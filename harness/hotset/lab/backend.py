"""Backends: what a lab's disks and tier are made of, each with the same three verbs.

The kernel's backend has dm-cache over a slow disk behind iSCSI and a real block device for flash.
The modelled one has hotset's own engine between models of both. Nothing above asks which it is.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol

from hotset.block import flashdev, io_counters, loop, programs
from hotset.block.devicemapper import PREFIX, Place, device_size, make, mapper_path, remove, stack
from hotset.block.flashdev import Model
from hotset.block.io_counters import FLASH, KernelDevice, ServedDevice, Source
from hotset.core.machines.base import Machine
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import Tier, TierKind, TierSpec

from .modelled_tier import ModelledTier
from .slow_disk import DISK_NAME, Iscsi, LoopDevice, ModelledStorage, SlowDisk, Target

_FLAT = f"{PREFIX}flat"
VOLUME = f"{PREFIX}volume"
DISK = "data"
"""The name of a lab's accelerated disk."""


@dataclass(frozen=True, slots=True)
class FlatFlash:
    """Flash without a cache: the saved database on one part, an empty volume on the other; and
    where the counters of the two come from."""

    data: PurePosixPath
    volume: PurePosixPath
    counted: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class FlatVolume:
    """A volume on flash without a cache, and where its counters come from."""

    path: PurePosixPath
    counted: Source


@dataclass(frozen=True, slots=True)
class SavedDisk:
    """A saved disk image: its file on this computer and the machine's view of it."""

    file: Path
    device: PurePosixPath


class FlashUsed(NamedTuple):
    """A device with cache and volume, in words; and what its model, if it has one, promises for a
    read of 8 KiB alone."""

    text: str
    model_read_us: float | None = None


class Backend(Protocol):
    """Makes slow disks, tiers and plain flash; ``cleanup`` holds how each goes away again."""

    tier_kind: TierKind

    def describe_flash(self) -> FlashUsed:
        """The device with cache and volume, for reports."""

    def slow_disk(self, model: Model, size: Bytes, name: str = "slow") -> SlowDisk:
        """A modelled disk, not attached yet; those that stand at one time have different names."""

    def tier(self, spec: TierSpec, origin: SlowDisk, cleanup: Cleanup) -> Tier:
        """A tier over a slow disk that is restored but not attached."""

    def all_flash(
        self, saved: SavedDisk, size: Bytes, volume: Bytes, cleanup: Cleanup
    ) -> FlatFlash:
        """A disk of ``size`` with the saved image on it, and a volume, both on the flash."""

    def flash_volume(self, size: Bytes, cleanup: Cleanup) -> FlatVolume:
        """A volume on the flash, and no cache beside it."""


def alone(machine: Machine, spec: TierSpec, flash: PurePosixPath, origin: PurePosixPath) -> Place:
    """The place of a lab's tier, which has the whole flash: VOLUME | METADATA | CACHE.

    The volume comes first, since udev would take a flash that begins with a superblock of bcache
    for bcache's.

    :raises ValueError: together they are larger than the flash.
    """
    sizes = ((VOLUME, spec.volume), ("meta", spec.metadata), ("cache", spec.cache))
    volume, meta, cache = stack(device_size(machine, flash), sizes, Bytes(0))
    return Place(DISK, flash, origin, meta.parts, cache.parts, volume)


class KernelBackend:
    """dm-cache or bcache of the machine's kernel; the slow disk comes over real iSCSI."""

    OWN_DISK = "a disk of this computer's, as fast as it is"

    def __init__(
        self,
        local: Local,
        machine: Machine,
        target: Target,
        flash: PurePosixPath,
        folder: Path,
        flash_description: str = OWN_DISK,
        tier_kind: TierKind = "dm-cache",
    ) -> None:
        self.tier_kind = tier_kind
        self.flash = flash
        self._flash_description = flash_description
        self.target = target
        self._local = local
        self._machine = machine
        self._folder = folder

    def describe_flash(self) -> FlashUsed:
        return FlashUsed(self._flash_description)

    def slow_disk(self, model: Model, size: Bytes, name: str = "slow") -> ModelledStorage:
        way = Iscsi(self._machine, self.target)
        return ModelledStorage(self._local, way, model, size, self._folder, name)

    def tier(self, spec: TierSpec, origin: SlowDisk, cleanup: Cleanup) -> Tier:
        place = alone(self._machine, spec, self.flash, origin.attach(cleanup))
        tier = kinds.kind_of_name(self.tier_kind).tier(
            self._machine, spec, place, str(uuid.uuid4())
        )
        cleanup.call("remove the volume", lambda: remove(self._machine, [VOLUME]))
        cleanup.call("remove the tier", tier.discard)
        return tier

    def all_flash(
        self, saved: SavedDisk, size: Bytes, volume: Bytes, cleanup: Cleanup
    ) -> FlatFlash:
        self._split(cleanup, (_FLAT, size), (VOLUME, volume))
        flat = mapper_path(_FLAT)
        programs.copy(self._machine, ["--from", str(saved.device), "--to", str(flat)])
        return FlatFlash(
            flat, mapper_path(VOLUME), (self._source_with_counters(FLASH, flat), self._volume())
        )

    def flash_volume(self, size: Bytes, cleanup: Cleanup) -> FlatVolume:
        self._split(cleanup, (VOLUME, size))
        return FlatVolume(mapper_path(VOLUME), self._volume())

    def _volume(self) -> Source:
        return self._source_with_counters(io_counters.VOLUME, mapper_path(VOLUME))

    def _source_with_counters(self, name: str, device: PurePosixPath) -> Source:
        return KernelDevice.find(self._machine, name, device)

    def _split(self, cleanup: Cleanup, *slices: tuple[str, Bytes]) -> None:
        machine, names = self._machine, tuple(name for name, _ in reversed(slices))
        cleanup.call("remove the flash slices", lambda: remove(machine, names))
        for part in stack(device_size(machine, self.flash), slices, Bytes(0)):
            make(machine, part.name, part.table(self.flash))


class ModelledBackend:
    """hotset's own cache engine between two device models, at this computer's speed."""

    tier_kind: TierKind = "userspace"

    def __init__(self, local: Local, machine: Machine, flash_model: Model, folder: Path) -> None:
        self._local = local
        self._machine = machine
        self._flash_model = flash_model
        self._folder = folder
        self._flash = folder / "flash.img"

    def describe_flash(self) -> FlashUsed:
        promise = flashdev.read_promise(self._local, self._flash_model, [])
        reads = {point["queue_depth"]: point for point in promise["random_read_8k"]}
        read_us = reads[1]["latency_ms_mean"] * 1000
        return FlashUsed(
            f"modelled {promise['model']}: 8 KiB random reads in {read_us:.0f} µs,"
            f" {reads[32]['iops']:,.0f} a second at queue depth 32",
            read_us,
        )

    def slow_disk(self, model: Model, size: Bytes, name: str = "slow") -> ModelledStorage:
        way = LoopDevice(self._local)
        return ModelledStorage(self._local, way, model, size, self._folder, name)

    def tier(self, spec: TierSpec, origin: SlowDisk, cleanup: Cleanup) -> Tier:
        assert isinstance(origin, ModelledStorage), "the engine has no other origin"
        self._lay_out(Bytes(spec.metadata + spec.cache + spec.volume), cleanup)
        return ModelledTier(
            self._local,
            self._machine,
            spec,
            origin,
            self._flash,
            self._flash_model,
            self._folder,
            cleanup,
        )

    def all_flash(
        self, saved: SavedDisk, size: Bytes, volume: Bytes, cleanup: Cleanup
    ) -> FlatFlash:
        self._lay_out(Bytes(0), cleanup)
        self._local.run(
            ["cp", "--sparse=always", "--", str(saved.file), str(self._flash)], timeout_s=900
        )
        self._local.run(["truncate", "-s", str(int(size + volume)), str(self._flash)])
        mount = self._serve(cleanup, "--volume", str(int(volume)))
        data, behind = (
            loop.attach(self._local, mount / name, cleanup) for name in (DISK_NAME, "volume")
        )
        counted = (
            self._source_with_counters(FLASH),
            self._source_with_counters(io_counters.VOLUME, "volume"),
        )
        return FlatFlash(data, behind, counted)

    def flash_volume(self, size: Bytes, cleanup: Cleanup) -> FlatVolume:
        self._lay_out(size, cleanup)
        device = loop.attach(self._local, self._serve(cleanup) / DISK_NAME, cleanup)
        return FlatVolume(device, self._source_with_counters(io_counters.VOLUME))

    def _source_with_counters(self, name: str, file: str = DISK_NAME) -> Source:
        return ServedDevice.ask(self._machine, name, PurePosixPath(self._control), file)

    @property
    def _control(self) -> Path:
        return self._folder / "flat.sock"

    def _serve(self, cleanup: Cleanup, *more: str) -> Path:
        """Serve the flash file with its model's timing; returns the mount."""
        mount = self._folder / "flat"
        model = flashdev.model_argument(self._flash_model, self._folder, "flash")
        words = [
            "serve",
            "--model",
            model,
            "--backing",
            str(self._flash),
            "--name",
            DISK_NAME,
            "--control",
            str(self._control),
            "--volatile",
            *more,
        ]
        flashdev.serve(self._local, words, mount, self._folder / "flat.log", cleanup, "flash")
        return mount

    def _lay_out(self, size: Bytes, cleanup: Cleanup) -> None:
        """An empty flash file; it is removed in the end."""
        cleanup.command(f"remove {self._flash.name}", ["rm", "-f", str(self._flash)])
        self._local.run(["rm", "-f", str(self._flash)])
        self._local.run(["truncate", "-s", str(int(size)), str(self._flash)])
