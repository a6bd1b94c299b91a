"""The copies of hotset's programs on a machine: put there, listed, removed.

A copy lies in a folder named after what is in it, so another version's is another copy, none is
ever written over, and an engine goes on from the one that it was started from. Beside it is a
record of who put it there. It takes its place in one step, whole and tried; what breaks off before
that is an unfinished copy, which nothing is started from.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

from hotset import __version__

from ..errors import ConflictError, HotsetError, NotFoundError, Remedy
from ..record import Record
from . import fit
from .base import CommandError, Machine, PrerequisiteMissingError

if TYPE_CHECKING:
    from rich.console import Console

FOLDER = PurePosixPath("/usr/local/lib/hotset")
ENTER = "hotset-enter"
_NAME_LENGTH = 12
_NEW, _RECORD = ".new", ".json"
_DIFFERS, _CANNOT_RUN = 11, 12
_FAULTS = {
    _DIFFERS: "it did not arrive as it was sent, so try again",
    _CANNOT_RUN: "it does not run there: the file system is mounted noexec, SELinux or fapolicyd"
    " forbids it, or its C library is older than the program's (those of a release need none)",
}
_chosen: WeakKeyDictionary[Machine, dict[Path, Path]] = WeakKeyDictionary()
"""For machines of another architecture than this computer's: the program for each of its own."""

# $1: the new copy; $2: its place; $3: its sha256. Its record comes by standard input. All of it is
# on the disk before it takes its place: a boot may start from it after a power cut.
_ENTER = f"""\
fail() {{ code=$?; rm -f "$1" "$1{_RECORD}"; exit "${{2:-$code}}"; }}
set -- "$1" "$2" "$3" "$(sha256sum < "$1")"
[ "${{4%% *}}" = "$3" ] || fail "$1" {_DIFFERS}
"$1" --version > /dev/null || fail "$1" {_CANNOT_RUN}
cat > "$1{_RECORD}" && sync "$1" "$1{_RECORD}" && mv -f "$1{_RECORD}" "$2{_RECORD}" || fail "$1"
# Another may have been faster: whatever runs from it by now goes on from the file that is there.
[ -x "$2" ] && rm -f "$1" || {{ mv -f "$1" "$2" || fail "$1"; }}
sync "${{2%/*}}"
"""
# $1: the folder.
_TELL = """\
cd "$1" 2> /dev/null || exit 0
for file in */*; do
    [ -f "$file" ] || continue
    case $file in
        *.json) echo "record $file $(tr '\\n' ' ' < "$file")" ;;
        *) set -- "$1" $(wc -c < "$file") $(sha256sum < "$file"); echo "file $file $2 $3" ;;
    esac
done
# Each of them once more in what a boot reads; a process tells by what it was started from.
exec 2> /dev/null
find /etc /run/systemd -type f -exec grep -HoE "$1/[0-9a-f]+/[a-z-]+" {} + |
    while IFS= read -r line; do echo "named $line"; done
cd /proc && ls -l [0-9]*/exe | grep -F -- "-> $1/" |
    sed 's|.* \\([0-9]*\\)/exe -> |runs \\1 |'
exit 0
"""

State = Literal["complete", "unfinished", "changed"]


@dataclass(frozen=True, slots=True)
class Copy:
    """One program that hotset put on a machine.

    :ivar name: of the copy: the beginning of the sum of what was copied.
    :ivar version: hotset's that copied it, as ``copied_at`` and ``copied_by`` tell; None: an older
        one, which kept no record.
    :ivar state: ``changed``: it is not what hotset copied.
    :ivar used_by: processes that run it, and files that name it.
    """

    name: str
    program: str
    state: State
    version: str | None
    architecture: str | None
    bytes: int
    sha256: str
    copied_at: str | None
    copied_by: str | None
    path: str
    used_by: tuple[str, ...]


_STYLES = {"complete": "green", "unfinished": "yellow", "changed": "bold red"}


@dataclass(frozen=True)
class Copies(Record):
    """All copies on a machine."""

    csv_rows = "copies"

    copies: tuple[Copy, ...]

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not self.copies:
            console.print("hotset has copied no program there")
            return
        table = Table(box=None, pad_edge=False)
        for head in ("copy", "program", "version", "copied", "by", "state", "used by"):
            table.add_column(head, overflow="fold")
        for copy in self.copies:
            version = " ".join(filter(None, (copy.version, copy.architecture))) or "unknown"
            origin = (copy.copied_at or "unknown", copy.copied_by or "unknown")
            state = Text(copy.state, style=_STYLES[copy.state])
            used = ", ".join(copy.used_by) or "nothing"
            table.add_row(copy.name, copy.program, version, *map(Text, origin), state, Text(used))
        console.print(table)


class InUseError(ConflictError):
    """A copy that is to be removed is used."""


class CannotCopyError(HotsetError):
    """A program did not arrive as it was sent, or does not run where it arrived."""


def install(machine: Machine, here: Path) -> str:
    """A program of this computer's where a boot of the machine finds it, this very build of it, or
    that for the machine's architecture. Not where it was built, on this computer neither: a boot
    would miss that once it is moved or not mounted yet, and root would run what another may write.

    :raises UnfitError: the machine cannot run it; nothing was copied.
    """
    program = _chosen.get(machine, {}).get(here, here)
    if _is_there(machine, place := place_of(program)):
        return str(place)
    program = fit.choose(machine, here)
    if program != here:
        _chosen.setdefault(machine, {})[here] = program
        if _is_there(machine, place := place_of(program)):
            return str(place)
    _copy(machine, program, place)
    return str(place)


def place_of(program: Path) -> PurePosixPath:
    return FOLDER / digest(program)[:_NAME_LENGTH] / program.name


def digest(program: Path) -> str:
    """Return the sha256 of a file's contents in hexadecimal digits."""
    return _digest(program, program.stat().st_mtime_ns)


@cache
def _digest(file: Path, changed_ns: int) -> str:
    """``changed_ns``: a new build is looked at again."""
    del changed_ns
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _is_there(machine: Machine, place: PurePosixPath) -> bool:
    return machine.run(["test", "-x", str(place)], check=False).rc == 0


def _copy(machine: Machine, program: Path, place: PurePosixPath) -> None:
    # A name of its own: two may copy at once.
    new = place.with_name(f"{place.name}-{uuid.uuid4().hex[:_NAME_LENGTH]}{_NEW}")
    machine.run(["mkdir", "-p", str(place.parent)])
    words = [str(new), str(place), digest(program)]
    try:
        machine.put(program, new, 0o755)
        machine.run(["sh", "-c", _ENTER, ENTER, *words], stdin=_record(program))
    except BaseException as error:
        with suppress(HotsetError):
            machine.run(["rm", "-f", str(new), f"{new}{_RECORD}"], check=False)
        if isinstance(error, CommandError) and error.result.rc in _FAULTS:
            message = error.result.stderr.strip()
            raise CannotCopyError(
                f"{machine.kind}: {program.name} was copied to {place.parent} and removed again:"
                f" {_FAULTS[error.result.rc]}{f' ({message[-300:]})' if message else ''}"
            ) from None
        raise


def _record(program: Path) -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    by = f"{user}@{socket.gethostname()}"
    architecture = fit.architecture_of(program)
    known = {"version": __version__, "architecture": architecture, "sha256": digest(program)}
    return json.dumps({**known, "copied_at": at, "copied_by": by}) + "\n"


def copies(machine: Machine) -> Copies:
    """All copies that are on a machine, and who uses them.

    :raises PrerequisiteMissingError: this user is not told what others run.
    """
    if machine.run(["id", "-u"]).stdout.strip() != "0":
        raise PrerequisiteMissingError(
            f"{machine.kind}: only root is told what runs from a copy: use sudo, or log in as root",
            field="machine",
        )
    lines = machine.run(["sh", "-c", _TELL, "hotset-copies", str(FOLDER)]).stdout.splitlines()
    records: dict[str, dict[str, str]] = {}
    files: dict[str, tuple[int, str]] = {}
    used: dict[str, list[str]] = {}
    for line in lines:
        match line.split(" ", 3):
            case ["file", path, size, sha256]:
                files[path] = int(size), sha256
            case ["record", path, *text]:
                with suppress(ValueError):
                    records[path.removesuffix(_RECORD)] = json.loads(" ".join(text))
            case ["runs", process, path, *_]:
                used.setdefault(path, []).append(f"process {process}")
            case ["named", *_]:
                file, _, path = line.removeprefix("named ").rpartition(":")
                used.setdefault(path, []).append(file)
    return Copies(tuple(_parse_copies(files, records, used)))


def _parse_copies(
    files: dict[str, tuple[int, str]],
    records: dict[str, dict[str, str]],
    used: dict[str, list[str]],
) -> Iterator[Copy]:
    for path, (size, sha256) in sorted(files.items()):
        folder, _, name = path.partition("/")
        record, place = records.get(path, {}), str(FOLDER / path)
        state: State = "complete" if sha256.startswith(folder) else "changed"
        if name.endswith(_NEW):
            state = "unfinished"
        yield Copy(
            folder,
            name,
            state,
            record.get("version"),
            record.get("architecture"),
            size,
            sha256,
            record.get("copied_at"),
            record.get("copied_by"),
            place,
            tuple(dict.fromkeys(used.get(place, ()))),
        )


def remove(machine: Machine, names: Sequence[str], unused: bool) -> list[Copy]:
    """Remove copies; returns those that were there.

    :param machine: with its lock held, so that nobody begins to use one.
    :param names: as :attr:`Copy.name`, or the beginning of one; none: all.
    :param unused: leave those that are used.
    :raises NotFoundError: there is no copy of a name.
    :raises InUseError: one is used, or is not what hotset copied; nothing was removed.
    """
    known = copies(machine).copies
    for name in names:
        if not any(copy.name.startswith(name) for copy in known):
            listed = ", ".join(sorted({copy.name for copy in known})) or "none"
            raise NotFoundError(f"there is no copy {name!r}; there are: {listed}", field="names")
    wanted = [copy for copy in known if not names or copy.name.startswith(tuple(names))]
    kept = [copy for copy in wanted if copy.used_by or copy.state == "changed"]
    if kept and not unused:
        raise InUseError("; ".join(map(_why_kept, kept)), *_ways_out(kept))
    gone = [copy for copy in wanted if copy not in kept]
    for copy in gone:
        machine.run(["rm", "-f", copy.path, f"{copy.path}{_RECORD}"])
    for folder in {str(FOLDER / copy.name) for copy in gone}:
        machine.run(["rmdir", folder], check=False)
    machine.run(["rmdir", str(FOLDER)], check=False)
    return gone


def _why_kept(copy: Copy) -> str:
    if copy.state == "changed":
        return f"{copy.path} is not what hotset copied: look at it, and remove it yourself"
    return f"{copy.path} is used by {', '.join(copy.used_by)}"


def _ways_out(kept: Sequence[Copy]) -> Iterator[Remedy]:
    yield Remedy("remove the others", parameters={"unused": True})
    if any(copy.used_by for copy in kept):
        yield Remedy("end the use, disk by disk", "tier deactivate", {"disk": "DISK"})
        yield Remedy("end it for good", "tier detach", {"disk": "DISK"})
