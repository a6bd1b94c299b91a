"""Checks that a flash device fits an origin, and has the room that it shows, before anything
is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from hotset.block.devicemapper import Part, total
from hotset.block.devices import Device, DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import TierKind, TierSpec

Say = Callable[[str], None]
_YES = Remedy("use it all the same", parameters={"yes": True})
_PROMISING = {"thin": "a thin volume", "vdo": "a VDO volume", "snapshot": "a snapshot"}
"""Targets of the device mapper that show more room than they have for certain."""

# $1: the flash, then START and SIZE of each part. What is no file, nor one behind a loop, has its
# room. 2: there is certainly too little, and nothing was taken.
_RESERVE = """
file=$(readlink -f "$1") first=0; shift
case $file in /dev/loop*)
    at=/sys/class/block/${file#/dev/}/loop
    read -r first 2> /dev/null < "$at/offset" && IFS= read -r file < "$at/backing_file" || exit 0
esac
[ -f "$file" ] || exit 0
set -- $(stat -c '%b %B %s' "$file") $(stat -f -c '%a %S' "$file") "$@"
has=$(($1 * $2)) size=$3 left=$(($4 * $5)) needed=0; shift 5
echo "$has $size $left"
for one; do odd=$((${odd:-0} ^ 1)); [ $odd = 1 ] || needed=$((needed + one)); done
[ $needed -le $((has + left)) ] || exit 2
while [ $# -gt 0 ]; do
    LC_ALL=C fallocate --keep-size --offset $(($1 + first)) --length "$2" "$file" || exit 1
    shift 2
done
"""


def check(
    machine: Machine, kind: TierKind, flash: Device, origin: Device, yes: bool, say: Say
) -> None:
    """:raises DeviceRefusedError: the sizes of the sectors do not go together, or the flash may
    have less room than it shows; with ``yes`` that is said instead."""
    for words, *remedies in (
        *_sectors(machine, kind, flash, origin),
        *_check_promises(machine, flash),
    ):
        if not yes:
            raise DeviceRefusedError(words, *remedies, _YES, field="flash")
        say(words)


def check_memory(
    machine: Machine, kind: TierKind, spec: TierSpec, origin: Bytes, yes: bool, say: Say
) -> None:
    """Say what the cache takes of the machine's memory, for as long as it is active.

    :raises DeviceRefusedError: the machine has less to give; with ``yes`` that is said instead.
    """
    needed = kinds.kind_of_name(kind).memory(spec, origin)
    if not needed:
        return
    lines = machine.run(["cat", "/proc/meminfo"]).stdout.splitlines()
    kib = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    words = f"the cache takes up to {needed} of memory, which is not swapped out"
    if kib is None:
        say(f"{words}; how much the machine has to give is not known")
        return
    left = Bytes(int(kib) * 1024)
    if needed <= left:
        say(words)
        return
    words += f", and the machine has {left} to give: the kernel would end a database for it"
    if not yes:
        larger = Remedy("take larger blocks", parameters={"block": "64KiB"})
        raise DeviceRefusedError(f"{words}. Ask for a smaller cache", larger, _YES, field="cache")
    say(words)


Finding = tuple[str, *tuple[Remedy, ...]]


def _sectors(machine: Machine, kind: TierKind, flash: Device, origin: Device) -> Sequence[Finding]:
    """A device of the kernel's caches has the larger sector of the two (``blk_stack_limits``, or as
    bcache's block is chosen); the engine in user space keeps the origin's."""
    known = kinds.kind_of_name(kind)
    if known.keeps_sectors:
        return ()
    of_flash, of_origin = (
        int(machine.run(["blockdev", "--getss", str(device.node)]).stdout)
        for device in (flash, origin)
    )
    if of_flash <= of_origin:
        return ()
    words = (
        f"{flash.path} has sectors of {of_flash} bytes, {origin.path} of {of_origin}: the cached"
        f" device would have {of_flash}, on which a file system or a database that counts on"
        f" {of_origin} fails (xfs, ext4 with blocks of 1 KiB, direct I/O of {of_origin} bytes)"
    )
    return ((words, *known.instead),)


def _check_promises(machine: Machine, flash: Device) -> Sequence[Finding]:
    """Report a layer below the flash that may run out of room."""
    if flash.is_file or not flash.node.name.startswith("dm-"):
        return ()
    argv = ["lsblk", "--inverse", "--noheadings", "--list", "--output", "NAME", str(flash.node)]
    below = set(machine.run(argv).stdout.split())
    for line in machine.run(["dmsetup", "table"]).stdout.splitlines():
        name, _, table = line.partition(": ")
        target = [*table.split(), "", "", ""][2]
        if name in below and target in _PROMISING:
            words = (
                f"{flash.path} lies on {name}, {_PROMISING[target]}, which may run out of room that"
                " it shows: the cache would then fail with what is dirty on it. Use a volume whose"
                " room is its own"
            )
            return ((words,),)
    return ()


def reserve(
    machine: Machine, flash: PurePosixPath, parts: Sequence[Part], yes: bool, say: Say
) -> None:
    """Have the file system that a flash file lies on keep room for these parts of it, also of one
    that a loop shows as a device.

    :param flash: by the kernel's name, or the file.
    :raises DeviceRefusedError: it has too little, or cannot keep any and ``yes`` is not.
    """
    if flash.is_relative_to("/dev") and not flash.name.startswith("loop"):
        return
    numbers = [str(int(number)) for part in parts for number in (part.start, part.size)]
    argv = ["sh", "-c", _RESERVE, "hotset-reserve", str(flash), *numbers]
    done = machine.run(argv, check=False)
    if done.rc == 0:
        return
    figures = [Bytes(int(word)) for word in done.stdout.split() if word.isdigit()]
    has, size, left = figures if len(figures) == 3 else (Bytes(0),) * 3
    if "not supported" not in done.stderr:
        raise DeviceRefusedError(
            f"{flash} has {has} of its {size}, and its file system {left} left: the cache and what"
            f" belongs to it need {total(parts)}. Make room there, or ask for a smaller cache",
            field="flash",
        )
    if has >= size:
        return
    words = (
        f"{flash} has {has} of its {size}, and its file system ({left} left) can keep no room for a"
        " file: full, it would fail the cache with what is dirty on it. Write the whole file first"
    )
    if not yes:
        raise DeviceRefusedError(words, _YES, field="flash")
    say(words)
