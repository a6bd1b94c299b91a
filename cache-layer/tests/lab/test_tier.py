"""The whole life of both kernel tiers on real devices, in one virtual machine.

All devices are cut out of its flash disk by device-mapper, so that they can grow and fail.
"""

from __future__ import annotations

import re
import shlex
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

import asyncssh
import pytest

from hotset.block import devicemapper, devices, extents, label, programs
from hotset.block.devicemapper import device_size
from hotset.block.extents import Run
from hotset.core.clock import wait_until
from hotset.core.errors import HotsetError
from hotset.core.machines.base import (
    CommandError,
    CommandTimeoutError,
    Machine,
    PrerequisiteMissingError,
)
from hotset.core.machines.names import open_machine
from hotset.core.units import Blocks, Bytes
from hotset.disk import adopt, flash_devices, lifecycle
from hotset.disk import create as creation
from hotset.disk import repair as repairing
from hotset.disk import resize as resizing
from hotset.disk import settings as retune
from hotset.disk.boot import program, systemd_unit
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import AttachedDisk, FlashError
from hotset.disk.sizing import KernelKind
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from hotset.lab.machines.guest import SSH_PORT, Guest
from hotset.lab.machines.quick import quick
from hotset.tier import devices as tier_devices
from hotset.tier import dm_tier
from hotset.tier.base import MetadataDamagedError, WriteMode, hits_between
from hotset.tier.bcache import control as bcache_control
from hotset.tier.bcache import tier as bcache
from hotset.tier.bcache.tier import Bcache
from hotset.tier.choice import DatabaseKind
from hotset.tier.dmcache import tier as dmcache
from hotset.warmup.fill import fill
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
SPACE_MAP = 80
"""Where the superblock says which block has the index of its space map: ``bitmap_root`` of
``metadata_space_map_root`` (drivers/md/dm-cache-metadata.c, persistent-data/dm-space-map-common.h).
"""
MOUNT = PurePosixPath("/run/hotset/data")
KINDS: tuple[KernelKind, ...] = ("dm-cache", "bcache")
ALIKE = ("dm-cache", pytest.param("bcache", marks=pytest.mark.night))
"""For what is hotset's own doing and the same on both."""
FLASH, ORIGIN, OTHER = "lab-flash", "lab-origin", "lab-other"
SIZES = {FLASH: 288, ORIGIN: 192, OTHER: 96}
_DELAY_MS = 600_000
COUNTED_S = bcache.COUNTING.lag_s
BEHIND = 164 * 16
"""The first block of 64 KiB behind the file system of the origin, at 164 MiB."""
START = {FLASH: 0, ORIGIN: 300, OTHER: 600}


def by_id(name: str) -> PurePosixPath:
    return PurePosixPath(f"/dev/disk/by-id/dm-name-{name}")


@dataclass(frozen=True)
class Bench:
    """The machine, its devices and what verbs said."""

    machine: Machine
    said: list[str]

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=300).stdout.strip()

    def cut(self, name: str, mib: int | None = None, target: str = "linear") -> None:
        """Make a device of the virtual machine's disk, or give it another table."""
        length = (mib or SIZES[name]) * 2048
        table = f"0 {length} linear {labs.FLASH_DISK} {START[name] * 2048}"
        if target == "error":
            table = f"0 {length} error"
        if name in devicemapper.active_names(self.machine):
            self.sh(f"echo {table} | dmsetup reload {name}; dmsetup resume {name}")
        else:
            devicemapper.make(self.machine, name, table)

    def create(
        self,
        kind: KernelKind,
        name: str = "oltp",
        origin: str = ORIGIN,
        database: DatabaseKind = "oltp",
        cache: int = 80,
        block: int | None = None,
    ) -> None:
        wanted = CreateRequest(
            name,
            by_id(FLASH),
            by_id(origin),
            kind,
            database,
            Bytes(cache * MIB),
            Bytes(16 * MIB) if name == "oltp" else None,
            block=Bytes(block * MIB) if block else None,
        )
        creation.create(self.machine, wanted, True, self.said.append)

    @contextmanager
    def hanging(self, how: Literal["suspended", "delayed"]) -> Iterator[None]:
        """The flash answers nobody: whoever asks it for something waits in state D until the end,
        when all of it is answered."""
        if how == "suspended":
            self.sh(f"dmsetup suspend --noflush --nolockfs {FLASH}")
        else:
            # udev looks at it at once and is not waited for: nobody answers it.
            table = f"0 {SIZES[FLASH] * 2048} delay {labs.FLASH_DISK} {START[FLASH] * 2048}"
            table = f"echo {table} {_DELAY_MS} | dmsetup reload {FLASH}"
            self.sh(f"{table}; dmsetup resume --noudevsync {FLASH}")
        try:
            yield
        finally:
            if how == "suspended":
                self.sh(f"dmsetup resume {FLASH}")
            else:
                self.cut(FLASH)

    def waiting(self) -> str:
        """The names of processes in state D."""
        return self.sh("cat /proc/[0-9]*/status 2> /dev/null | grep -B 2 '^State:.D' || :")

    def found(self, name: str | None = None) -> AttachedDisk:
        return flash_devices.find(self.machine, name)

    def inspect(self, name: str | None = None) -> lifecycle.DiskState:
        return lifecycle.inspect(self.found(name))

    def dirty(self, name: str | None = None) -> int:
        return int(self.found(name).tier.counters().dirty)

    def mount(self, device: PurePosixPath, options: str = "rw") -> None:
        self.sh(f"mkdir -p {MOUNT}; mount -o {options} {device} {MOUNT}")

    def umount(self) -> None:
        self.sh(f"umount {MOUNT}")

    def sums(self, device: PurePosixPath | None = None) -> str:
        """Checksums of the mounted files and of what :meth:`soil` wrote, read from the device."""
        device = device or self.found("oltp").disk.device
        return self.sh(
            f"echo 1 > /proc/sys/vm/drop_caches; cd {MOUNT}; md5sum f*;"
            f" dd if={device} bs=64k skip={BEHIND} count=96 iflag=direct status=none"
            " | md5sum"
        )

    def soil(self) -> None:
        """Make 6 MiB dirty behind the file system: dm-cache takes whole blocks at once."""
        disk = self.found("oltp").disk
        device = disk.device
        if disk.kind == "dm-cache":
            # Else it is written back as soon as the disk is idle for a second.
            self.sh(f"dmsetup message {device.name} 0 migration_threshold 0")
        self.sh(
            f"dd if=/dev/urandom of={device} bs=64k seek={BEHIND} count=96 oflag=direct status=none"
        )
        assert self.dirty("oltp") > 0

    def write(self, name: str, mib: int) -> None:
        self.sh(
            f"dd if=/dev/urandom of={MOUNT}/{name} bs=64k count={mib * 16} conv=fsync status=none"
        )

    @contextmanager
    def opened(self, device: PurePosixPath, how: Literal["<", "<>"] = "<>") -> Iterator[str]:
        """Somebody has a device open; his process."""
        sleep = f"nohup sh -c 'exec 5{how} {device}; exec sleep 600' > /dev/null 2>&1 & echo $!"
        pid = self.sh(sleep)
        try:
            self.sh(f"until grep -qx sleep /proc/{pid}/comm; do sleep 0.1; done")
            yield f"process {pid} (sleep)"
        finally:
            self.sh(f"kill {pid}; while [ -e /proc/{pid} ]; do sleep 0.1; done")

    def crash(self) -> None:
        """Take every device of hotset's away behind its back, as a reboot does."""
        self.sh(
            "for n in $(dmsetup ls | grep -o '^hotset-[a-z]*' | sort -u); do"
            " dmsetup remove $n 2>/dev/null || :; done;"
            " for b in /sys/block/dm-*/bcache/stop; do [ -e $b ] && echo 1 > $b; done;"
            " for s in /sys/fs/bcache/*-*/stop; do [ -e $s ] && echo 1 > $s; done; sleep 1;"
            " for n in $(dmsetup ls | grep -o '^hotset-[a-z-]*'); do"
            " dmsetup remove --retry $n; done"
        )
        assert not [
            name for name in devicemapper.active_names(self.machine) if name.startswith("hotset-")
        ]
        # Without a reboot nobody knows that nothing was written meanwhile; here it was not.
        for one in flash_devices.list_disks(self.machine):
            lifecycle.keep_flash(one)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    spec = LabSpec("uml", 2, Bytes(1024 * MIB), Bytes(800 * MIB))
    with own_lab(tmp_path_factory, spec) as lab:
        assert isinstance(lab.machine, Guest)
        yield lab.machine


@pytest.fixture(scope="module")
def quickly(machine: Guest) -> Iterator[Machine]:
    """The same for commands that all end."""
    with quick(machine) as there:
        yield there


@pytest.fixture
def bench(quickly: Machine) -> Iterator[Bench]:
    """Empty devices, and an origin with a file system that has data on it."""
    with bench_on(quickly) as bench:
        yield bench


@pytest.fixture
def bench_that_hangs(machine: Guest) -> Iterator[Bench]:
    with bench_on(machine) as bench:
        yield bench


@pytest.fixture
def bench_with_debugfs(emulated_lab: Lab) -> Iterator[Bench]:
    """User-Mode Linux does not show what bcache holds."""
    with bench_on(emulated_lab.machine) as bench:
        yield bench


@contextmanager
def bench_on(machine: Machine) -> Iterator[Bench]:
    bench = Bench(machine, [])
    for name in SIZES:
        bench.cut(name)
    bench.sh(
        f"udevadm settle; for n in {FLASH} {OTHER}; do wipefs -aq /dev/mapper/$n; done;"
        # With the label of the test before, it were not empty.
        f" dd if=/dev/zero of=/dev/mapper/{FLASH} bs=1M count=1 oflag=direct status=none;"
        f" mke2fs -q -F -t ext4 -E lazy_itable_init=0 /dev/mapper/{ORIGIN} 160M"
    )
    bench.mount(by_id(ORIGIN))
    bench.write("f1", 12)
    bench.umount()
    yield bench
    bench.sh(f"umount -q {MOUNT} || :; rm -rf /etc/hotset /etc/udev/rules.d/*hotset*")
    bench.crash()
    bench.sh(
        f"dmsetup remove --retry {FLASH}; dmsetup remove --retry {ORIGIN};"
        f" dmsetup remove --retry {OTHER}"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_life(  # noqa: PLR0915 - one life, told in its order
    bench: Bench, kind: KernelKind
) -> None:
    machine = bench.machine
    bench.mount(by_id(ORIGIN), "ro")
    before = bench.sums(by_id(ORIGIN))
    with pytest.raises(devices.DeviceRefusedError, match="lab-origin is mounted on /run/hotset"):
        bench.create(kind)
    bench.umount()
    assert flash_devices.list_all(machine) == []

    bench.create(kind)
    device = bench.found().disk.device
    bench.mount(device)
    assert bench.sums() == before, "in place: the data are as they were"
    bench.write("f2", 8)
    bench.soil()
    with pytest.raises(programs.InUseError, match="mounted on"):
        lifecycle.detach(bench.found(), False, False, lambda _: None, print)
    now = bench.sums()
    assert bench.inspect().report.state == "active"

    # A second disk takes what is left of the same flash device.
    bench.create(kind, "dwh", OTHER, "warehouse", 80)
    assert {one.name for one in bench.found("dwh").flash.disks} == {"oltp", "dwh"}
    assert device_size(machine, bench.found("dwh").disk.device) == SIZES[OTHER] * MIB
    lifecycle.detach(bench.found("dwh"), False, False, lambda _: None, print)

    # A reboot: all devices go behind hotset's back, with dirty data on the flash.
    bench.umount()
    bench.crash()
    seen = bench.inspect()
    assert seen.report.state == "inactive"
    assert "may hold OLD data" in " ".join(seen.report.notes)
    lifecycle.activate(bench.found(), bench.said.append)
    bench.mount(device)
    assert bench.sums() == now

    # Flushed with the file system mounted and in use; goes on as before.
    was = bench.inspect().report.tunables
    left: list[Blocks] = []
    bench.soil()
    now = bench.sums()
    assert lifecycle.flush(bench.found(), left.append) > 0
    assert left[-1] == 0
    assert bench.inspect().report.tunables == was

    # The origin grows under the mounted file system.
    bench.cut(ORIGIN, SIZES[ORIGIN] + 32)
    resizing.resize(bench.found(), None, True, left.append, bench.said.append)
    assert device_size(machine, device) == (SIZES[ORIGIN] + 32) * MIB
    assert bench.sums() == now

    # The cache grows and shrinks.
    for mib in (120, 72):
        bench.soil()
        if mib == 72 or kind == "bcache":
            with pytest.raises(lifecycle.TierRefusedError, match="which that would drop"):
                resizing.resize(bench.found(), Bytes(mib * MIB), False, left.append, print)
        resizing.resize(bench.found(), Bytes(mib * MIB), True, left.append, print)
        assert bench.found().disk.spec.cache == mib * MIB
        tier = flash_devices.find(machine, None).tier
        assert tier.counters().total.bytes(tier.spec.block) == mib * MIB
        assert bench.inspect().report.state == "active"
    assert bench.inspect().report.tunables == was
    now = bench.sums()
    bench.umount()

    # What hotset calls plain is plain.
    lifecycle.detach(bench.found(), False, False, left.append, bench.said.append)
    assert not [
        name
        for name in devicemapper.active_names(machine)
        if name.startswith("hotset-") and name != "hotset-volume"
    ]
    bench.mount(by_id(ORIGIN))
    assert bench.sums(by_id(ORIGIN)) == now, "everything was written back"
    bench.umount()
    bench.sh(f"e2fsck -fn {by_id(ORIGIN)}")
    lifecycle.destroy(
        machine, flash_devices.list_all(machine)[0], True, lambda _: left.append, print
    )
    assert flash_devices.list_all(machine) == []
    assert not [name for name in devicemapper.active_names(machine) if name.startswith("hotset-")]


@pytest.mark.night
@pytest.mark.parametrize(
    ("kind", "program"),
    [("dm-cache", "cache_check"), ("dm-cache", "cache_repair"), ("bcache", "bcache-super-show")],
)
def test_a_server_without_what_the_next_boot_needs_is_refused(
    bench: Bench, kind: KernelKind, program: str
) -> None:
    there = bench.sh(f"command -v {program}")
    before = bench.sh(f"md5sum {by_id(FLASH)} {by_id(ORIGIN)}")
    bench.sh(f"mv {there} {there}.away")
    try:
        with pytest.raises(PrerequisiteMissingError, match=rf"{program} \(apt-get install"):
            bench.create(kind)
    finally:
        bench.sh(f"mv {there}.away {there}")
    assert bench.sh(f"md5sum {by_id(FLASH)} {by_id(ORIGIN)}") == before
    assert flash_devices.list_all(bench.machine) == []


def test_larger_sectors_of_the_flash_become_the_cached_devices(bench: Bench) -> None:
    """Which a file system made for smaller ones does not survive: so it is refused unless asked
    for."""
    file = "/run/hotset/4kn.img"
    bench.sh(f"modprobe loop; udevadm settle; mkdir -p /run/hotset; truncate -s 128M {file}")
    loop = bench.sh(f"losetup --find --show --sector-size 4096 {file}")
    try:
        devicemapper.make(bench.machine, "lab-4kn", f"0 {120 * 2048} linear {loop} 0")
        bench.sh("udevadm settle")
        wanted = CreateRequest(
            "oltp", by_id("lab-4kn"), by_id(ORIGIN), "dm-cache", "oltp", Bytes(64 * MIB)
        )
        with pytest.raises(devices.DeviceRefusedError, match=r"of 4096 bytes, \S* of 512:"):
            creation.create(bench.machine, wanted, False, bench.said.append)
        assert flash_devices.list_all(bench.machine) == []
        creation.create(bench.machine, wanted, True, bench.said.append)
        assert "of 4096 bytes" in " ".join(bench.said)
        assert bench.sh(f"blockdev --getss {bench.found().disk.device}") == "4096"
        lifecycle.detach(bench.found(), False, False, lambda _: None, bench.said.append)
    finally:
        bench.crash()
        bench.sh(f"dmsetup remove --retry lab-4kn || :; losetup --detach {loop}; rm {file}")


@pytest.mark.night
def test_large_blocks_are_written_back_while_the_disk_is_idle(bench: Bench) -> None:
    """As `create` picks them for more than 1 TiB of cache. With the kernel's own limit of 1 MiB
    under way, none ever was."""
    bench.create("dm-cache", block=2)
    device = bench.found().disk.device
    bench.sh(f"dd if=/dev/urandom of={device} bs=2M count=36 oflag=direct status=none")
    taken = bench.inspect().report.counters
    assert taken is not None
    assert taken.used > 0, "whole blocks, which dm-cache takes at once, as dirty ones"
    assert wait_until(lambda: bench.dirty() == 0, limit_s=120, poll_s=0.5)
    assert bench.inspect().report.state == "active"
    drop = "echo 1 > /proc/sys/vm/drop_caches"
    bench.sh(f"{drop}; cmp -n {72 * MIB} {device} {by_id(ORIGIN)}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_flash_lets_the_origin_go(bench: Bench, kind: KernelKind) -> None:
    bench.create(kind)
    bench.mount(bench.found().disk.device)
    bench.write("f2", 4)
    bench.umount()
    bench.soil()
    with pytest.raises(lifecycle.TierRefusedError, match="the flash is not dead, it answers"):
        lifecycle.detach(bench.found(), True, False, lambda _: None, print)
    bench.cut(FLASH, target="error")
    # The kernel notices when it is asked for something.
    bench.sh(
        f"dd if={bench.found().disk.device} of=/dev/null bs=64k count=400 iflag=direct"
        " status=none || :"
    )
    seen = bench.inspect()
    assert seen.report.state == "failed"
    assert "is gone or does not answer" in " ".join(seen.report.notes)
    with pytest.raises(lifecycle.TierRefusedError, match="so nothing can be written back"):
        lifecycle.detach(bench.found(), False, False, lambda _: None, print)
    lifecycle.detach(bench.found(), True, False, lambda _: None, bench.said.append)
    assert "LOST: " in " ".join(bench.said)
    bench.sh(f"e2fsck -fy {by_id(ORIGIN)} || [ $? -lt 4 ]")
    bench.mount(by_id(ORIGIN))
    bench.sh(f"test -s {MOUNT}/f1")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for longer than some seconds."""
    monkeypatch.setattr(devices, "_ANSWER_S", 2.0)
    monkeypatch.setattr(label, "_READ_TIMEOUT_S", 2.0)
    for name in ("_REMOVE_LIMIT_S", "_SWAP_LIMIT_S"):
        monkeypatch.setattr(tier_devices, name, 3.0)
    monkeypatch.setattr(bcache_control, "_SET_LIMIT_S", 3.0)
    monkeypatch.setattr(dm_tier, "_STATUS_LIMIT_S", 3.0)
    for tier in (bcache, dmcache):
        monkeypatch.setattr(tier, "_STALL_S", 1.0)
        monkeypatch.setattr(tier, "_STALL_LIMIT_S", 4.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        ("dm-cache", "suspended"),
        pytest.param("dm-cache", "delayed", marks=pytest.mark.night),
        pytest.param("bcache", "suspended", marks=pytest.mark.night),
        pytest.param("bcache", "delayed", marks=pytest.mark.night),
    ],
)
def test_a_flash_that_hangs_ends_every_wait(
    bench_that_hangs: Bench, kind: KernelKind, how: Literal["suspended", "delayed"]
) -> None:
    bench = bench_that_hangs
    bench.create(kind)
    bench.mount(bench.found().disk.device)
    bench.write("f2", 4)
    bench.umount()
    bench.soil()
    with bench.hanging(how):
        assert bench.inspect().report.state == "failed"
        # Somebody tries all the same; the kernel's locks may be held from then on.
        with pytest.raises(HotsetError):
            lifecycle.flush(bench.found(), lambda _: None)
        begun = time.monotonic()
        assert bench.inspect().report.state == "failed"
        assert time.monotonic() - begun < 30
        with pytest.raises(lifecycle.TierRefusedError, match="gone or does not answer"):
            lifecycle.detach(bench.found(), False, False, lambda _: None, print)
        with pytest.raises(lifecycle.TierRefusedError, match="given up, and no boot makes it"):
            lifecycle.detach(bench.found(), True, False, lambda _: None, bench.said.append)
        assert "LOST: " in " ".join(bench.said)
        assert "\tdd" in bench.waiting(), "nobody can end it"
        assert flash_devices.list_disks(bench.machine) == []
    # It is back: what it holds is older than the origin by now, and is not taken for the truth.
    bench.said.clear()
    adopt.adopt(bench.machine, by_id(FLASH), True, bench.said.append)
    assert "has gone on without" in " ".join(bench.said)


def reactivated_in_use(bench: Bench) -> None:
    lifecycle.activate(bench.found(), bench.said.append)
    assert "has a cache again, which begins empty" in bench.said[-1]


def reactivated_after_a_crash(bench: Bench) -> None:
    bench.crash()
    lifecycle.activate(bench.found(), bench.said.append)


def reactivated_in_order(bench: Bench) -> None:
    lifecycle.deactivate(bench.found(), print)
    lifecycle.activate(bench.found(), bench.said.append)


def test_a_flash_that_failed_for_a_while_never_hides_what_bcache_wrote_past_it(
    bench: Bench,
) -> None:
    """A clean bcache goes on without its cache, and both its superblocks, which are on that flash,
    say as before that the cache is whole."""
    bench.create("bcache")
    device = bench.found().disk.device
    read = f"dd if={device} bs=64k skip={BEHIND} count=16 iflag=direct status=none"
    write = f"dd of={device} bs=64k seek={BEHIND} count=16 oflag=direct status=none"
    fails = "ls -d /sys/block/dm-*/bcache/cache && [ $((n += 1)) -lt 20 ]"
    for again in (reactivated_in_use, reactivated_after_a_crash, reactivated_in_order):
        # Which has it cached, and nothing is dirty.
        bench.sh(f"{read} | md5sum")
        bench.cut(FLASH, target="error")
        bench.sh(f"n=0; while {fails}; do {read} || :; done > /dev/null 2>&1")
        newest = bench.sh(f"{write} < /dev/urandom; {read} | md5sum")
        bench.cut(FLASH)
        assert "without a cache" in " ".join(bench.inspect().report.notes)
        again(bench)
        assert "without a cache" not in " ".join(bench.inspect().report.notes)
        assert bench.sh(f"{read} | md5sum") == newest, again.__name__


@pytest.mark.parametrize("kind", ALIKE)
def test_no_tier_is_activated_over_an_origin_that_somebody_may_write_to(
    bench: Bench, kind: KernelKind
) -> None:
    """The device mapper claims it from nobody who has it open, nor from a loop device over it: he
    went on past the cache."""
    bench.create(kind)
    bench.soil()
    lifecycle.deactivate(bench.found(), print)
    start = program.command(bench.found(), "start")
    with bench.opened(by_id(ORIGIN)) as who:
        with pytest.raises(programs.InUseError, match=re.escape(who)):
            lifecycle.activate(bench.found(), print)
        done = bench.machine.run(start, check=False)
        assert done.rc == 5
        assert who in done.stderr
    loop = bench.sh(f"modprobe loop; udevadm settle; losetup --find --show {by_id(ORIGIN)}")
    done = bench.machine.run(start, check=False)
    bench.sh(f"losetup --detach {loop}")
    assert done.rc == 5
    assert f"is behind {PurePosixPath(loop).name}" in done.stderr
    with bench.opened(by_id(ORIGIN), "<"):
        bench.machine.run(start)
    assert bench.inspect().report.state == "active"


@pytest.mark.parametrize("kind", ["bcache", pytest.param("dm-cache", marks=pytest.mark.night)])
def test_who_looks_into_a_part_of_a_tier_leaves_it_in_order(bench: Bench, kind: KernelKind) -> None:
    """The accelerated device was gone by then, on record as one that had ended by itself: it was
    refused ever after."""
    bench.create(kind)
    bench.mount(bench.found().disk.device)
    bench.write("f2", 4)
    bench.umount()
    bench.soil()
    if kind == "bcache":
        # What the kernel calls it, which is below the accelerated device and ended with it.
        (own,) = bench.sh("ls -d /dev/bcache[0-9]*").split()
        with (
            bench.opened(PurePosixPath(own)) as who,
            pytest.raises(programs.InUseError, match=re.escape(f"{who} has {own} open")),
        ):
            lifecycle.deactivate(bench.found(), print)
        assert bench.inspect().report.state == "active"
    part = PurePosixPath(f"{bench.found().disk.device}-cache")
    with bench.opened(part, "<") as who:
        with pytest.raises(programs.InUseError, match=re.escape(who)):
            lifecycle.deactivate(bench.found(), print)
        with pytest.raises(programs.InUseError, match=re.escape(who)):
            lifecycle.activate(bench.found(), print)
    lifecycle.activate(bench.found(), print)


def test_a_disk_has_no_part_of_one_that_had_its_name(bench: Bench) -> None:
    """Given up while somebody looked into its cache, which kept its place on the former flash, as
    the volume did: there the new ones' writes went, and no boot finds them."""
    bench.create("dm-cache")
    with bench.opened(PurePosixPath(f"{bench.found().disk.device}-cache"), "<"):
        with pytest.raises(lifecycle.TierRefusedError, match="given up"):
            lifecycle.detach(bench.found(), True, True, lambda _: None, print)
        sizes = (Bytes(64 * MIB), Bytes(8 * MIB))
        wanted = CreateRequest("oltp", by_id(OTHER), by_id(ORIGIN), "dm-cache", "oltp", *sizes)
        with pytest.raises(programs.InUseError):
            creation.create(bench.machine, wanted, True, print)
    creation.create(bench.machine, wanted, True, print)
    below = bench.sh("dmsetup deps -o devname hotset-oltp-cache hotset-oltp-meta hotset-volume")
    assert below.count(OTHER) == 3, below


@pytest.mark.parametrize("kind", KINDS)
def test_the_origins_uuid_leads_to_the_tier_or_nowhere(bench: Bench, kind: KernelKind) -> None:
    """So a mount by UUID never finds old data while the tier is down."""
    uuid = bench.sh(f"blkid -p -s UUID -o value {by_id(ORIGIN)}")

    def leads_to() -> str:
        return bench.sh(f"udevadm settle; readlink -e /dev/disk/by-uuid/{uuid} || :")

    def node(device: PurePosixPath) -> str:
        return bench.sh(f"readlink -e {device}")

    # udev misses a file system that is made while it still handles the device's own first event.
    bench.sh(f"udevadm trigger --action=change {by_id(ORIGIN)}")
    assert wait_until(lambda: leads_to() == node(by_id(ORIGIN)), 30)
    bench.create(kind)
    disk = bench.found().disk
    # What udev has to tell of the kernel's last step may come after its queue was empty.
    tier = (node(disk.device), bench.sh("ls -d /dev/bcache0 2>/dev/null || :"))
    assert wait_until(lambda: leads_to() in tier, 30)
    inner = bench.sh(f"udevadm info --query=property /dev/mapper/{disk.device.name}-cache")
    assert "ID_FS_UUID=" not in inner
    assert "SYSTEMD_READY=0" in inner
    lifecycle.deactivate(bench.found(), print)
    assert leads_to() == ""
    lifecycle.detach(bench.found(), False, False, lambda _: None, print)
    assert wait_until(lambda: leads_to() == node(by_id(ORIGIN)), 30)


def test_lvm_gets_the_tier_and_never_the_origin(bench: Bench, tmp_path: Path) -> None:
    """69-lvm.rules makes a volume group's devices of what udev says is a member."""
    machine, origin, label = bench.machine, by_id(ORIGIN), tmp_path / "label"
    label.write_bytes(physical_volume())
    machine.put(label, PurePosixPath("/run/label"))
    bench.sh(f"wipefs -aq {origin}; dd if=/run/label of={origin} bs=512 seek=1 oflag=direct")

    def kind_of(device: PurePosixPath) -> str:
        bench.sh(f"udevadm trigger --action=change {device}; udevadm settle")
        return bench.sh(f"udevadm info --query=property {device} | grep ^ID_FS_TYPE= || :")

    assert kind_of(origin) == "ID_FS_TYPE=LVM2_member"
    bench.create("dm-cache")
    assert f'global_filter = [ "r|^{origin}$|" ]' in " ".join(bench.said)
    assert kind_of(bench.found().disk.device) == "ID_FS_TYPE=LVM2_member"
    lifecycle.deactivate(bench.found(), print)
    assert kind_of(origin) == "ID_FS_TYPE=hotset"
    lifecycle.detach(bench.found(), False, False, lambda _: None, print)
    assert kind_of(origin) == "ID_FS_TYPE=LVM2_member"


def physical_volume() -> bytes:
    """A sector with LVM's label, as pvcreate(8) writes it (lib/label/label.h, lib/misc/crc.c)."""
    rest = struct.pack("<I8s32s", 32, b"LVM2 001", b"7" * 32).ljust(492, b"\0")
    checksum = zlib.crc32(rest, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    return struct.pack("<8sQI", b"LABELONE", 1, checksum) + rest


@pytest.mark.parametrize("kind", KINDS)
def test_an_origin_that_was_written_to_is_not_mixed_with_the_flash(
    bench: Bench, kind: KernelKind
) -> None:
    bench.create(kind)
    bench.soil()
    lifecycle.deactivate(bench.found(), bench.said.append)
    assert "OLD data" in bench.said[-1]
    bench.mount(by_id(ORIGIN))
    bench.write("f9", 1)
    bench.umount()
    with pytest.raises(lifecycle.OriginChangedError, match="Both cannot be kept"):
        lifecycle.activate(bench.found(), print)
    lifecycle.keep_flash(bench.found())
    lifecycle.activate(bench.found(), print)
    lifecycle.flush(bench.found(), lambda _: None)
    lifecycle.deactivate(bench.found(), bench.said.append)
    bench.sh(f"e2fsck -fy {by_id(ORIGIN)} || [ $? -lt 4 ]")
    # All of it is on the origin: what was cached is forgotten.
    lifecycle.activate(bench.found(), bench.said.append)
    assert "the cache begins empty" in " ".join(bench.said)
    bench.mount(bench.found().disk.device)
    bench.sh(f"test -s {MOUNT}/f1")
    bench.umount()


def test_damaged_metadata_of_dm_cache(bench: Bench) -> None:
    machine = bench.machine
    bench.create("dm-cache")
    bench.mount(bench.found().disk.device)
    bench.write("f2", 8)
    bench.soil()
    now = bench.sums()
    bench.umount()
    lifecycle.deactivate(bench.found(), print)
    at = bench.found().disk.metadata[0].start

    def spoil(offset: int, count: int) -> None:
        bench.sh(
            f"dd if=/dev/zero of=/dev/mapper/{FLASH} bs=4096 oflag=direct conv=notrunc"
            f" seek={at // 4096 + offset} count={count} status=none"
        )

    # The superblock alone is gone: dm-cache itself would format an empty cache over it.
    saved = bench.sh(
        f"dd if=/dev/mapper/{FLASH} bs=4096 skip={at // 4096} count=1 status=none"
        " iflag=direct | od -An -v -tx1 | tr -d ' \\n'"
    )
    assert len(saved) == 8192
    spoil(0, 1)
    with pytest.raises(MetadataDamagedError, match=r"cache_check .*OLD data") as damaged:
        lifecycle.activate(bench.found(), print)
    assert [one.operation for one in damaged.value.remedies] == ["tier repair"]
    with pytest.raises(lifecycle.TierRefusedError, match=r"cache_repair .*not known"):
        repairing.repair(bench.found(), print)
    assert not [
        name for name in devicemapper.active_names(machine) if name.startswith("hotset-oltp")
    ]

    # A superblock that came back from a copy, the index of its space map gone: that can be mended,
    # and every write that was only on the flash is found again.
    escaped = "".join(f"\\{int(saved[i : i + 2], 16):03o}" for i in range(0, len(saved), 2))
    bench.sh(
        f"printf '{escaped}' > /run/super; dd if=/run/super of=/dev/mapper/{FLASH} bs=4096"
        f" seek={at // 4096} oflag=direct conv=notrunc status=none"
    )
    spoil(int.from_bytes(bytes.fromhex(saved)[SPACE_MAP : SPACE_MAP + 8], "little"), 1)
    with pytest.raises(MetadataDamagedError, match="cache_check"):
        lifecycle.activate(bench.found(), print)
    with pytest.raises(lifecycle.TierRefusedError, match=r"cache_repair reads \d+ blocks") as asked:
        repairing.repair(bench.found(), print)
    assert asked.value.remedies[0].parameters == {"disk": "oltp", "yes": True}
    repairing.repair(bench.found(), bench.said.append, yes=True)
    assert "blocks are cached again" in " ".join(bench.said)
    bench.mount(bench.found().disk.device)
    assert bench.sums() == now
    bench.umount()
    lifecycle.flush(bench.found(), lambda _: None)
    lifecycle.deactivate(bench.found(), print)
    left = lifecycle.word_left_by(bench.found())
    assert left is not None
    assert left == "clean"
    spoil(0, 4)
    # Clean before it was damaged: nothing is lost, the cache begins empty.
    repairing.repair(bench.found(), bench.said.append)
    assert "nothing is lost" in " ".join(bench.said)
    bench.mount(bench.found().disk.device)
    assert bench.sums() == now
    bench.umount()


def test_what_bcache_has_cached(bench_with_debugfs: Bench) -> None:
    bench = bench_with_debugfs
    machine = bench.machine
    bench.create("bcache", database="warehouse")
    device = bench.found().disk.device
    tier = flash_devices.find(machine, None).tier
    assert isinstance(tier, Bcache)
    bench.mount(device)
    bench.sh(f"dd if={MOUNT}/f1 of=/dev/null bs=64k iflag=direct status=none")
    bypassed = tier.resident()
    # The cut-off of a warehouse lets a scan of 12 MiB go past after its first 4 MiB.
    assert extents.count(bypassed).bytes(tier.spec.block) < 8 * MIB
    found = extents.of_files(machine, [f"{MOUNT}/f1"])
    runs = extents.to_runs(found, tier.spec.block, device_size(machine, device))
    bench.umount()
    fill(tier, runs, 0, lambda _: None)
    kept = {at for run in tier.resident() for at in range(run.start, run.start + run.count)}
    wanted = {at for run in runs for at in range(run.start, run.start + run.count)}
    # On a busy machine bcache leaves out a few of what it reads.
    assert len(wanted & kept) >= 0.95 * len(wanted)
    assert dict(tier.report().tunables)["sequential_cutoff"] == "4.0M"
    assert tier.contents().dirty == []
    tier.kernel.set(("cache_mode", "writeback"), ("writeback_running", 0))
    bench.sh(f"dd if=/dev/urandom of={device} bs=64k seek=2400 count=4 oflag=direct status=none")
    held = tier.contents()
    assert held.dirty is not None
    assert extents.common(held.cached, held.dirty) == held.dirty
    dirty = extents.to_runs(held.dirty, tier.spec.block, device_size(machine, device))
    assert dirty == [Run(Blocks(2400 * 16), Blocks(64))]


def test_bcache_is_filled_also_where_the_kernel_does_not_show_what_it_holds(bench: Bench) -> None:
    machine = bench.machine
    bench.create("bcache", database="oltp")
    device = bench.found().disk.device
    tier = flash_devices.find(machine, None).tier
    assert isinstance(tier, Bcache)
    with pytest.raises(PrerequisiteMissingError, match="kernel has no debugfs"):
        tier.resident()
    bench.mount(device)
    found = extents.of_files(machine, [f"{MOUNT}/f1"])
    runs = extents.to_runs(found, tier.spec.block, device_size(machine, device))
    bench.umount()
    fill(tier, runs, 0, lambda _: None)
    time.sleep(COUNTED_S)
    before = tier.counters()
    for run in runs:
        bench.sh(
            f"dd if={device} of=/dev/null bs={int(tier.spec.block)} skip={run.start}"
            f" count={run.count} iflag=direct status=none"
        )
    time.sleep(COUNTED_S)
    hits = hits_between(before, tier.counters(), tier.counting)
    assert (hits.read_hits or 0) > 100
    assert (hits.read_misses or 0) <= 0.01 * (hits.read_hits or 0)


def test_bcache_counts_requests_however_many_pieces_they_are_served_in(bench: Bench) -> None:
    bench.create("bcache")
    tier, device = bench.found().tier, bench.found().disk.device
    read = f"dd if={device} of=/dev/null iflag=direct status=none"
    pages = f"i=0; while [ $i -lt %d ]; do {read} bs=4k count=1 skip=$(({BEHIND * 16} + 2 * i));"
    bench.sh(pages % 512 + " i=$((i + 1)); done")
    time.sleep(COUNTED_S)
    before = tier.counters()
    bench.sh(f"{read} bs=64k count=64 skip={BEHIND}")
    bench.sh(pages % 404 + " i=$((i + 1)); done")
    time.sleep(COUNTED_S)
    hits = hits_between(before, tier.counters(), tier.counting)
    assert (hits.read_hits, hits.read_misses) == (404, 64), "each half cached, then all hit"
    # More than bcache adds up at a time.
    many = 24 * 2**13
    before = tier.counters()
    bench.sh(f"for i in $(seq 24); do {read} bs=512 count={2**13} skip={BEHIND * 128}; done")
    time.sleep(COUNTED_S)
    hits = hits_between(before, tier.counters(), tier.counting)
    assert hits.read_hits + hits.read_misses == many
    assert hits.read_misses < 2**13, "each sector is cached as soon as it was read"


@pytest.mark.parametrize("kind", ALIKE)
def test_the_unit_is_the_very_commands(bench: Bench, kind: KernelKind) -> None:
    machine = bench.machine
    bench.create(kind)
    bench.mount(bench.found().disk.device)
    bench.write("f2", 4)
    bench.soil()
    now = bench.sums()
    bench.umount()
    path = systemd_unit.install(bench.found())
    verified = machine.run(["systemd-analyze", "verify", str(path)], check=False)
    assert (verified.rc, verified.stderr) == (0, "")
    script = shlex.join(program.command(bench.found(), "start")[:1])
    which = shlex.join(program.command(bench.found(), "start")[2:])
    bench.crash()
    bench.sh(f"{script} start {which}; {script} start {which}")
    assert bench.inspect().report.state == "active"
    bench.mount(bench.found().disk.device)
    assert bench.sums() == now
    bench.umount()
    # Taken down by the unit, as at a shutdown, and activated by hotset.
    bench.sh(f"{script} stop {which}; {script} stop {which}")
    assert bench.inspect().report.state == "inactive"
    lifecycle.activate(bench.found(), bench.said.append)
    bench.mount(bench.found().disk.device)
    assert bench.sums() == now
    bench.umount()
    # As long as the machine is up, behind what is looked at, too.
    write = f"of={by_id(ORIGIN)} bs=4k count=1 oflag=direct conv=notrunc status=none"
    bench.sh(f"{script} stop {which}; dd if={by_id(ORIGIN)} of=/run/kept bs=4k count=1 skip=2000")
    bench.sh(f"dd if=/run/kept seek=2000 {write}")
    with pytest.raises(CommandError, match="was written to while the tier was down"):
        bench.sh(f"{script} start {which}")
    lifecycle.keep_flash(bench.found())
    bench.sh(f"{script} start {which}")
    assert bench.inspect().report.state == "active"
    # Another disk has the origin's name.
    bench.sh(f"{script} stop {which}; readlink {by_id(ORIGIN)} > /run/kept")
    try:
        bench.sh(f"truncate -s 8M /run/other; ln -sfn /run/other {by_id(ORIGIN)}")
        with pytest.raises(CommandError, match="is another disk than the one that was accelerated"):
            bench.sh(f"{script} start {which}")
    finally:
        bench.sh(f'rm /run/other; ln -sfn "$(cat /run/kept)" {by_id(ORIGIN)}')
    bench.sh(f"{script} start {which}")
    # Somebody writes to the origin: the unit fails, and so does what requires it.
    bench.sh(f"{script} stop {which}; dd if=/dev/urandom of={by_id(ORIGIN)} bs=4k seek=9 count=1")
    with pytest.raises(CommandError, match="was written to while the tier was down"):
        bench.sh(f"{script} start {which}")
    systemd_unit.remove(bench.found())
    bench.sh(f"! test -e {path}")


def test_the_mount_of_a_tier_waits_for_its_unit(bench: Bench) -> None:
    """systemd's own reader of fstab makes the mount: it requires the unit, so that one which fails
    stops it, and the origin is mounted by nobody."""
    uuid = bench.sh(f"blkid -p -s UUID -o value {by_id(ORIGIN)}")
    bench.sh(f"cp /etc/fstab /run/fstab; echo 'UUID={uuid} /srv/db ext4 noatime 0 2' >> /etc/fstab")
    try:
        bench.create("dm-cache")
        made = bench.sh(
            "rm -rf /run/made; mkdir /run/made; cd /run/made;"
            " /usr/lib/systemd/system-generators/systemd-fstab-generator . . .; cat srv-db.mount"
        )
        assert "\nWhat=/dev/mapper/hotset-oltp\n" in made
        unit = "hotset-tier-oltp.service"
        assert f"\nRequires={unit}\n" in made
        assert f"\nAfter={unit}\n" in made
        assert bench.sh(f"grep -c UUID={uuid} /run/made/*.mount || :").endswith("0")
        both = (
            f"systemd-analyze --man=no verify /run/made/srv-db.mount {systemd_unit.FOLDER / unit}"
        )
        assert bench.sh(f"{both} 2>&1 || :") == ""
        lifecycle.detach(bench.found(), False, False, lambda _: None, print)
        assert bench.sh("tail -n 1 /etc/fstab") == f"UUID={uuid} /srv/db ext4 noatime 0 2"
    finally:
        bench.sh("mv /run/fstab /etc/fstab")


@pytest.mark.parametrize("kind", ALIKE)
def test_an_origin_without_a_file_system(bench: Bench, kind: KernelKind) -> None:
    """What a database of its own volume manager uses: no UUID, no superblock says whose it is."""
    origin = by_id(ORIGIN)
    bench.sh(
        f"wipefs -aq {origin}; dd if=/dev/urandom of={origin} bs=64k count=128 oflag=direct"
        f" status=none; udevadm settle; ! blkid -p {origin}"
    )

    def data(device: PurePosixPath) -> str:
        return bench.sh(f"head -c {8 * MIB} {device} | md5sum")

    before = data(origin)
    bench.sh("cp /etc/fstab /run/fstab; echo 'UUID= /srv/no ext4 noauto 0 0' >> /etc/fstab")
    try:
        bench.create(kind)
        assert "hotset" not in bench.sh("cat /etc/fstab")
    finally:
        bench.sh("mv /run/fstab /etc/fstab")
    device = bench.found().disk.device
    assert data(device) == before
    bench.soil()
    now = bench.sh(f"md5sum < {device}")
    bench.crash()
    lifecycle.activate(bench.found(), print)
    assert bench.sh(f"md5sum < {device}") == now
    assert bench.sh(f"test -e {origin} && readlink -f {origin}").startswith("/dev/dm-")
    # Within what is looked at, and behind it: as long as the machine is up, its writes are counted.
    for at in (4, 2000):
        bench.soil()
        now = bench.sh(f"md5sum < {device}")
        lifecycle.deactivate(bench.found(), print)
        write = f"of={origin} bs=4k count=1 seek={at} oflag=direct conv=notrunc status=none"
        bench.sh(f"dd if={origin} of=/run/kept bs=4k count=1 skip={at}; dd if=/dev/urandom {write}")
        with pytest.raises(lifecycle.OriginChangedError, match="was written to"):
            lifecycle.activate(bench.found(), print)
        bench.sh(f"dd if=/run/kept {write}")
        lifecycle.keep_flash(bench.found())
        lifecycle.activate(bench.found(), print)
        assert bench.sh(f"md5sum < {device}") == now
    lifecycle.detach(bench.found(), False, False, lambda _: None, print)
    assert bench.sh(f"md5sum < {origin}") == now


@pytest.mark.parametrize("kind", ALIKE)
def test_the_write_mode_changes_while_the_disk_is_in_use(bench: Bench, kind: KernelKind) -> None:
    machine = bench.machine

    def set_mode(mode: WriteMode) -> None:
        retune.retune(bench.found(), None, mode, lambda _: None, bench.said.append)

    bench.create(kind)
    device = bench.found().disk.device
    bench.mount(device)
    bench.write("f2", 4)
    bench.soil()
    systemd_unit.install(bench.found())
    now = bench.sums()
    set_mode("writethrough")
    assert (bench.found().disk.spec.mode, bench.dirty()) == ("writethrough", 0)
    tunables = dict(bench.inspect().report.tunables)
    assert "writethrough" in (tunables.get("mode"), tunables.get("cache_mode"))
    assert "cleaner" not in str(bench.sh(f"dmsetup table {device.name}"))
    with pytest.raises(FlashError, match="has no policy 'arc'"):
        retune.retune(bench.found(), "arc", None, lambda _: None, print)
    assert bench.sums() == now
    # Everything is on the origin, at every moment: a crash loses nothing, without the flash either.
    bench.write("f3", 2)
    now = bench.sums()
    bench.umount()
    bench.crash()
    bench.mount(by_id(ORIGIN))
    assert bench.sums(by_id(ORIGIN)) == now
    bench.umount()
    # The unit knows of the new mode: what is cached may be older than what was written just now.
    start = program.command(bench.found(), "start")
    assert "begins empty" in machine.run(start).stdout
    set_mode("writeback")
    assert bench.found().disk.spec.mode == "writeback"
    bench.mount(device)
    assert bench.sums() == now
    bench.soil()
    now = bench.sums()
    bench.umount()
    bench.crash()
    lifecycle.activate(bench.found(), bench.said.append)
    bench.mount(device)
    assert bench.sums() == now, "write-back again: the flash is needed"
    bench.umount()


@pytest.mark.night
def test_ssh_checks_the_host_key(
    machine: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotset.lab import image

    built = image.find_built()
    assert built is not None
    host, port = machine.address(SSH_PORT)
    name, known = f"ssh://root@{host}:{port}", tmp_path / "known_hosts"
    monkeypatch.setenv("HOTSET_KNOWN_HOSTS", str(known))
    monkeypatch.setenv("HOTSET_SSH_KEY", str(built.client_key))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with (
        pytest.raises(PrerequisiteMissingError, match=r"host key is not in .*`ssh -p"),
        open_machine(name),
    ):
        pass
    known.write_text(f"[{host}]:{port} {built.host_key}\n")
    with open_machine(name) as there:
        assert there.kind == "ssh"
        assert there.run(["uname", "-r"]).stdout == machine.run(["uname", "-r"]).stdout
        assert there.address(5432) == (host, 5432)
        begun = time.monotonic()
        assert flash_devices.list_all(there) == []
        assert time.monotonic() - begun < 10
    other = tmp_path / "other"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(other))
    monkeypatch.setenv("HOTSET_SSH_KEY", str(other))
    with (
        pytest.raises(PrerequisiteMissingError, match=r"login was refused.*HOTSET_SSH_KEY"),
        open_machine(name),
    ):
        pass


@pytest.mark.night
def test_over_ssh_a_command_that_takes_too_long_is_ended_there(machine: Machine) -> None:
    with pytest.raises(CommandTimeoutError):
        machine.run(["sh", "-c", "sleep 4711; true"], timeout_s=1)
    time.sleep(0.5)
    assert "sleep 4711" not in machine.run(["sh", "-c", "ps -eo args"]).stdout


@pytest.mark.night
def test_over_ssh_commands_that_never_end_leave_room_for_others(
    machine: Machine, tmp_path: Path
) -> None:
    """sshd gives a connection ten sessions; those that wait for a dead disk keep theirs."""
    with ExitStack() as stack:
        for _ in range(12):
            said = stack.enter_context(machine.stream(["sh", "-c", "echo there; exec cat"]))
            assert next(said) == "there"
        assert machine.run(["sh", "-c", "echo me too"]).stdout == "me too\n"
        file = tmp_path / "file"
        file.write_text("and a file")
        machine.put(file, PurePosixPath("/run/file"))
    assert machine.run(["cat", "/run/file"]).stdout == "and a file"
