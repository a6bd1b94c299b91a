"""The experiment file: one TOML, validated; an unknown key is an error that names it."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from hotset.cachelayer import bcache, dmcache
from hotset.cachelayer import lab as labs
from hotset.cachelayer.filesystem import FileSystem
from hotset.cachelayer.flashdev import Model
from hotset.cachelayer.lab import FLASH_MODEL, MachineChoice, TierChoice
from hotset.cachelayer.tier import TierSpec, WriteMode
from hotset.cachelayer.units import Bytes
from hotset.cachelayer.warmup import Method
from hotset.reports.document import (
    ArmName,
    CheckedAfter,
    Prices,
    Published,
    WarmupOrder,
    Workload,
)
from hotset.tpch import load as tpch
from hotset.tpch.schema import estimated_bytes

Policy = Literal["smq", "lru", "sieve", "s3-fifo", "arc"]
Block = Annotated[Bytes, AfterValidator(dmcache.check_block)]
# What a freshly loaded warehouse takes on PostgreSQL, tables and indexes, and what building those
# indexes needs beside it; a database that cannot fit is refused before anything is made.
WAREHOUSE_BYTES = 105_000_000
_SORT_SHARE = 0.5
_LOG_BYTES = 256 * 1024**2
IN_MEMORY_ROOM = 1.3
"""Buffers of the ``in-memory`` arm, as a multiple of the databases: they grow."""


def _checked_scale(scale: float) -> float:
    tpch.require_scale(scale)
    return scale


def _checked_device(device: str) -> str:
    if not device.startswith("/dev/"):
        raise ValueError(f"{device}: name a device, best by its id: /dev/disk/by-id/…")
    return device


Device = Annotated[str, AfterValidator(_checked_device)]
_SMALLEST_VOLUME = Bytes(128 * 1024**2)
"""Some log files of PostgreSQL's, 16 MiB each, and as much temporary space."""
_SCALED_VOLUME = 512 * 1024**2
_SCALED_SIZES = (("storage", "size"), ("flash", "size"), ("tier", "cache"), ("tier", "volume"))


class SpecError(Exception):
    """The experiment file is not usable; the message names the key, the value and the remedy."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MachineTable(_Table):
    """``[machine]``: where the tier and the database run."""

    kind: MachineChoice = "auto"
    cores: PositiveInt = 2
    memory: Bytes = Bytes(2 * 1024**3)


class StorageTable(_Table):
    """``[storage]``: the slow disk. ``model`` is a built-in model's name or a table of its own.

    ``log_model``: where it is given, log and temporary space of the arms without flash lie on a
    disk of their own of that model, as large as ``tier.volume``; else beside the data.
    ``split_model``, ``split_disks``: the disks that share the files in the ``split-disks`` arm.

    ``device``, ``log_device``, ``split_devices``: real disks in their place. All that is on them
    is written over.
    """

    model: Model = "nas-2014"
    size: Bytes
    log_model: Model | None = None
    split_model: Model = "hdd-7200"
    split_disks: Annotated[int, Field(ge=2, le=8)] = 2
    device: Device | None = None
    log_device: Device | None = None
    split_devices: Annotated[tuple[Device, ...], Field(max_length=8)] = ()


class FlashTable(_Table):
    """``[flash]``: the flash device that is split into cache and volume. ``model`` is its timing
    where the tier is emulated; elsewhere it is as fast as what holds it. ``device``: a real one,
    which is written over."""

    size: Bytes
    model: Model = FLASH_MODEL
    device: Device | None = None


class TierTable(_Table):
    """``[tier]``: how the flash is split and how the cache behaves."""

    kind: TierChoice = "auto"
    mode: WriteMode = "writeback"
    policy: Policy = "smq"
    block: Block = Bytes(64 * 1024)
    metadata: Bytes | Literal["auto"] = "auto"
    cache: Bytes
    volume: Bytes

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.kind == "dm-cache" and self.policy != "smq":
            raise ValueError(
                f"policy = {self.policy!r}: dm-cache has 'smq' alone; the others come with"
                " tier.kind = 'emulated'"
            )
        if self.kind == "bcache" and self.policy not in ("smq", "lru"):
            raise ValueError(f"policy = {self.policy!r}: bcache has 'lru' alone; leave it out")
        if self.kind == "bcache" and self.cache < bcache.CACHE_MIN:
            raise ValueError(f"cache = {self.cache}: bcache needs at least {bcache.CACHE_MIN}")
        if self.volume < _SMALLEST_VOLUME:
            raise ValueError(
                f"volume = {self.volume}: the log and temporary space need {_SMALLEST_VOLUME} at"
                " the least"
            )
        return self

    @property
    def wanted(self) -> TierChoice:
        """The kind of tier, as far as the policy leaves a choice."""
        if self.policy == "smq" or self.kind == "bcache":
            return self.kind
        return "emulated"

    def resolved(self) -> TierSpec:
        """Sizes as the kernel takes them: whole blocks, metadata worked out."""
        if self.kind == "bcache":
            mib = 1024**2
            return TierSpec(self.mode, "lru", bcache.BLOCK, bcache.HEADER,
                            self.cache.align_down(mib), self.volume.align_down(mib),
                            Bytes(0))  # fmt: skip
        cache = self.cache.align_down(self.block)
        metadata = self.metadata
        if metadata == "auto":
            metadata = dmcache.metadata_bytes(cache, self.block)
        volume = self.volume.align_down(1024**2)
        return TierSpec(self.mode, self.policy, self.block, metadata, cache, volume)


class DatabaseTable(_Table):
    """``[database]``: the server. ``buffers_fraction``: its buffers as a share of the database."""

    engine: Literal["postgres"] = "postgres"
    buffers_fraction: Annotated[float, Field(gt=0, le=1)] = 0.05
    filesystem: FileSystem = "ext4"


class TpccTable(_Table):
    """``[tpcc]``: the workload; times in seconds of this computer's clock.

    ``check``: when the twelve consistency conditions are checked. After the load always; with
    ``every-arm`` after each measured window, too, which reads the whole database once more: on slow
    storage that may take longer than the window.
    """

    warehouses: PositiveInt
    users: PositiveInt
    rampup_s: NonNegativeFloat = 10
    duration_s: PositiveFloat = 30
    seed: int = 1
    think_time: bool = False
    check: CheckedAfter = "load"


class TpchTable(_Table):
    """``[tpch]``: the 22 queries as a second workload. ``timeout_s`` is for each query, in seconds
    of this computer's clock; a ``seed`` draws other parameters than the validation run's."""

    scale: Annotated[PositiveFloat, AfterValidator(_checked_scale)]
    timeout_s: PositiveFloat = 600
    seed: int | None = None


class WarmupTable(_Table):
    """``[warmup]``: how the cache is filled and what its probe must reach.

    ``order``: what a cache that is smaller than the databases takes first. ``disk``: files as they
    lie on the origin; ``heat``: the blocks that ``learn_s`` seconds of TPC-C (or the 22 queries),
    run beforehand on a cold tier, asked for most often.
    """

    method: Method = "fill"
    order: WarmupOrder = "disk"
    learn_s: PositiveFloat = 60
    passes: PositiveInt = 4
    samples: PositiveInt = 40
    probe_s: PositiveFloat = 10
    probe_hit_ratio: Annotated[float, Field(ge=0, le=1)] = 0.95


class Spec(_Table):
    """One experiment. ``scale`` is what `read` has multiplied its sizes by."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str = ""
    scale: PositiveFloat = 1
    repeats: PositiveInt = 2
    time_scale: PositiveFloat | Literal["auto"] = "auto"
    arms: tuple[ArmName, ...] = ("baseline", "accelerated", "all-flash")
    machine: MachineTable = MachineTable()
    storage: StorageTable
    flash: FlashTable
    tier: TierTable
    database: DatabaseTable = DatabaseTable()
    tpcc: TpccTable
    tpch: TpchTable | None = None
    warmup: WarmupTable = WarmupTable()
    published: Published | None = None
    prices: Prices | None = None

    @property
    def database_bytes(self) -> Bytes:
        """What the databases will take, tables and indexes."""
        queries = estimated_bytes(self.tpch.scale) if self.tpch else 0
        return Bytes(self.tpcc.warehouses * WAREHOUSE_BYTES + queries)

    @property
    def placements(self) -> tuple[tuple[Workload, ...], ...]:
        """The workloads that share one placement of the databases: all, where the cache holds
        them all; else each has a placement and a warm-up of its own."""
        if self.tpch is None:
            return (("tpcc",),)
        if self.database_bytes <= self.tier.cache:
            return (("tpcc", "tpch"),)
        return (("tpcc",), ("tpch",))

    @property
    def _asked(self) -> str:
        """What decides how large the databases are, by its keys."""
        tables = f"tpcc.warehouses = {self.tpcc.warehouses}"
        return f"{tables}, tpch.scale = {self.tpch.scale:g}" if self.tpch else tables

    @property
    def devices(self) -> dict[str, str]:
        """The real devices that a run writes over, by their keys."""
        storage = self.storage
        named = {"storage.device": storage.device, "storage.log_device": storage.log_device,
                 "flash.device": self.flash.device}  # fmt: skip
        split = {f"storage.split_devices[{n}]": one for n, one in enumerate(storage.split_devices)}
        return {key: device for key, device in (named | split).items() if device is not None}

    @model_validator(mode="after")
    def _machine_has_the_tier(self) -> Self:
        labs.check(self.machine.kind, self.tier.wanted)
        return self

    @model_validator(mode="after")
    def _devices_are_possible(self) -> Self:
        for key, device in self.devices.items():
            if self.machine.kind != "local":
                raise ValueError(
                    f"{key} = {device}: real devices are this computer's own, machine.kind ="
                    f" {self.machine.kind!r} does not see them: set it to 'local'"
                )
            if list(self.devices.values()).count(device) > 1:
                raise ValueError(f"{key} = {device}: it is named twice")
        if self.storage.device and self.time_scale != 1:
            raise ValueError(
                f"time_scale = {self.time_scale}: a real disk runs at its own speed: set it to 1"
            )
        if (
            self.storage.device
            and "split-disks" in self.arms
            and len(self.storage.split_devices) < 2
        ):
            raise ValueError(
                "arms: split-disks beside a real storage.device needs two or more real disks:"
                " name them in storage.split_devices, or leave the arm out"
            )
        return self

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        tier, flash = self.tier.resolved(), self.flash.size
        split = tier.metadata + tier.cache + tier.volume
        if split > flash:
            raise ValueError(
                f"tier: metadata {tier.metadata} + cache {tier.cache} + volume {tier.volume} ="
                f" {Bytes(split)} is larger than flash.size = {flash}: make one of them smaller"
            )
        database = self.database_bytes
        needed = Bytes(int(database * (1 + _SORT_SHARE)) + _LOG_BYTES)
        if needed > self.storage.size:
            raise ValueError(
                f"{self._asked} is about {database} of databases;"
                f" with room for the log and for building indexes ({needed}) that is"
                f" larger than the origin (storage.size = {self.storage.size}):"
                " enlarge storage.size or take less"
            )
        if "all-flash" in self.arms and self.storage.size + tier.volume > flash:
            raise ValueError(
                f"arms: all-flash holds the whole origin (storage.size = {self.storage.size}) and"
                f" the volume ({tier.volume}) on the flash, but flash.size = {flash}:"
                " enlarge flash.size or leave the arm out"
            )
        memory = Bytes(int(database * IN_MEMORY_ROOM))
        if "in-memory" in self.arms and self.machine.kind == "vm" and memory > self.machine.memory:
            raise ValueError(
                f"arms: in-memory takes buffers of {memory}, but machine.memory ="
                f" {self.machine.memory}: enlarge that or leave the arm out"
            )
        if len(set(self.arms)) != len(self.arms) or not self.arms:
            raise ValueError(f"arms = {list(self.arms)}: name each arm once, at least one")
        return self


def read(path: Path, overrides: tuple[str, ...] = ()) -> Spec:
    """Read and validate an experiment file.

    :param overrides: ``key=value`` pairs that replace values of the file (``tpcc.users=32``).
    :raises SpecError: no such file, no TOML, an unknown key, a bad value.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise SpecError(f"{path}: no such experiment file") from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not a TOML file: {error}") from None
    for override in overrides:
        _override(table, override)
    try:
        return Spec.model_validate(_scaled(table))
    except ValidationError as error:
        raise SpecError(_explain(path, error)) from None


def _scaled(table: dict[str, Any]) -> dict[str, Any]:
    """The table with everything that has a size multiplied by its ``scale``: disks, flash and its
    split, warehouses, TPC-H's scale factor. Users, times and memory stay.

    >>> _scaled({"scale": 0.001, "tier": {"cache": "595GB"}, "tpcc": {"warehouses": 4800}})
    {'scale': 0.001, 'tier': {'cache': 595000000}, 'tpcc': {'warehouses': 5}}

    The volume stays at 512 MiB, and the flash is so much larger: a log grows with what users do in
    a minute, not with the database.

    What is no number here is left to validation, which says it better.
    """
    scale = table.get("scale", 1)
    if not isinstance(scale, int | float) or scale <= 0 or scale == 1:
        return table
    table = {name: dict(one) if isinstance(one, dict) else one for name, one in table.items()}
    for folder, key in _SCALED_SIZES:
        if isinstance(part := table.get(folder), dict) and key in part:
            with suppress(ValueError):
                part[key] = round(Bytes.parse(part[key]) * scale)
    _keep_room_for_the_log(table)
    tpcc, tpch_ = table.get("tpcc"), table.get("tpch")
    if isinstance(tpcc, dict) and isinstance(tpcc.get("warehouses"), int):
        tpcc["warehouses"] = max(1, round(tpcc["warehouses"] * scale))
    if isinstance(tpch_, dict) and isinstance(tpch_.get("scale"), int | float):
        tpch_["scale"] = max(0.01, round(tpch_["scale"] * scale, 2))
    return table


def _keep_room_for_the_log(table: dict[str, Any]) -> None:
    tier, flash = table.get("tier"), table.get("flash")
    if not isinstance(tier, dict) or not isinstance(flash, dict):
        return
    volume, size = tier.get("volume"), flash.get("size")
    if isinstance(volume, int) and isinstance(size, int) and volume < _SCALED_VOLUME:
        tier["volume"], flash["size"] = _SCALED_VOLUME, size + _SCALED_VOLUME - volume


def _override(table: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals:
        raise SpecError(f"--set {text}: write it as key=value, for instance --set tpcc.users=32")
    *folders, last = key.strip().split(".")
    for folder in folders:
        table = table.setdefault(folder, {})
        if not isinstance(table, dict):
            raise SpecError(f"--set {text}: {folder} is a value, not a table")
    try:
        table[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[last] = value.strip()


def _explain(path: Path, error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        # Members of a union stand in the location as type names; only keys help the reader.
        key = ".".join(str(part) for part in problem["loc"] if _is_key(part))
        if problem["type"] == "extra_forbidden":
            lines.append(f"{path}: unknown key {key}")
        elif problem["type"] == "missing":
            lines.append(f"{path}: {key} is missing")
        else:
            text = problem["msg"].removeprefix("Value error, ")
            given = f" = {problem['input']!r}" if key else ""
            lines.append(f"{path}: {key}{given}{': ' if key else ''}{text}")
    return "\n".join(dict.fromkeys(lines))


def _is_key(part: str | int) -> bool:
    return isinstance(part, int) or (part.islower() and "[" not in part and part != "str")
