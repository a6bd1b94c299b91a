"""Tiers on a server that systemd runs: what stands between a boot and the data, and warm-ups at
their times."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from hotset.block import label
from hotset.core.clock import wait_until
from hotset.core.machines.base import put_text
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import AttachedDisk
from hotset.tier.base import TierKind, hits_between
from tests.engines import never_clean
from tests.systemd_server import FLASH_MIB, HOTSET, MIB, Server, server

# Its machine and disks take longest: all on one worker.
pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("systemd")]

BEHIND = 56 * 16
"""The first block of 64 KiB behind the file system of an origin."""
SPARE = 512
"""A byte of the origin that no ext4 uses, and its fingerprint covers."""
PATIENCE_S = 300
"""For what comes to be by itself."""
WAIT_S = 8
"""For how long a mount waits for its device."""


@dataclass(frozen=True)
class Shop:
    """A disk of the server with its file system in /etc/fstab."""

    server: Server
    kind: TierKind
    number: int

    @property
    def name(self) -> str:
        return self.kind.replace("-", "")

    @property
    def flash(self) -> PurePosixPath:
        return PurePosixPath(f"/dev/disk/by-id/lab-flash{self.number}")

    @property
    def origin(self) -> PurePosixPath:
        return PurePosixPath(f"/dev/disk/by-id/lab-origin{self.number}")

    @property
    def folder(self) -> str:
        return f"/srv/{self.name}"

    @property
    def mount(self) -> str:
        return f"srv-{self.name}.mount"

    @property
    def unit(self) -> str:
        return f"hotset-tier-{self.name}.service"

    @property
    def found(self) -> AttachedDisk:
        return flash_devices.find(self.server.machine, self.name)

    @property
    def device(self) -> PurePosixPath:
        return flash_devices.device_of(self.kind, self.name)

    @property
    def volume(self) -> PurePosixPath:
        return self.found.flash.volume_slice.path

    @property
    def files(self) -> str:
        return f"$(find {self.folder} -type f ! -name cold | sort)"

    @property
    def cold(self) -> str:
        """A file that nobody has read through the tier."""
        return f"{self.folder}/cold"

    @property
    def line(self) -> str:
        """Of /etc/fstab, before the disk is accelerated."""
        options = f"defaults,nofail,x-systemd.device-timeout={WAIT_S}s"
        return f"UUID={self.uuid} {self.folder} ext4 {options} 0 2"

    @property
    def uuid(self) -> str:
        return f"5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b1{self.number}"

    def lay_out(self) -> None:
        """A plain disk with a file on it."""
        self.server.sh(
            f"mke2fs -q -F -t ext4 -U {self.uuid} {self.origin} 56M; mkdir -p {self.folder};"
            f" sed -i '\\: {self.folder} :d' /etc/fstab; echo '{self.line}' >> /etc/fstab;"
            f" mount {self.origin} /mnt; dd if=/dev/urandom of=/mnt/before bs=64k count=32;"
            " dd if=/dev/urandom of=/mnt/cold bs=64k count=32;"
            " umount /mnt; udevadm settle; systemctl daemon-reload"
        )

    def accelerate(self) -> None:
        sizes = (Bytes(64 * MIB), Bytes(8 * MIB))
        wanted = CreateRequest(self.name, self.flash, self.origin, self.kind, "oltp", *sizes)
        creation.create(self.server.machine, wanted, True, lambda _: None)

    def use_the_volume(self) -> None:
        options = f"nofail,x-systemd.device-timeout={WAIT_S}s"
        self.server.sh(
            f"mke2fs -q -F -t ext4 {self.volume}; mkdir -p {self.folder}-log;"
            f" echo '{self.volume} {self.folder}-log ext4 {options} 0 2' >> /etc/fstab;"
            f" sync; systemctl daemon-reload; mount {self.folder}-log"
        )

    def write(self, file: str) -> None:
        of = f"of={self.folder}/{file}"
        self.server.sh(f"dd if=/dev/urandom {of} bs=64k count=32 conv=fsync status=none")

    def read_misses(self) -> int:
        """Of the cold file, read past the page cache."""
        tier = self.found.tier
        before = tier.counters()
        self.server.sh(f"dd if={self.cold} of=/dev/null bs=64k iflag=direct status=none")
        return hits_between(before, tier.counters(), tier.counting).read_misses or 0

    def soil(self) -> None:
        """Write what the origin alone does not have, not soon either."""
        if self.kind == "dm-cache":
            self.server.sh(f"dmsetup message {self.device.name} 0 migration_threshold 0")
        self.server.sh(
            f"dd if=/dev/urandom of={self.device} bs=64k seek={BEHIND} count=64 oflag=direct"
            " status=none"
        )
        assert self.behind(self.origin) != self.behind(self.device)

    def behind(self, device: PurePosixPath) -> str:
        return self.server.sh(
            f"dd if={device} bs=64k skip={BEHIND} count=64 iflag=direct status=none | md5sum"
        )

    def sums(self) -> list[str]:
        """Of all that was written."""
        files = self.server.sh(f"echo 3 > /proc/sys/vm/drop_caches; md5sum {self.files}")
        return [*files.splitlines(), self.behind(self.device)]

    def mounted(self) -> str:
        """The device that is mounted; empty: none."""
        return self.server.sh(f"findmnt --noheadings --output SOURCE {self.folder} || :")

    def is_mounted(self) -> bool:
        device = self.server.sh(f"readlink -f {self.device}")
        return self.mounted() != "" and self.server.sh(f"readlink -f {self.mounted()}") == device


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server(tmp_path_factory) as found:
        yield found


@pytest.fixture(scope="module")
def shops(machine: Server) -> Iterator[list[Shop]]:
    """One of each kind, mounted; what they hold is on the flash in part."""
    with pytest.MonkeyPatch.context() as patch:
        never_clean(patch)
        kinds: tuple[TierKind, ...] = ("dm-cache", "bcache", "userspace")
        found = [Shop(machine, kind, number) for number, kind in enumerate(kinds, 1)]
        for one in found:
            one.lay_out()
            one.accelerate()
            one.use_the_volume()
            machine.sh(f"mount {one.folder}")
            one.soil()
        yield found


def test_the_mount_requires_the_tier(shops: list[Shop]) -> None:
    machine = shops[0].server
    for one in shops:
        assert machine.asked(one.unit, "UnitFileState", "ActiveState") == ["enabled", "active"]
        known = ("What", "Requires", "After", "NeedDaemonReload")
        what, requires, after, stale = machine.asked(one.mount, *known)
        assert stale == "no"
        assert machine.sh(f"readlink -f {what}") == machine.sh(f"readlink -f {one.device}")
        assert one.unit in requires.split()
        assert one.unit in after.split()
        assert one.is_mounted()


@pytest.mark.parametrize("ending", ["power_cut", "shut_down"])
def test_a_boot_brings_back_what_was_written(shops: list[Shop], ending: str) -> None:
    """With ``nofail`` in /etc/fstab and without."""
    machine = shops[0].server
    for one in shops:
        one.write(ending)
    before = [one.sums() for one in shops]
    machine.sh("cp /etc/fstab /etc/fstab.lab; sync /etc/fstab.lab")
    if ending == "shut_down":
        machine.sh("sed -i s/nofail,// /etc/fstab; sync /etc/fstab")
    getattr(machine, ending)()
    left = [left_on_flash(one) for one in shops]
    assert left == ["active" if ending == "power_cut" else "dirty"] * len(shops)
    machine.boot()
    assert machine.sh("systemctl --failed --plain --no-legend") == ""
    for one in shops:
        assert one.is_mounted()
        times = [
            int(machine.asked(unit, "ActiveEnterTimestampMonotonic")[0])
            for unit in (one.unit, one.mount)
        ]
        assert times == sorted(times)
        assert machine.sh(f"findmnt --noheadings --output SOURCE {one.folder}-log")
    assert [one.sums() for one in shops] == before
    machine.sh("cp /etc/fstab.lab /etc/fstab; systemctl daemon-reload")


KIB = 1024
LABELS_AT, LABEL, RECORDS_AT = (256 * KIB, 320 * KIB), 64 * KIB, 512 * KIB
"""Where the two labels of a flash and the first record of its first disk lie."""


def left_on_flash(one: Shop) -> str:
    """How the tier was left, as its flash says while the machine is off."""
    with one.server.flashes.open("rb") as file:
        file.seek((1 + (one.number - 1) * FLASH_MIB) * MIB + RECORDS_AT)
        return file.read(4 * KIB).decode().split()[2]


def test_what_must_not_be_mounted_is_not_and_the_machine_boots(shops: list[Shop]) -> None:
    """Somebody wrote to an origin, a flash is gone, another one belongs to another host by now."""
    machine = shops[0].server
    before = [one.sums() for one in shops]
    machine.shut_down()
    at = MIB + SPARE
    spoil = [
        (machine.origins, at, b"somebody was here"),
        (machine.flashes, 446 + 16, bytes(16)),
        *[(machine.flashes, *found) for found in other_host(shops[2])],
    ]
    kept = [(file, place, overwritten(file, place, words)) for file, place, words in spoil]
    machine.boot()
    for one in shops:
        assert one.mounted() == ""
        assert machine.asked(one.unit, "ActiveState")[0] in ("failed", "inactive")
        assert machine.asked(one.mount, "ActiveState") == ["inactive"]
        assert machine.sh(f"readlink -e /dev/disk/by-uuid/{one.uuid} || :") == ""
    said = machine.sh("journalctl --boot --no-pager --unit 'hotset-tier-*'")
    assert "was written to while the tier was down" in said
    assert "is not this machine's any more" in said
    machine.shut_down()
    for file, place, words in kept:
        overwritten(file, place, words)
    machine.boot()
    assert [one.sums() for one in shops] == before


def other_host(one: Shop) -> list[tuple[int, bytes]]:
    """Where its flash says whose it is, and what it would say of somebody else's."""
    found = list[tuple[int, bytes]]()
    with one.server.flashes.open("rb") as file:
        for at in LABELS_AT:
            start = (1 + (one.number - 1) * FLASH_MIB) * MIB + at
            file.seek(start)
            copy = label.parse(file.read(LABEL).decode())
            assert copy is not None
            body = re.sub(r'"host":"\w{32}"', f'"host":"{"0" * 32}"', copy.body)
            found.append((start, label.Label(copy.generation, body).render().encode()))
    return found


def overwritten(file: object, place: int, words: bytes) -> bytes:
    """Write to a disk of a machine that is off; returns what was there."""
    descriptor = os.open(str(file), os.O_RDWR)
    try:
        before = os.pread(descriptor, len(words), place)
        os.pwrite(descriptor, words, place)
    finally:
        os.close(descriptor)
    return before


@pytest.mark.parametrize(
    "target",
    [
        "multi-user.target",
        pytest.param("rescue.target", marks=pytest.mark.night),
        pytest.param("emergency.target", marks=pytest.mark.night),
    ],
)
def test_who_isolates_a_target_ends_no_tier(shops: list[Shop], target: str) -> None:
    """As the end of emergency mode does; what isolates is not ended by that itself."""
    machine, engine = shops[0].server, f"hotset-engine-{shops[2].name}.service"
    before, (pid,) = [one.sums() for one in shops], machine.asked(engine, "MainPID")
    machine.sh(
        "systemd-run --quiet --unit lab-isolate --property IgnoreOnIsolate=yes"
        " --property DefaultDependencies=no sh -c"
        f" 'systemctl isolate {target}; sleep 3; systemctl isolate default.target'"
    )

    def is_over() -> bool:
        return machine.asked("lab-isolate.service", "ActiveState") == ["inactive"]

    assert wait_until(is_over, PATIENCE_S, 1)
    assert machine.asked(engine, "MainPID", "ActiveState") == [pid, "active"]
    for one, sums in zip(shops, before, strict=True):
        assert lifecycle.inspect(one.found).report.state == "active"
        assert wait_until(one.is_mounted, 60)
        assert one.sums() == sums
        one.write("after")
        machine.sh(f"rm {one.folder}/after; sync -f {one.folder}")


def test_an_engine_that_is_killed_or_hangs_is_back(shops: list[Shop]) -> None:
    one = shops[2]
    machine, engine = one.server, f"hotset-engine-{one.name}.service"
    before = one.sums()
    drop_in = f"/run/systemd/system/{engine}.d"
    machine.sh(
        f"mkdir -p {drop_in}; printf '[Service]\\nWatchdogSec=2\\n' > {drop_in}/lab.conf;"
        " systemctl daemon-reload"
    )
    for signal in ("KILL", "STOP"):
        pid, times = machine.asked(engine, "MainPID", "NRestarts")
        machine.sh(f"kill -{signal} {pid}")
        back = [str(int(times) + 1), "active"]
        states = list[str]()

        def is_back(back: list[str] = back, states: list[str] = states) -> bool:
            states.append(lifecycle.inspect(one.found).report.state)
            return machine.asked(engine, "NRestarts", "ActiveState") == back

        assert wait_until(is_back, PATIENCE_S, 0.2)
        # One that hangs stands until the watchdog ends it.
        assert signal == "STOP" or "restarting" in states
        assert machine.asked(engine, "MainPID") != [pid]
        # Whoever has the old device sees errors, never old data. What was mounted at boot, systemd
        # unmounts by itself.
        read = ["dd", f"if={one.folder}/before", "of=/dev/null", "iflag=direct", "bs=64k"]
        assert machine.machine.run(read, check=False).rc
        machine.sh(f"umount -q {one.folder} || :; mount {one.folder}")
        assert one.is_mounted()
        assert one.sums() == before
    machine.sh(f"rm -r {drop_in}; systemctl daemon-reload")


@pytest.mark.night
def test_an_engine_is_not_started_by_systemctl_alone(shops: list[Shop]) -> None:
    """Nobody would have looked whether the disk was written to since it was stopped."""
    one = shops[2]
    machine, engine = one.server, f"hotset-engine-{one.name}.service"
    before = one.sums()
    machine.sh(f"umount -q {one.folder} || :; systemctl stop {engine}")
    for _ in range(2):
        assert machine.machine.run(["systemctl", "start", engine], check=False).rc
        machine.sh(f"systemctl reset-failed {engine}")
    log = machine.sh(f"cat /run/hotset/engine/{one.name}/log")
    assert f"hotset tier activate {one.name}" in log
    lifecycle.activate(one.found, lambda _: None, flash_counts=True)
    machine.sh(f"mount {one.folder}")
    assert one.is_mounted()
    assert one.sums() == before


@pytest.mark.night
def test_a_disk_activated_by_hand_is_taken_down_by_the_next_shutdown(shops: list[Shop]) -> None:
    """Its unit stayed failed after a boot at which it was, so nothing stopped it; and with --unit,
    the unit's start waited for the lock of the command that waited for the start."""
    one = shops[2]
    machine, before = one.server, one.sums()
    machine.sh(f"umount -q {one.folder} || :; umount -q {one.folder}-log || :")
    machine.sh(f"systemctl stop {one.unit}")
    drop_in(machine, one.unit, "[Service]\nExecStartPre=/bin/false\n")
    machine.sh("systemctl daemon-reload")
    assert machine.machine.run(["systemctl", "start", one.unit], check=False).rc
    machine.sh(f"rm -r /etc/systemd/system/{one.unit}.d; systemctl daemon-reload")
    assert machine.asked(one.unit, "ActiveState") == ["failed"]
    machine.hotset("tier", "activate", one.name)
    assert machine.asked(one.unit, "ActiveState") == ["active"]
    machine.hotset("tier", "activate", one.name, "--unit", "--yes")
    machine.sh(f"mount {one.folder}; mount {one.folder}-log")
    assert one.is_mounted()
    assert one.sums() == before
    machine.sh(f"umount {one.folder} {one.folder}-log; systemctl stop {one.unit}")
    assert lifecycle.inspect(one.found).report.state == "inactive"
    machine.sh(f"systemctl start {one.unit}; mount {one.folder}; mount {one.folder}-log")


def timed(one: Shop) -> str:
    """The unit of its schedule, without its kind."""
    return f"hotset-warmup-{one.name}-timed"


def await_run(machine: Server, unit: str, after: int) -> None:
    """Wait until it has run since (:func:`ran_at`). To ask costs the machine, which has one
    processor, as much as it takes from a warm-up."""
    ran = wait_until(lambda: ran_at(machine, unit) > after, PATIENCE_S, 3)
    assert ran, machine.sh(f"systemctl status --lines 40 {unit}.timer {unit}.service || :")


def ran_at(server: Server, unit: str) -> int:
    """When a service's last run ended, by the machine's clock since its start; 0: it did not. Also
    while it runs again, as it always does where it takes longer than until the next time."""
    return int(server.asked(f"{unit}.service", "InactiveEnterTimestampMonotonic")[0])


def add_schedule(one: Shop, *words: str) -> None:
    one.server.hotset("warmup", "schedule", "add", *words, "--disk", one.name)


@pytest.mark.night
def test_a_warm_up_at_its_time_fills_the_cache(shops: list[Shop]) -> None:
    """Not bcache's: User-Mode Linux does not show what that holds."""
    machine, often = shops[0].server, ["--at", "*:*:0/20"]
    # It was soiled: nothing is moved.
    machine.sh(f"dmsetup message {shops[0].device.name} 0 migration_threshold 2048")
    warmed = [shops[0], shops[2]]
    for one in warmed:
        add_schedule(one, one.cold, *often)
    add_schedule(shops[1], "/srv/none", *often)
    units = [timed(one) for one in shops]
    # Twice: on line the kernel's policy promotes no more at a time than it likes to.
    for _ in range(2):
        before = {unit: ran_at(machine, unit) for unit in units}
        # One after the other: while one runs, it has not ended.
        for unit in units:
            await_run(machine, unit, after=before[unit])
    machine.sh(f"systemctl stop {' '.join(f'{unit}.timer' for unit in units)}")
    listed = "systemctl list-units --all --plain --no-legend 'hotset-warmup-*'"
    assert wait_until(lambda: "activating" not in machine.sh(listed), PATIENCE_S, 0.2)
    for one in warmed:
        assert one.read_misses() <= 0.05 * 33
    assert outcomes(machine) == {
        "bcache-timed": ("failed", True),
        "dmcache-timed": ("done", True),
        "userspace-timed": ("done", True),
    }
    told = health(machine)
    # A warm-up that failed, and two whose timers were stopped.
    assert "bcache-timed (*:*:0/20) failed" in told["bcache", "warm-ups"]
    assert "dmcache-timed (*:*:0/20) is not enabled" in told["dmcache", "warm-ups"]
    assert re.fullmatch(r"ok: \d+ % used", told["dmcache", "metadata"])
    assert told["dmcache", "thin pools"] == "ok: it lies on none"
    for one in shops[1:]:
        machine.hotset("warmup", "schedule", "remove", f"{one.name}-timed")


def health(server: Server) -> dict[tuple[str, str], str]:
    """What is found of each disk on the server itself, by disk and subject."""
    said = server.sh(f"{HOTSET} tier health --format json 2> /dev/null || test $? = 5")
    found: dict[tuple[str, str], str] = {}
    for one in json.loads(said)["findings"]:
        key, text = (one["disk"], one["subject"]), f"{one['state']}: {one['text']}"
        found[key] = f"{found[key]}; {text}" if key in found else text
    return found


def outcomes(server: Server) -> dict[str, tuple[str, bool]]:
    """How the last run of each schedule came out, and whether it is told when."""
    found = json.loads(server.hotset("warmup", "schedule", "list", "--format", "json"))
    return {row["name"]: (row["last"], bool(row["ended"])) for row in found["schedules"]}


@pytest.mark.night
def test_a_schedule_in_the_place_of_another_waits_for_its_own_time(shops: list[Shop]) -> None:
    """Systemd would make up for a time that passed before there was such a schedule."""
    one, unit = shops[0], timed(shops[0])
    machine = one.server
    missed(one)
    before = ran_at(machine, unit)
    add_schedule(one, one.cold, "--at", machine.sh("date -d '1 hour ago' +%H:%M"))
    machine.sh("sleep 2")
    assert machine.asked(f"{unit}.service", "ActiveState") == ["inactive"]
    assert ran_at(machine, unit) in (0, before)


def missed(one: Shop) -> None:
    """As if its warm-up had last begun two days ago."""
    stamp = f"/var/lib/systemd/timers/stamp-{timed(one)}.timer"
    one.server.sh(f"test -e {stamp}; touch -d '2 days ago' {stamp}")


@pytest.mark.night
def test_a_boot_waits_for_what_is_slow(shops: list[Shop]) -> None:
    """Mounts for the tier's unit, longer than for a device; the warm-up that the shutdown kept from
    its time, and what was cached then, for the mount."""
    machine, name = shops[0].server, shops[2].name
    missed(shops[0])
    for occasion in ("shutdown", "boot"):
        add_schedule(shops[2], f"--on-{occasion}")
    with slow(shops):
        machine.shut_down()
        machine.boot()
    assert machine.sh("systemctl --failed --plain --no-legend") == ""
    for one, unit in ((shops[0], timed(shops[0])), (shops[2], f"hotset-warmup-{name}-boot")):
        assert one.is_mounted()
        mounted = int(machine.asked(one.mount, "ActiveEnterTimestampMonotonic")[0])
        await_run(machine, unit, after=0)
        assert int(machine.asked(f"{unit}.service", "ExecMainStartTimestampMonotonic")[0]) > mounted
    for one in shops:
        assert machine.sh(f"findmnt --noheadings --output SOURCE {one.folder}-log")
    told = outcomes(machine)
    assert told["dmcache-timed"] == ("done", True)
    assert told[f"{name}-boot"] == told[f"{name}-shutdown"] == ("done", True)


SLOW = "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sleep 5\n"


@contextmanager
def slow(shops: list[Shop]) -> Iterator[None]:
    """Every tier takes longer than a mount waits for a device, and every mount takes its time."""
    machine, folder = shops[0].server, PurePosixPath("/etc/systemd/system")
    put_text(machine.machine, SLOW, folder / "lab-slow.service")
    for one in shops:
        slowly = f"[Service]\nExecStartPre=/bin/sleep {WAIT_S + 3}\n"
        drop_in(machine, one.unit, slowly)
        drop_in(machine, one.mount, "[Unit]\nAfter=lab-slow.service\nWants=lab-slow.service\n")
    yield
    for one in shops:
        machine.sh(f"rm -r {folder}/{one.unit}.d {folder}/{one.mount}.d")
    machine.sh(f"rm {folder}/lab-slow.service; systemctl daemon-reload")


def drop_in(server: Server, unit: str, lines: str) -> None:
    folder = PurePosixPath(f"/etc/systemd/system/{unit}.d")
    server.sh(f"mkdir -p {folder}")
    put_text(server.machine, lines, folder / "lab.conf")


@pytest.mark.night
def test_a_disk_that_is_given_back_leaves_no_unit(shops: list[Shop]) -> None:
    """The last one: the others need the disks."""
    machine = shops[0].server
    sums = {one.name: machine.sh(f"md5sum {one.files}") for one in shops}
    assert len(machine.sh("systemctl list-unit-files --no-legend 'hotset-warmup-*'").split()) > 3
    for one in shops:
        machine.sh(f"umount {one.folder} {one.folder}-log")
        machine.sh(f"sed -i '\\: {one.folder}-log :d' /etc/fstab")
        machine.hotset("tier", "destroy", one.name, "--yes")
    assert machine.sh("systemctl list-units --all --plain --no-legend 'hotset-*'") == ""
    assert machine.sh("systemctl list-unit-files --no-legend 'hotset-*' || :") == ""
    assert machine.sh("find /etc/systemd /run/systemd/generator -name '*hotset*'") == ""
    assert machine.sh("find /etc/hotset/engine -type f") == ""
    assert machine.sh("find /etc/udev/rules.d /var/lib/systemd/timers -name '*hotset*'") == ""
    for one in shops:
        assert machine.sh(f"grep ' {one.folder} ' /etc/fstab") == one.line
        machine.sh(f"systemctl daemon-reload; mount {one.folder}")
        assert one.mounted() == machine.sh(f"readlink -f {one.origin}")
        assert machine.sh(f"md5sum {one.files}") == sums[one.name]
