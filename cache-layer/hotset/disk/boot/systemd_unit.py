"""A systemd unit that makes a disk's devices at boot, or fails and so stops what mounts them.

It calls ``hotset-boot`` (:mod:`.program`), so hotset itself need not be installed on the server.
Nothing of the disk but its name and its flash is in it: all else is read from the flash's label.
Beside it a unit that waits for no device puts down every start of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Literal

from hotset.block import programs
from hotset.core.machines import locks
from hotset.core.machines.base import Machine

from ..flash_devices import AttachedDisk, Disk, FlashDevice, Inventory
from ..identity import origin

FOLDER = PurePosixPath("/etc/systemd/system")
BOOTS = FOLDER / "hotset-boots.service"
"""Puts down every start; ``hotset-boot`` counts them only if systemd is told to do that."""
_COUNTED = PurePosixPath("/etc/hotset/boots")
_SCRIPTS = PurePosixPath("/etc/hotset/boot")
"""Folder of the scripts that units called before version 2 of a flash device's description."""

_START_LIMIT_S, _STOP_LIMIT_S = 900, 300
"""The start reads the metadata of a large cache, and the origin's fingerprint; the stop writes the
metadata."""


def name_of(disk: str) -> str:
    """The unit of a disk's name."""
    return f"hotset-tier-{disk}.service"


def path_of(disk: Disk) -> PurePosixPath:
    return FOLDER / name_of(disk.name)


def install(attached: AttachedDisk) -> PurePosixPath:
    """Write the unit of an active disk, switch it on and start it, so that the next shutdown takes
    the tier down in good order; returns its path.

    :raises CommandError: systemd does not take it.
    """
    machine, disk = attached.machine, attached.disk
    _write(attached)
    machine.run(["rm", "-f", str(_removing(disk))])
    if runs(machine):
        # Which has it read its files again, too.
        machine.run(["systemctl", "enable", path_of(disk).name])
        machine.run(["systemctl", "start", path_of(disk).name])
    return path_of(disk)


def renew(attached: AttachedDisk) -> None:
    """Have the unit fit the disk and this version of hotset, if it has one."""
    if is_installed(attached) and _write(attached):
        reload(attached.machine)


def start(attached: AttachedDisk, say: Callable[[str], None]) -> None:
    """Have the unit of an active disk be active, if it has one: a boot at which it failed, or a
    `systemctl stop`, left it so that the next shutdown would not take the tier down."""
    machine, name = attached.machine, path_of(attached.disk).name
    if not is_installed(attached) or not runs(machine):
        return
    done = machine.run(["systemctl", "start", name], check=False)
    if done.rc:
        say(
            f"{name} cannot be started, so a shutdown would not take {attached.disk.device} down in"
            f" good order: {done.stderr.strip()}"
        )


def count_starts(machine: Machine) -> None:
    """Have systemd put down every start of the machine, for as long as it has a disk: after a crash
    only the very next start knows that nobody wrote to an origin meanwhile."""
    lines = _boots_text(programs.boot(machine))
    if not runs(machine) or machine.run(["cat", str(BOOTS)], check=False).stdout == lines:
        return
    machine.replace(lines, BOOTS)
    machine.run(["systemctl", "enable", "--now", BOOTS.name])


def forget_starts(machine: Machine, inventory: Inventory) -> None:
    """Nobody needs to know of starts any more, once the machine has no disk."""
    if inventory.problems or any(flash.disks for flash in inventory.flash_devices):
        return
    if machine.run(["test", "-e", str(BOOTS)], check=False).rc == 0:
        if runs(machine):
            # Stopped, too: systemd would hold it to be at work until the next boot.
            machine.run(["systemctl", "disable", "--now", BOOTS.name], check=False)
        machine.run(["rm", "-f", str(BOOTS), str(_COUNTED)])


def _write(attached: AttachedDisk) -> bool:
    """Write the units; returns whether that changes something."""
    machine, disk = attached.machine, attached.disk
    remote, called = origin.is_remote(machine, disk.origin), programs.boot(machine)
    files = {
        path_of(disk): text(disk, attached.flash, remote, called, apart=_is_apart(machine, called)),
        **_waits(attached.flash, disk),
    }
    changed = False
    for path, lines in files.items():
        if machine.run(["cat", str(path)], check=False).stdout != lines:
            machine.replace(lines, path)
            changed = True
    machine.run(["rm", "-f", str(_script_of(disk))])
    return changed


def _is_apart(machine: Machine, called: str) -> bool:
    """True if a program is on another file system than the root, which a boot mounts later."""
    argv = ["findmnt", "--noheadings", "--output", "TARGET", "--target", called]
    return machine.run(argv, check=False).stdout.strip() not in ("", "/")


def _script_of(disk: Disk) -> PurePosixPath:
    return _SCRIPTS / f"{disk.name}.sh"


def is_installed(attached: AttachedDisk) -> bool:
    """True if a boot activates the disk without hotset being called."""
    return attached.machine.run(["test", "-e", str(path_of(attached.disk))], check=False).rc == 0


def remove(attached: AttachedDisk, answers: bool = True) -> None:
    """Take the unit away, if there is one; :func:`reload` ends it.

    :param answers: the flash does. Where it does not, nobody waits for the unit's stop.
    """
    machine, disk = attached.machine, attached.disk
    path = path_of(disk)
    if not is_installed(attached):
        return
    if runs(machine):
        machine.run(["systemctl", "disable", path.name], check=False)
        # Its stop would wait for the lock of whoever is here, and has nothing to do.
        machine.replace("", _removing(disk))
        # Stopped, too: systemd would otherwise hold it to be at work until the next boot.
        machine.run(["systemctl", "stop", *["--no-block"] * (not answers), path.name], check=False)
    waits = list(_waits(attached.flash, disk))
    machine.run(["rm", "-f", *map(str, waits)])
    folders = [str(wait.parent) for wait in waits]
    machine.run(["rmdir", "--ignore-fail-on-non-empty", *folders], check=False)
    # Last: by the unit's file the next removal knows that something is left.
    machine.run(["rm", "-f", str(_script_of(disk)), str(path)])


def _removing(disk: Disk) -> PurePosixPath:
    """Tells the unit's stop that there is nothing for it to do."""
    return locks.RUNTIME / f"removing-{disk.name}"


def reload(machine: Machine) -> None:
    """Have systemd read its files and /etc/fstab again: what an earlier entry mounted goes down
    regardless of the unit."""
    if runs(machine):
        machine.run(["systemctl", "daemon-reload"])


def runs(machine: Machine) -> bool:
    """True if systemd runs the machine (sd_booted(3))."""
    return machine.run(["test", "-d", "/run/systemd/system"], check=False).rc == 0


def text(disk: Disk, flash: FlashDevice, remote: bool, called: str, *, apart: bool = False) -> str:
    """The unit's file.

    :param remote: the origin comes over the network, so it is ready after that.
    :param called: ``hotset-boot`` on the machine.
    :param apart: that is on a file system of its own, such as /usr/local.
    """
    after = "network-online.target iscsi.service" if remote else "systemd-udevd.service"
    wanted = "remote-fs.target" if remote else "local-fs.target"
    below = (flash.path, disk.origin)
    devices = " ".join(device_unit(path) for path in below if path.is_relative_to("/dev"))
    needed = [*below, *[PurePosixPath(called)] * apart]
    files = " ".join(_quote(path) for path in needed if not path.is_relative_to("/dev"))
    # Mounts come after local-fs-pre.target, and so would the one that such a file lies on.
    words = f"--flash {_quote(flash.path).replace('$', '$$')} {disk.name}"
    before = wanted if files else wanted.replace("fs.target", "fs-pre.target")
    return f"""\
# Written by hotset; `hotset tier activate {disk.name} --unit` writes it again.
[Unit]
Description=hotset tier {disk.name} ({disk.kind})
DefaultDependencies=no
IgnoreOnIsolate=yes
{f"Requires={devices}{chr(10)}" if devices else ""}\
{f"RequiresMountsFor={files}{chr(10)}" if files else ""}\
After={f"{devices} {after}".strip()}
Before={before} shutdown.target
{"" if files else f"Wants={before}{chr(10)}"}\
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
# Else a flash that hangs holds the boot for ever.
TimeoutStartSec={_START_LIMIT_S}
TimeoutStopSec={_STOP_LIMIT_S}
ExecStart={called} start {words}
ExecStop={called} stop {words}

[Install]
WantedBy={wanted}
"""


def _boots_text(called: str) -> str:
    return f"""\
# Written by hotset.
[Unit]
Description=hotset: this start of the machine
DefaultDependencies=no
IgnoreOnIsolate=yes
After=systemd-remount-fs.service
# Else a start would not be counted where the program is on a file system of its own.
RequiresMountsFor={called}
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={called} boot

[Install]
WantedBy=sysinit.target
"""


def _waits(flash: FlashDevice, disk: Disk) -> dict[PurePosixPath, str]:
    """Build the drop-ins for the devices that the unit makes: a mount's 90 s for its device
    begin once that has ended, and nobody waits for a device when it has failed."""
    unit, volume = name_of(disk.name), flash.volume_slice.path
    head = f"# Written by hotset.\n[Unit]\nAfter={unit}\n"
    waits = {disk.device: f"{head}Requires={unit}\n"}
    if flash.volume:
        # Another disk of the flash device makes it as well.
        waits[volume] = head
    return {
        FOLDER / f"{device_unit(device)}.d" / f"hotset-{disk.name}.conf": lines
        for device, lines in waits.items()
    }


def _quote(path: PurePosixPath) -> str:
    """A path as a unit's file takes it (systemd.syntax(7), systemd.unit(5) on specifiers).

    >>> _quote(PurePosixPath("/srv/100% \\"flash\\""))
    '"/srv/100%% \\\\"flash\\\\""'
    """
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def device_unit(path: PurePosixPath) -> str:
    """The name of a device's unit."""
    return unit_of(path, "device")


def unit_of(path: PurePosixPath, kind: Literal["device", "mount"]) -> str:
    """The name of a path's unit (systemd-escape --path --suffix=KIND).

    >>> unit_of(PurePosixPath("/dev/disk/by-id/wwn-0x5"), "device")
    'dev-disk-by\\\\x2did-wwn\\\\x2d0x5.device'
    """
    escaped = "".join(
        char
        if char.isascii() and (char.isalnum() or char in "_.")
        else "-"
        if char == "/"
        else "".join(f"\\x{byte:02x}" for byte in char.encode())
        for char in str(path).strip("/")
    )
    return f"{escaped}.{kind}"
