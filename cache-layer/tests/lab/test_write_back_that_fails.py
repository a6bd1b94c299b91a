"""An origin that takes no write-back while the cache takes writes: on files, with the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.block.devices import DeviceRefusedError
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.monitoring import tier_metrics

from .test_userspace import MIB, Site, never_cleaned, pytestmark, site, wait_until

__all__ = ["never_cleaned", "pytestmark", "site"]

TOLD_S = 10


def created_on(site: Site, origin: PurePosixPath) -> None:
    wanted = replace(site.wanted("shop", cache=64), origin=origin, block=Bytes(64 * 1024))
    creation.create(site.machine, wanted, False, site.said.append)


def test_what_cannot_be_written_back_is_told_at_once_and_until_it_can(site: Site) -> None:
    """A sparse origin in a file system that is full (n7)."""
    there = site.folder / "there"
    site.sh(
        f"truncate -s 48M {there}.ext4; mke2fs -q -F -t ext4 {there}.ext4; mkdir {there};"
        f" mount -o loop {there}.ext4 {there}; truncate -s 128M {there}/origin"
    )
    try:
        created_on(site, PurePosixPath(there / "origin"))
        site.sh(f"fallocate -l 36M {there}/ballast")
        site.sh("dd if=/dev/urandom of=/dev/hotset/shop bs=64k count=400 oflag=direct conv=fsync")
        wait_until(lambda: site.inspect("shop").report.state == "degraded", TOLD_S)
        (note,) = site.inspect("shop").report.notes
        assert "cannot be written back" in note
        assert f"{there}/origin: No space left on device" in note
        log = site.sh("cat /run/hotset/engine/shop/log")
        assert "cannot be written back (origin: No space left on device" in log
        (measured,) = tier_metrics.measure(site.machine)
        assert measured.counters is not None
        before = int(measured.counters.dirty)
        assert before
        site.sh(f"rm {there}/ballast")
        wait_until(lambda: site.inspect("shop").report.state == "active", TOLD_S)
        wait_until(lambda: "written back again" in site.sh("cat /run/hotset/engine/shop/log"))
        site.flush("shop")
        site.detach("shop")
    finally:
        site.machine.run(["umount", "-l", str(there)], check=False)


def test_an_origin_that_takes_no_writes_is_refused_before_anything_is_written(site: Site) -> None:
    origin = site.origin("shop")
    loop = PurePosixPath(site.sh(f"losetup --find --show --read-only {origin}"))
    try:
        wanted = replace(site.wanted("shop"), origin=loop)
        with pytest.raises(DeviceRefusedError, match="is read-only"):
            creation.create(site.machine, wanted, True, print)
        assert site.sh(f"cmp -n {MIB} {site.flash} /dev/zero && echo same") == "same"
    finally:
        site.sh(f"losetup --detach {loop}")
