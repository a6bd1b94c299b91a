"""Where a server's files lie on a machine: by what lies there, and never by numbers or paths alone,
which are another server's as well (two clusters on a disk, a clone, a container's same paths).

A data directory is a server's if its control file has the server's identifier, and its lock file
(postmaster.pid: "Database File Layout" of the manual; miscadmin.h) tells the start and the port of
the server that was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted

from ..base import Unavailable, sql

if TYPE_CHECKING:
    from ..base import Connection

# $1: where the server says that its files are, or nothing; $2: where to look. A line for each data
# directory: its control file's first number, start and port of the server that has it, and itself;
# behind it what it has elsewhere.
_LOOK = """
tell() {
    data=$(readlink -f "$1") && [ -f "$data/global/pg_control" ] || return 0
    id=$(head -c 8 "$data/global/pg_control" | od -A n -t u8) || return 0
    printf '%s\\t%s\\t%s\\t%s' "$(echo $id)" "$(sed -n 3p "$data/postmaster.pid")" \\
        "$(sed -n 4p "$data/postmaster.pid")" "$data"
    for link in "$data/pg_wal" "$data"/pg_tblspc/*; do
        [ ! -L "$link" ] || printf '\\t%s' "$(readlink -f "$link")"
    done
    echo
} 2> /dev/null
[ -z "$1" ] || tell "$1"
find "$2" -xdev -type f -path '*/global/pg_control' 2> /dev/null | while IFS= read -r file; do
    tell "${file%/global/pg_control}"
done
"""
_STARTING_S = 5
"""Between the lock file and what a server calls its start."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A server's data directory as a machine sees it, and folders that links in it lead to."""

    data: PurePosixPath
    elsewhere: tuple[PurePosixPath, ...]

    @property
    def folders(self) -> tuple[PurePosixPath, ...]:
        return (self.data, *self.elsewhere)


def find(
    machine: Machine, connection: Connection, below: PurePosixPath | None
) -> Whereabouts | Unavailable:
    """The files of the server behind a connection.

    :param below: where to look, beside the place that the server itself names; None: nowhere else.
    """
    try:
        identifier, began, port = map(int, _row(connection, "server_identity"))
    except Aborted as refused:
        return Unavailable(f"pg_control_system(): {refused.detail or refused.cause}")
    try:
        (named,) = _row(connection, "data_directory")
    except Aborted:
        # Not everybody may know it (role pg_monitor is needed).
        named = ""
    found = {
        one
        for one, of, start, on in _parse(machine, named, below or PurePosixPath("/nonexistent"))
        if (of, on) == (identifier, port) and abs(start - began) <= _STARTING_S
    }
    if len(found) == 1:
        return found.pop()
    where = f" (it names {named})" if named else ""
    if found:
        return Unavailable(
            f"the server's files cannot be told from a copy of them on {machine.kind}{where}"
        )
    return Unavailable(
        f"the server's files are not found on {machine.kind}{where}: it is another machine's or"
        " they lie elsewhere; files that are there under such names are another server's"
    )


def _row(connection: Connection, name: str) -> list[str]:
    return [str(value) for value in connection.query(sql("postgres", name))[0]]


def _parse(
    machine: Machine, named: str, below: PurePosixPath
) -> Iterator[tuple[Whereabouts, int, int, int]]:
    """Data directories of running servers: identifier, start (seconds since 1970), port."""
    argv = ["sh", "-c", _LOOK, "hotset-whereabouts", named, str(below)]
    for line in machine.run(argv, check=False).stdout.splitlines():
        identifier, start, port, data, *elsewhere = line.split("\t")
        if identifier.isdigit() and start.isdigit() and port.isdigit():
            folders = tuple(PurePosixPath(one) for one in elsewhere if one)
            place = Whereabouts(PurePosixPath(data), folders)
            yield place, int(identifier), int(start), int(port)
