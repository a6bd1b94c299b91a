"""Set-up of an experiment: its file, tier, storage, machine, database."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from .base import Record

CheckedAfter = Literal["load", "every-arm"]


class PublishedFigure(Record):
    """A figure of a published test, before and after."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    before: PositiveFloat
    """Without the cache."""
    after: PositiveFloat
    """With the cache."""


class Published(Record):
    """Published measurements of the set-up that an experiment reproduces. The report puts them
    beside the measured values."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    source: str
    """Whose test it is, as the report names it."""
    nopm: PublishedFigure | None = None
    """New orders a minute."""
    tpm: PublishedFigure | None = None
    """Transactions a minute as the source counts them (HammerDB on SQL Server: batch requests).
    The report tells them, and compares NOPM alone."""
    queries_s: PublishedFigure | None = None
    """Seconds of the 22 TPC-H queries together."""
    hit_ratio: str = ""
    """The hit ratio, as the source gives it."""


class Prices(Record):
    """Prices of the parts of a set-up, in one currency. An arm that needs a part without a price
    has no price itself."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    currency: Annotated[str, Field(min_length=1, max_length=8)] = "USD"
    """Its name, as the report prints it."""
    server: PositiveFloat
    """The server without disks and flash."""
    origin: PositiveFloat | None = None
    """The slow storage with its disks."""
    split_disk: PositiveFloat | None = None
    """Each further slow disk of the `split-disks` arm."""
    flash_per_gb: PositiveFloat | None = None
    """A GB (10⁹ bytes) of flash."""
    memory_per_gb: PositiveFloat | None = None
    """A GB of the memory that the `in-memory` arm takes for its buffers."""


class Script(Record):
    """A script of one's own SQL, as it was run."""

    name: str
    weight: PositiveInt
    text: str


class Experiment(Record):
    name: str
    title: str
    spec: dict[str, JsonValue]  # resolved: every default filled in
    scripts: tuple[Script, ...] = ()
    published: Published | None = None


class Tier(Record):
    kind: Literal["dm-cache", "bcache", "userspace"]
    mode: Literal["writeback", "writethrough", "writearound"]
    policy: str
    block_bytes: PositiveInt
    metadata_bytes: NonNegativeInt
    cache_bytes: PositiveInt
    volume_bytes: NonNegativeInt
    emulated: bool
    """True if the flash was a model."""
    flash: str = ""
    """Description of the device with cache and volume."""
    flash_model_read_us: PositiveFloat | None = None
    """Time of a read of 8 KiB alone by the flash's model; None: no model, or not known."""


class Calibration(Record):
    """Figures of a storage device."""

    seq_read_mb_per_s: PositiveFloat | None = None
    seq_write_mb_per_s: PositiveFloat | None = None
    rand_read_iops: PositiveFloat | None = None
    rand_write_iops: PositiveFloat | None = None
    rand_read_latency_us: PositiveFloat | None = None
    rand_write_latency_us: PositiveFloat | None = None


class Storage(Record):
    """The slow storage (origin)."""

    kind: Literal["modelled", "device"]
    name: str
    description: str
    size_bytes: PositiveInt
    measured: Calibration | None = None
    expected: Calibration | None = None  # what the model promises; None for a device


class Host(Record):
    cpu: str
    cores: PositiveInt
    memory_bytes: PositiveInt
    kernel: str


class Machine(Record):
    """Where the commands ran; `host` is what carries it (the same figures when it is local)."""

    kind: Literal["vm", "uml", "local", "ssh", "image"]
    cores: PositiveInt
    memory_bytes: PositiveInt
    kernel: str
    host: Host


class Database(Record):
    """0 bytes, or 0 of buffers: not known."""

    engine: str
    version: str
    bytes: NonNegativeInt
    buffers_bytes: NonNegativeInt
    direct_io: bool = False  # the operating system's page cache is bypassed
    warehouses: PositiveInt | None = None
    """Warehouses of TPC-C."""
    users: PositiveInt | None = None
    """None where there are only the 22 queries."""
    driver: Literal["hotset", "hammerdb"] = "hotset"
    """Program that built TPC-C's database and drove its users. HammerDB reports no single seconds
    and no latency of all transactions together."""
    tpch_scale: PositiveFloat | None = None
    """Scale factor of the TPC-H database beside it; `bytes` is of both."""
    tpch_bytes: NonNegativeInt = 0
    # When TPC-C's consistency conditions were checked, and held; None if never.
    checked_after: CheckedAfter | None = None
