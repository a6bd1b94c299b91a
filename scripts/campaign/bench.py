"""One disk of a server that systemd runs, whose files are known: prepared, brought back as its
administrator would, and read again.

Flash and origin are partitions of the guest's flash disk, so that nothing else is in the way. The
origin's file system is in /etc/fstab, so ``create`` installs the unit that makes the tier at boot
and has it mounted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal, get_args

from hotset.core.machines.base import CommandError, Machine, Result
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk import repair as repairing
from hotset.disk import resize as resizing
from hotset.disk import settings as retuning
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import AttachedDisk
from hotset.lab.lab import Lab
from hotset.tier.base import MetadataDamagedError, TierKind

from . import systemd
from .systemd import Server
from .writer import Writer

Verb = Literal[
    "create",
    "deactivate",
    "activate",
    "flush",
    "grow",
    "shrink",
    "set",
    "repair",
    "repair clean",
    "detach",
]
VERBS: tuple[Verb, ...] = get_args(Verb)
MIB = 1024**2
FOLDER = PurePosixPath("/srv/shop")
RECORDS = FOLDER / "records"
NAME = "shop"
FLASH, ORIGIN = (PurePosixPath(f"/dev/disk/by-id/lab-{name}") for name in ("flash", "origin"))
RULES = """\
KERNEL=="ubdb1", SYMLINK+="disk/by-id/lab-flash"
KERNEL=="ubdb2", SYMLINK+="disk/by-id/lab-origin"
"""
PARTITIONS_MIB = (224, 96)
_UUID = "5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b00"
FSTAB = (
    f"{systemd.ROOT_LINE}"
    f"UUID={_UUID} {FOLDER} ext4 defaults,nofail,x-systemd.device-timeout=8s 0 2\n"
)
_FILES_MIB, _BEHIND_MIB = 80, 84
_SPACE_MAP = 80
_ROUNDS = 5
Files = frozenset[str]
"""A line a file: its checksum and its name; and one of what lies behind the file system."""


def server(lab: Lab) -> Server:
    """The lab's machine as a server without tiers, off."""
    server = Server(lab.machine, lab.folder)
    systemd.set_up(server.machine, RULES, FSTAB)
    server.sh(f"mkdir -p {FOLDER}; sync")
    server.power_cut()
    server.keep()
    return server


def boot_fresh(server: Server) -> None:
    """Switch it on as a server that never had a tier, with blank disks."""
    server.restore()
    size = server.flashes.stat().st_size
    for bytes_ in (0, size):
        os.truncate(server.flashes, bytes_)
    systemd.partition(server.flashes, PARTITIONS_MIB)
    server.boot()


def nothing(_: object) -> None:
    """Takes what a verb says."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A disk of one kind on a server that is up, and one verb of its life."""

    server: Server
    kind: TierKind
    verb: Verb

    @property
    def machine(self) -> Machine:
        return self.server.machine

    def sh(self, script: str) -> str:
        return self.server.sh(script)

    def prepare(self) -> Files:
        """Everything as the verb is to find it; returns what has to be read ever after."""
        self.sh(
            f"mke2fs -q -F -t ext4 -U {_UUID} -E lazy_itable_init=0 {ORIGIN} {_FILES_MIB}M;"
            " udevadm settle"
        )
        self._write(ORIGIN, "before")
        if self.verb == "create":
            return self.read(ORIGIN)
        self.create(self.machine)
        device = self.attached().disk.device
        self._hold_back(device)
        self._write(device, "after")
        before = self.read(device)
        if self.verb == "repair clean":
            lifecycle.flush(self.attached(), nothing)
        if self.verb in ("activate", "repair", "repair clean"):
            lifecycle.deactivate(self.attached(), nothing)
        if self.verb in ("repair", "repair clean"):
            self._spoil()
        # What was written is to be there after a power cut, whatever the verb does.
        self.sh("sync")
        return before

    def perform(self, machine: Machine) -> None:
        """The verb itself, on a machine that may die."""
        if self.verb == "create":
            self.create(machine)
            return
        attached = replace(self.attached(), machine=machine)
        verbs: dict[Verb, Callable[[], object]] = {
            "deactivate": lambda: lifecycle.deactivate(attached, nothing),
            "activate": lambda: lifecycle.activate(attached, nothing),
            "flush": lambda: lifecycle.flush(attached, nothing),
            "grow": lambda: self._resize(machine, 112),
            "shrink": lambda: self._resize(machine, 72),
            "set": lambda: retuning.retune(attached, None, "writethrough", nothing, nothing),
            "repair": lambda: repairing.repair(attached, nothing, yes=True),
            "repair clean": lambda: repairing.repair(attached, nothing),
            "detach": lambda: self.detach(attached),
        }
        verbs[self.verb]()

    def writer(self) -> Writer:
        """One at work on the tier, which is mounted until it ends."""
        self.sh(f"mount {self.attached().disk.device} {FOLDER}")
        return Writer(self.server.guest, RECORDS)

    def use(self) -> Files:
        """What a database does that finds its file system mounted after a boot: it writes. Returns
        the files; none where nothing is mounted."""
        if not self._is_mounted():
            return frozenset()
        written = self.sh(
            f"cd {FOLDER}; for n in 1 2; do head -c 400000 /dev/urandom > later$n; done; sync;"
            " md5sum ./later1 ./later2; cd /"
        )
        self._unmount()
        return frozenset(written.splitlines())

    def verdict(self, before: Files, writer: Writer | None = None) -> str | None:
        """Go on as a user would, read all, detach, read all again; what is wrong, if anything."""
        try:
            device = self.recover(untouched=True)
            if writer is not None:
                self._end(writer)
            if device is not None:
                fault = self._wrong(device, before, writer)
                if fault:
                    return f"through the tier: {fault}"
                self.detach(self.attached())
            fault = self._wrong(ORIGIN, before, writer)
            if fault:
                return f"on the origin: {fault}"
            self.sh(f"e2fsck -fn {ORIGIN}")
            return self._find_leftovers()
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:400]}"

    def _find_leftovers(self) -> str | None:
        """What of a disk that is plain again is still there."""
        text = self.sh("cat /etc/fstab")
        if text != FSTAB.strip():
            return f"/etc/fstab is not as it was: {text}"
        units = self.sh(f"ls -d {systemd.UNITS}/*hotset* 2> /dev/null || :")
        return f"units are left: {units}" if units else None

    def _end(self, writer: Writer) -> None:
        """Where the machine was not switched off meanwhile, its writer goes on."""
        if self._is_mounted():
            writer.require_more(1)
            writer.end()
            self._unmount()

    def _is_mounted(self) -> bool:
        return self.sh(f"grep -c ' {FOLDER} ' /proc/mounts || :") != "0"

    def _unmount(self) -> None:
        # The writer there ends a moment after it was told to.
        self.sh(f"n=0; until umount {FOLDER}; do n=$((n + 1)); [ $n -lt 100 ]; sleep 0.1; done")

    def _wrong(self, device: PurePosixPath, before: Files, writer: Writer | None) -> str | None:
        now = self.read(device)
        if not before <= now:
            lost, instead = sorted(before - now), sorted(now - before)
            return (
                f"{len(lost)} of {len(before)} differ: {', '.join(lost)[:200]}; there is"
                f" {', '.join(instead)[:200] or 'nothing instead'}"
            )
        if writer is None:
            return None
        self.sh(f"mount {device} {FOLDER}")
        missing = writer.missing(self.machine, RECORDS)
        self.sh(f"umount {FOLDER}")
        return missing

    def create(self, machine: Machine) -> None:
        sizes = (Bytes(80 * MIB), Bytes(8 * MIB))
        wanted = CreateRequest(NAME, FLASH, ORIGIN, self.kind, "oltp", *sizes)
        creation.create(machine, wanted, True, nothing)

    def _resize(self, machine: Machine, mib: int) -> None:
        attached = replace(self.attached(), machine=machine)
        resizing.resize(attached, Bytes(mib * MIB), True, nothing, nothing)

    def detach(self, attached: AttachedDisk) -> None:
        lifecycle.detach(attached, False, False, nothing, nothing)

    def attached(self) -> AttachedDisk:
        return flash_devices.find(self.machine, NAME)

    def recover(self, untouched: bool) -> PurePosixPath | None:
        """The tier, active again by what a user would do; None where the disk is plain again.

        :param untouched: the user knows that nobody wrote to the origin past the tier.
        :raises OriginChangedError: nobody knows, and the flash holds writes that the origin lacks.
        """
        for _ in range(_ROUNDS):
            disks = flash_devices.list_disks(self.machine)
            if not disks or disks[0].disk.phase == "creating":
                if self.verb == "detach":
                    return None
                self.create(self.machine)
                continue
            attached = disks[0]
            if attached.disk.phase == "detaching":
                self.detach(attached)
                return None
            try:
                lifecycle.activate(attached, nothing)
            except MetadataDamagedError:
                repairing.repair(attached, nothing, yes=True)
            except lifecycle.OriginChangedError:
                if not untouched:
                    raise
                lifecycle.keep_flash(attached)
                continue
            report = self.attached().tier.report()
            if report.state != "active":
                raise CommandError(
                    "tier", Result(("report",), 1, report.state, " ".join(report.notes), 0.0)
                )
            return attached.disk.device
        raise AssertionError("it does not settle")

    def _hold_back(self, device: PurePosixPath) -> None:
        """Have the kernel write nothing back of itself, so that the flash matters. The engine in
        user space cannot be told; it waits for the origin to be idle."""
        if self.kind == "dm-cache":
            self.sh(f"dmsetup message {device.name} 0 migration_threshold 0")
        elif self.kind == "bcache":
            self.sh("for f in /sys/block/dm-*/bcache/writeback_running; do echo 0 > $f; done")

    def _write(self, device: PurePosixPath, names: str) -> None:
        self.sh(
            f"mount {device} {FOLDER}; cd {FOLDER};"
            f" for n in 1 2 3; do head -c 1500000 /dev/urandom > {names}$n; done; sync; cd /;"
            f" umount {FOLDER};"
            f" dd if=/dev/urandom of={device} bs=64k seek={_BEHIND_MIB * 16} count=64"
            " oflag=direct status=none"
        )

    def read(self, device: PurePosixPath) -> Files:
        """Checksums of every file, and of what lies behind the file system."""
        output = self.sh(
            f"mount {device} {FOLDER}; cd {FOLDER};"
            f" find . -type f ! -path ./{RECORDS.name} | xargs -r md5sum; cd /;"
            f" umount {FOLDER};"
            f" dd if={device} bs=64k skip={_BEHIND_MIB * 16} count=64 iflag=direct status=none"
            " | md5sum"
        )
        return frozenset(output.splitlines())

    def _spoil(self) -> None:
        """Damage the index of the metadata's space map: what ``cache_repair`` can mend. Of a clean
        cache, what the metadata begin with."""
        at = self.attached().disk.metadata[0].start // 4096
        if self.verb == "repair clean":
            self.sh(
                f"dd if=/dev/urandom of={FLASH} bs=4096 seek={at} count=256 oflag=direct"
                " conv=notrunc status=none"
            )
            return
        self.sh(
            f"block=$(dd if={FLASH} bs=4096 skip={at} count=1 iflag=direct status=none"
            f" | od -An -tu8 -j {_SPACE_MAP} -N 8 | tr -d ' ');"
            f" dd if=/dev/zero of={FLASH} bs=4096 seek=$(({at} + block)) count=1 oflag=direct"
            " conv=notrunc status=none"
        )
