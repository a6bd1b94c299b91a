"""What becomes of those who use a disk that is taken down, and of a disk whose engine ended without
being taken down: on files, with the real engine, in a mount namespace of its own."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import programs
from hotset.block.programs import InUseError
from hotset.core.errors import HotsetError
from hotset.core.units import Blocks
from hotset.disk import adopt, flash_devices, lifecycle
from hotset.disk import create as creation
from hotset.disk.boot import program
from hotset.disk.flash_devices import Disk
from hotset.disk.lifecycle import TierRefusedError

from .test_userspace import Site, never_cleaned, pytestmark, site, wait_until

__all__ = ["never_cleaned", "pytestmark", "site"]

PAGE = 4096
DEVICE = PurePosixPath("/dev/hotset/shop")
ENTRY = struct.Struct("<QQ")

# Writes pages in turn, each with a version, and puts it down as acknowledged once it is synced.
# `how` it has the device: open all the time; only in between; or so that no list of open files
# shows it.
WRITER = f"""
import array, mmap, os, random, socket, struct, sys, time
path, log, how = sys.argv[1:]
flags = os.O_RDWR | os.O_CREAT * ("/dev/" not in path) | os.O_DIRECT
entry, page, version = struct.Struct("<QQ"), mmap.mmap(-1, {PAGE}), 0
log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
here, there = socket.socketpair()
def hide(file):
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file]))])
    os.close(file)
def shown():
    _, found, _, _ = there.recvmsg(1, socket.CMSG_SPACE(4))
    return array.array("i", found[0][2][:4])[0]
file = os.open(path, flags)
while True:
    version += 1
    at = version * 7919 % 64
    page[:] = entry.pack(at, version) * ({PAGE} // entry.size)
    try:
        os.pwrite(file, page, at * {PAGE})
        os.fsync(file)
    except OSError as error:
        print("failed:", error, "at version", version, flush=True)
        break
    os.write(log, entry.pack(at, version))
    if version == 3:
        print("writes", flush=True)
    if how == "hidden":
        hide(file)
    if how == "now and then":
        os.close(file)
    # As a database: the cache's idle moments, in which it cleans, lie in between.
    time.sleep(random.uniform(0.02, 0.35))
    if how == "hidden":
        file = shown()
    if how == "now and then":
        try:
            file = os.open(path, flags)
        except OSError as error:
            print("failed:", error, "at version", version, flush=True)
            break
"""


@dataclass
class Writer:
    """Somebody who writes."""

    process: subprocess.Popen[str]
    log: Path

    def is_at_work(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def acknowledged(self) -> dict[int, int]:
        """Page by page, the newest version."""
        text = self.log.read_bytes()
        return dict(ENTRY.iter_unpack(text[: len(text) // ENTRY.size * ENTRY.size]))

    def require_on(self, file: Path) -> None:
        newest, lost = self.acknowledged(), dict[int, tuple[int, int]]()
        assert len(newest) >= 3
        with file.open("rb") as data:
            for at, version in newest.items():
                data.seek(at * PAGE)
                found = ENTRY.unpack(data.read(ENTRY.size))[1]
                # One that was not acknowledged may be there too.
                if found < version:
                    lost[at] = (version, found)
        assert not lost, f"acknowledged, and not on the origin: {lost}"


@contextmanager
def writer(site: Site, path: PurePosixPath, how: str, before: str = ":") -> Iterator[Writer]:
    """:param before: a script that becomes the writer, such as in another namespace."""
    program, log = site.folder / "writer.py", site.folder / "acknowledged"
    program.write_text(WRITER)
    words = [sys.executable, str(program), str(path), str(log), how]
    argv = [*site.machine.enter, "sh", "-ec", f'{before}; exec "$@"', "writer", *words]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    one = Writer(process, log)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "writes\n"
        yield one
    finally:
        one.end()


VERBS: dict[str, Callable[[Site], None]] = {
    "deactivate": lambda site: site.deactivate("shop"),
    "detach": lambda site: site.detach("shop", yes=True),
    "destroy": lambda site: site.destroy(),
}
every_verb = pytest.mark.parametrize("verb", VERBS)


def taken_down(site: Site, verb: str, one: Writer) -> None:
    """What was refused is done once nobody has the disk, and has lost nothing."""
    VERBS[verb](site)
    if verb == "deactivate":
        site.detach("shop", yes=True)
    one.require_on(Path(site.origin("shop")))


@every_verb
def test_a_disk_that_a_process_has_open_is_refused_with_its_name(site: Site, verb: str) -> None:
    site.create("shop")
    with writer(site, DEVICE, "open") as one:
        if verb == "deactivate":
            site.flush("shop")
        with pytest.raises(InUseError, match=rf"in use: process {one.process.pid} \(python") as no:
            VERBS[verb](site)
        assert "/dev/loop" in str(no.value), "the path by which it has it"
        assert one.is_at_work()
        one.end()
        taken_down(site, verb, one)


@pytest.mark.parametrize("verb", ["deactivate", "detach"])
def test_a_disk_that_nobody_is_seen_to_have_open_is_not_taken_from_who_has(
    site: Site, verb: str
) -> None:
    """A descriptor on its way to another process is in no list of any."""
    site.create("shop")
    with writer(site, DEVICE, "hidden") as one:
        # It is seen now and then.
        with pytest.raises(InUseError, match="is in use"):
            VERBS[verb](site)
        seen = len(one.acknowledged())
        wait_until(lambda: len(one.acknowledged()) > seen or not one.is_at_work())
        assert one.is_at_work()
        assert site.inspect("shop").report.state == "active"
        one.end()
        taken_down(site, verb, one)


@pytest.mark.parametrize("verb", ["deactivate", "detach"])
def test_who_opens_a_disk_while_it_is_taken_down_loses_nothing(site: Site, verb: str) -> None:
    site.create("shop")
    with writer(site, DEVICE, "now and then") as one:
        # It may lose the device in the end, and then reads an error.
        while flash_devices.list_disks(site.machine) and site.tier("shop").is_active():
            with suppress(InUseError, TierRefusedError):
                VERBS[verb](site)
            if not one.is_at_work():
                break
        one.end()
    if flash_devices.list_disks(site.machine):
        site.detach("shop", yes=True)
    one.require_on(Path(site.origin("shop")))


@every_verb
def test_a_disk_that_is_mounted_in_another_namespace_is_refused_with_the_path(
    site: Site, verb: str
) -> None:
    site.create("shop")
    folder = site.folder / "inside"
    folder.mkdir()
    mount = f'mount {DEVICE} {folder}; exec "$@"'
    elsewhere = f"exec unshare --mount --propagation private sh -ec '{mount}' in \"$@\""
    with writer(site, PurePosixPath(folder / "wal"), "open", elsewhere) as one:
        assert site.sh(f"findmnt {folder} || :") == "", "not here"
        named = rf"is mounted on {folder} in the mount namespace of process {one.process.pid} "
        with pytest.raises(InUseError, match=named):
            VERBS[verb](site)
        assert one.is_at_work()
        one.end()
        VERBS[verb](site)
        if verb == "deactivate":
            site.detach("shop", yes=True)
    site.mount(site.origin("shop"))
    site.sh(f"cp {site.folder}/mounted/wal {site.folder}/wal")
    site.unmount()
    one.require_on(site.folder / "wal")


GONE = {
    "name": str(DEVICE),
    "note": "/run/hotset/engine/shop/attached",
    "socket": "/run/hotset/engine/shop/control",
}


MORE_VERBS: dict[str, Callable[[Site], None]] = {
    **VERBS,
    "give up": lambda site: site.detach("shop", dead=True, yes=True),
    "activate": lambda site: site.activate("shop"),
}


@pytest.mark.parametrize("verb", MORE_VERBS)
@pytest.mark.parametrize("gone", GONE)
def test_a_disk_is_not_taken_from_who_has_it_when_what_is_known_of_it_is_gone(
    site: Site, verb: str, gone: str
) -> None:
    """Whoever cleaned /dev or /run: its engine was ended under the database."""
    site.create("shop")
    with writer(site, DEVICE, "open") as one:
        site.sh(f"rm {GONE[gone]}")
        with pytest.raises(HotsetError) as no:
            MORE_VERBS[verb](site)
        told = [str(no.value), *getattr(no.value, "__notes__", ())]
        assert any(f"in use: process {one.process.pid} (python" in words for words in told), told
        seen = len(one.acknowledged())
        wait_until(lambda: len(one.acknowledged()) > seen or not one.is_at_work())
        assert one.is_at_work()
        one.end()
    site.deactivate("shop")
    lifecycle.activate(flash_devices.find(site.machine, "shop"), print, flash_counts=True)
    site.detach("shop")
    one.require_on(Path(site.origin("shop")))


def test_an_engine_whose_number_is_lost_is_found_and_taken_down(site: Site) -> None:
    """Every verb said for good that it does not know whether the engine runs."""
    site.create("shop")
    site.sh("rm /run/hotset/engine/shop/pid")
    assert site.inspect("shop").report.state == "active"
    site.detach("shop")
    assert not site.engines("shop")


def test_a_disk_with_the_name_of_one_that_was_detached_is_taken_down_in_order(site: Site) -> None:
    """Its unit's removal left a word that the unit's stop has nothing to do."""
    site.create("shop")
    site.sh("touch /run/hotset/removing-shop")
    with writer(site, DEVICE, "open") as one:
        with pytest.raises(InUseError):
            program.stop(flash_devices.find(site.machine, "shop"))
        one.end()
    site.detach("shop")
    one.require_on(Path(site.origin("shop")))


def test_no_cache_is_put_over_an_origin_that_somebody_writes_to(site: Site) -> None:
    """He would go on past the cache: such as a guest whose disk it is."""
    with writer(site, site.origin("shop"), "open") as one:
        with pytest.raises(InUseError, match=rf"process {one.process.pid} \(python"):
            site.create("shop")
        one.end()
    site.create("shop")
    site.detach("shop")


def test_no_cache_is_put_over_a_device_that_somebody_has_open(site: Site) -> None:
    """Such as a database without a file system; no list of mounts shows it."""
    path = PurePosixPath(site.sh(f"losetup --find --show --direct-io=on {site.origin('shop')}"))
    try:
        wanted = replace(site.wanted("shop"), origin=path)
        with (
            writer(site, path, "open") as one,
            pytest.raises(InUseError, match=rf"process {one.process.pid} \(python"),
        ):
            creation.create(site.machine, wanted, True, print)
    finally:
        site.sh(f"losetup --detach {path}")


def test_a_file_that_a_guest_has_is_no_origin_until_it_lets_go(site: Site) -> None:
    site.create("shop")
    site.deactivate("shop")
    with writer(site, site.origin("shop"), "open") as one:
        with pytest.raises(InUseError, match=rf"in use: process {one.process.pid} \(python"):
            site.activate("shop")
        one.end()
    site.activate("shop")


def test_a_volume_that_came_to_be_used_while_its_disks_were_flushed_is_kept(site: Site) -> None:
    """It was empty when the flash was to be destroyed, and was wiped hours later."""
    site.create("shop")

    def meanwhile(_: Disk) -> Callable[[Blocks], None]:
        site.sh("mke2fs -q -F /dev/hotset/volume")
        return lambda _: None

    (flash,) = flash_devices.inventory(site.machine).flash_devices
    with pytest.raises(TierRefusedError, match="not empty: ext"):
        lifecycle.destroy(site.machine, flash, False, meanwhile, print)
    assert site.sh("blkid --output value --match-tag TYPE /dev/hotset/volume").startswith("ext")
    site.destroy()


def test_a_flash_device_that_the_root_disk_lost_is_known_again_while_its_disk_is_in_use(
    site: Site,
) -> None:
    site.create("shop")
    with writer(site, DEVICE, "open") as one:
        site.sh("rm -r /etc/hotset/flash")
        flash = adopt.adopt(site.machine, site.flash, False, print)
        assert [disk.name for disk in flash.disks] == ["shop"]
        assert one.is_at_work()
        one.end()
    site.detach("shop")
    one.require_on(Path(site.origin("shop")))


def test_a_volume_that_is_in_use_elsewhere_keeps_its_flash(site: Site) -> None:
    site.create("shop")
    site.detach("shop")
    holder = [*site.machine.enter, "sh", "-c", "exec 5<> /dev/hotset/volume; echo open; exec cat"]
    pipe = subprocess.PIPE
    with subprocess.Popen(holder, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(InUseError, match=rf"in use: process {process.pid} \(cat"):
            site.destroy()
        process.kill()
    site.destroy()


def test_a_disk_below_another_device_is_refused_with_its_name(site: Site) -> None:
    site.create("shop")
    above = site.sh(f"losetup --find --show {DEVICE}")
    try:
        for verb in VERBS.values():
            with pytest.raises(InUseError, match=rf"is behind {PurePosixPath(above).name}"):
                verb(site)
        site.sh(f"dd if=/dev/urandom of={above} bs=64k count=1 oflag=direct,sync status=none")
    finally:
        site.sh(f"losetup --detach {above}")
    site.detach("shop")


@dataclass
class Computer:
    """Starts that a computer counts, and power that can be cut."""

    site: Site
    starts: int = 0

    def start(self) -> None:
        site, self.starts = self.site, self.starts + 1
        folder = site.folder
        (folder / "boot_id").write_text(f"00000000-0000-4000-8000-{self.starts:012}\n")
        # Files that were written before are of before.
        stat = Path("/proc/stat").read_text().splitlines()
        begun = int(site.sh("date +%s")) + 1000 * self.starts
        lines = [f"btime {begun}" if one.startswith("btime ") else one for one in stat]
        (folder / "stat").write_text("\n".join(lines) + "\n")
        for name, path in (("boot_id", "/proc/sys/kernel/random/boot_id"), ("stat", "/proc/stat")):
            site.sh(f"umount {path} 2> /dev/null || :; mount --bind {folder / name} {path}")
        self.boot("boot")

    def boot(self, *words: str) -> str:
        """What ``hotset-boot`` says; empty: it did what it was told."""
        argv = [programs.boot(self.site.machine), *words]
        done = self.site.machine.run(argv, check=False)
        return done.stderr if done.rc else ""

    def of_shop(self, verb: program.Verb) -> str:
        argv = program.command(flash_devices.find(self.site.machine, "shop"), verb)
        return self.boot(*argv[1:])

    def kill(self) -> None:
        """The engine and who watches over it."""
        self.site.sh("cd /run/hotset/engine/shop; kill -9 $(cat supervisor) $(cat pid)")
        wait_until(lambda: not self.site.engines("shop"))

    def cut_power(self) -> None:
        self.site.sh(
            "while umount --lazy /run/hotset/engine/shop/mount 2> /dev/null; do :; done;"
            " for name in /dev/hotset/*; do"
            ' ! [ -e "$name" ] || losetup --detach "$(readlink $name)"; done;'
            " find /dev/hotset /run/hotset -mindepth 1 -delete"
        )


@pytest.fixture
def computer(site: Site) -> Computer:
    wants = "/etc/systemd/system/sysinit.target.wants"
    site.sh(f"mount -t tmpfs none /etc/systemd/system; mkdir {wants}")
    site.sh(f"touch {wants}/hotset-boots.service")
    one = Computer(site)
    one.start()
    return one


def write_dirty(site: Site) -> None:
    part = "bs=64k count=1 seek=1900 oflag=direct,sync status=none"
    site.sh(f"dd if=/dev/urandom of={DEVICE} {part}")


@pytest.mark.usefixtures("never_cleaned")
def test_a_tier_that_ended_with_the_computer_is_as_it_was(site: Site, computer: Computer) -> None:
    site.create("shop")
    write_dirty(site)
    computer.kill()
    computer.cut_power()
    computer.start()
    assert computer.of_shop("start") == ""
    assert site.inspect("shop").report.state == "active"


def the_unit_stops(computer: Computer) -> None:
    computer.kill()
    assert computer.of_shop("stop") == ""


def it_is_deactivated(computer: Computer) -> None:
    computer.kill()
    computer.site.deactivate("shop")


def it_was_told_to_end(computer: Computer) -> None:
    """By whoever found its process."""
    watching = computer.site.sh("cat /run/hotset/engine/shop/supervisor")
    computer.site.sh(f"kill -TERM {computer.site.engine_pid('shop')}")
    wait_until(lambda: not Path(f"/proc/{watching}").exists())


def its_script_ended_it(computer: Computer) -> None:
    computer.site.sh("sh /etc/hotset/engine/shop.sh stop")


@pytest.mark.usefixtures("never_cleaned")
@pytest.mark.parametrize(
    "ends", [the_unit_stops, it_is_deactivated, it_was_told_to_end, its_script_ended_it]
)
def test_a_tier_that_ended_while_the_computer_went_on_is_never_as_it_was(
    site: Site, computer: Computer, ends: Callable[[Computer], None]
) -> None:
    site.create("shop")
    write_dirty(site)
    ends(computer)
    site.sh(f"dd if=/dev/urandom of={site.origin('shop')} bs=64k count=1 seek=1900 conv=notrunc")
    for _ in range(2):
        computer.cut_power()
        computer.start()
        assert "ended by other hands" in computer.of_shop("start")
    site.detach("shop", dead=True, yes=True)


@pytest.mark.usefixtures("never_cleaned")
def test_an_engine_that_is_started_again_is_as_if_it_had_not_ended(
    site: Site, computer: Computer
) -> None:
    site.create("shop")
    write_dirty(site)
    pid = site.engine_pid("shop")
    site.sh(f"kill -9 {pid}")
    wait_until(lambda: site.inspect("shop").report.state == "active")
    assert site.engine_pid("shop") != pid
    computer.kill()
    computer.cut_power()
    computer.start()
    assert computer.of_shop("start") == ""


def test_a_start_at_boot_does_not_take_a_dead_engine_for_an_active_disk(
    site: Site, computer: Computer
) -> None:
    site.create("shop")
    write_dirty(site)
    computer.kill()
    said = computer.of_shop("start")
    assert "ended by other hands" in said or site.inspect("shop").report.state == "active"


def test_a_dead_engine_is_no_other_flash(site: Site, computer: Computer) -> None:
    """Its link is still there, and /etc/hotset was lost with the root disk."""
    site.create("shop")
    computer.kill()
    site.sh("rm -r /etc/hotset/flash")
    flash = adopt.adopt(site.machine, site.flash, True, site.said.append)
    assert [disk.name for disk in flash.disks] == ["shop"]
    site.deactivate("shop")


@pytest.mark.usefixtures("never_cleaned")
def test_a_file_of_the_same_number_on_another_file_system_is_another_origin(
    site: Site, computer: Computer
) -> None:
    """The first file of each file system has one number: what the flash held came over it."""
    there, writes = site.folder / "there", f"dd of={DEVICE} bs=64k count=1 seek=1900 conv=fsync"
    for name in ("one", "other"):
        image = site.folder / f"{name}.ext4"
        site.sh(f"mke2fs -q -F -t ext4 {image} 160M; mkdir -p {there}")
        site.sh(f"mount -o loop {image} {there}; truncate -s 128M {there}/origin; umount {there}")
    site.sh(f"mount -o loop {site.folder}/one.ext4 {there}")
    try:
        wanted = replace(site.wanted("shop"), origin=PurePosixPath(there / "origin"))
        creation.create(site.machine, wanted, False, print)
        site.sh(f"head -c 65536 /dev/urandom | {writes}")
        computer.kill()
        computer.cut_power()
        computer.start()
        site.sh(f"umount {there}; mount -o loop {site.folder}/other.ext4 {there}")
        assert "nothing proves that it is the disk" in computer.of_shop("start")
        site.sh(f"umount {there}; mount -o loop {site.folder}/one.ext4 {there}")
        assert computer.of_shop("start") == ""
        site.detach("shop")
    finally:
        site.machine.run(["umount", "-l", str(there)], check=False)


def test_no_boot_puts_a_cache_over_a_file_that_is_mounted(site: Site, computer: Computer) -> None:
    """The command refused it, and the boot's program did not."""
    site.create("shop")
    site.retune("shop", None, "writethrough")
    site.deactivate("shop")
    site.mount(site.origin("shop"))
    assert "shop.origin is behind /dev/loop" in computer.of_shop("start")
    site.unmount()
    assert computer.of_shop("start") == ""


MAPPER = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
file = os.open(sys.argv[1], os.O_RDWR)
assert libc.mmap(None, ctypes.c_size_t(4096), 3, 1, file, ctypes.c_long(0)) != 2**64 - 1
os.close(file)
print("mapped", flush=True)
sys.stdin.read()
"""


def test_a_file_that_a_process_has_mapped_is_no_origin(site: Site) -> None:
    """It has no descriptor of it, and writes all the same."""
    argv = [*site.machine.enter, sys.executable, "-c", MAPPER, str(site.origin("shop"))]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mapped\n"
        with pytest.raises(InUseError, match=rf"process {process.pid} \(python.* may write to"):
            site.create("shop")
        process.kill()
    site.create("shop")


def test_a_cache_that_began_anew_is_not_given_up_again_by_a_power_cut(site: Site) -> None:
    """The mark came back for as long as its file system commits, and what was flushed was lost."""
    marks, image, cut = "/etc/hotset/given-up", site.folder / "marks", site.folder / "cut"
    site.create("shop")
    site.deactivate("shop")
    mark = site.sh(f"grep -o '{marks}/[0-9a-f-]*' /etc/hotset/engine/shop.sh | head -n 1")
    site.sh(f"mke2fs -q -F -t ext4 {image} 32M; mount -o loop,commit=600 {image} {marks}")
    try:
        site.sh(f"touch {mark} {marks}/another; sync --file-system {marks}")
        site.activate("shop")
        write_dirty(site)
        # What nobody makes durable is still there.
        site.sh(f"rm {marks}/another; cp {image} {cut}; mkdir {cut}.is")
        left = site.sh(f"mount -o loop {cut} {cut}.is; ls {cut}.is; umount {cut}.is").split()
        assert left == ["another", "lost+found"], mark
    finally:
        site.detach("shop")
        site.machine.run(["umount", marks], check=False)
