"""A systemd unit that makes a disk's devices at boot: its ExecStart lines are the very commands.

hotset itself need not be installed on the server. The unit is written anew by
``hotset tier activate --unit`` after a resize.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from hotset.cachelayer import dmcache
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.bcachekernel import SYS
from hotset.cachelayer.card import Card, Disk, built
from hotset.cachelayer.flash import Place, device_size, mapper_path
from hotset.cachelayer.machine import Machine, put_text
from hotset.cachelayer.units import Bytes

FOLDER = PurePosixPath("/etc/systemd/system")
_REMOTE = frozenset(("iscsi", "fc", "fcoe", "nvme-tcp"))


def name_of(disk: str) -> str:
    """The unit of a disk's name."""
    return f"hotset-tier-{disk}.service"


def path_of(disk: Disk) -> PurePosixPath:
    return FOLDER / name_of(disk.name)


def install(machine: Machine, card: Card, disk: Disk) -> PurePosixPath:
    """Write the unit of a disk that stands and switch it on; returns its path."""
    argv = ["lsblk", "--json", "--nodeps", "--output", "NAME,TRAN", str(disk.origin)]
    listed = json.loads(machine.run(argv).stdout or "{}").get("blockdevices", [{}])
    remote = listed[0].get("tran") in _REMOTE
    path = path_of(disk)
    put_text(machine, text(disk, card, commands(machine, card, disk), remote), path)
    machine.run(["systemctl", "daemon-reload"], check=False)
    machine.run(["systemctl", "enable", path.name], check=False)
    return path


def installed(machine: Machine, disk: Disk) -> bool:
    """Whether a boot activates the disk without hotset being asked."""
    return machine.run(["test", "-e", str(path_of(disk))], check=False).rc == 0


def remove(machine: Machine, disk: Disk) -> None:
    """Take the unit away, if there is one."""
    path = path_of(disk)
    if not installed(machine, disk):
        return
    # Stopped, too: systemd would otherwise hold it to be at work until the next boot.
    machine.run(["systemctl", "disable", "--now", path.name], check=False)
    machine.run(["rm", "-f", str(path)])
    machine.run(["systemctl", "daemon-reload"], check=False)


def commands(machine: Machine, card: Card, disk: Disk) -> list[str]:
    """The commands, in their order, as systemd takes them."""
    tier, place = built(machine, card, disk), card.place(disk)
    cache, volume = place.slice("cache"), card.volume_slice
    # The card's disks share the volume: whoever comes second finds it there.
    shared = [f"-{_create({volume.name: volume.table(card.flash)})}"] if card.volume else []
    tables = {cache.name: cache.table(card.flash)}
    if isinstance(tier, Bcache):
        tables[tier.backing] = tier.backing_table()
        size = device_size(machine, disk.origin)
        return ["modprobe bcache", *shared, _create(tables), *_bcache_start(tier, place, size)]
    tables[place.slice("meta").name] = place.slice("meta").table(card.flash)
    top = dmcache.table(disk.spec, place, device_size(machine, disk.origin))
    return [
        "modprobe -a dm-cache dm-cache-smq",
        *shared,
        _create(tables),
        f"cache_check --clear-needs-check-flag {tier.metadata}",
        _create({place.top: top}),
    ]


def _create(tables: dict[str, str]) -> str:
    """All devices by one call (dmsetup(8), --concise): name,uuid,minor,flags,table[,table]."""
    parts = (f"{name},,,rw,{table.replace(chr(10), ',')}" for name, table in tables.items())
    return f"dmsetup create --concise '{';'.join(parts)}'"


def _bcache_start(tier: Bcache, place: Place, size: Bytes) -> list[str]:
    """What registers, tunes and stacks. A shell finds what cannot be known before: neither
    ``dm-N`` nor ``bcacheN`` is the same after a boot. (``$$`` is systemd's way to write ``$``.)"""
    name = tier.backing
    sys = f'/sys/block/"$$(dmsetup info -c --noheadings -o blkdevname {name})"/bcache'
    devices = (place.slice("cache").path, mapper_path(name))
    top = f'"0 {int(size.sectors)} linear /dev/$$(basename "$$(readlink -f {sys}/dev)") 0"'
    lines = [
        *(f"echo {one} > {SYS}/register_quiet || :" for one in devices),
        f"n=0; until [ -e {sys}/dev ]; do n=$$((n + 1)); [ $$n -lt 50 ]; sleep 0.2; done",
        *(f"echo {value} > {sys}/{key}" for key, value in tier.wanted()),
        f"dmsetup create {place.top} --table {top}",
    ]
    return [f"/bin/sh -ec '{line}'" for line in lines]


def text(disk: Disk, card: Card, lines: list[str], remote: bool) -> str:
    """The unit's file.

    :param remote: the origin comes over the network, so it is ready after that.
    """
    before = "remote-fs-pre.target" if remote else "local-fs-pre.target"
    after = "network-online.target iscsi.service" if remote else "systemd-udevd.service"
    wanted = "remote-fs.target" if remote else "local-fs.target"
    devices = " ".join(device_unit(one) for one in (card.flash, disk.origin))
    starts = "\n".join(f"ExecStart={line}" for line in lines)
    # Removed in good order, dm-cache writes down what is dirty; else every block counts as dirty
    # after the boot. bcache does so by itself (bcache_reboot, drivers/md/bcache/super.c).
    stop = f"dmsetup remove --retry {disk.device.name}"
    stops = f"\nExecStop=-{stop}" if disk.kind == "dm-cache" else ""
    return f"""\
# Written by hotset: the commands of `hotset tier activate {disk.name}`. Made anew with --unit.
[Unit]
Description=hotset tier {disk.name} ({disk.kind} over {disk.origin})
DefaultDependencies=no
Requires={devices}
After={devices} {after}
Before={before} shutdown.target
Conflicts=shutdown.target
ConditionPathExists=!{disk.device}

[Service]
Type=oneshot
RemainAfterExit=yes
{starts}{stops}

[Install]
WantedBy={wanted}
"""


def device_unit(path: PurePosixPath) -> str:
    """The name of a device's unit (systemd-escape --path --suffix=device).

    >>> device_unit(PurePosixPath("/dev/disk/by-id/wwn-0x5"))
    'dev-disk-by\\\\x2did-wwn\\\\x2d0x5.device'
    """
    escaped = "".join(
        one if one.isascii() and (one.isalnum() or one in "_.") else
        "-" if one == "/" else "".join(f"\\x{byte:02x}" for byte in one.encode())
        for one in str(path).strip("/")
    )  # fmt: skip
    return f"{escaped}.device"
