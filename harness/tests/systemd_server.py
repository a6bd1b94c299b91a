"""A server: the lab's machine with systemd as its first process, three flash devices, three slow
disks, and hotset."""

from __future__ import annotations

import os
import select
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

import pytest

from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.base import CommandError, Machine, MachineGoneError, put_text
from hotset.cachelayer.hosts.local import Local
from hotset.cachelayer.testbed.lab import Lab, LabSpec
from hotset.cachelayer.testbed.machines.quick import quick
from hotset.cachelayer.testbed.machines.uml import Uml
from tests.inside_guest import guest_disk
from tests.own_lab import own_lab

MIB = 1024**2
FLASH_MIB, ORIGIN_MIB, INSIDE_MIB = 128, 64, 2048
_HOTSET = """\
#!/bin/sh
export PYTHONPATH=/opt/lab/site HOTSET_FLASHDEV=/opt/lab/flashdev
exec python3 -c 'from hotset.harness.cli import main; main()' "$@"
"""
_FSTAB = """\
/dev/ubda / ext4 defaults 0 1
/dev/disk/by-id/lab-origin4 /opt/lab ext4 defaults 0 0
"""
HOTSET = PurePosixPath("/usr/local/bin/hotset")
_LIMIT_S = 60.0
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
_RULES = """\
KERNEL=="ubdb[0-9]*", SYMLINK+="disk/by-id/lab-flash%n"
KERNEL=="ubdc[0-9]*", SYMLINK+="disk/by-id/lab-origin%n"
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
    """The machine, and the files behind its disks."""

    def __init__(self, lab: Lab, origins: Path) -> None:
        assert isinstance(lab.machine, Uml)
        self._guest = lab.machine
        self._stack = ExitStack()
        self.flashes = lab.folder / "flash.img"
        self.origins = origins
        self.machine: Machine = lab.machine

    def sh(self, script: str, timeout_s: float = 120) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=timeout_s).stdout.strip()

    def hotset(self, *words: str) -> str:
        """A command of hotset's on the server itself."""
        run = ["sh", "-c", 'exec "$0" "$@"', str(HOTSET), *words]
        return self.machine.run(run, timeout_s=300).stdout

    def asked(self, unit: str, *names: str) -> list[str]:
        """What systemd says of a unit."""
        wanted = [word for name in names for word in ("-p", name)]
        said = self.machine.run(["systemctl", "show", unit, *wanted]).stdout.splitlines()
        values = dict(line.split("=", 1) for line in said)
        return [values[name] for name in names]

    def power_cut(self) -> None:
        self._stack.close()
        self._guest.power_cut()

    def shut_down(self) -> None:
        """As an administrator does it: every unit is stopped."""
        ended, begun = os.pidfd_open(self._guest.pid), time.monotonic()
        with suppress(MachineGoneError, CommandError):
            self.machine.run(["systemctl", "--no-block", "poweroff"])
        self._stack.close()
        found, _, _ = select.select([ended], [], [], _LIMIT_S)
        os.close(ended)
        assert found, "it does not end"
        print(f"down in {time.monotonic() - begun:.1f} s")
        self._guest.power_cut()

    def boot(self) -> None:
        begun = time.monotonic()
        self._guest.power_on()
        print(f"up in {time.monotonic() - begun:.1f} s")
        self.machine = self._stack.enter_context(quick(self._guest))
        # It may be up before all of its disks are.
        self.sh("udevadm settle; systemctl is-system-running --wait || :")


@contextmanager
def server(factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It is up, and none of its disks is accelerated."""
    origins = factory.mktemp("disks") / "origins.img"
    with origins.open("wb") as file:
        file.truncate((1 + 3 * ORIGIN_MIB + INSIDE_MIB) * MIB)
    _partition(origins, ORIGIN_MIB, INSIDE_MIB)
    inside = guest_disk(factory.mktemp("inside"), {}, f"{INSIDE_MIB}m")
    place = ["bs=1M", f"seek={1 + 3 * ORIGIN_MIB}", "conv=sparse,notrunc", "status=none"]
    Local().run(["dd", f"if={inside}", f"of={origins}", *place])
    inside.unlink()
    size = Bytes((1 + 3 * FLASH_MIB) * MIB)
    spec = LabSpec("uml", 1, Bytes(768 * MIB), size, saved=origins, saved_readonly=False)
    with own_lab(factory, spec) as lab:
        found = Server(lab, origins)
        _become_a_server(found)
        found.power_cut()
        _partition(found.flashes, FLASH_MIB)
        found.boot()
        yield found
        found.power_cut()


def _become_a_server(found: Server) -> None:
    machine, units = found.machine, PurePosixPath("/etc/systemd/system")
    put_text(machine, _INIT, PurePosixPath("/usr/sbin/hotset-init"), 0o755)
    put_text(machine, _RULES, PurePosixPath("/etc/udev/rules.d/10-lab.rules"))
    put_text(machine, _READY, units / "lab-ready.service")
    put_text(machine, _FSTAB, PurePosixPath("/etc/fstab"))
    put_text(machine, _HOTSET, HOTSET, 0o755)
    found.sh(
        "mkdir -p /opt/lab;"
        # Each is run at every reload, which takes a second.
        "mkdir -p /etc/systemd/system-generators; cd /usr/lib/systemd/system-generators;"
        " for one in *; do [ $one = systemd-fstab-generator ] ||"
        " ln -s /dev/null /etc/systemd/system-generators/$one; done;"
        f" mkdir -p {units}/multi-user.target.wants /etc/systemd/system.conf.d;"
        f" ln -s ../lab-ready.service {units}/multi-user.target.wants/;"
        f" cd {units}; rm -rf timers.target.wants;"
        f" for one in {' '.join(_MASKED)}; do ln -sf /dev/null $one; done"
    )
    put_text(machine, _MANAGER, PurePosixPath("/etc/systemd/system.conf.d/lab.conf"))
    found.sh("sync")


def _partition(disk: Path, mib: int, last: int = 0) -> None:
    """An MS-DOS table with three partitions of a size, and perhaps one of another behind them."""
    kind, sizes = bytes((0, 0, 0, 0, 0x83, 0, 0, 0)), [mib] * 3 + [last] * bool(last)
    table = b"".join(
        struct.pack("<8sII", kind, (1 + at * mib) * 2048, size * 2048)
        for at, size in enumerate(sizes)
    ).ljust(64, b"\0")
    identity = struct.pack("<IH", mib, 0)
    with disk.open("r+b") as file:
        file.seek(440)
        file.write(identity + table + b"\x55\xaa")
