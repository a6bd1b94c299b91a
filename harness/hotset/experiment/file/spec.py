"""The experiment file: one TOML, validated; an unknown key is an error that names it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from hotset.bench.thresholds import Threshold, ThresholdFormError
from hotset.block.filesystem import FileSystem
from hotset.block.flashdev import Model
from hotset.core import words
from hotset.core.errors import Remedy, RequestError
from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import FLASH_MODEL, ExperimentMachine, TierChoice
from hotset.reports.model.base import ArmName, ComparedArm, TimedWorkload
from hotset.reports.model.document import POLICY_ARMS, WarmupOrder, Workload
from hotset.reports.model.setup import Prices, Published
from hotset.tier import kinds
from hotset.tier.base import TierKind, TierSpec, WriteMode
from hotset.tier.choice import Sizes
from hotset.tier.dmcache import tier as dmcache
from hotset.tier.engine import tier as userspace
from hotset.tier.kind import Kind
from hotset.tier.policies import Policy
from hotset.tpch.data import text_bytes
from hotset.tpch.schema import estimate_bytes
from hotset.warmup.fill import Method

from .. import verdicts
from .disk_spec import DiskSpec
from .workload_tables import Name, Reading, SqlTable, Table, TpccTable, TpchTable, texts


def _block(size: Bytes) -> Bytes:
    """:raises ValueError: no kind of tier takes such a block."""
    with suppress(ValueError):
        return userspace.check_block(size)
    return dmcache.check_block(size)


Block = Annotated[Bytes, AfterValidator(_block)]
# What a freshly loaded warehouse takes on PostgreSQL, tables and indexes, and what building those
# indexes needs beside it; a database that cannot fit is refused before anything is made.
WAREHOUSE_BYTES = 105_000_000
_SORT_SHARE = 0.5
_LOG_BYTES = 256 * 1024**2
IN_MEMORY_ROOM = 1.3
"""Buffers of the ``in-memory`` arm, as a multiple of the databases: they grow."""


def _check_device(device: str) -> str:
    if not device.startswith("/dev/"):
        raise ValueError(f"{device}: name a device, best by its id: /dev/disk/by-id/…")
    return device


Device = Annotated[
    str, AfterValidator(_check_device), Field(json_schema_extra={"pattern": "^/dev/"})
]
_SMALLEST_VOLUME = Bytes(128 * 1024**2)
"""Space for some log files of PostgreSQL, 16 MiB each, and as much temporary space."""
_SCALED_VOLUME = 512 * 1024**2
_SCALED_SIZES = (("storage", "size"), ("flash", "size"), ("tier", "cache"), ("tier", "volume"))


_NO_FILES = {"title", "published", "prices", "sql"}
"""Keys whose texts are for people, or whose files are checked when they are read."""


class SpecError(RequestError):
    """The experiment file is not usable; the message names the key, the value and the remedy."""


def _at_host_speed(kind: object) -> object:
    """:raises ValueError: a virtual machine, which is `lab up`'s alone."""
    if kind == "vm":
        raise ValueError(
            "an experiment does not run in a virtual machine: 'uml' has the kernel's dm-cache and"
            " bcache at this computer's CPU speed, 'auto' takes the best there is"
        )
    return kind


class MachineTable(Table):
    """Where the tier and the database run."""

    kind: Annotated[ExperimentMachine, BeforeValidator(_at_host_speed)] = "auto"
    """The environment. `local` is this computer's own kernel, `uml` User-Mode Linux, `image` this
    computer's kernel with hotset's own cache engine. `auto` takes the best that works here;
    `hotset doctor` says which."""
    memory: Bytes = Bytes(2 * 1024**3)
    """Memory of User-Mode Linux, which has one CPU core."""


class StorageTable(Table):
    """The slow disk: a model, or a real device. A real device is overwritten."""

    model: Model = "nas-2014"
    """A built-in model (`flashdev models` lists them), or a table that describes one."""
    size: Bytes
    """Size of the slow disk. It holds both databases, and room for building their indexes."""
    log_model: Model | None = None
    """In the arms without flash, log and temporary space lie on a disk of their own of this model,
    as large as `tier.volume`. Without this key they lie beside the data."""
    split_model: Model = "hdd-7200"
    """Model of the disks that share the files in the `split-disks` arm."""
    split_disks: Annotated[int, Field(ge=2, le=8)] = 2
    """How many disks share the files in the `split-disks` arm."""
    device: Device | None = None
    """A real slow disk in place of the model, best as `/dev/disk/by-id/…`. It is overwritten."""
    log_device: Device | None = None
    """A real disk in place of `log_model`. It is overwritten."""
    split_devices: Annotated[tuple[Device, ...], Field(max_length=8)] = ()
    """Real disks for the `split-disks` arm. They are overwritten."""


class FlashTable(Table):
    """The flash device, which is split into cache and volume."""

    size: Bytes
    """Size of the flash. It holds the cache's metadata, the cache and the volume; with the
    `all-flash` arm it also has to hold the whole slow disk beside the volume."""
    model: Model = FLASH_MODEL
    """Timing of the flash in the `image` environment. In others the flash is as fast as what holds
    it."""
    device: Device | None = None
    """A real flash device, best as `/dev/disk/by-id/…`. It is overwritten."""


def _require_names(what: str, check: Callable[[], object]) -> None:
    """:raises ValueError: what the check raises, with what it is of in front."""
    try:
        check()
    except ValueError as error:
        raise ValueError(f"{what}{error}") from None


class TierTable(Table):
    """How the flash is split, and how the cache behaves."""

    kind: TierChoice = "auto"
    """Which cache: the kernel's dm-cache or bcache, or hotset's own engine in user space
    (`userspace`)."""
    mode: WriteMode = "writeback"
    """`writeback`: a write is done when it is on the flash; `writethrough`: when it is on the slow
    disk."""
    policy: Policy | None = None
    """Replacement policy. dm-cache has `smq` alone, bcache `lru` alone; the others need
    `kind = "userspace"`, where `hotset` is the default."""
    block: Block = Bytes(64 * 1024)
    """Size of a cache block: a multiple of 32 KiB for dm-cache; a power of two from 4 KiB for
    `kind = "userspace"`."""
    metadata: Bytes | Literal["auto"] = "auto"
    """Flash for the cache's metadata; `auto` works it out from cache and block."""
    cache: Bytes
    """Flash for the cache."""
    volume: Bytes
    """Flash for the volume, which holds log and temporary space. At least 128 MiB."""

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        kind = self._kind_of()
        # Of `auto` a policy decides what it is.
        if self.kind != "auto" and self.policy is not None:
            _require_names(
                f"policy = {self.policy!r}: ", lambda: kind.check_policy(str(self.policy))
            )
        _require_names("block = ", lambda: kind.check_block(self.block))
        if self.cache < kind.cache_min:
            raise ValueError(f"cache = {self.cache}: {kind.name} needs at least {kind.cache_min}")
        if self.volume < _SMALLEST_VOLUME:
            raise ValueError(
                f"volume = {self.volume}: log and temporary space need at least {_SMALLEST_VOLUME}"
            )
        return self

    @property
    def wanted(self) -> TierChoice:
        """The kind of tier, as far as the policy leaves a choice."""
        if self.policy in (None, "smq") or self.kind != "auto":
            return self.kind
        return kinds.having(str(self.policy)).name

    def _kind_of(self, kind: TierKind | None = None) -> Kind:
        """:param kind: the tier that the machine has, where the file leaves that open."""
        if self.wanted != "auto":
            return kinds.kind_of_name(self.wanted)
        return kinds.kind_of_name(kind or labs.kernel_tier("auto"))

    def resolve(self, kind: TierKind | None = None) -> TierSpec:
        """Sizes as the kernel takes them: whole blocks, metadata worked out.

        :param kind: the tier that the machine has, where the file leaves that open.
        """
        metadata = None if self.metadata == "auto" else self.metadata
        return self._kind_of(kind).spec(
            Sizes(self.mode, self.policy, self.block, metadata, self.cache, self.volume)
        )


class DatabaseTable(Table):
    """The database server."""

    engine: Literal["postgres"] = "postgres"
    """The product."""
    buffers_fraction: Annotated[float, Field(gt=0, le=1)] = 0.05
    """The server's own buffers, as a share of the databases."""
    filesystem: FileSystem = "ext4"
    """File system on the disks."""


class WarmupTable(Table):
    """How the cache is filled, and how every arm is prepared before its windows."""

    method: Method = "fill"
    """`fill`: copy the blocks and write the cache's metadata. `read`: read the files through the
    tier and leave promotion to the policy."""
    order: WarmupOrder = "disk"
    """Order of filling a cache smaller than the databases. `disk`: files as they lie on
    the slow disk. `heat`: the most accessed blocks of a run of `learn_s` seconds on a cold tier."""
    learn_s: PositiveFloat = 60
    """Seconds of that run, for `order = "heat"`."""
    passes: PositiveInt = 4
    """Passes over the files, for `method = "read"`."""
    samples: PositiveInt = 40
    """Cache blocks that are compared with the slow disk afterwards."""
    probe_s: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 10
    """Seconds of the probe, at least one: the full load, or one at the windows' `rate`, that
    prepares every arm, with a cache or without, before its windows."""
    probe_max_s: PositiveFloat = 60
    """The load goes on until the server has read as much as its buffers hold and reads are level,
    for at most so many seconds in all; `probe_s`, where that is more."""
    probe_hit_ratio: Annotated[float, Field(ge=0, le=1)] = 0.95
    """Hit ratio that the probe must reach in arms with a cache; otherwise the experiment stops with
    exit code 5."""

    @property
    def prepare_max_s(self) -> float:
        """The longest preparation."""
        return max(self.probe_s, self.probe_max_s)


_COMPARISON_SCHEMA = {"type": "string"}
_THRESHOLDS_SCHEMA = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [_COMPARISON_SCHEMA, {"type": "array", "items": _COMPARISON_SCHEMA}]
    },
}


class Spec(Table):
    """One experiment."""

    name: Name
    """Becomes part of the run's id: lower-case letters, digits and dashes."""
    title: str = ""
    """Title of the report."""
    scale: PositiveFloat = 1
    """Multiplies everything that has a size: disks, flash and its split, warehouses, TPC-H's scale
    factor. Users, times and memory stay; the volume stays at 512 MiB or more."""
    repeats: PositiveInt = 2
    """How often each arm is measured. The intervals come from the repeats; take three or more for a
    figure to act on."""
    arms: Annotated[
        tuple[ComparedArm, ...], Field(json_schema_extra={"minItems": 1, "uniqueItems": True})
    ] = ("baseline", "accelerated", "all-flash")
    """Arms to measure, each name once. The name of a policy (`hotset`, `smq`, `lru`, `sieve`,
    `s3-fifo`, `arc`) is as `accelerated`, with that policy of hotset's own engine."""
    machine: MachineTable = MachineTable()
    storage: StorageTable
    flash: FlashTable
    tier: TierTable
    database: DatabaseTable = DatabaseTable()
    tpcc: TpccTable | None = None
    sql: SqlTable | None = None
    tpch: TpchTable | None = None
    warmup: WarmupTable = WarmupTable()
    published: Published | None = None
    prices: Prices | None = None
    thresholds: Annotated[dict[str, str | list[str]], WithJsonSchema(_THRESHOLDS_SCHEMA)] = Field(
        default={}
    )
    """Thresholds for the run, a comparison or several by metric, such as `factor = ">=5"`,
    `p95 = "<20ms"` or `"nopm(all-flash)" = [">1000", "<9000"]`. A run that misses one ends with
    exit code 5."""

    @property
    def disk_bytes(self) -> int:
        """The most that its modelled disks, the saved image of its database and what is generated
        for that take on this computer."""
        storage, size = self.storage, int(self.storage.size)
        disks = 0 if storage.device else 1
        if "split-disks" in self.arms and not storage.split_devices:
            disks = max(disks, storage.split_disks)
        rows = text_bytes(self.tpch.scale) if self.tpch else 0
        flash = 0 if self.flash.device else int(self.flash.size)
        return size + disks * size + flash + int(self.tier.volume) + rows

    @property
    def database_bytes(self) -> Bytes:
        """Expected size of the databases, tables and indexes."""
        warehouses = self.tpcc.warehouses * WAREHOUSE_BYTES if self.tpcc else 0
        own = self.sql.size if self.sql else 0
        queries = estimate_bytes(self.tpch.scale) if self.tpch else 0
        return Bytes(warehouses + own + queries)

    @property
    def timed(self) -> TpccTable | SqlTable | None:
        """The workload of many users, where there is one."""
        return self.tpcc or self.sql

    @property
    def connections(self) -> int:
        """Most users at once; the 22 queries run one after the other."""
        return self.timed.most_users if self.timed else 1

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """In the order in which they are run."""
        tables: dict[Workload, object] = {"tpcc": self.tpcc, "sql": self.sql, "tpch": self.tpch}
        return tuple(name for name, table in tables.items() if table is not None)

    @property
    def tier_wanted(self) -> TierChoice:
        """The kind of tier, as far as its policy and policies as arms leave a choice."""
        return kinds.having(self.policy_arms[0]).name if self.policy_arms else self.tier.wanted

    @property
    def policy_arms(self) -> list[ArmName]:
        """The arms that are a policy of hotset's own engine."""
        return [arm for arm in self.arms if arm in POLICY_ARMS]

    @property
    def placements(self) -> tuple[tuple[Workload, ...], ...]:
        """The workloads that share one placement of the databases: all, where the cache holds
        them all; else each has a placement and a warm-up of its own."""
        if self.database_bytes <= self.tier.cache:
            return (self.workloads,)
        return tuple((workload,) for workload in self.workloads)

    @property
    def _asked(self) -> str:
        """Keys that decide how large the databases are, with their values."""
        keys = (
            *([f"tpcc.warehouses = {self.tpcc.warehouses}"] if self.tpcc else []),
            *([f"sql.size = {self.sql.size}"] if self.sql else []),
            *([f"tpch.scale = {self.tpch.scale:g}"] if self.tpch else []),
        )
        return ", ".join(keys)

    @property
    def devices(self) -> dict[str, str]:
        """The real devices that a run writes over, by their keys."""
        storage = self.storage
        named = {
            "storage.device": storage.device,
            "storage.log_device": storage.log_device,
            "flash.device": self.flash.device,
        }
        split = {
            f"storage.split_devices[{n}]": device for n, device in enumerate(storage.split_devices)
        }
        return {key: device for key, device in (named | split).items() if device is not None}

    @property
    def files(self) -> list[str]:
        """All that may be the path of a file or a device, whichever key names it; those of `sql`
        have been read."""
        return [
            text
            for text in texts(self.model_dump(mode="json", exclude=_NO_FILES))
            if "/" in text or text.endswith(".json")
        ]

    def limits(self, more: Sequence[str] = ()) -> list[Threshold]:
        """The thresholds, and more of them from the command line.

        :raises ThresholdFormError: one cannot be read or names what is not measured.
        """
        return verdicts.limits(self.thresholds, more, self.arms, self.measures)

    @property
    def measures(self) -> verdicts.Measures:
        """The values that thresholds can refer to."""
        name: TimedWorkload | None = "tpcc" if self.tpcc else "sql" if self.sql else None
        return verdicts.Measures(
            name,
            queries=self.tpch is not None,
            searches=self.timed is not None and bool(self.timed.find_rate),
            at_a_rate=self.timed is not None and self.timed.rate is not None,
        )

    @model_validator(mode="after")
    def _there_is_a_workload(self) -> Self:
        if not self.workloads:
            raise ValueError(
                "there is no workload: add a table [tpcc], [sql] or [tpch], or several"
            )
        if self.tpcc and self.sql:
            raise ValueError(
                "[tpcc] and [sql] are one workload each of a run: make two experiments of them"
            )
        return self

    @model_validator(mode="after")
    def _thresholds_are_of_what_is_measured(self) -> Self:
        try:
            self.limits()
        except ThresholdFormError as error:
            raise ValueError(f"thresholds: {error}") from None
        return self

    @model_validator(mode="after")
    def _machine_has_the_tier(self) -> Self:
        kind = self.tier.kind
        if self.policy_arms and kind != "auto" and not kinds.kind_of_name(kind).policies:
            raise ValueError(
                f"arms: {', '.join(self.policy_arms)}: policies as arms are of hotset's own engine:"
                f" set tier.kind to 'userspace', not {self.tier.kind!r}"
            )
        labs.check(self.machine.kind, self.tier_wanted)
        return self

    @model_validator(mode="after")
    def _devices_are_possible(self) -> Self:
        for key, device in self.devices.items():
            if self.machine.kind != "local":
                raise ValueError(
                    f"{key} = {device}: real devices need machine.kind = 'local', not"
                    f" {self.machine.kind!r}"
                )
            if list(self.devices.values()).count(device) > 1:
                raise ValueError(f"{key} = {device}: this device is named twice")
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
        tier, flash = self.tier.resolve(), self.flash.size
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
                f"{self._asked}: the databases take about {database}, with room for the log and for"
                f" building indexes {needed}, but storage.size = {self.storage.size}: enlarge it,"
                " or make the databases smaller"
            )
        if "all-flash" in self.arms and self.storage.size + tier.volume > flash:
            raise ValueError(
                "arms: all-flash holds the whole slow disk (storage.size ="
                f" {self.storage.size}) and the volume ({tier.volume}) on the flash, but flash.size"
                f" = {flash}: enlarge flash.size or leave the arm out"
            )
        memory = Bytes(int(database * IN_MEMORY_ROOM))
        if "in-memory" in self.arms and self.machine.kind == "uml" and memory > self.machine.memory:
            raise ValueError(
                f"arms: in-memory takes buffers of {memory}, but machine.memory ="
                f" {self.machine.memory}: enlarge that or leave the arm out"
            )
        if len(set(self.arms)) != len(self.arms) or not self.arms:
            raise ValueError(f"arms = {list(self.arms)}: name each arm once, at least one")
        return self


def read(
    path: Path,
    overrides: tuple[str, ...] = (),
    allow: Callable[[Iterable[str]], None] = lambda _: None,
) -> Spec:
    """Read and validate the experiment file of a database; see :func:`read_any`.

    :raises SpecError: it is none, or one on modelled disks.
    """
    spec = read_any(path, overrides, allow)
    if isinstance(spec, DiskSpec):
        raise SpecError(
            f"{path}: [{spec.scenario}] is of modelled disks: name an experiment with a database"
        )
    return spec


def read_any(
    path: Path,
    overrides: tuple[str, ...] = (),
    allow: Callable[[Iterable[str]], None] = lambda _: None,
) -> Spec | DiskSpec:
    """Read and validate an experiment file, of a database or of modelled disks.

    :param overrides: ``key=value`` pairs that replace values of the file (``tpcc.users=32``).
    :param allow: called with the files that it names before they are read; raises to refuse them.
    :raises SpecError: no such file, no TOML, an unknown key, a bad value.
    """
    table = _table(path)
    for override in overrides:
        _override(table, override)
    try:
        if _SCENARIOS & table.keys():
            _check_alone(path, table)
            return DiskSpec.model_validate(table)
        return Spec.model_validate(_scale(table), context=Reading(path.parent, allow))
    except ValidationError as error:
        raise SpecError(_explain(path, error)) from None


_SCENARIOS = {"reread", "arrays"}


def _table(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (FileNotFoundError, IsADirectoryError):
        raise SpecError(
            f"{path}: no such experiment file",
            Remedy("see those that come with hotset", "experiment list"),
        ) from None
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not a TOML file: {error}") from None


def _check_alone(path: Path, table: dict[str, Any]) -> None:
    """:raises SpecError: there are keys of a database's experiment beside those of disks."""
    others = [key for key in table if key in Spec.model_fields.keys() - DiskSpec.model_fields]
    if others:
        scenario = min(_SCENARIOS & table.keys())
        raise SpecError(
            f"{path}: {others[0]}: an experiment with [{scenario}] has no database: leave"
            f" {words.enumerate_words(others)} out, or make two experiments"
        )


def _scale(table: dict[str, Any]) -> dict[str, Any]:
    """The table with everything that has a size multiplied by its ``scale``: disks, flash and its
    split, warehouses, TPC-H's scale factor. Users, times and memory stay, and so does a database of
    one's own.

    >>> _scale({"scale": 0.001, "tier": {"cache": "595GB"}, "tpcc": {"warehouses": 4800}})
    {'scale': 0.001, 'tier': {'cache': 595000000}, 'tpcc': {'warehouses': 5}}

    The volume stays at 512 MiB, and the flash is so much larger: a log grows with what users do in
    a minute, not with the database.

    What is no number here is left to validation, which says it better.
    """
    scale = table.get("scale", 1)
    if not isinstance(scale, int | float) or scale <= 0 or scale == 1:
        return table
    table = {
        name: dict(value) if isinstance(value, dict) else value for name, value in table.items()
    }
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
        raise SpecError(f"{text}: write it as key=value, for instance tpcc.users=32", field="set")
    *folders, last = key.strip().split(".")
    for folder in folders:
        table = table.setdefault(folder, {})
        if not isinstance(table, dict):
            raise SpecError(f"{text}: {folder} is a value, not a table", field="set")
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
            # A whole table says less than the message.
            plain = key and not isinstance(problem["input"], dict)
            given = f" = {problem['input']!r}" if plain else ""
            lines.append(f"{path}: {key}{given}{': ' if key else ''}{text}")
    return "\n".join(dict.fromkeys(lines))


def _is_key(part: str | int) -> bool:
    return isinstance(part, int) or (part.islower() and "[" not in part and part != "str")
