"""A systemd unit that makes a disk's devices at boot, or fails and so stops what mounts them.

Its commands are a shell script beside it, so hotset itself need not be installed on the server. The
script does what ``hotset tier activate`` does: it looks whose the flash is, how the tier was left
and whether its origin is as it was then, before anything is made; and it writes down how it leaves
the tier when it takes it down. It is written anew with every change of the disk.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Literal

from ...block import label, loop
from ...block.devicemapper import device_size, mapper_path, uuid_of
from ...common.units import Bytes
from ...hosts import locks
from ...hosts.base import Machine
from ...tiers import dmcache
from ...tiers.bcache import Bcache
from ...tiers.bcache_control import SYS
from ...tiers.userspace import Userspace
from .. import state
from ..cache_device import Card, Disk, tier_for
from ..identity import origin, reservation
from ..state import TierRecord

FOLDER = PurePosixPath("/etc/systemd/system")
SCRIPTS = PurePosixPath("/etc/hotset/boot")

_START_LIMIT_S, _STOP_LIMIT_S = 900, 300
"""The start reads the metadata of a large cache, and the origin's fingerprint; the stop writes the
metadata."""


def name_of(disk: str) -> str:
    """The unit of a disk's name."""
    return f"hotset-tier-{disk}.service"


def path_of(disk: Disk) -> PurePosixPath:
    return FOLDER / name_of(disk.name)


def script_of(disk: Disk) -> PurePosixPath:
    return SCRIPTS / f"{disk.name}.sh"


def install(machine: Machine, card: Card, disk: Disk) -> PurePosixPath:
    """Write the unit of an active disk, switch it on and start it, so that the next shutdown takes
    the tier down in good order; returns its path.

    :raises CommandError: systemd does not take it.
    """
    remote = origin.is_remote(machine, disk.origin)
    machine.replace(script(machine, card, disk), script_of(disk), 0o700)
    machine.replace(text(disk, card, remote), path_of(disk))
    for path, lines in _waits(card, disk).items():
        machine.replace(lines, path)
    if runs(machine):
        # Which has it read its files anew, too.
        machine.run(["systemctl", "enable", path_of(disk).name])
        machine.run(["systemctl", "start", path_of(disk).name])
    return path_of(disk)


def renew(machine: Machine, card: Card, disk: Disk) -> None:
    """Have the unit's script fit the disk as it is now, if it has one: mode and sizes are in it.

    An old one would drop dirty blocks as those of a write-through cache, or take flash that may be
    another's by then.
    """
    if installed(machine, disk):
        machine.replace(script(machine, card, disk), script_of(disk), 0o700)


def installed(machine: Machine, disk: Disk) -> bool:
    """Whether a boot activates the disk without hotset being asked."""
    return machine.run(["test", "-e", str(path_of(disk))], check=False).rc == 0


def remove(machine: Machine, card: Card, disk: Disk, answers: bool = True) -> None:
    """Take the unit away, if there is one; :func:`reload` ends it.

    :param answers: the flash does. Where it does not, the unit's stop would wait for it.
    """
    path = path_of(disk)
    if not installed(machine, disk):
        return
    if runs(machine):
        machine.run(["systemctl", "disable", path.name], check=False)
        if not answers:
            machine.run(["rm", "-f", str(script_of(disk))])
        # Stopped, too: systemd would otherwise hold it to be at work until the next boot.
        machine.run(["systemctl", "stop", *["--no-block"] * (not answers), path.name], check=False)
    waits = list(_waits(card, disk))
    machine.run(["rm", "-f", *map(str, waits)])
    folders = [str(one.parent) for one in waits]
    machine.run(["rmdir", "--ignore-fail-on-non-empty", *folders], check=False)
    # Last: by the unit's file the next removal knows that something is left.
    machine.run(["rm", "-f", str(script_of(disk)), str(path)])


def reload(machine: Machine) -> None:
    """Have systemd read its files and /etc/fstab anew: what is mounted by an entry of before goes
    down without a thought of the unit."""
    if runs(machine):
        machine.run(["systemctl", "daemon-reload"])


def runs(machine: Machine) -> bool:
    """Whether systemd is what runs the machine (sd_booted(3))."""
    return machine.run(["test", "-d", "/run/systemd/system"], check=False).rc == 0


def script(machine: Machine, card: Card, disk: Disk) -> str:
    """The unit's commands: ``SCRIPT start`` and ``SCRIPT stop``."""
    tier = tier_for(machine, card, disk)
    size = device_size(machine, disk.origin)
    seen = shlex.join(origin.program(disk.origin, origin.regions(machine, disk.origin)))
    known = disk.origin_id or origin.identify(machine, disk.origin)
    has = f"dmsetup info {tier.place.top} > /dev/null 2>&1"
    if isinstance(tier, Bcache):
        make, empty, take_down = _bcache(card, disk, tier, size)
    elif isinstance(tier, Userspace):
        make, empty, take_down = _userspace(card, disk, tier)
        has = f"[ -b {disk.device} ]"
    else:
        make, empty, take_down = _dm_cache(card, disk, tier, size)
    reserve, give_back = reservation.script(machine, disk.origin)
    after = "clean" if disk.spec.mode == "writethrough" else "dirty"
    return _SCRIPT.format(
        disk=disk.name,
        device=disk.device,
        has=has,
        flash=shlex.quote(str(card.flash)),
        origin=shlex.quote(str(disk.origin)),
        card=shlex.quote(f'"uuid":"{card.uuid}","host":"{card.host}"'),
        record=label.record_place(disk.record),
        active=state.render(disk, TierRecord("active")),
        key=state.key(disk),
        after=after,
        write=label.record_program(card.flash, disk.record),
        alone=locks.script(disk.name, name_of(disk.name)),
        is_the_one=shlex.join(origin.is_same_program(disk.origin, known)),
        seen=seen,
        persist=reservation.PERSIST,
        reserve=reserve if disk.reserve else ":",
        give_back=give_back if disk.reserve else ":",
        writethrough=int(disk.spec.mode == "writethrough"),
        make="\n".join(f"    {line}" for line in make),
        empty="\n".join(f"    {line}" for line in empty),
        take_down="\n".join(f"    {line}" for line in take_down),
    )


_SCRIPT = """\
#!/bin/sh
# Written by hotset: what `hotset tier activate {disk}` and `tier deactivate {disk}` do, for a
# machine without hotset. `hotset tier activate {disk} --unit` writes it anew.
set -eu
flash={flash} origin={origin}

refuse() {{ echo "hotset {disk}: $1" >&2; exit 1; }}
{alone}
is_the_one() {{ {is_the_one}; }}
seen() {{ {seen}; }}
# What was seen before, and now: fingerprint, boot, and sectors written since that boot.
was_written() {{
    [ "$1" = "$4" ] || return 0
    [ "$2" = "$5" ] && [ "$2" != unknown ] && [ "$6" -gt "$3" ]
}}
write_record() {{
    {write}
}}
{persist}\
reserve() {{
    {reserve}
}}
give_back() {{
    {give_back}
}}
has() {{ dmsetup info "$1" > /dev/null 2>&1; }}
is_active() {{ {has}; }}
# Before anybody can write, and after the metadata were found to be usable.
mark_active() {{ record="{active}" && write_record; }}
make() {{
{make}
}}
empty() {{
    echo "hotset {disk}: the cache begins empty: $1"
{empty}
}}

start() {{
    ! is_active || return 0
    alone
    ! is_active || return 0
    dd if="$flash" bs=64k skip=4 count=2 iflag=direct status=none | tr '\\0' ' ' \\
        | grep -qaF {card} || refuse "$flash is not this machine's any more: hotset tier scan"
    is_the_one || refuse "$origin is another disk than the accelerated one: hotset tier status"
    reserve || refuse "another host holds a reservation on $origin: hotset tier activate {disk}"
    set -- $(dd if="$flash" {record} iflag=direct status=none | head -n 1 | tr '\\0' ' ')
    [ "${{2:-}}" = {key} ] || set --
    word=${{3:--}} was=${{4:--}}
    if [ "$was" != - ] && was_written "$was" "$5" "$6" $(seen); then
        if [ "$word" = clean ] || [ {writethrough} = 1 ]; then
            empty "$origin was written to while the tier was down"
        else
            refuse "$origin was written to while the tier was down: hotset tier activate {disk}"
        fi
    elif [ "$was" = - ] && [ {writethrough} = 1 ]; then
        empty "the tier ended by a crash"
    fi
    # The engine of a cache in user space goes on after this script.
    make 8>&- 9>&-
}}

stop() {{
    is_active || return 0
    alone
{take_down}
    record="{key} {after} $(echo $(seen))" && write_record
    give_back
}}

"$1"
"""


def text(disk: Disk, card: Card, remote: bool) -> str:
    """The unit's file.

    :param remote: the origin comes over the network, so it is ready after that.
    """
    after = "network-online.target iscsi.service" if remote else "systemd-udevd.service"
    wanted = "remote-fs.target" if remote else "local-fs.target"
    below = (card.flash, disk.origin)
    devices = " ".join(device_unit(one) for one in below if one.is_relative_to("/dev"))
    files = " ".join(_quoted(one) for one in below if not one.is_relative_to("/dev"))
    # Mounts come after local-fs-pre.target, and so would the one that such a file lies on.
    before = wanted if files else wanted.replace("fs.target", "fs-pre.target")
    return f"""\
# Written by hotset; `hotset tier activate {disk.name} --unit` writes it anew.
[Unit]
Description=hotset tier {disk.name} ({disk.kind})
DefaultDependencies=no
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
ExecStart=/bin/sh {script_of(disk)} start
ExecStop=/bin/sh {script_of(disk)} stop

[Install]
WantedBy={wanted}
"""


def _waits(card: Card, disk: Disk) -> dict[PurePosixPath, str]:
    """What systemd is to know of the devices that the unit makes: a mount's 90 s for its device
    begin once that has ended, and nobody waits for a device when it has failed."""
    unit, volume = name_of(disk.name), card.volume_slice.path
    head = f"# Written by hotset.\n[Unit]\nAfter={unit}\n"
    waits = {disk.device: f"{head}Requires={unit}\n"}
    if card.volume:
        # Another disk of the card makes it as well.
        waits[volume] = head
    return {
        FOLDER / f"{device_unit(device)}.d" / f"hotset-{disk.name}.conf": lines
        for device, lines in waits.items()
    }


def _quoted(path: PurePosixPath) -> str:
    """A path as a unit's file takes it (systemd.syntax(7), systemd.unit(5) on specifiers).

    >>> _quoted(PurePosixPath("/srv/100% \\"flash\\""))
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
        one
        if one.isascii() and (one.isalnum() or one in "_.")
        else "-"
        if one == "/"
        else "".join(f"\\x{byte:02x}" for byte in one.encode())
        for one in str(path).strip("/")
    )
    return f"{escaped}.{kind}"


def _dm_cache(
    card: Card, disk: Disk, tier: dmcache.DmCache, size: Bytes
) -> tuple[list[str], list[str], list[str]]:
    """Commands that make the tier, empty its cache, and take it down."""
    place, spec = card.place(disk), disk.spec
    meta, cache = place.slice("meta"), place.slice("cache")
    parts = [
        "modprobe -a dm-cache dm-cache-smq",
        *_volume(card),
        _unless_there(meta.name, meta.table(card.flash), private=True),
        _unless_there(cache.name, cache.table(card.flash), private=True),
    ]
    make = [
        *parts,
        f"cache_check --clear-needs-check-flag {tier.metadata}",
        "mark_active",
        _create(place.top, dmcache.table(spec, place, size)),
    ]
    xml = f"/run/hotset/empty-{disk.name}.xml"
    superblock = (
        f'<superblock uuid="" block_size="{int(spec.block.sectors)}"'
        f' nr_cache_blocks="{int(tier.capacity)}" policy="{spec.policy}" hint_width="4">'
        "<mappings></mappings><hints></hints></superblock>"
    )
    empty = [
        *parts,
        f"mkdir -p /run/hotset && echo {shlex.quote(superblock)} > {xml}",
        f"cache_restore --quiet -i {xml} -o {tier.metadata}",
    ]
    return make, empty, [f"dmsetup remove --retry {n}" for n in (place.top, meta.name, cache.name)]


def _userspace(card: Card, disk: Disk, tier: Userspace) -> tuple[list[str], list[str], list[str]]:
    """Commands that start the engine, empty its cache, and stop it."""
    volume = card.volume_slice
    loops = [
        shlex.join(loop.attach_part_argv(volume.path, card.flash, part.start, part.size))
        for part in volume.parts
    ]
    engine = f"/bin/sh {tier.install(disk.spec)}"
    make = ["modprobe -a fuse loop || :", *loops, "mark_active", f"{engine} start"]
    return make, [shlex.join(tier.format_argv())], [f"{engine} stop"]


def _bcache(
    card: Card, disk: Disk, tier: Bcache, size: Bytes
) -> tuple[list[str], list[str], list[str]]:
    """As :func:`_dm_cache`. A shell finds what cannot be known before: neither ``dm-N`` nor
    ``bcacheN`` is the same after a boot."""
    place, name = card.place(disk), tier.backing
    cache = place.slice("cache")
    at = f'/sys/block/"$(dmsetup info -c --noheadings -o blkdevname {name})"/bcache'
    cut = _unless_there(cache.name, cache.table(card.flash), private=True)
    devices = (cache.path, mapper_path(name))
    top = f'0 {int(size.sectors)} linear /dev/$(basename "$(readlink -f {at}/dev)") 0'
    make = [
        "modprobe bcache",
        *_volume(card),
        cut,
        _unless_there(name, tier.backing_table(), private=True),
        *(f"echo {one} > {SYS}/register_quiet || :" for one in devices),
        f"n=0; until [ -e {at}/dev ]; do n=$((n + 1)); [ $n -lt 50 ] || exit 1; sleep 0.2; done",
        *(f"echo {value} > {at}/{key}" for key, value in tier.wanted()),
        "mark_active",
        f'dmsetup create {place.top} --uuid {uuid_of(place.top, False)} --table "{top}"',
    ]
    blank = f"dd if=/dev/zero of={card.flash} bs=1M count=1 seek={cache.parts[0].start // 1024**2}"
    empty = [
        "modprobe bcache",
        f"{blank} oflag=direct conv=notrunc status=none",
        cut,
        shlex.join(tier.format_argv()),
    ]
    wait = "n=0; while [ -e {0} ]; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1; done"
    taken = [
        f"dmsetup remove --retry {place.top}",
        f"at={at}",
        f'echo 1 > "$at/stop"; {wait.format(chr(34) + "$at" + chr(34))}',
        f"echo 1 > {SYS}/{tier.set_uuid}/stop; {wait.format(f'{SYS}/{tier.set_uuid}')}",
        *(f"dmsetup remove --retry {one}" for one in (name, cache.name)),
    ]
    return make, empty, taken


def _volume(card: Card) -> list[str]:
    volume = card.volume_slice
    return [_unless_there(volume.name, volume.table(card.flash))] if card.volume else []


def _unless_there(name: str, table: str, *, private: bool = False) -> str:
    """The card's disks share the volume, and an activation that failed may have left parts."""
    return f"has {name} || {_create(name, table, private=private)}"


def _create(name: str, table: str, *, private: bool = False) -> str:
    lines = " ".join(shlex.quote(line) for line in table.splitlines())
    uuid = uuid_of(name, private)
    return f"printf '%s\\n' {lines} | dmsetup create {name} --uuid {uuid}"
