"""Where a server's files lie on a machine: where its own process has them, and never by numbers or
paths alone, which are another server's as well (two clusters on a disk, a clone, a container's same
paths).

The process that serves a connection works in its server's data directory (ChangeToDataDir in
miscinit.c), whose control file has the server's identifier, and whose lock file (postmaster.pid:
"Database File Layout" of the manual; miscadmin.h) its start and port. A copy has all of these but
the process, which also leads to the folders that links of a container lead to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine
from hotset.core.sql import Aborted, Session

from ..base import Unavailable, sql
from ..seen import SEEN

# $1: a process, by the number that its server has for it; $2: a server's folder in a tablespace;
# $3: the folder whose names are wanted, or nothing. A line for each such process in a data
# directory: the control file's first number, start, port and the directory; behind it, what it has
# elsewhere, and whether its link leads there here as well.
_LOOK = (
    SEEN
    + r"""
below=${3:+$(readlink -f "$3")}
grep -l -E "^(NSpid|Pid):.*[^0-9]$1\$" /proc/[0-9]*/status | while IFS= read -r status; do
    process=${status%/status} data=${status%/status}/cwd
    id=$(head -c 8 "$data/global/pg_control" | od -A n -t u8) && [ -n "$id" ] || continue
    printf '%s\t%s\t%s\t' "$(echo $id)" "$(sed -n 3p "$data/postmaster.pid")" \
        "$(sed -n 4p "$data/postmaster.pid")"
    root=$(seen "$(readlink "$data")" "$data")
    printf '%s' "$root"
    for link in "$data/pg_wal" "$data"/pg_tblspc/*; do
        [ -L "$link" ] || continue
        to=$(readlink "$link") name=${link##*/}
        [ "$name" = pg_wal ] || to=$to/$2 name=pg_tblspc/$name/$2
        [ -d "$process/root$to" ] || continue
        folder=$(seen "$to" "$process/root$to")
        [ "$root/$name" -ef "$folder" ] && leads=there || leads=away
        printf '\t%s\t%s\t%s' "$name" "$folder" "$leads"
    done
    echo
done
"""
)
_STARTING_S = 5
"""Between the lock file and what a server calls its start."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A server's data directory as a machine sees it.

    :ivar elsewhere: folders that links in it lead to, by the names that the server has for them;
        ``astray``: those of the links that lead the machine to other folders.
    """

    data: PurePosixPath
    elsewhere: Mapping[PurePosixPath, PurePosixPath]
    astray: frozenset[PurePosixPath] = frozenset()

    @property
    def folders(self) -> tuple[PurePosixPath, ...]:
        return (*self.elsewhere.values(), self.data)

    def path(self, name: str) -> PurePosixPath:
        """Return the path of a file or folder that the server names from its data directory on."""
        for link in self.astray:
            if PurePosixPath(name).is_relative_to(link):
                return self.elsewhere[link] / PurePosixPath(name).relative_to(link)
        return self.data / name

    def name(self, path: str) -> str | None:
        """Return the server's name of a file, from its data directory on; None: it is not its own.

        >>> links = {PurePosixPath("pg_tblspc/16390/PG_15_2"): PurePosixPath("/ts/PG_15_2")}
        >>> place = Whereabouts(PurePosixPath("/data"), links)
        >>> place.name("/ts/PG_15_2/5/16384"), place.name("/ts/PG_14_1/5/16384")
        ('pg_tblspc/16390/PG_15_2/5/16384', None)
        """
        for link, folder in (*self.elsewhere.items(), (PurePosixPath(), self.data)):
            if path.startswith(f"{folder}/"):
                return str(link / path.removeprefix(f"{folder}/"))
        return None


def find(
    machine: Machine, connection: Session, below: PurePosixPath | None
) -> Whereabouts | Unavailable:
    """The files of the server behind a connection.

    :param below: a folder whose names of them are wanted, where they have several; None: any will
        do.
    """
    try:
        row = connection.query(sql("postgres", "server_identity"))[0]
    except Aborted as refused:
        return Unavailable(f"pg_control_system(): {refused.detail or refused.cause}")
    identifier, began, port, process = (int(str(value)) for value in row[:4])
    folders = [
        folder
        for folder, of, start, on in _parse(machine, str(process), str(row[4]), str(below or ""))
        if (of, on) == (identifier, port) and abs(start - began) <= _STARTING_S
    ]
    if len(folders) == 1:
        return folders[0]
    return Unavailable(
        f"the server's files are not found on {machine.kind}: no process of its own is seen at"
        " work in them. It is another machine's (files that are there under such names are another"
        " server's), or its processes are hidden: hotset has to be root outside any container"
    )


def _parse(
    machine: Machine, process: str, version: str, below: str
) -> Iterator[tuple[Whereabouts, int, int, int]]:
    """Data directories of processes: identifier, start (seconds since 1970), port."""
    argv = ["sh", "-c", _LOOK, "hotset-whereabouts", process, version, below]
    for line in machine.run(argv, check=False).stdout.splitlines():
        identifier, start, port, data, *elsewhere = line.split("\t")
        if identifier.isdigit() and start.isdigit() and port.isdigit():
            names = [*map(PurePosixPath, elsewhere[::3])]
            folders = dict(zip(names, map(PurePosixPath, elsewhere[1::3]), strict=True))
            astray = {
                folder
                for folder, leads in zip(names, elsewhere[2::3], strict=True)
                if leads == "away"
            }
            place = Whereabouts(PurePosixPath(data), folders, frozenset(astray))
            yield place, int(identifier), int(start), int(port)
