"""The whole life of both kernel tiers on real devices, in one virtual machine.

All devices are cut out of its flash disk by device-mapper, so that they can grow and fail.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import asyncssh
import pytest

from hotset.cachelayer import (
    bootunit,
    card,
    creation,
    devices,
    extents,
    flash,
    lifecycle,
    overlap,
    resizing,
    vm,
)
from hotset.cachelayer import lab as labs
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.card import Card, Disk
from hotset.cachelayer.choice import DatabaseKind, KernelKind
from hotset.cachelayer.creation import Wanted
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import device_size
from hotset.cachelayer.lab import LabSpec
from hotset.cachelayer.machine import EnvironmentLacksError, Machine
from hotset.cachelayer.machines import opened
from hotset.cachelayer.tier import MetadataDamagedError
from hotset.cachelayer.units import Blocks, Bytes
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
SPACE_MAP = 80
"""Where the superblock says which block has the index of its space map: ``bitmap_root`` of
``metadata_space_map_root`` (drivers/md/dm-cache-metadata.c, persistent-data/dm-space-map-common.h).
"""
MOUNT = PurePosixPath("/run/hotset/data")
KINDS: tuple[KernelKind, ...] = ("dm-cache", "bcache")
FLASH, ORIGIN, OTHER = "lab-flash", "lab-origin", "lab-other"
SIZES = {FLASH: 288, ORIGIN: 192, OTHER: 96}
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
        table = f"0 {length} linear {labs.VM_FLASH} {START[name] * 2048}"
        if target == "error":
            table = f"0 {length} error"
        if name in flash.standing(self.machine):
            flash.swap(self.machine, name, table)
        else:
            flash.make(self.machine, name, table)

    def create(self, kind: KernelKind, name: str = "oltp", origin: str = ORIGIN,
               database: DatabaseKind = "oltp", cache: int = 80) -> None:  # fmt: skip
        wanted = Wanted(name, by_id(FLASH), by_id(origin), kind, database, Bytes(cache * MIB),
                        Bytes(16 * MIB) if name == "oltp" else None)  # fmt: skip
        creation.create(self.machine, wanted, True, self.said.append)

    def found(self, name: str | None = None) -> tuple[Card, Disk]:
        return card.find(self.machine, name)

    def look(self, name: str | None = None) -> lifecycle.Standing:
        return lifecycle.look(self.machine, *self.found(name))

    def dirty(self, name: str | None = None) -> int:
        return int(card.tier_of(self.machine, name).counters().dirty)

    def mount(self, device: PurePosixPath, options: str = "rw") -> None:
        self.sh(f"mkdir -p {MOUNT}; mount -o {options} {device} {MOUNT}")

    def umount(self) -> None:
        self.sh(f"umount {MOUNT}")

    def sums(self, device: PurePosixPath | None = None) -> str:
        """Checksums of the mounted files and of what :meth:`soil` wrote, read from the device."""
        device = device or self.found("oltp")[1].device
        return self.sh(f"echo 1 > /proc/sys/vm/drop_caches; cd {MOUNT}; md5sum f*;"
                       f" dd if={device} bs=64k skip={BEHIND} count=96 iflag=direct status=none"
                       " | md5sum")  # fmt: skip

    def soil(self) -> None:
        """Make 6 MiB dirty behind the file system: dm-cache takes whole blocks at once."""
        disk = self.found("oltp")[1]
        device = disk.device
        if disk.kind == "dm-cache":
            # Else it is written back as soon as the disk is idle for a second.
            self.sh(f"dmsetup message {device.name} 0 migration_threshold 0")
        self.sh(f"dd if=/dev/urandom of={device} bs=64k seek={BEHIND} count=96 oflag=direct"
                " status=none")  # fmt: skip
        assert self.dirty("oltp") > 0

    def write(self, name: str, mib: int) -> None:
        self.sh(f"dd if=/dev/urandom of={MOUNT}/{name} bs=64k count={mib * 16} conv=fsync"
                " status=none")  # fmt: skip

    def crash(self) -> None:
        """Take every device of hotset's away behind its back, as a reboot does."""
        self.sh("for n in $(dmsetup ls | grep -o '^hotset-[a-z]*' | sort -u); do"
                " dmsetup remove $n 2>/dev/null || :; done;"
                " for b in /sys/block/dm-*/bcache/stop; do [ -e $b ] && echo 1 > $b; done;"
                " for s in /sys/fs/bcache/*-*/stop; do [ -e $s ] && echo 1 > $s; done; sleep 1;"
                " for n in $(dmsetup ls | grep -o '^hotset-[a-z-]*'); do"
                " dmsetup remove --retry $n; done")  # fmt: skip
        assert not [name for name in flash.standing(self.machine) if name.startswith("hotset-")]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    spec = LabSpec("vm", 2, Bytes(1024 * MIB), Bytes(800 * MIB))
    with own_lab(tmp_path_factory, spec) as lab:
        yield lab.machine


@pytest.fixture
def bench(machine: Machine) -> Iterator[Bench]:
    """Empty devices, and an origin with a file system that has data on it."""
    bench = Bench(machine, [])
    for name in SIZES:
        bench.cut(name)
    bench.sh(f"udevadm settle; for n in {FLASH} {OTHER}; do wipefs -aq /dev/mapper/$n; done;"
             f" mke2fs -q -F -t ext4 -E lazy_itable_init=0 /dev/mapper/{ORIGIN} 160M")  # fmt: skip
    bench.mount(by_id(ORIGIN))
    bench.write("f1", 12)
    bench.umount()
    yield bench
    bench.sh(f"umount -q {MOUNT} || :; rm -rf /etc/hotset")
    bench.crash()
    bench.sh(f"dmsetup remove --retry {FLASH}; dmsetup remove --retry {ORIGIN};"
             f" dmsetup remove --retry {OTHER}")  # fmt: skip


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
    assert card.standing(machine) == []

    bench.create(kind)
    device = bench.found()[1].device
    bench.mount(device)
    assert bench.sums() == before, "in place: the data are as they were"
    bench.write("f2", 8)
    bench.soil()
    with pytest.raises(lifecycle.TierRefusedError, match="mounted on"):
        lifecycle.detach(machine, *bench.found(), False, False, lambda _: None, print)
    now = bench.sums()
    assert bench.look().report.state == "active"

    # A second disk takes what is left of the same card.
    bench.create(kind, "dwh", OTHER, "warehouse", 80)
    assert {one.name for one in bench.found("dwh")[0].disks} == {"oltp", "dwh"}
    assert device_size(machine, bench.found("dwh")[1].device) == SIZES[OTHER] * MIB
    lifecycle.detach(machine, *bench.found("dwh"), False, False, lambda _: None, print)

    # A reboot: all devices go behind hotset's back, with dirty data on the flash.
    bench.umount()
    bench.crash()
    seen = bench.look()
    assert seen.report.state == "inactive"
    assert "may hold OLD data" in " ".join(seen.report.notes)
    lifecycle.activate(machine, *bench.found(), bench.said.append)
    bench.mount(device)
    assert bench.sums() == now

    # Flushed with the file system mounted and in use; goes on as before.
    was = bench.look().report.tunables
    left: list[Blocks] = []
    bench.soil()
    now = bench.sums()
    assert lifecycle.flush(machine, *bench.found(), left.append) > 0
    assert left[-1] == 0
    assert bench.look().report.tunables == was

    # The origin grows under the mounted file system.
    bench.cut(ORIGIN, SIZES[ORIGIN] + 32)
    resizing.resize(machine, *bench.found(), None, True, left.append, bench.said.append)
    assert device_size(machine, device) == (SIZES[ORIGIN] + 32) * MIB
    assert bench.sums() == now

    # The cache grows and shrinks.
    for mib in (120, 72):
        bench.soil()
        if mib == 72 or kind == "bcache":
            with pytest.raises(lifecycle.TierRefusedError, match="--flush"):
                resizing.resize(machine, *bench.found(), Bytes(mib * MIB), False, left.append,
                                 print)  # fmt: skip
        resizing.resize(machine, *bench.found(), Bytes(mib * MIB), True, left.append, print)
        assert bench.found()[1].spec.cache == mib * MIB
        tier = card.tier_of(machine, None)
        assert tier.counters().total.bytes(tier.spec.block) == mib * MIB
        assert bench.look().report.state == "active"
    assert bench.look().report.tunables == was
    now = bench.sums()
    bench.umount()

    # What hotset calls plain is plain.
    lifecycle.detach(machine, *bench.found(), False, False, left.append, bench.said.append)
    assert not [name for name in flash.standing(machine)
                if name.startswith("hotset-") and name != "hotset-volume"]  # fmt: skip
    bench.mount(by_id(ORIGIN))
    assert bench.sums(by_id(ORIGIN)) == now, "everything was written back"
    bench.umount()
    bench.sh(f"e2fsck -fn {by_id(ORIGIN)}")
    lifecycle.destroy(machine, card.standing(machine)[0], True, lambda _: left.append, print)
    assert card.standing(machine) == []
    assert not [name for name in flash.standing(machine) if name.startswith("hotset-")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_flash_lets_the_origin_go(bench: Bench, kind: KernelKind) -> None:
    machine = bench.machine
    bench.create(kind)
    bench.mount(bench.found()[1].device)
    bench.write("f2", 4)
    bench.umount()
    bench.soil()
    with pytest.raises(lifecycle.TierRefusedError, match="the flash answers"):
        lifecycle.detach(machine, *bench.found(), True, False, lambda _: None, print)
    bench.cut(FLASH, target="error")
    # The kernel notices when it is asked for something.
    bench.sh(f"dd if={bench.found()[1].device} of=/dev/null bs=64k count=400 iflag=direct"
             " status=none || :")  # fmt: skip
    seen = bench.look()
    assert seen.report.state == "failed"
    assert "--flash-is-dead" in " ".join(seen.report.notes)
    with pytest.raises(lifecycle.TierRefusedError, match="--flash-is-dead detaches without"):
        lifecycle.detach(machine, *bench.found(), False, False, lambda _: None, print)
    lifecycle.detach(machine, *bench.found(), True, False, lambda _: None, bench.said.append)
    assert "LOST: " in " ".join(bench.said)
    bench.sh(f"e2fsck -fy {by_id(ORIGIN)} || [ $? -lt 4 ]")
    bench.mount(by_id(ORIGIN))
    bench.sh(f"test -s {MOUNT}/f1")


def test_damaged_metadata_of_dm_cache(bench: Bench) -> None:
    machine = bench.machine
    bench.create("dm-cache")
    bench.mount(bench.found()[1].device)
    bench.write("f2", 8)
    bench.soil()
    now = bench.sums()
    bench.umount()
    lifecycle.deactivate(machine, *bench.found(), print)
    at = bench.found()[1].metadata[0].start

    def spoil(offset: int, count: int) -> None:
        bench.sh(f"dd if=/dev/zero of=/dev/mapper/{FLASH} bs=4096 oflag=direct conv=notrunc"
                 f" seek={at // 4096 + offset} count={count} status=none")  # fmt: skip

    # The superblock alone is gone: dm-cache itself would format an empty cache over it.
    saved = bench.sh(f"dd if=/dev/mapper/{FLASH} bs=4096 skip={at // 4096} count=1 status=none"
                     " iflag=direct | od -An -v -tx1 | tr -d ' \\n'")  # fmt: skip
    assert len(saved) == 8192
    spoil(0, 1)
    with pytest.raises(MetadataDamagedError, match=r"cache_check .*OLD data.*tier repair oltp"):
        lifecycle.activate(machine, *bench.found(), print)
    with pytest.raises(lifecycle.TierRefusedError, match=r"cache_repair .*not known.*--yes"):
        lifecycle.repair(machine, *bench.found(), print)
    assert not [name for name in flash.standing(machine) if name.startswith("hotset-oltp")]

    # A superblock that came back from a copy, the index of its space map gone: that can be mended,
    # and every write that was only on the flash is found again.
    escaped = "".join(f"\\{int(saved[i : i + 2], 16):03o}" for i in range(0, len(saved), 2))
    bench.sh(f"printf '{escaped}' > /run/super; dd if=/run/super of=/dev/mapper/{FLASH} bs=4096"
             f" seek={at // 4096} oflag=direct conv=notrunc status=none")  # fmt: skip
    spoil(int.from_bytes(bytes.fromhex(saved)[SPACE_MAP : SPACE_MAP + 8], "little"), 1)
    with pytest.raises(MetadataDamagedError, match="cache_check"):
        lifecycle.activate(machine, *bench.found(), print)
    lifecycle.repair(machine, *bench.found(), bench.said.append)
    assert "blocks are cached again" in " ".join(bench.said)
    bench.mount(bench.found()[1].device)
    assert bench.sums() == now
    bench.umount()
    lifecycle.flush(machine, *bench.found(), lambda _: None)
    lifecycle.deactivate(machine, *bench.found(), print)
    assert bench.found()[1].clean
    spoil(0, 4)
    # Clean before it was damaged: nothing is lost, the cache begins empty.
    lifecycle.repair(machine, *bench.found(), bench.said.append)
    assert "nothing is lost" in " ".join(bench.said)
    bench.mount(bench.found()[1].device)
    assert bench.sums() == now
    bench.umount()


def test_what_bcache_has_cached(bench: Bench) -> None:
    machine = bench.machine
    bench.create("bcache", database="warehouse")
    device = bench.found()[1].device
    tier = card.tier_of(machine, None)
    assert isinstance(tier, Bcache)
    bench.mount(device)
    bench.sh(f"dd if={MOUNT}/f1 of=/dev/null bs=64k iflag=direct status=none")
    bypassed = tier.resident()
    # The cut-off of a warehouse lets a scan of 12 MiB go past after its first 4 MiB.
    assert extents.count(bypassed).bytes(tier.spec.block) < 8 * MIB
    found = extents.of_files(machine, [f"{MOUNT}/f1"])
    runs = extents.to_runs(found, tier.spec.block, device_size(machine, device))
    bench.umount()
    tier.warm(runs, 0, lambda _: None)
    kept = {at for run in tier.resident() for at in range(run.start, run.start + run.count)}
    wanted = {at for run in runs for at in range(run.start, run.start + run.count)}
    assert len(wanted & kept) >= 0.99 * len(wanted)
    assert dict(tier.report().tunables)["sequential_cutoff"] == "4.0M"
    assert tier.contents().dirty == []
    tier.kernel.set(("cache_mode", "writeback"), ("writeback_running", 0))
    bench.sh(f"dd if=/dev/urandom of={device} bs=64k seek=2400 count=4 oflag=direct status=none")
    held = tier.contents()
    assert held.dirty is not None
    assert overlap.common(held.cached, held.dirty) == held.dirty
    dirty = extents.to_runs(held.dirty, tier.spec.block, device_size(machine, device))
    assert dirty == [Run(Blocks(2400 * 16), Blocks(64))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_unit_is_the_very_commands(bench: Bench, kind: KernelKind) -> None:
    machine = bench.machine
    bench.create(kind)
    bench.mount(bench.found()[1].device)
    bench.write("f2", 4)
    bench.soil()
    now = bench.sums()
    bench.umount()
    path = bootunit.install(machine, *bench.found())
    lines = bench.sh(f"cat {path}").splitlines()
    starts = [line.removeprefix("ExecStart=").lstrip("-").replace("$$", "$") for line in lines
              if line.startswith("ExecStart=")]  # fmt: skip
    bench.crash()
    for line in starts:
        bench.sh(line)
    assert bench.look().report.state == "active"
    bench.mount(bench.found()[1].device)
    assert bench.sums() == now
    bench.umount()
    bootunit.remove(machine, bench.found()[1])
    bench.sh(f"! test -e {path}")


def test_ssh_checks_the_host_key(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hotset.cachelayer import image

    assert isinstance(machine, vm.Vm)
    built = image.cached()
    assert built is not None
    host, port = machine.address(vm.SSH_PORT)
    name, known = f"ssh://root@{host}:{port}", tmp_path / "known_hosts"
    monkeypatch.setenv("HOTSET_KNOWN_HOSTS", str(known))
    monkeypatch.setenv("HOTSET_SSH_KEY", str(built.client_key))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(EnvironmentLacksError, match=r"host key is not in .*`ssh -p"), opened(name):
        pass
    known.write_text(f"[{host}]:{port} {built.host_key}\n")
    with opened(name) as there:
        assert there.kind == "ssh"
        assert there.run(["uname", "-r"]).stdout == machine.run(["uname", "-r"]).stdout
        assert there.address(5432) == (host, 5432)
        begun = time.monotonic()
        assert card.standing(there) == []
        assert time.monotonic() - begun < 10
    other = tmp_path / "other"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(other))
    monkeypatch.setenv("HOTSET_SSH_KEY", str(other))
    with (
        pytest.raises(EnvironmentLacksError, match=r"login was refused.*HOTSET_SSH_KEY"),
        opened(name),
    ):
        pass
