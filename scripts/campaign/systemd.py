"""User-Mode Linux with systemd as its first process, so that a boot does what a server's does.

The guest's root disk is a copy-on-write file: what :func:`set_up` wrote can be kept
(:meth:`Server.keep`) and restored for every boot that is to begin alike.
"""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path, PurePosixPath

from hotset.core.machines.base import CommandError, Machine, MachineGoneError, put_text
from hotset.core.machines.local import Local
from hotset.lab.machines.quick import quick
from hotset.lab.machines.uml import Uml

ROOT_LINE = "/dev/ubda / ext4 defaults 0 1\n"
"""The root disk's entry of /etc/fstab."""

UNITS = PurePosixPath("/etc/systemd/system")
_MIB = 1024**2
_POWER_OFF_LIMIT_S = 180.0
# In the place of the lab's own first process: what an initrd does, and an address.
_INIT = """\
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t hostfs none /lib/modules
ip link set lo up
for word in $(</proc/cmdline); do
    case "$word" in
        hotset.vec0=*) ip link set vec0 mtu 9000 up; ip addr add "${word#*=}" dev vec0 ;;
    esac
done
mount -o remount,ro /
exec /usr/lib/systemd/systemd
"""
_READY = """\
[Unit]
After=ssh.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo hotset-ready > /dev/console'
[Install]
WantedBy=multi-user.target
"""
# What takes long at a boot, and no disk needs.
_MASKED = (
    *("postgresql.service", "tgt.service", "getty.target", "systemd-pstore.service"),
    *("e2scrub_reap.service", "systemd-logind.service", "systemd-journal-flush.service"),
)
_MANAGER = """\
[Manager]
DefaultDeviceTimeoutSec=15s
DefaultTimerAccuracySec=1s
"""


class Server:
    """The machine as it is up now.

    :ivar machine: runs commands on it; another one after each boot.
    :ivar flashes: the file behind its disk ``ubdb``.
    """

    def __init__(self, guest: Machine, folder: Path) -> None:
        """:param guest: a :class:`Uml`, and the folder of its lab."""
        assert isinstance(guest, Uml)
        self.guest = guest
        self.machine: Machine = guest
        self.flashes = folder / "flash.img"
        self._root = folder / "root.cow"
        self._stack = ExitStack()

    def sh(self, script: str, timeout_s: float = 120) -> str:
        """Run a shell script on it; returns what it printed."""
        return self.machine.run(["sh", "-ec", script], timeout_s=timeout_s).stdout.strip()

    def power_cut(self) -> None:
        """Pull the plug."""
        self._stack.close()
        self.guest.power_cut()

    def shut_down(self) -> None:
        """As an administrator does it: every unit is stopped.

        :raises MachineGoneError: it does not end.
        """
        ended, begun = os.pidfd_open(self.guest.pid), time.monotonic()
        with suppress(MachineGoneError, CommandError):
            self.machine.run(["systemctl", "--no-block", "poweroff"])
        self._stack.close()
        ready, _, _ = select.select([ended], [], [], _POWER_OFF_LIMIT_S)
        os.close(ended)
        if not ready:
            raise MachineGoneError(f"it did not power off in {_POWER_OFF_LIMIT_S:.0f} s")
        print(f"down in {time.monotonic() - begun:.1f} s")
        self.guest.power_cut()

    def boot(self) -> None:
        """Switch it on, and wait until systemd has done everything."""
        begun = time.monotonic()
        self.guest.power_on()
        print(f"up in {time.monotonic() - begun:.1f} s")
        self.machine = self._stack.enter_context(quick(self.guest))
        # It may be up before all of its disks are.
        self.sh("udevadm settle; systemctl is-system-running --wait || :")

    def keep(self) -> None:
        """Remember the root disk of a machine that is off."""
        Local().run(["cp", "--sparse=always", str(self._root), str(self._kept)])

    def restore(self) -> None:
        """Give a machine that is off the root disk of :meth:`keep` again."""
        Local().run(["cp", "--sparse=always", str(self._kept), str(self._root)])

    @property
    def _kept(self) -> Path:
        return self._root.with_name("root.kept")


def set_up(machine: Machine, rules: str, fstab: str = ROOT_LINE) -> None:
    """Have the next boot start systemd.

    :param rules: udev's, which name the disks.
    :param fstab: the text of /etc/fstab.
    """
    put_text(machine, _INIT, PurePosixPath("/usr/sbin/hotset-init"), 0o755)
    put_text(machine, rules, PurePosixPath("/etc/udev/rules.d/10-lab.rules"))
    put_text(machine, _READY, UNITS / "lab-ready.service")
    put_text(machine, fstab, PurePosixPath("/etc/fstab"))
    script = (
        # Each is run at every reload, which takes a second.
        "mkdir -p /etc/systemd/system-generators; cd /usr/lib/systemd/system-generators;"
        " for one in *; do [ $one = systemd-fstab-generator ] ||"
        " ln -s /dev/null /etc/systemd/system-generators/$one; done;"
        f" mkdir -p {UNITS}/multi-user.target.wants /etc/systemd/system.conf.d;"
        f" ln -s ../lab-ready.service {UNITS}/multi-user.target.wants/;"
        f" cd {UNITS}; rm -rf timers.target.wants;"
        f" for one in {' '.join(_MASKED)}; do ln -sf /dev/null $one; done"
    )
    machine.run(["sh", "-ec", script])
    put_text(machine, _MANAGER, PurePosixPath("/etc/systemd/system.conf.d/lab.conf"))
    machine.run(["sync"])


def partition(disk: Path, sizes_mib: Sequence[int]) -> None:
    """Write an MS-DOS table of up to four partitions, one behind the other from the first MiB on.

    :param disk: a file of at least a MiB more than the partitions have.
    """
    kind, at, table = bytes((0, 0, 0, 0, 0x83, 0, 0, 0)), 1, b""
    for size in sizes_mib:
        table += struct.pack("<8sII", kind, at * _MIB // 512, size * _MIB // 512)
        at += size
    identity = struct.pack("<IH", sum(sizes_mib), 0)
    with disk.open("r+b") as file:
        file.seek(440)
        file.write(identity + table.ljust(64, b"\0") + b"\x55\xaa")
