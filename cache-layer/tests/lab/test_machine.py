"""The lab on real parts: machine, slow disk over iSCSI, dm-cache tier, off-line warm-up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.block.devicemapper import remove
from hotset.core.clock import wait_until
from hotset.core.machines.base import CommandError, Machine, MachineGoneError
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.hitratio.sampler import Sampler
from hotset.lab import lab as labs
from hotset.lab.backend import VOLUME, KernelBackend, alone
from hotset.lab.lab import Lab, LabSpec
from hotset.lab.machines import uml
from hotset.lab.machines.uml import Uml
from hotset.lab.slow_disk import Iscsi, wait_for_device
from hotset.tier.base import TierSpec, WriteMode, hits_between
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache import offline
from hotset.tier.dmcache.metadata import Slots
from hotset.tier.dmcache.status import parse_dmsetup_status
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup import plan as database_blocks
from hotset.warmup.fill import fill
from tests.own_lab import SharedLab

pytestmark = pytest.mark.lab

MIB = 1024**2
BLOCK = Bytes(64 * 1024)
CACHE = Bytes(96 * MIB)
DISK = Bytes(256 * MIB)
MOUNT = PurePosixPath("/run/hotset/data")


def tier_spec(mode: WriteMode) -> TierSpec:
    return TierSpec(mode, "smq", BLOCK, metadata_bytes(CACHE, BLOCK), CACHE, Bytes(64 * MIB))


def on_flash(lab: Lab, spec: TierSpec, origin: PurePosixPath) -> DmCache:
    return DmCache(lab.machine, spec, alone(lab.machine, spec, labs.FLASH_DISK, origin))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedLab]:
    spec = LabSpec("uml", 1, Bytes(1024 * MIB), Bytes(256 * MIB))
    with SharedLab(tmp_path_factory, spec) as shared:
        yield shared
        folder = shared.lab().folder
    assert not (folder / "cleanup.jsonl").exists()
    assert not list(folder.glob("*.img"))


@pytest.fixture
def lab(shared: SharedLab) -> Lab:
    return shared.lab()


def test_machines_of_two_kinds_share_the_image(lab: Lab, emulated_lab: Lab) -> None:
    here = lab.machine.run(["uname", "-r"]).stdout
    assert emulated_lab.machine.run(["uname", "-r"]).stdout != here
    assert lab.machine.run(["uname", "-r"]).stdout == here


@pytest.fixture
def origin(lab: Lab, tmp_path: Path) -> Iterator[PurePosixPath]:
    """The slow disk, logged into over iSCSI, with a file system that holds three files."""
    files = tmp_path / "files"
    files.mkdir()
    for number in range(3):
        (files / f"table{number}").write_bytes(os.urandom(16 * MIB))
    image = tmp_path / "disk.img"
    Local().run(
        [
            "mke2fs",
            "-q",
            "-t",
            "ext4",
            "-E",
            "lazy_itable_init=0",
            "-d",
            str(files),
            str(image),
            "256m",
        ]
    )
    # A fast disk: these tests are about data, not about time.
    storage = lab.backend.slow_disk("nvme-2024", DISK)
    with lab.cleanup.part():
        storage.restore(image, lab.cleanup)
        yield storage.attach(lab.cleanup)


def checksums(lab: Lab, folder: PurePosixPath) -> list[str]:
    """SHA-256 of the three files as the machine reads them now."""
    sums = []
    for number in range(3):
        target = lab.folder / "copy"
        lab.machine.get(folder / f"table{number}", target)
        sums.append(hashlib.sha256(target.read_bytes()).hexdigest())
        target.unlink()
    return sums


def test_commands_and_files_travel(lab: Lab, tmp_path: Path) -> None:
    machine = lab.machine
    assert machine.run(["cat"], stdin="a 'b' \"c\" $HOME\n").stdout == "a 'b' \"c\" $HOME\n"
    assert machine.run(["ls", "/no such $(file)"], check=False).rc == 2
    with pytest.raises(CommandError, match="no such"):
        machine.run(["ls", "/no such"])
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(os.urandom(100_000))
    machine.put(sent, PurePosixPath("/tmp/there"), 0o600)  # noqa: S108
    machine.get(PurePosixPath("/tmp/there"), back)  # noqa: S108
    assert back.read_bytes() == sent.read_bytes()
    assert machine.run(["ls", "-l", "/tmp/there"]).stdout.startswith("-rw-------")  # noqa: S108
    seen: list[str] = []
    whole = machine.run(["sh", "-c", "echo 1; echo 2; echo oops >&2"], on_line=seen.append)
    assert (seen, whole.stdout, whole.stderr) == (["1", "2"], "1\n2\n", "oops\n")


def test_who_follows_a_command_may_use_the_machine_meanwhile(lab: Lab) -> None:
    machine, seen = lab.machine, list[str]()

    def ask(line: str) -> None:
        seen.append(machine.run(["cat"], stdin=f"{line}!\n", timeout_s=30).stdout)

    machine.run(["sh", "-c", "echo 1; echo 2"], timeout_s=60, on_line=ask)
    assert seen == ["1!\n", "2!\n"]


@pytest.mark.parametrize(
    "mode", ["writeback", pytest.param("writethrough", marks=pytest.mark.night)]
)
def test_offline_fill_makes_every_read_a_hit(
    lab: Lab, origin: PurePosixPath, mode: WriteMode
) -> None:
    tier = on_flash(lab, tier_spec(mode), origin)
    with lab.cleanup.part():
        lab.cleanup.call("remove the volume", lambda: remove(lab.machine, [VOLUME]))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        lab.machine.run(["mkdir", "-p", str(MOUNT)])
        lab.machine.run(["mount", "-o", "ro,noload", str(origin), str(MOUNT)])
        before = checksums(lab, MOUNT)
        lab.machine.run(["umount", str(MOUNT)])

        runs = database_blocks.database_runs(tier, origin, PurePosixPath("/run/hotset/origin"), ".")
        done = fill(tier, runs, 30, lambda _: None)
        assert done.bytes >= 48 * MIB
        assert (done.sampled_blocks >= 30, done.differing_blocks) == (True, 0)
        assert tier.resident() == runs

        line = lab.machine.run(tier.status_argv()).stdout
        assert parse_dmsetup_status(line).render() == line.split(maxsplit=3)[3].strip()

        start = tier.counters()
        for run in runs:
            words = ["iflag=direct", f"bs={int(BLOCK)}", f"skip={run.start}", f"count={run.count}"]
            lab.machine.run(["dd", f"if={tier.path}", "of=/dev/null", *words])
        hits = hits_between(start, tier.counters(), tier.counting)
        assert hits.read_hits >= sum(run.count for run in runs)
        assert hits.read_misses == 0

        mount = ["mount", "-o", "noinit_itable", str(tier.path), str(MOUNT)]
        lab.machine.run(mount)
        lab.cleanup.call("unmount", lambda: lab.machine.run(["umount", str(MOUNT)], check=False))
        assert checksums(lab, MOUNT) == before, "the cache must give the origin's data"

        # New data over old, on blocks that are cached: dirty only where writes are held back. Else
        # the kernel writes them back by itself as soon as the disk is idle.
        hold = ["dmsetup", "message", tier.path.name, "0", "migration_threshold", "0"]
        lab.machine.run(hold)
        fresh = lab.folder / "fresh"
        fresh.write_bytes(os.urandom(16 * MIB))
        lab.machine.put(fresh, MOUNT / "table1")
        lab.machine.run(["sync"])
        dirty = tier.status().dirty
        assert (dirty > 0) == (mode == "writeback")
        want = hashlib.sha256(fresh.read_bytes()).hexdigest()
        fresh.unlink()
        lab.machine.run(["umount", str(MOUNT)])
        assert tier.flush() >= dirty
        assert tier.status().dirty == 0
        tier.discard()

        lab.machine.run(["mount", "-o", "ro", str(origin), str(MOUNT)])
        assert checksums(lab, MOUNT)[1] == want, "the flushed data must be on the origin"
        lab.machine.run(["umount", str(MOUNT)])


def test_a_changed_origin_is_caught_by_the_samples(lab: Lab, origin: PurePosixPath) -> None:
    tier = on_flash(lab, tier_spec("writeback"), origin)
    with lab.cleanup.part():
        lab.cleanup.call("remove the volume", lambda: remove(lab.machine, [VOLUME]))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        runs = database_blocks.database_runs(tier, origin, PurePosixPath("/run/hotset/origin"), ".")
        # The cache stays as it is: nothing was copied.
        pieces = Slots(tier.capacity).places(runs)
        sampled, differing = offline.compare(tier, pieces, 20)
        assert differing > sampled // 2


@pytest.mark.night
def test_sampler_sees_the_tier_and_the_cpu(lab: Lab, origin: PurePosixPath) -> None:
    tier = on_flash(lab, tier_spec("writeback"), origin)
    with lab.cleanup.part():
        lab.cleanup.call("remove the volume", lambda: remove(lab.machine, [VOLUME]))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        tier.create()
        with Sampler(lab.machine, tier) as sampler:
            argv = ["dd", f"if={tier.path}", "of=/dev/null", "bs=64k", "count=500", "iflag=direct"]
            lab.machine.run(argv)
            while len(sampler.samples) < 3:
                lab.machine.run(["cat", "/proc/uptime"])
        window = sampler.window(sampler.samples[0].at, sampler.samples[-1].at)
        assert window.hits is not None
        assert window.hits.read_hits + window.hits.read_misses > 0
        assert 0 <= window.cpu <= 1


def test_a_split_larger_than_the_flash_is_refused(lab: Lab, origin: PurePosixPath) -> None:
    spec = replace(tier_spec("writeback"), volume=Bytes(1024 * MIB))
    with pytest.raises(ValueError, match=r"larger than the flash device"):
        on_flash(lab, spec, origin)
    assert "hotset-" not in lab.machine.run(["dmsetup", "ls"]).stdout


def test_after_a_power_cut_the_cache_knows_what_was_dirty(
    lab: Lab, origin: PurePosixPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What dm-cache held back is on the flash; what the disks had written stays written."""
    machine = lab.machine
    assert isinstance(machine, Uml)
    tier = on_flash(lab, tier_spec("writeback"), origin)
    with lab.cleanup.part():
        lab.cleanup.call("remove the volume", lambda: remove(machine, [VOLUME]))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        tier.create()
        machine.run(["dmsetup", "message", tier.path.name, "0", "migration_threshold", "0"])
        fresh = lab.folder / "fresh"
        fresh.write_bytes(os.urandom(4 * MIB))
        machine.put(fresh, PurePosixPath("/run/fresh"))
        write = ["dd", "if=/run/fresh", f"of={tier.path}", "bs=64k", "oflag=direct", "conv=fsync"]
        machine.run(write)
        assert tier.status().dirty >= 64
        lab.cleanup.forget(lab.cleanup.mark() - 2)  # they went with the power
        machine.power_cut()
        with pytest.raises(MachineGoneError, match="last lines of its console:"):
            machine.run(["uname"])
        with monkeypatch.context() as patch:
            patch.setattr(uml, "wait_until_ready", interrupt)
            with pytest.raises(KeyboardInterrupt):
                machine.power_on()
        # Its helper processes end a moment after it.
        assert wait_until(lambda: not guests_of(lab), 5), "the next one would share its disks"
        machine.power_on()
        assert len(guests_of(lab)) == 1
        log_in(machine, lab, origin)
        tier.activate()
        lab.cleanup.call("remove the tier", tier.discard)
        sums = machine.run(["sh", "-c", f"head -c {4 * MIB} {tier.path} | sha256sum"]).stdout
        assert sums.split()[0] == hashlib.sha256(fresh.read_bytes()).hexdigest()
        fresh.unlink()


def interrupt(*_: object) -> None:
    """Ctrl-C while the machine starts."""
    raise KeyboardInterrupt


def guests_of(lab: Lab) -> list[int]:
    """The processes that have the machine's disks."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended since
            words = one.read_bytes().split(b"\0")
            if any(word.startswith(f"ubd0={lab.folder}/".encode()) for word in words):
                found.append(int(one.parent.name))
    return found


def log_in(machine: Machine, lab: Lab, origin: PurePosixPath) -> None:
    """To the slow disk that was there before."""
    assert isinstance(lab.backend, KernelBackend)
    iqn = origin.name.partition("-iscsi-")[2].removesuffix("-lun-1")
    # The initiator's record of it may have been half written when the power went.
    machine.run(["rm", "-rf", f"/var/lib/iscsi/nodes/{iqn}"])
    assert Iscsi(machine, lab.backend.target).log_in(iqn) == origin
    wait_for_device(machine, origin)


@pytest.mark.night
def test_a_machine_that_dies_says_why_and_the_next_test_has_another(shared: SharedLab) -> None:
    lab = shared.lab()
    crash = ["tee", "/proc/sysrq-trigger"]
    with pytest.raises(MachineGoneError, match="sysrq triggered crash"):
        lab.machine.run(crash, stdin="c")
    another = shared.lab()
    assert another is not lab
    assert another.machine.run(["uname"]).stdout == "Linux\n"
    assert not lab.cleanup.mark(), "nothing of the dead one is left to take down"
