"""The cache in user space on this computer's kernel: the life of flash and disks, on files."""

from __future__ import annotations

import json
import os
import random
import re
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import programs
from hotset.block.devices import DeviceRefusedError
from hotset.block.extents import Run, count, intersection
from hotset.block.programs import InUseError
from hotset.core import clock
from hotset.core.errors import HotsetError
from hotset.core.machines import locks
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.disk import adopt, flash_devices, lifecycle, resize
from hotset.disk import create as creation
from hotset.disk import repair as repairing
from hotset.disk import settings as retune
from hotset.disk.boot import program, systemd_unit
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import FlashError
from hotset.disk.lifecycle import DiskState, OriginChangedError, TierRefusedError
from hotset.hitratio import region_counters
from hotset.tier.base import MetadataDamagedError, TierFailedError, WriteMode
from hotset.tier.engine import control as engine
from hotset.tier.engine.tier import EngineRefusedError, Userspace
from hotset.warmup.fill import fill
from tests.support.marks import needs_root

from ..enclosed import Enclosed, enclosed
from ..engines import never_clean

pytestmark = [pytest.mark.lab, needs_root]
MIB = 1024**2
BLOCK = 64 * 1024


@dataclass
class Site:
    """A machine with a flash of 256 MiB and origins of 128 MiB; ``said`` is what verbs had to say
    that change a tier."""

    machine: Enclosed
    folder: Path
    said: list[str] = field(default_factory=list)

    @property
    def flash(self) -> PurePosixPath:
        return PurePosixPath(self.folder / "flash")

    def origin(self, name: str) -> PurePosixPath:
        path = self.folder / f"{name}.origin"
        if not path.exists():
            with path.open("wb") as file:
                file.truncate(128 * MIB)
            self.machine.run(["mke2fs", "-q", "-F", "-t", "ext4", str(path)])
        return PurePosixPath(path)

    def wanted(self, name: str, cache: int = 32, volume: int | None = 16) -> CreateRequest:
        size = None if volume is None else Bytes(volume * MIB)
        origin = self.origin(name)
        return CreateRequest(
            name, self.flash, origin, "userspace", "oltp", Bytes(cache * MIB), size
        )

    def create(self, name: str, cache: int = 32, volume: int | None = 16) -> None:
        creation.create(self.machine, self.wanted(name, cache, volume), False, print)

    def tier(self, name: str) -> Userspace:
        tier = flash_devices.find(self.machine, name).tier
        assert isinstance(tier, Userspace)
        return tier

    def inspect(self, name: str) -> DiskState:
        return lifecycle.inspect(flash_devices.find(self.machine, name))

    def activate(self, name: str) -> None:
        lifecycle.activate(flash_devices.find(self.machine, name), print)

    def deactivate(self, name: str) -> None:
        lifecycle.deactivate(flash_devices.find(self.machine, name), print)

    def flush(self, name: str) -> int:
        return lifecycle.flush(flash_devices.find(self.machine, name), lambda _: None)

    def detach(self, name: str, dead: bool = False, yes: bool = False) -> None:
        found = flash_devices.find(self.machine, name)
        lifecycle.detach(found, dead, yes, lambda _: None, print)

    def destroy(self) -> None:
        flash = flash_devices.inventory(self.machine).flash_devices[0]
        lifecycle.destroy(self.machine, flash, True, lambda _: lambda _: None, print)

    def resize(self, name: str, cache: int | None) -> None:
        size = None if cache is None else Bytes(cache * MIB)
        found = flash_devices.find(self.machine, name)
        resize.resize(found, size, False, lambda _: None, self.said.append)

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script]).stdout.strip()

    def mount(self, device: PurePosixPath) -> Path:
        folder = self.folder / "mounted"
        folder.mkdir(exist_ok=True)
        self.sh(f"mount {device} {folder}")
        return folder

    def unmount(self) -> None:
        self.sh(f"umount {self.folder / 'mounted'}")

    def file(self, name: str) -> str:
        """A file on what is mounted, durable; returns its checksum."""
        folder = self.folder / "mounted"
        self.sh(f"head -c 3000000 /dev/urandom > {folder}/{name}; sync -f {folder}")
        return self.sums(name)[0]

    def shops_file(self) -> list[str]:
        """A file on the disk `shop`, durable; returns its checksum."""
        self.mount(PurePosixPath("/dev/hotset/shop"))
        sums = [self.file("data")]
        self.unmount()
        return sums

    def require(self, sums: list[str], *names: str) -> None:
        """See that files on the disk `shop` are as they were."""
        self.mount(PurePosixPath("/dev/hotset/shop"))
        assert self.sums(*(names or ("data",))) == sums
        self.unmount()

    def sums(self, *names: str) -> list[str]:
        self.sh("echo 3 > /proc/sys/vm/drop_caches || true")
        folder = self.folder / "mounted"
        return [self.sh(f"md5sum < {folder}/{name}") for name in names]

    def retune(self, name: str, policy: str | None, mode: WriteMode | None) -> None:
        found = flash_devices.find(self.machine, name)
        retune.retune(found, policy, mode, lambda _: None, self.said.append)

    def engines(self, name: str) -> list[str]:
        """Processes; other tests have engines of this name at the same time, in namespaces of
        their own."""
        mine = self.sh("readlink /proc/self/ns/mnt")
        running = f"pgrep --full -- '[-]-control /run/hotset/engine/{name}' || :"
        there = "readlink /proc/%s/ns/mnt || :"
        return [pid for pid in self.sh(running).split() if self.sh(there % pid) == mine]

    def engine_pid(self, name: str) -> int:
        return int(self.sh(f"cat /run/hotset/engine/{name}/pid"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with (tmp_path / "flash").open("wb") as file:
        file.truncate(256 * MIB)
    with enclosed() as machine:
        there = Site(machine, tmp_path)
        try:
            yield there
        finally:
            machine.run(["umount", "-l", str(tmp_path / "mounted")], check=False)
            for one in flash_devices.list_disks(machine):
                one.tier.discard()
            for flash in flash_devices.list_all(machine):
                flash_devices.remove_volume(machine, flash)
            files = machine.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"])
            assert str(tmp_path) not in files.stdout


@pytest.fixture
def never_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines that write nothing back of their own accord, which one that is idle does soon."""
    never_clean(monkeypatch)


def test_a_disk_is_created_used_and_given_back(site: Site) -> None:
    origin = site.origin("shop")
    site.mount(origin)
    sums = [site.file("before")]
    site.unmount()

    site.create("shop")
    one = site.inspect("shop")
    assert (one.report.state, str(one.disk.device)) == ("active", "/dev/hotset/shop")
    assert site.sh("blockdev --getsize64 /dev/hotset/volume") == str(16 * MIB)
    site.sh("mke2fs -q -F /dev/hotset/volume; wipefs --all /dev/hotset/volume")

    site.mount(one.disk.device)
    with pytest.raises(InUseError, match="is mounted on"):
        site.deactivate("shop")
    sums.append(site.file("after"))
    site.unmount()
    site.deactivate("shop")
    assert site.inspect("shop").report.state == "inactive"
    site.activate("shop")
    site.mount(one.disk.device)
    assert site.sums("before", "after") == sums
    site.unmount()
    site.flush("shop")
    assert site.tier("shop").counters().dirty == 0

    site.detach("shop")
    site.mount(origin)
    assert site.sums("before", "after") == sums
    site.unmount()
    site.destroy()
    for folder in ("/dev/hotset", "/etc/hotset/flash", "/etc/hotset/engine"):
        assert site.sh(f"ls {folder}") == ""


def test_the_engine_answers_as_recorded_of_its_version(site: Site) -> None:
    """What reads the answers is tested with the recorded ones (tier/test_engine_versions.py)."""
    site.create("shop")
    tier = site.tier("shop")
    file = Path(__file__).parents[1] / f"data/engine-{engine.PROTOCOL}.jsonl"
    for one in map(json.loads, file.read_text().splitlines()):
        (verb,) = one["request"]
        if verb in ("counters", "resident", "regions", "shares", "shared") and (
            "error" not in one["replies"][-1]
        ):
            said = engine.ask(tier.machine, tier.control, one["request"])[-1]
            assert set(said) == set(one["replies"][-1])


@pytest.mark.usefixtures("never_cleaned")
def test_the_engine_counts_and_is_warmed_up_while_the_disk_is_in_use(site: Site) -> None:
    site.create("shop")
    tier, disk = site.tier("shop"), site.inspect("shop").disk
    folder = site.mount(disk.device)
    site.file("data")
    warmed = fill(tier, [Run(Blocks(0), Blocks(400))], 10, lambda _: None, Bytes(64 * MIB))
    assert count(tier.resident()) >= 400
    assert warmed.seconds > 0.2  # it was held back
    before = tier.counters()
    site.sh(f"for i in 1 2 3; do dd if={folder}/data of=/dev/null bs=8k iflag=direct; done")
    after = tier.counters()
    assert after.read_hits - before.read_hits >= 3 * 3_000_000 // 8192
    reading = region_counters.find_counters(tier, disk.name).read()
    hits = sum(tally.read_hits or 0 for tally in reading.tallies.values())
    assert hits == tier.counters().read_hits
    assert {run for runs in tier.by_level().values() for run in runs}
    dirty = tier.contents().dirty
    assert dirty
    assert sum(one.length for one in dirty) == int(tier.counters().dirty) * 64 * 1024
    site.unmount()
    # With nobody on it, what was fetched is compared with the origin.
    site.flush("shop")
    warmed = fill(tier, [Run(Blocks(0), Blocks(100))], 10, lambda _: None)
    assert warmed.sampled_blocks >= 10
    assert warmed.differing_blocks == 0


def test_sizes_policy_and_mode_change_while_it_is_mounted(site: Site) -> None:
    origin = site.origin("shop")
    site.create("shop")
    site.mount(PurePosixPath("/dev/hotset/shop"))
    sums = [site.file("first")]
    tier = site.tier("shop")
    fill(tier, [Run(Blocks(0), Blocks(200))], 0, lambda _: None)
    site.resize("shop", 64)
    assert any("of memory, which is not swapped out" in one for one in site.said)
    anew = (
        "/dev/hotset/shop: its hit counters restarted; hit ratios are of what is requested from"
        " now on"
    )
    assert site.said[-1] == anew
    assert (site.tier("shop").counters().total, count(tier.resident()) >= 200) == (1024, True)
    sums.append(site.file("second"))
    site.resize("shop", 16)
    assert site.tier("shop").counters().total == 256
    site.sums("first", "second")
    site.said.clear()
    site.retune("shop", "s3-fifo", "writethrough")
    assert site.said[-1] == anew
    tunables = {"mode": "writethrough", "policy": "s3-fifo", "engine": "serving"}
    shown = dict(site.inspect("shop").report.tunables)
    assert shown.pop("served by").startswith("FUSE and a loop device (")
    assert shown == tunables
    with pytest.raises(FlashError, match="s3-fifo or arc"):
        site.retune("shop", "best", None)
    os.truncate(origin, 160 * MIB)
    site.resize("shop", None)
    assert site.sh("blockdev --getsize64 /dev/hotset/shop") == str(160 * MIB)
    site.retune("shop", None, "writeback")
    sums.append(site.file("third"))
    assert site.sums("first", "second", "third") == sums
    site.unmount()
    site.deactivate("shop")
    site.activate("shop")
    assert dict(site.inspect("shop").report.tunables)["policy"] == "s3-fifo"
    site.require(sums, "first", "second", "third")


def test_a_resize_that_was_cut_short_is_done_by_the_next_activation(site: Site) -> None:
    site.create("shop")
    sums = site.shops_file()
    site.deactivate("shop")
    # As its label is while a cache grows: with the flash of the larger one.
    found = flash_devices.find(site.machine, "shop")
    flash, disk = found.flash, found.disk
    size = Bytes(48 * MIB)
    more = flash_devices.take(flash.free(), Bytes(16 * MIB), "more")
    spec = replace(disk.spec, cache=size)
    flash = flash_devices.save(
        site.machine, flash.with_disk(replace(disk, spec=spec, cache=(*disk.cache, *more)))
    )
    site.activate("shop")
    assert site.tier("shop").counters().total == 768
    site.require(sums)


def test_an_engine_that_is_killed_under_load_loses_nothing_that_was_synced(site: Site) -> None:
    site.create("shop")
    folder = site.mount(PurePosixPath("/dev/hotset/shop"))
    site.file("data")
    fill(site.tier("shop"), [Run(Blocks(0), Blocks(300))], 0, lambda _: None)
    load = (
        "n=0; while :; do n=$((n + 1));"
        f" echo $n | dd of={folder}/n conv=fsync status=none || exit 0; echo $n; done"
    )
    with site.machine.stream(["sh", "-c", load]) as lines:
        said: list[int] = []
        for line in lines:
            said.append(int(line))
            if len(said) == 40:
                os.kill(site.engine_pid("shop"), 9)
        # The load ended by itself: it saw errors.
    assert len(said) >= 40
    wait_until(lambda: site.inspect("shop").report.state == "active")
    # It is as warm as it was.
    assert count(site.tier("shop").resident()) >= 300
    # Whoever still has the old device sees errors for ever, never old data.
    direct = site.machine.run(
        ["sh", "-c", f"dd if={folder}/data of=/dev/null bs=64k iflag=direct"], check=False
    )
    assert direct.rc != 0
    site.unmount()
    folder = site.mount(PurePosixPath("/dev/hotset/shop"))
    assert int(site.sh(f"cat {folder}/n")) in (said[-1], said[-1] + 1)
    site.unmount()
    assert "started again" in site.sh("cat /run/hotset/engine/shop/log")
    assert site.machine.run(["e2fsck", "-fn", "/dev/hotset/shop"], check=False).rc == 0


def test_an_engine_that_was_killed_is_said_to_be_restarting(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.create("shop")
    site.mount(PurePosixPath("/dev/hotset/shop"))
    sums = [site.file("data")]
    os.kill(site.engine_pid("shop"), 9)
    seen = list[DiskState]()

    def is_back() -> bool:
        seen.append(site.inspect("shop"))
        return seen[-1].report.state == "active" and len(seen) > 1

    wait_until(is_back)
    states = [one.report.state for one in seen]
    assert "restarting" in states
    assert "inactive" not in states
    for one in seen:
        if one.report.state == "restarting":
            ended, old = one.report.notes
            assert re.match(r"its cache engine ended [0-9]+ s ago and is being restarted", ended)
            assert "OLD data" in old
    site.unmount()
    site.require(sums)
    # Whoever takes the disk down meanwhile is obeyed.
    os.kill(site.engine_pid("shop"), 9)
    wait_until(lambda: site.inspect("shop").report.state == "restarting")
    capsys.readouterr()
    site.deactivate("shop")
    said = capsys.readouterr().out
    assert "nothing changed" not in said
    assert "OLD data" in said
    time.sleep(2)
    assert site.inspect("shop").report.state == "inactive"
    assert site.sh("ls /run/hotset/engine/shop/pid 2> /dev/null || :") == ""
    # Whoever activates it meanwhile gets one engine, not two.
    site.activate("shop")
    os.kill(site.engine_pid("shop"), 9)
    wait_until(lambda: site.inspect("shop").report.state == "restarting")
    site.activate("shop")
    time.sleep(2)
    assert site.inspect("shop").report.state == "active"
    assert len(site.engines("shop")) == 1
    site.require(sums)


def test_after_a_kill_under_load_what_was_cached_hits_within_a_minute(site: Site) -> None:
    """Nobody does anything for it: no snapshot, no warm-up."""
    site.create("shop")
    folder = site.mount(PurePosixPath("/dev/hotset/shop"))
    site.sh(f"head -c {16 * MIB} /dev/urandom > {folder}/table; sync -f {folder}")
    fill(site.tier("shop"), [Run(Blocks(0), Blocks(32 * MIB // BLOCK))], 0, lambda _: None)

    def hit_ratio() -> float:
        before = site.tier("shop").counters()
        site.sh(f"dd if={folder}/table bs=8k iflag=direct of=/dev/null status=none")
        after = site.tier("shop").counters()
        hits = after.read_hits - before.read_hits
        return hits / (hits + after.read_misses - before.read_misses)

    site.sh(f"dd if={folder}/table bs=64k iflag=direct of=/dev/null status=none")
    assert hit_ratio() > 0.99
    load = f"while dd if={folder}/table bs=8k iflag=direct of=/dev/null status=none; do :; done"
    with site.machine.stream(["sh", "-c", f"{load} 2> /dev/null; echo ended"]) as lines:
        time.sleep(0.5)
        os.kill(site.engine_pid("shop"), 9)
        killed = time.monotonic()
        assert list(lines) == ["ended"], "whoever read saw an error"
    wait_until(lambda: site.inspect("shop").report.state == "active")
    site.unmount()
    site.mount(PurePosixPath("/dev/hotset/shop"))
    ratio, took = hit_ratio(), time.monotonic() - killed
    print(f"{ratio:.1%} hits {took:.1f} s after the kill")
    assert ratio > 0.99
    assert took < 60
    site.unmount()


def test_partitions_of_an_origin_go_with_its_disk(site: Site) -> None:
    """A kernel that knows the table shows them by itself, to any other partx does."""
    origin = site.folder / "parts.origin"
    entry = struct.pack("<8B2I", 0, 0, 0, 0, 0x83, 0, 0, 0, 2048, 65536)
    origin.write_bytes(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    os.truncate(origin, 128 * MIB)
    wanted = replace(site.wanted("parts"), origin=PurePosixPath(origin))
    with pytest.raises(DeviceRefusedError, match="name the partition"):
        creation.create(site.machine, wanted, False, print)
    creation.create(site.machine, wanted, True, site.said.append)
    assert [one for one in site.said if "mount its partitions from /dev/hotset/parts" in one]
    loop = site.sh("readlink -f /dev/hotset/parts; partx --update /dev/hotset/parts")
    shown = f"ls -d /sys/block/{PurePosixPath(loop).name}/loop*p1 || :"
    assert site.sh(shown)
    site.deactivate("parts")
    assert not site.sh(shown)


def test_the_boot_program_does_what_activate_and_deactivate_do(site: Site) -> None:
    site.create("shop")
    sums = site.shops_file()
    found = flash_devices.find(site.machine, "shop")
    flash, disk = found.flash, found.disk
    start, stop = (program.command(found, one) for one in ("start", "stop"))
    site.machine.run(stop)
    assert site.inspect("shop").report.state == "inactive"
    # As after a reboot: no devices, nothing in /run.
    site.sh("losetup --detach $(readlink -f /dev/hotset/volume); rm -rf /dev/hotset/*")
    site.sh("rm -rf /run/hotset/engine")
    site.machine.run(start)
    site.machine.run(start)
    with locks.held(site.machine, "test", "shop"):
        pass  # nor does the engine have the script's lock
    assert site.inspect("shop").report.state == "active"
    assert site.sh("blockdev --getsize64 /dev/hotset/volume") == str(16 * MIB)
    site.require(sums)
    site.machine.run(stop)
    site.activate("shop")
    # Somebody writes to the origin, and the flash may hold what it lacks.
    site.machine.run(stop)
    site.mount(site.origin("shop"))
    site.unmount()
    refused = site.machine.run(start, check=False)
    assert (refused.rc, "was written to" in refused.stderr) == (4, True)
    # It has a unit that systemd takes.
    unit = systemd_unit.text(disk, flash, remote=False, called="/bin/true")
    assert f'RequiresMountsFor="{site.flash}" "{disk.origin}"' in unit


def test_a_path_may_hold_what_a_shell_or_systemd_would_read(site: Site) -> None:
    odd = Site(site.machine, site.folder / "100% $HOME `id` 'of' it")
    odd.folder.mkdir()
    with (odd.folder / "flash").open("wb") as file:
        file.truncate(256 * MIB)
    odd.create("odd")
    found = flash_devices.find(site.machine, "odd")
    flash, disk = found.flash, found.disk
    start, stop = (program.command(found, one) for one in ("start", "stop"))
    site.machine.run(stop)
    assert lifecycle.word_left_by(found) == "dirty"
    site.machine.run(start)
    assert lifecycle.word_left_by(found) == "active"
    assert site.inspect("odd").report.state == "active"
    unit = site.folder / "hotset-tier-odd.service"
    unit.write_text(systemd_unit.text(disk, flash, remote=False, called="/bin/true"))
    verified = Local().run(["systemd-analyze", "verify", str(unit)], check=False)
    assert (verified.rc, verified.stderr) == (0, "")


def killed_with_its_supervisor(site: Site) -> None:
    """As where a container ends, with the device still there."""
    engine = site.engine_pid("shop")
    os.kill(int(site.sh(f"cut -d' ' -f4 /proc/{engine}/stat")), 9)
    os.kill(engine, 9)
    report = site.inspect("shop").report
    assert (report.state, "no tier answers" in report.notes[0]) == ("failed", True)


@pytest.mark.usefixtures("never_cleaned")
@pytest.mark.parametrize("taken_down", [False, True])
def test_what_was_written_past_an_engine_that_had_ended_is_not_overwritten(
    site: Site, taken_down: bool
) -> None:
    site.create("shop")
    site.sh("dd if=/dev/urandom of=/dev/hotset/shop bs=64k count=1 seek=1900 oflag=direct")
    killed_with_its_supervisor(site)
    site.sh(f"dd if=/dev/urandom of={site.origin('shop')} bs=64k count=1 seek=1900 conv=notrunc")
    if taken_down:
        site.deactivate("shop")
    with pytest.raises(OriginChangedError, match="by other hands"):
        site.activate("shop")
    with pytest.raises(OriginChangedError, match="by other hands"):
        site.detach("shop")
    with pytest.raises(TierRefusedError, match="is not active"):
        site.resize("shop", 48)
    site.detach("shop", dead=True, yes=True)


def test_an_engine_that_was_killed_with_its_supervisor_is_started_by_activate(site: Site) -> None:
    site.create("shop")
    sums = site.shops_file()
    killed_with_its_supervisor(site)
    lifecycle.activate(flash_devices.find(site.machine, "shop"), print, flash_counts=True)
    assert site.inspect("shop").report.state == "active"
    site.require(sums)
    # Nor does it keep a disk from being taken down.
    killed_with_its_supervisor(site)
    site.deactivate("shop")
    assert site.inspect("shop").report.state == "inactive"


@pytest.mark.parametrize("rounds", [2, pytest.param(8, marks=pytest.mark.night)])
def test_a_resize_that_is_killed_anywhere_ends_with_the_next_activation(
    site: Site, rounds: int
) -> None:
    site.create("shop", cache=16)
    sums = site.shops_file()
    fill(site.tier("shop"), [Run(Blocks(0), Blocks(200))], 0, lambda _: None)
    dice = random.Random(7)
    killed = 0
    begun = time.monotonic()
    site.resize("shop", 48)
    took = time.monotonic() - begun
    for number in range(rounds):
        size = (16, 48)[number % 2]
        # Dirty, so that there is something to be flushed and to be lost.
        text = f"{number:08}" * 8192
        site.machine.run(
            ["dd", "of=/dev/hotset/shop", "bs=64k", "seek=1999", "iflag=fullblock", "oflag=direct"],
            stdin=text,
        )
        pid = site.engine_pid("shop")
        killer = threading.Timer(dice.uniform(0.2, 0.9) * took, os.kill, (pid, 9))
        killer.start()
        try:
            site.resize("shop", size)
        except (HotsetError, ValueError):
            killed += 1
        killer.join()
        # It is started again, where it can be.
        wait_until(lambda: site.inspect("shop").report.state != "restarting")
        try:
            site.activate("shop")
        except lifecycle.OriginChangedError:
            # Nobody watches over it any more, so nobody knows; here nothing was written since.
            lifecycle.keep_flash(flash_devices.find(site.machine, "shop"))
            site.activate("shop")
        tier = site.tier("shop")
        assert int(tier.counters().total) * BLOCK == int(tier.spec.cache)
        last = site.sh("dd if=/dev/hotset/shop bs=64k skip=1999 count=1 iflag=direct | head -c 8")
        assert last == f"{number:08}"
    print(f"{killed} of {rounds} were cut short")
    site.require(sums)


def test_a_flash_device_is_known_again_by_its_label(site: Site) -> None:
    site.create("shop")
    sums = site.shops_file()
    site.deactivate("shop")
    # The root disk is lost.
    site.sh("rm -rf /etc/hotset/* /dev/hotset/shop")
    assert flash_devices.list_disks(site.machine) == []
    adopt.adopt(site.machine, site.flash, False, print)
    site.activate("shop")
    site.require(sums)


def test_disks_share_a_flash_device_and_no_part_of_it_has_two_engines(site: Site) -> None:
    site.create("one")
    site.create("two", volume=None)
    for name in ("one", "two"):
        site.sh(f"dd if=/dev/urandom of=/dev/hotset/{name} bs=64k count=64 oflag=direct")
    sums = [site.sh(f"head -c 4M /dev/hotset/{name} | md5sum") for name in ("one", "two")]
    tier = site.tier("one")
    words = ["tier", *json.loads(tier.perform("cache-options")), "--policy", tier.spec.policy]
    other = str(site.folder / "other")
    where = ("--mode", tier.spec.mode, "--mount", other, "--control", f"{other}.control")
    argv = [programs.engine(site.machine), *words, *where]
    site.sh(f"mkdir {other}")
    done = site.machine.run(argv, check=False)
    assert done.rc == 2
    assert "in use by another process" in done.stderr
    # Another origin, the same parts of the flash.
    argv[argv.index("--origin") + 1] = str(site.origin("three"))
    done = site.machine.run(argv, check=False)
    assert (done.rc, "in use by another process" in done.stderr) == (2, True)
    site.deactivate("one")
    assert [site.sh(f"head -c 4M /dev/hotset/{name} | md5sum") for name in ("two",)] == sums[1:]
    site.activate("one")
    assert site.sh("head -c 4M /dev/hotset/one | md5sum") == sums[0]
    flash = flash_devices.inventory(site.machine).flash_devices[0]
    with pytest.raises(TierRefusedError, match="several disks"):
        lifecycle.destroy(site.machine, flash, False, lambda _: lambda _: None, print)
    site.destroy()


def test_a_flash_that_is_gone_gives_the_origin_back(site: Site) -> None:
    site.create("shop", volume=0)
    site.sh("dd if=/dev/urandom of=/dev/hotset/shop bs=64k count=8 seek=200 oflag=direct")
    site.deactivate("shop")
    (site.folder / "flash").rename(site.folder / "pulled")
    assert site.inspect("shop").report.state == "failed"
    with pytest.raises(TierRefusedError, match="gone or does not answer"):
        site.detach("shop")
    site.detach("shop", dead=True)
    assert flash_devices.list_disks(site.machine) == []
    site.mount(site.origin("shop"))
    site.unmount()


@pytest.mark.usefixtures("never_cleaned")
def test_an_origin_that_was_written_to_meanwhile_is_not_overwritten(site: Site) -> None:
    site.create("shop")
    fill(site.tier("shop"), [Run(Blocks(200), Blocks(8))], 0, lambda _: None)
    site.sh("dd if=/dev/urandom of=/dev/hotset/shop bs=64k count=8 seek=200 oflag=direct")
    site.deactivate("shop")
    folder = site.mount(site.origin("shop"))
    site.sh(f"echo mine > {folder}/mine")
    site.unmount()
    with pytest.raises(lifecycle.OriginChangedError, match="was written to"):
        site.activate("shop")


@pytest.mark.parametrize("by", ["hotset", "the boot"])
def test_what_a_cache_held_that_begins_empty_is_fetched_again_and_is_not_old(
    site: Site, by: str
) -> None:
    machine = site.machine
    site.create("shop")
    site.retune("shop", None, "writethrough")
    fill(site.tier("shop"), [Run(Blocks(200), Blocks(80))], 0, lambda _: None)
    site.deactivate("shop")
    with Path(site.origin("shop")).open("r+b") as file:
        file.seek(210 * BLOCK)
        file.write(os.urandom(4 * BLOCK))
    said = list[str]()
    if by == "hotset":
        lifecycle.activate(flash_devices.find(machine, "shop"), said.append)
    else:
        start = program.command(flash_devices.find(machine, "shop"), "start")
        said += machine.run(start).stdout.splitlines()
    assert any("begins empty" in one for one in said)
    assert any(re.search(r"\d\d+ blocks .* fetched again", one) for one in said), said

    def is_fetched() -> bool:
        fetched = dict(site.inspect("shop").report.tunables).get("fetched again", "")
        return re.fullmatch(r"(\d+) of \1 blocks", fetched) is not None

    wait_until(is_fetched)
    tier = site.tier("shop")
    assert count(intersection(tier.resident(), [Run(Blocks(200), Blocks(80))])) == 80
    before = tier.counters().read_hits
    part = f"bs={BLOCK} skip=200 count=80"
    there = site.sh(f"dd if=/dev/hotset/shop {part} iflag=direct status=none | md5sum")
    assert tier.counters().read_hits > before
    assert there == site.sh(f"dd if={site.origin('shop')} {part} status=none | md5sum")
    assert site.sh("ls /etc/hotset/engine") == "shop.sh"


def test_what_cannot_be_is_refused_by_name(site: Site) -> None:
    with pytest.raises(FlashError, match="does not fit"):
        site.create("shop", cache=512)
    # From no room for the label to a MiB less than what is asked for.
    for mib, words in (
        (0, "name a larger"),
        (1, "name a larger"),
        (15, "make the cache at most 9"),
    ):
        (site.folder / "flash").write_bytes(b"\0" * mib * MIB)
        with pytest.raises(FlashError, match=rf"does not fit .*flash \(.*needs 16 MiB.*{words}"):
            site.create("shop", cache=10, volume=0)
    assert flash_devices.list_disks(site.machine) == []
    with pytest.raises(DeviceRefusedError, match="is a file"):
        creation.create(site.machine, replace(site.wanted("x"), kind="dm-cache"), False, print)
    jailed = site.machine.without_mounts()
    with pytest.raises(PrerequisiteMissingError, match=r"may not mount .*--cap-add SYS_ADMIN"):
        creation.create(jailed, site.wanted("shop"), False, print)
    # A file that no character device is, in the place of FUSE's.
    site.sh("mount --bind /etc/hostname /dev/fuse")
    with pytest.raises(PrerequisiteMissingError, match="modprobe fuse"):
        site.create("shop")


def test_the_engine_answers_its_own_user_alone(site: Site) -> None:
    site.create("shop")
    control = site.tier("shop").control
    # Where anybody may run it.
    program = programs.find_engine()
    site.sh(f"mount -t tmpfs none /mnt; cp {program} /mnt/engine; chmod 755 /mnt /mnt/engine")
    argv = ["/mnt/engine", "ask", str(control), '{"counters": {}}']
    done = site.machine.run(argv, check=False, user="nobody")
    assert done.rc != 0
    assert "belongs to another user" in done.stderr


def test_damaged_metadata_are_named_and_a_clean_cache_begins_anew(site: Site) -> None:
    site.create("shop")
    site.flush("shop")
    site.deactivate("shop")
    disk = flash_devices.find(site.machine, "shop").disk
    at = int(disk.metadata[0].start) // 4096
    site.sh(f"dd if=/dev/urandom of={site.flash} bs=4096 count=2 seek={at} conv=notrunc")
    with pytest.raises(TierFailedError, match="damaged"):
        site.activate("shop")
    tier, begun = site.tier("shop"), list[str]()
    with pytest.raises(MetadataDamagedError):
        tier.activate(lambda: begun.append("it is noted that the disk is in use"))
    assert not begun, "it was clean, and whoever is cut off here must still know that"
    repairing.repair(flash_devices.find(site.machine, "shop"), print)
    assert site.inspect("shop").report.state == "active"


@pytest.mark.usefixtures("never_cleaned")
@pytest.mark.parametrize("lost", ["the tables", "everything"])
def test_a_damaged_cache_is_written_back_as_far_as_it_is_certain_and_begins_empty(
    site: Site, lost: str
) -> None:
    machine = site.machine
    site.create("shop")
    fill(site.tier("shop"), [Run(Blocks(200), Blocks(8))], 0, lambda _: None)
    site.sh("dd if=/dev/urandom of=/dev/hotset/shop bs=64k count=8 seek=200 oflag=direct,sync")
    part = "bs=64k skip=200 count=8 status=none"
    now = site.sh(f"dd if=/dev/hotset/shop {part} iflag=direct | md5sum")
    # It ends at once: what is in its slots is in its journal.
    supervisor = "$(cat /run/hotset/engine/shop/supervisor)"
    site.sh(f"kill -9 {supervisor} {site.engine_pid('shop')}")
    site.deactivate("shop")
    where = flash_devices.find(machine, "shop").disk.metadata[0]
    at = int(where.start) // 4096
    pages = int(where.size) // 4096 - 2 if lost == "everything" else 4
    site.sh(f"dd if=/dev/urandom of={site.flash} bs=4096 count={pages} seek={at + 2} conv=notrunc")
    before = site.sh(f"md5sum < {site.origin('shop')}; md5sum < {site.flash}")
    said = list[str]()

    def repair(yes: bool) -> None:
        repairing.repair(flash_devices.find(machine, "shop"), said.append, yes)

    with pytest.raises(TierRefusedError, match=r"certain: .*Uncertain: .*Nothing was ch") as asked:
        repair(False)
    assert [one.operation for one in asked.value.remedies] == ["tier repair", "tier detach"]
    assert site.sh(f"md5sum < {site.origin('shop')}; md5sum < {site.flash}") == before
    repair(True)
    assert site.inspect("shop").report.state == "active"
    assert site.tier("shop").counters().dirty == 0
    there = site.sh(f"dd if={site.origin('shop')} {part} | md5sum")
    # What is in the journal is certain.
    assert (there == now) is (lost == "the tables")
    assert any("may be lost in bytes" in one for one in said), said
    site.deactivate("shop")
    site.activate("shop")


@pytest.mark.usefixtures("never_cleaned")
def test_erased_superblocks_are_damage_and_never_an_empty_cache(site: Site) -> None:
    site.create("shop")
    folder = site.mount(site.tier("shop").path)
    site.sh(f"head -c 3000000 /dev/urandom > {folder}/there; sync -f {folder}")
    site.unmount()
    site.deactivate("shop")
    disk = flash_devices.find(site.machine, "shop").disk
    at = int(disk.metadata[0].start) // 4096
    site.sh(f"dd if=/dev/zero of={site.flash} bs=4096 count=2 seek={at} conv=notrunc")
    with pytest.raises(MetadataDamagedError, match="missing"):
        site.activate("shop")
    # Whose cache it was, nothing says: it is not laid over the origin, whatever was asked for.
    with pytest.raises(
        TierRefusedError, match=r"nothing was changed.*salvage.*--metadata.*--unidentified"
    ) as refused:
        repairing.repair(flash_devices.find(site.machine, "shop"), print, True)
    assert [one.operation for one in refused.value.remedies] == ["tier detach"]


def test_an_origin_that_grew_while_the_tier_was_down_is_taken_up_and_a_shrunk_one_is_waited_for(
    site: Site,
) -> None:
    site.create("shop")
    folder = site.mount(site.tier("shop").path)
    written = site.file("there")
    site.unmount()
    site.deactivate("shop")
    origin = site.origin("shop")
    site.sh(f"truncate -s {100 * MIB} {origin}")
    tier = site.tier("shop")
    with pytest.raises(EngineRefusedError, match="has shrunk") as refused:
        tier.activate()
    assert "discard" not in str(refused.value)
    site.sh(f"truncate -s {160 * MIB} {origin}")
    tier.activate()
    assert folder == site.mount(tier.path)
    assert site.sums("there") == [written]
    site.unmount()


def wait_until(ready: Callable[[], object], limit_s: float = 30) -> None:
    assert clock.wait_until(ready, limit_s, 0.1), "it did not come to be"


def test_a_name_whose_loop_device_is_somebody_elses_by_now(site: Site) -> None:
    """The kernel gives the number of a device that was detached to the next who asks."""
    site.create("shop")
    file = site.folder / "other"
    file.write_bytes(bytes(4 * MIB))
    theirs = site.sh(f"losetup --find --show {file}")

    def forge() -> None:
        site.deactivate("shop")
        flash_devices.remove_volume(
            site.machine, flash_devices.inventory(site.machine).flash_devices[0]
        )
        for name in ("shop", "volume"):
            site.sh(f"ln -sfn {theirs} /dev/hotset/{name}")

    try:
        forge()
        assert site.inspect("shop").report.state == "inactive"
        site.activate("shop")
        assert site.sh("blockdev --getsize64 /dev/hotset/volume") == str(16 * MIB)
        assert site.sh("blockdev --getsize64 /dev/hotset/shop") == str(128 * MIB)
        forge()
        site.destroy()
        assert site.sh("ls /dev/hotset") == ""
        assert site.sh(f"losetup --noheadings --output BACK-FILE {theirs}") == str(file)
        assert not any(file.read_bytes())
    finally:
        site.sh(f"losetup --detach {theirs}")
