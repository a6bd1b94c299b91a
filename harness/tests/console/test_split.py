"""The slider's sizes are sizes that a flash device can be cut into."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.block import devicemapper
from hotset.block.devicemapper import RESERVED, UNIT
from hotset.console.split import split
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.disk.sizing import KernelKind
from hotset.tier.choice import DatabaseKind

GIB = 1024**3
sizes = st.integers(256 * 2**20, 20 * 2**40).map(Bytes)
percents = st.integers(0, 100)
KINDS: list[KernelKind] = ["dm-cache", "bcache"]
DATABASES: list[DatabaseKind] = ["oltp", "warehouse"]


@settings(max_examples=60)
@given(sizes, st.sampled_from(KINDS), st.sampled_from(DATABASES), percents, percents)
def test_what_is_shown_can_be_cut(
    size: Bytes, kind: KernelKind, database: DatabaseKind, cache: int, kept: int
) -> None:
    try:
        found = split(size, None, kind, database, None, cache, kept)
    except ValueError as error:
        assert "a cache of" in str(error)  # noqa: PT017 - too little for the kind, and it says so
        return
    spec = found.spec
    parts = spec.cache + spec.metadata + found.volume + found.free
    assert parts == size.align_down(UNIT) - RESERVED, "every byte is somewhere"
    assert spec.cache % UNIT == found.volume % UNIT == 0
    # As the creation takes them, one after the other.
    flash = FlashDevice("main", PurePosixPath("/dev/x"), size, ())
    flash = replace(flash, volume=flash_devices.take(flash.free(), found.volume, "VOLUME"))
    metadata = flash_devices.take(flash.free(), spec.metadata, "METADATA")
    disk = Disk("a", kind, database, PurePosixPath("/dev/y"), spec, metadata, ())
    flash_devices.take(flash.with_disk(disk).free(), spec.cache, "CACHE")


def test_a_flash_device_that_stands_gives_what_is_free() -> None:
    first = split(Bytes(64 * GIB), None, "dm-cache", "oltp", None, 50, 50)
    flash = FlashDevice("main", PurePosixPath("/dev/x"), Bytes(64 * GIB), ())
    flash = replace(flash, volume=flash_devices.take(flash.free(), first.volume, "VOLUME"))
    metadata = flash_devices.take(flash.free(), first.spec.metadata, "METADATA")
    disk = Disk("a", "dm-cache", "oltp", PurePosixPath("/dev/y"), first.spec, metadata, ())
    flash = flash.with_disk(disk)
    disk = replace(disk, cache=flash_devices.take(flash.free(), first.spec.cache, "CACHE"))
    flash = flash.with_disk(disk)
    second = split(Bytes(64 * GIB), flash, "bcache", "warehouse", None, 10, 0)
    assert not second.volume_new
    assert second.volume == first.volume
    assert second.others == first.spec.cache + first.spec.metadata
    assert second.spec.cache + second.spec.metadata == devicemapper.total(flash.free()), (
        "10 % is not asked"
    )
    assert second.free == 0


def test_what_the_database_picks_is_said() -> None:
    size = Bytes(32 * GIB)
    oltp, warehouse = (split(size, None, "dm-cache", one, None, 80, 0) for one in DATABASES)
    assert (oltp.spec.mode, warehouse.spec.mode) == ("writeback", "writethrough")
    assert oltp.spec.block < warehouse.spec.block
    assert any(reason.startswith("mode writeback") for reason in oltp.reasons)
    asked = split(size, None, "dm-cache", "oltp", "writethrough", 80, 0)
    assert asked.spec.mode == "writethrough"
    assert any(reason.startswith("mode writethrough (asked for)") for reason in asked.reasons)
    assert 0.79 < oltp.spec.cache / (oltp.spec.cache + oltp.volume) < 0.81


def test_a_flash_device_too_small_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"a cache of .* at least"):
        split(Bytes(64 * 2**20), None, "bcache", "oltp", None, 1, 90)
