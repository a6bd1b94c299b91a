"""Check that a machine can run a program of hotset's, before anything is copied there.

One command tells all: it needs a shell and the smallest of tools, as busybox has them. What a
machine does not tell is not taken for fine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from . import elf
from .base import Machine, PrerequisiteMissingError

FACTS = "hotset-facts"
"""The command's name, by which a dry run knows that it changes nothing."""
_ROOM_SHARE = 2
"""The room for a copy, in sizes of the program: an old system's root should not run full."""
# $1: the folder that is to hold the copies; it need not be there yet.
_TELL = """\
folder=$1
until [ -d "$folder" ] || [ -z "$folder" ]; do folder=${folder%/*}; done
set -- $(df -Pk "${folder:-/}" | tail -n 1)
while [ $# -gt 3 ]; do shift; done
while read -r _ where _ options _; do
    [ "$where" != "$3" ] || found=$options
done < /proc/mounts
libc=$(getconf GNU_LIBC_VERSION 2> /dev/null) || {
    set -- "$@" /lib/ld-musl-*.so.1
    [ ! -e "$4" ] || libc=musl
}
echo "system $(uname -s)"
echo "architecture $(uname -m)"
echo "kernel $(uname -r)"
echo "libc $libc"
echo "free $1"
echo "mount $3"
echo "options ${found-}"
[ ! -w "${folder:-/}" ] || echo "writable yes"
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that a machine reports about itself; empty: not reported.

    :ivar libc: ``glibc 2.36`` or ``musl``.
    :ivar free: KiB where the copies are kept.
    :ivar mount, options: of the file system they are on, ``rw,noexec``.
    """

    system: str = ""
    architecture: str = ""
    kernel: str = ""
    libc: str = ""
    free: str = ""
    mount: str = ""
    options: str = ""
    writable: str = ""


class UnfitError(PrerequisiteMissingError):
    """A machine cannot run hotset's programs, or does not tell; nothing was copied."""

    def __init__(self, machine: Machine, why: str) -> None:
        super().__init__(f"{machine.kind}: {why}; nothing was copied", field="machine")


def argv_of(folder: PurePosixPath) -> list[str]:
    return ["sh", "-c", _TELL, FACTS, str(folder)]


def facts_of(machine: Machine, folder: PurePosixPath) -> Facts | None:
    """None in a dry run of a machine that is not there.

    :param folder: that is to hold the copies.
    """
    told = machine.run(argv_of(folder))
    if told.made_up:
        return None
    words = (line.partition(" ") for line in told.stdout.splitlines())
    return Facts(**{key: value.strip() for key, _, value in words if key in Facts.__slots__})


def choose(machine: Machine, facts: Facts, here: Path) -> Path:
    """The program for the machine: this computer's own, or the one for another architecture, which
    is beside it in a folder of that name (``aarch64/hotset-engine``), or where cargo puts it.

    :raises UnfitError: there is none, or the architecture is not known.
    """
    if facts.system != "Linux":
        raise UnfitError(machine, f"the system is {facts.system or 'unknown'}, and has to be Linux")
    if facts.architecture not in elf.MACHINES.values():
        raise UnfitError(
            machine,
            f"the architecture is {facts.architecture or 'unknown'}, and hotset's programs are for"
            f" {' and '.join(elf.MACHINES.values())}",
        )
    cargo = here.parents[1] / f"{facts.architecture}-unknown-linux-gnu/release" / here.name
    beside = here.parent / facts.architecture / here.name
    for candidate in (here, beside, cargo):
        if candidate.exists() and needs_of(candidate).architecture == facts.architecture:
            return candidate
    raise UnfitError(
        machine,
        f"the architecture is {facts.architecture}, and {here} is for"
        f" {needs_of(here).architecture}: put {here.name} for {facts.architecture} at {beside}",
    )


def needs_of(file: Path) -> elf.Needs:
    """:raises PrerequisiteMissingError: the file is no program."""
    try:
        return elf.needs_of(file)
    except ValueError as error:
        raise PrerequisiteMissingError(
            f"{error}: run `make build` in hotset's folder, or install hotset anew"
        ) from None


def require(machine: Machine, facts: Facts, program: Path) -> None:
    """:raises UnfitError: the machine cannot run the program, or cannot keep it."""
    needs, said = needs_of(program), f"{program.name} needs"
    kernel, glibc = _version(facts.kernel), _version(facts.libc.removeprefix("glibc"))
    if kernel is None or kernel < needs.kernel:
        oldest = ".".join(map(str, needs.kernel))
        told = facts.kernel or "unknown"
        raise UnfitError(machine, f"the kernel is {told}, and {said} {oldest} or newer")
    if needs.glibc is not None and (glibc is None or glibc < needs.glibc):
        oldest = ".".join(map(str, needs.glibc))
        told = facts.libc or "unknown"
        raise UnfitError(
            machine,
            f"the C library is {told}, and {said} glibc {oldest} or newer: take the programs of a"
            " release, which need none",
        )
    size = program.stat().st_size
    room = int(facts.free) * 1024 if facts.free.isdigit() else 0
    if room < _ROOM_SHARE * size:
        told = f"{room:,} bytes are" if facts.free.isdigit() else "unknown room is"
        raise UnfitError(
            machine,
            f"{told} free on {facts.mount or '/'}, and {said} {_ROOM_SHARE * size:,}: make room"
            " there",
        )
    _require_usable(machine, facts)


def _require_usable(machine: Machine, facts: Facts) -> None:
    options, where = facts.options.split(","), facts.mount or "/"
    if not facts.options:
        raise UnfitError(machine, f"how {where} is mounted is unknown: /proc/mounts lacks it")
    if "noexec" in options:
        raise UnfitError(machine, f"{where} is mounted noexec: mount -o remount,exec {where}")
    # busybox's root may write anywhere, by its own account.
    if "ro" in options or not facts.writable:
        raise UnfitError(
            machine,
            f"{where} may not be written to: log in as root, or remount it rw",
        )


def _version(text: str) -> tuple[int, int] | None:
    """
    >>> _version("6.1.0-13-amd64"), _version(" 2.36"), _version("musl")
    ((6, 1), (2, 36), None)
    """
    found = re.match(r"\s*(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
