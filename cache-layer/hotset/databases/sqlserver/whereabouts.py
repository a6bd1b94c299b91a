"""Where SQL Server's files lie on a machine: those that its own process there has open, under the
names that the server has for them. Names alone are another server's as well: a container's, a
replica's, that of another machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

from ..base import Unavailable
from ..seen import SEEN

_NAME_LENGTH = 15
"""SQL Server on Linux cuts a machine's name there (Quickstart: install on Linux)."""
# $1: the machine's name as the server has it; $2: the folder whose names are wanted, or nothing;
# then files. A line for each that a process sqlservr of a machine of that name has open.
_LOOK = (
    SEEN
    + r"""
machine=$1 below=${2:+$(readlink -f "$2")}
shift 2
grep -l -x sqlservr /proc/[0-9]*/comm | while IFS= read -r comm; do
    process=${comm%/comm}
    name=$(nsenter --uts="$process/ns/uts" cat /proc/sys/kernel/hostname) || continue
    name=$(printf %s "${name%%.*}" | cut -c -15 | tr '[:upper:]' '[:lower:]')
    [ "$name" = "$machine" ] || continue
    for file; do
        for open in "$process"/fd/*; do
            [ "$open" -ef "$process/root$file" ] || continue
            printf '%s\t' "$file"
            seen "$file" "$process/root$file"
            echo
            break
        done
    done
done
"""
)


def find(
    machine: Machine, name: str, files: Sequence[str], below: PurePosixPath | None
) -> dict[str, str] | Unavailable:
    """The paths of a server's files on a machine, by its own; without those it has not open there.

    :param name: of the machine, as the server has it.
    :param below: a folder whose names of them are wanted; None: any will do.
    """
    short = name.partition(".")[0][:_NAME_LENGTH].lower()
    argv = ["sh", "-c", _LOOK, "hotset-whereabouts", short, str(below or ""), *files]
    lines = set(machine.run(argv, check=False).stdout.splitlines())
    located = dict(line.split("\t") for line in lines)
    if len(located) < len(lines):
        return Unavailable(f"several servers on {machine.kind} have files of the same names open")
    if not located:
        return Unavailable(
            f"no SQL Server of the name {name} is seen on {machine.kind} with these files open:"
            " they are another machine's (files that are there under such names are another"
            " server's), or its processes are hidden: hotset has to be root outside any container"
        )
    return located
