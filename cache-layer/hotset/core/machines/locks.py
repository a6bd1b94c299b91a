"""Locks on the machine itself, so that everybody who reaches it meets them: two consoles, a console
and a timer, ``local`` and ``ssh://localhost``.

A lock is a ``flock(1)`` on a file in /run/hotset, held by a small process on the machine that ends
when its standard input does: with this process, or with the connection, however they end. The
commands of an operation hold a lock of their own while they run, so that the next operation does
not meet the last command of one that was killed. To lock a file one only has to open it: the
folder is root's alone.

Two levels, as LVM's global lock and lock of a volume group: who changes what is cut out of a flash
has the machine for itself; who works on a disk shares the machine and has the disk for itself.
"""

from __future__ import annotations

import os
import shlex
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Literal

from .base import (
    Command,
    Forwarding,
    Machine,
    PrerequisiteMissingError,
    Result,
    check_declared,
    missing,
)
from .cleanup import BusyError

RUNTIME = PurePosixPath("/run/hotset")
"""Ends with the machine's uptime, as locks and scratch files should."""
Mode = Literal["exclusive", "shared"]
_WAIT_S = 10
_NOT_FOUND = 69
_HELD, _BUSY = "held", "busy"

# $1: the folder; $2: seconds to wait; $3: who asks; $4: machine's mode; $5: disk or nothing;
# $6: the disk's mode. Calls `busy` where another holds it, `killed` where only commands of an
# operation that was killed still run: they end by themselves.
_TAKE = """
umask 077; mkdir -p "$1/scratch" && chmod 700 "$1" && cd "$1" || exit 1
exec 8>>machine.lock; flock --wait "$2" --"$4" 8 || busy
: >> "${5:+disk-}${5:-machine}.running"
if [ -n "$5" ]; then exec 9>>"disk-$5.lock"; flock --wait "$2" --"$6" 9 || busy; fi
case "$4$6" in *exclusive*)
    for file in machine.running disk-${5:-*}.running; do
        [ ! -e "$file" ] || flock --wait "$2" "$file" true || killed
    done
    if [ -n "$5" ]; then rm -rf "scratch/disk-$5"; echo "$3" > "disk-$5.holder"
    else rm -rf scratch/*; echo "$3" > machine.holder; fi ;;
esac
"""
# Prints `held`, or `busy` and who holds the lock.
_HOLD = f"""
busy() {{
    for file in *.lock; do
        flock --nonblock --shared "$file" true || cat "${{file%lock}}holder"
    done
    killed
}}
killed() {{ echo busy; exit 0; }}
exec 2> /dev/null
{_TAKE}
echo held
exec cat > /dev/null
"""


def scratch_of(disk: str | None) -> PurePosixPath:
    """The folder for what operations on a disk keep meanwhile; None: those that have no disk's
    lock. Each is a folder's whole name: disks may be called ``oltp`` and ``oltp-2``."""
    return RUNTIME / "scratch" / (f"disk-{disk}" if disk else "machine")


class MachineBusyError(BusyError):
    """Another operation works on the same disk or flash device; the message names it."""


@contextmanager
def held(
    machine: Machine, operation: str, disk: str | None = None, mode: Mode = "exclusive"
) -> Iterator[Machine]:
    """Hold a lock for the length of an operation; hands out the machine to run its commands on.

    :param operation: the command, for those who have to wait: ``tier flush oltp``.
    :param disk: the disk that it works on; None locks all of the machine's flash devices.
    :raises MachineBusyError: someone else holds the lock for longer than ten seconds.
    :raises PrerequisiteMissingError: this user may not take one.
    """
    machine_mode = "shared" if disk else mode
    who = f"`hotset {operation}` (process {os.getpid()} on {socket.gethostname()})"
    words = [str(RUNTIME), str(_WAIT_S), who, machine_mode, disk or "", mode if disk else ""]
    with machine.stream(["sh", "-c", _HOLD, "hotset-lock", *words]) as lines:
        answers: list[str] = []
        for line in lines:
            answers.append(line)
            if line in (_HELD, _BUSY):
                break
        if not answers or answers[-1] not in (_HELD, _BUSY):
            raise PrerequisiteMissingError(
                f"no lock can be taken in {RUNTIME} on {machine.kind}: hotset has to be root there"
                " (sudo, or ssh as root), and the folder on a file system that can be written to"
            )
        if answers[-1] == _BUSY:
            holders = [line for line in answers if line != _BUSY]
            raise MachineBusyError(
                f"hotset is at work on {machine.kind} already:"
                f" {'; '.join(holders) or 'commands of an operation that was killed still run'};"
                " wait for it and try again"
            )
        yield _Running(machine, RUNTIME / f"{f'disk-{disk}' if disk else 'machine'}.running")


class _Running(Forwarding):
    """A machine whose commands are seen to run even when nobody waits for them any more."""

    def __init__(self, machine: Machine, lock: PurePosixPath) -> None:
        super().__init__(machine)
        self._prefix = ("flock", "--shared", "--no-fork", str(lock))

    def execute(self, command: Command) -> Result:
        check_declared(command.argv, command.user)
        done = super().execute(replace(command, argv=(*self._prefix, *command.argv)))
        if done.rc == _NOT_FOUND and "failed to execute" in done.stderr:
            raise missing(self.kind, command.argv)
        return replace(done, argv=command.argv)


def holders(machine: Machine) -> list[str]:
    """The operations that hold a lock exclusively now, in words."""
    script = (
        f"cd {shlex.quote(str(RUNTIME))} 2>/dev/null || exit 0; for file in *.lock; do"
        ' [ -e "$file" ] || continue;'
        ' flock --nonblock --shared "$file" true || cat "${file%lock}holder"; done'
    )
    return machine.run(["sh", "-c", script], check=False).stdout.splitlines()


@contextmanager
def scratch_folder(machine: Machine, disk: str | None) -> Iterator[PurePosixPath]:
    """A folder on the machine for the files of one operation, and of no other.

    :param disk: whose lock is held; None: that of none. The next operation that holds a disk's
        lock, or the machine's, removes what a killed one left.
    """
    path = scratch_of(disk) / uuid.uuid4().hex[:12]
    machine.run(["mkdir", "-p", "-m", "700", str(RUNTIME), str(path)])
    try:
        yield path
    finally:
        machine.run(["rm", "-rf", str(path)], check=False)
