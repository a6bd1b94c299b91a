"""A persistent reservation on the origin: while its tier is active no other host writes to it.

Of the type Write Exclusive - Registrants Only (SPC-4, 5.13), so other hosts can still read. The
storage keeps it when this machine crashes: writes that are only on the flash then still fit what is
on the origin at the next activation. It is given back when the tier is taken down in good order.

The storage knows each path to a multipath origin as another initiator: all of them register the
same key, and a path that comes later does so before multipathd gets it (:func:`for_new_path`),
since a write by one that has not would fail.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import devices
from hotset.core.errors import ConflictError, Remedy
from hotset.core.machines.base import Machine, PrerequisiteMissingError, Result

from . import origin as origins
from . import owner

_TYPE = "--prout-type=5"
_ILLEGAL_REQUEST, _UNIT_ATTENTION = 5, 6
"""Exit codes of sg_persist (sg3_utils(8), exit status)."""
_TRIES = 3


class OriginReservedError(ConflictError):
    """Another host holds a reservation on the origin."""


def take(machine: Machine, origin: PurePosixPath, *, by_force: bool = False) -> str | None:
    """Reserve the origin; returns why nothing is reserved, in words, and None if it is.

    :param by_force: take it from the host that holds it, whose writes fail from then on.
    :raises OriginReservedError: another host holds it.
    """
    paths = origins.paths(machine, origin)
    if not paths:
        return f"{origin} is not a whole disk ({origins.kind(machine, origin)})"
    owner.settle(machine)
    keys, why_not = _keys(machine), None
    mine = keys.mine
    try:
        theirs = _holder(machine, paths)
    except PrerequisiteMissingError:
        return "sg_persist is not installed on this machine (package sg3-utils)"
    ours = theirs is not None and _is_ours(machine, paths, theirs, keys)
    # Another's key stays as it is, also one that this very host has, such as a cluster's fencing:
    # to register would overwrite it.
    if theirs is None or ours or by_force:
        why_not = _register_all(machine, paths, mine)
        reserve = ("--out", "--reserve", f"--param-rk={mine}", _TYPE)
        if not why_not and _persist(machine, paths[0], *reserve).rc == 0:
            return None
        theirs = _holder(machine, paths)
        if why_not and (theirs is None or ours):
            return why_not
        if theirs and not ours and not why_not and by_force:
            _preempt(machine, paths[0], mine, theirs)
            # Of a clone's key, which is this host's own, too, the other paths lost theirs as well.
            why_not = _register_all(machine, paths, mine)
            theirs = _holder(machine, paths)
            ours = theirs == mine and not why_not
        if theirs == mine and ours:
            return None
    _unregister(machine, paths, mine)
    raise OriginReservedError(
        f"another host holds a reservation on {origin} (key {theirs or 'unknown'}): it may be"
        f" writing to it{f'; and here, {why_not}' if why_not else ''}",
        Remedy(
            "take it from that host, whose writes then fail, once nothing there uses it",
            parameters={"break_reservation": True},
        ),
        field="origin",
    )


def describe(machine: Machine, origin: PurePosixPath, *, by_force: bool = False) -> str:
    """:func:`take`, and what came of it in a sentence."""
    why_not = take(machine, origin, by_force=by_force)
    if why_not is None:
        return f"reserved: while the tier is active, no other host can write to {origin}"
    return f"not reserved: {why_not}; nothing but care keeps another host from writing to it"


def give_back(machine: Machine, origin: PurePosixPath) -> bool:
    """Let other hosts write to the origin again; returns whether it was reserved. What is not there
    is not reserved either."""
    if devices.type_of(machine, origin) != "device":
        return False
    paths, keys = origins.paths(machine, origin), _keys(machine)
    try:
        theirs = _holder(machine, paths)
    except PrerequisiteMissingError:
        return False  # then it was never reserved
    if theirs is not None and _is_ours(machine, paths, theirs, keys):
        return _let_go(machine, paths, keys.mine)
    # Its next holder does not expect that this host writes.
    for key in dict.fromkeys((keys.mine, keys.former)):
        _unregister(machine, paths, key)
    return False


def is_held(machine: Machine, origin: PurePosixPath) -> bool:
    """True if this host holds a reservation on the origin, or a clone that has the same key."""
    if devices.type_of(machine, origin) != "device":
        return False
    try:
        holder = _holder(machine, origins.paths(machine, origin))
    except PrerequisiteMissingError:
        return False
    keys = _keys(machine)
    return holder in (keys.mine, keys.former)


def for_new_path(machine: Machine, origin: PurePosixPath) -> str | None:
    """The shell command for a path to a multipath origin that has just come, ``$1``: it may write,
    too, if another path of this very host has the key, which the storage lets that path change
    into itself. The rule and the key in it may have been copied with the machine. None of another
    origin."""
    if origins.kind(machine, origin) != "mpath":
        return None
    mine, register = key(machine), "sg_persist --no-inquiry --out --register"
    # Each command may be refused once or twice, as the disk has something to tell first.
    return (
        "w=$(ls /sys/block/${1##*/}/device/wwid /sys/block/${1##*/}/wwid 2>/dev/null | head -n 1);"
        " for d in /sys/block/*; do p=/dev/${d##*/}; [ $p != $1 ] || continue;"
        " cat $d/device/wwid $d/wwid 2>/dev/null | grep -qxFf $w || continue;"
        f" for i in 1 2 3; do {register} --param-rk={mine} --param-sark={mine} $p || continue;"
        f" for j in 1 2 3 4 5 6; do {register} --param-sark={mine} $1 && exit; done; done; done"
    )


def key(machine: Machine) -> str:
    """This host's reservation key: 64 bits, the same as long as its root disk is in its computer.
    That of a clone is another, where the firmware tells the two apart."""
    return _keys(machine).mine


@dataclass(frozen=True, slots=True)
class _Keys:
    """Keys of this host. ``former``: what earlier versions registered, and what is left where the
    firmware tells nothing: clones have that in common."""

    mine: str
    former: str


def _keys(machine: Machine) -> _Keys:
    former = int(owner.host_id(machine)[:16] or "0", 16)
    hardware = int(owner.hardware_id(machine)[:16] or "0", 16)
    return _Keys(f"{former ^ hardware:#x}", f"{former:#x}")


def _is_ours(machine: Machine, paths: Sequence[PurePosixPath], theirs: str, keys: _Keys) -> bool:
    """True if this host holds the reservation, whose key becomes its own then.

    A key that a clone may have, too, is ours where the storage lets us change it: it does so for
    the path alone that registered the key (SPC-4, 5.13.7).
    """
    mine = keys.mine
    if theirs == mine != keys.former:
        return True
    if theirs not in (mine, keys.former):
        return False
    change = ("--out", "--register", f"--param-rk={theirs}", f"--param-sark={mine}")
    changed = [_persist(machine, path, *change).rc == 0 for path in paths]
    return any(changed) and _holder(machine, paths) == mine


def _register_all(machine: Machine, paths: Sequence[PurePosixPath], mine: str) -> str | None:
    """Register by every path, or by none; returns why, in words."""
    for path in paths:
        if not _can(machine, path) or _register(machine, path, mine).rc:
            if not _let_go(machine, paths, mine):
                _unregister(machine, paths, mine)
            return f"{path} takes no persistent reservations"
    return None


def _can(machine: Machine, path: PurePosixPath) -> bool:
    return _persist(machine, path, "--in", "--read-keys").rc == 0


def _register(machine: Machine, path: PurePosixPath, mine: str) -> Result:
    """Outlasting a power loss of the storage where it can do that."""
    register = ("--out", "--register-ignore", f"--param-sark={mine}")
    done = _persist(machine, path, *register, "--param-aptpl")
    return _persist(machine, path, *register) if done.rc == _ILLEGAL_REQUEST else done


def _let_go(machine: Machine, paths: Sequence[PurePosixPath], mine: str) -> bool:
    """Give the reservation back and all registrations; returns whether it was this host's."""
    for path in paths:
        if _holder(machine, [path]) == mine:
            if len(paths) > 1:
                # From paths that are dead or gone by now, too.
                _preempt(machine, path, mine, mine)
            _persist(machine, path, "--out", "--release", f"--param-rk={mine}", _TYPE)
            _unregister(machine, paths, mine)
            return True
    return False


def _unregister(machine: Machine, paths: Sequence[PurePosixPath], mine: str) -> None:
    for path in paths:
        _persist(machine, path, "--out", "--register", f"--param-rk={mine}", "--param-sark=0")


def _preempt(machine: Machine, path: PurePosixPath, mine: str, theirs: str) -> None:
    """Take the reservation over, and all registrations of a key but this path's away."""
    keys = (f"--param-rk={mine}", f"--param-sark={theirs}")
    _persist(machine, path, "--out", "--preempt", *keys, _TYPE)


def _holder(machine: Machine, paths: Sequence[PurePosixPath]) -> str | None:
    """The key of the host that holds the reservation, as the first path says that answers."""
    answers = (_persist(machine, path, "--in", "--read-reservation") for path in paths)
    output = next((answer.stdout for answer in answers if answer.rc == 0), "")
    match = re.search(r"Key\s*=\s*(0x[0-9a-f]+)", output)
    return match[1] if match else None


def _persist(machine: Machine, path: PurePosixPath, *words: str) -> Result:
    """Asked again where the disk has something else to tell first, such as that it was reset."""
    argv = ["sg_persist", *words, "--no-inquiry", str(path)]
    done = machine.run(argv, check=False)
    for _ in range(_TRIES - 1):
        if done.rc != _UNIT_ATTENTION:
            break
        done = machine.run(argv, check=False)
    return done
