"""A machine that only looks: what would change something is printed instead of done.

The very steps of a verb are walked through. Commands that only read really run; once something
would have been changed, one that fails for that (its device would stand by then) is answered with
its own words in angle brackets.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from hotset.cachelayer.machine import (
    DEFAULT_TIMEOUT_S,
    CommandError,
    CommandTimeoutError,
    Machine,
    Result,
    declared,
)

_READS: dict[str, frozenset[str] | None] = {
    "bcache-super-show": None, "blkid": None, "cache_dump": None, "cat": None, "dmesg": None,
    "find": None, "id": None, "ls": None, "lsblk": None, "readlink": None, "test": None,
    "uname": None,
    "blockdev": frozenset(("--getsize64", "--getss")),
    "cache_check": frozenset(("--quiet",)),
    "dmsetup": frozenset(("info", "ls", "status", "table", "targets")),
    "wipefs": frozenset(("--json",)),
}  # fmt: skip
"""Programs that change nothing; with the first words for which that is so, where not for all."""
_SHOWN = 2000


def only_reads(argv: Sequence[str]) -> bool:
    """Whether a command changes nothing.

    >>> only_reads(["dmsetup", "ls"]), only_reads(["dmsetup", "create", "x"])
    (True, False)
    """
    name = PurePosixPath(argv[0]).name
    if name == "dd":
        return "of=/dev/null" in argv
    if name not in _READS:
        return False
    words = _READS[name]
    return words is None or (len(argv) > 1 and argv[1] in words)


class Rehearsal:
    """A machine on which nothing changes."""

    def __init__(self, machine: Machine, show: Callable[[str], None]) -> None:
        """:param show: gets each line to print."""
        self.kind = machine.kind
        self._machine = machine
        self._show = show
        self._changed = False

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        check: bool = True,
        user: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        if only_reads(argv):
            return self._read(argv, timeout_s, check, user, on_line)
        self._changed = True
        self._show(shlex.join(declared(argv, user)))
        for line in (stdin or "").strip().splitlines():
            self._show(f"  < {line}")
        return Result(tuple(argv), 0, "", "", 0.0)

    def _read(
        self,
        argv: Sequence[str],
        timeout_s: float,
        check: bool,
        user: str | None,
        on_line: Callable[[str], None] | None,
    ) -> Result:
        try:
            return self._machine.run(
                argv,
                timeout_s=timeout_s,
                check=check or self._changed,
                user=user,
                on_line=on_line,
            )
        except (CommandError, CommandTimeoutError):
            if not self._changed:
                raise
            return Result(tuple(argv), 0, f"<{PurePosixPath(argv[0]).name}>", "", 0.0)

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        self._show(shlex.join(argv))
        yield iter(())

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self._changed = True
        self._show(f"write {target} (mode {mode:o}):")
        for line in source.read_text(errors="replace")[:_SHOWN].splitlines():
            self._show(f"  < {line}")

    def get(self, source: PurePosixPath, target: Path) -> None:
        self._machine.get(source, target)

    def port(self, wanted: int) -> int:
        return self._machine.port(wanted)

    def address(self, port: int) -> tuple[str, int]:
        return self._machine.address(port)
