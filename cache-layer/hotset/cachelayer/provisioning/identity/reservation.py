"""A persistent reservation on the origin: while its tier is active no other host writes to it.

Of the type Write Exclusive - Registrants Only (SPC-4, 5.13), so other hosts can still read. The
storage keeps it when this machine crashes: writes that are only on the flash then still fit what is
on the origin at the next activation. It is given back when the tier is taken down in good order.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from ...common.errors import ConflictError, Remedy
from ...hosts.base import Machine, PrerequisiteMissingError, Result
from . import origin as origins
from . import owner

_TYPE = "--prout-type=5"
_ILLEGAL_REQUEST, _UNIT_ATTENTION = 5, 6
"""Exit codes of sg_persist (sg3_utils(8), exit status)."""


class OriginReservedError(ConflictError):
    """Another host holds a reservation on the origin."""


def take(machine: Machine, origin: PurePosixPath, *, by_force: bool = False) -> str | None:
    """Reserve the origin; returns why nothing is reserved, in words, and None if it is.

    :param by_force: take it from the host that holds it, whose writes fail from then on.
    :raises OriginReservedError: another host holds it.
    """
    kind = origins.kind(machine, origin)
    if kind != "disk":
        return f"{origin} is not a whole disk ({kind})"
    mine = key(machine)
    try:
        if not _can(machine, origin) or _register(machine, origin, mine).rc:
            return f"{origin} takes no persistent reservations"
    except PrerequisiteMissingError:
        return "sg_persist is not installed on this machine (package sg3-utils)"
    if _persist(machine, origin, "--out", "--reserve", f"--param-rk={mine}", _TYPE).rc == 0:
        return None
    theirs = _holder(machine, origin)
    if theirs and by_force:
        _persist(
            machine,
            origin,
            *("--out", "--preempt", f"--param-rk={mine}", f"--param-sark={theirs}", _TYPE),
        )
        theirs = _holder(machine, origin)
    if theirs == mine:
        return None
    _unregister(machine, origin, mine)
    raise OriginReservedError(
        f"another host holds a reservation on {origin} (key {theirs or 'unknown'}): it may be"
        " writing to it",
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


def give_back(machine: Machine, origin: PurePosixPath) -> None:
    """Let other hosts write to the origin again; does nothing where nothing is reserved."""
    mine = key(machine)
    try:
        if _holder(machine, origin) == mine:
            _persist(machine, origin, "--out", "--release", f"--param-rk={mine}", _TYPE)
            _unregister(machine, origin, mine)
    except PrerequisiteMissingError:
        pass  # then it was never reserved


def script(machine: Machine, origin: PurePosixPath) -> tuple[str, str]:
    """Shell commands that do as :func:`take` and :func:`give_back`; the first fails where another
    host holds the reservation."""
    mine, disk = key(machine), shlex.quote(str(origin))
    out, quiet = "sg_persist --no-inquiry --out", f"{disk} > /dev/null 2>&1"
    return (
        f"sg_persist --no-inquiry --in --read-keys {quiet};"
        f" {out} --register-ignore --param-sark={mine} {quiet} || return 0;"
        f" {out} --reserve --param-rk={mine} {_TYPE} {quiet}",
        f"{out} --release --param-rk={mine} {_TYPE} {quiet} || :;"
        f" {out} --register --param-rk={mine} --param-sark=0 {quiet} || :",
    )


def key(machine: Machine) -> str:
    """This host's reservation key: 64 bits, the same as long as its root disk is."""
    return f"{int(owner.host_id(machine)[:16], 16):#x}"


def _can(machine: Machine, origin: PurePosixPath) -> bool:
    keys = _persist(machine, origin, "--in", "--read-keys")
    if keys.rc == _UNIT_ATTENTION:
        # The disk had something to tell first, such as that it was reset.
        keys = _persist(machine, origin, "--in", "--read-keys")
    return keys.rc == 0


def _register(machine: Machine, origin: PurePosixPath, mine: str) -> Result:
    """Outlasting a power loss of the storage where it can do that."""
    register = ("--out", "--register-ignore", f"--param-sark={mine}")
    done = _persist(machine, origin, *register, "--param-aptpl")
    return _persist(machine, origin, *register) if done.rc == _ILLEGAL_REQUEST else done


def _unregister(machine: Machine, origin: PurePosixPath, mine: str) -> None:
    _persist(machine, origin, "--out", "--register", f"--param-rk={mine}", "--param-sark=0")


def _holder(machine: Machine, origin: PurePosixPath) -> str | None:
    """The key of the host that holds the reservation."""
    said = _persist(machine, origin, "--in", "--read-reservation").stdout
    found = re.search(r"Key\s*=\s*(0x[0-9a-f]+)", said)
    return found[1] if found else None


def _persist(machine: Machine, origin: PurePosixPath, *words: str) -> Result:
    return machine.run(["sg_persist", *words, "--no-inquiry", str(origin)], check=False)
