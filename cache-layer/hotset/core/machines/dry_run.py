"""Machines that show what they are told instead of doing it.

The very steps of an operation are walked through. On a :class:`DryRun`, commands that only read
really run; once something would have been changed, one that fails because what it asks about is
not there (it would be by then) is answered with its own words in angle brackets.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from .base import (
    Command,
    CommandTimeoutError,
    Machine,
    PrerequisiteMissingError,
    Result,
    check_declared,
)
from .programs import lacking_argv

_READS: dict[str, frozenset[str] | None] = {
    "bcache-super-show": None,
    "blkid": None,
    "cache_dump": None,
    "cat": None,
    "dmesg": None,
    "grep": None,
    "id": None,
    "ls": None,
    "lsblk": None,
    "readlink": None,
    "stat": None,
    "test": None,
    "uname": None,
    "blockdev": frozenset(("--getsize64", "--getss")),
    "cache_check": frozenset(("--quiet",)),
    "sg_persist": frozenset(("--in",)),
    "hotset-boot": frozenset(("await", "content", "decide", "users", "writes")),
    "dmsetup": frozenset(("info", "ls", "status", "table", "targets")),
    "wipefs": frozenset(("--json",)),
}
"""Programs that change nothing; with the first words for which that is so, where not for all."""
_LOOKS = frozenset(
    (
        *(lacking_argv(())[3], "hotset-transports", "hotset-wwids"),
        *("alive", "attached", "restarting"),
    )
)
"""The name of a script that changes nothing, or the word that it is given."""
_NO_PROGRAM = 127
_SHOWN = 2000


def only_reads(argv: Sequence[str]) -> bool:
    """True if a command changes nothing.

    >>> only_reads(["dmsetup", "ls"]), only_reads(["dmsetup", "create", "x"])
    (True, False)
    """
    name = PurePosixPath(argv[0]).name
    if name == "find":
        programs = [word for at, word in enumerate(argv) if at and argv[at - 1] == "-exec"]
        return "-delete" not in argv and set(programs) <= {"tail"}
    if name == "dd":
        return "of=/dev/null" in argv or not any(word.startswith("of=") for word in argv)
    if name == "sh":
        return not _LOOKS.isdisjoint(argv[2:4])
    if name not in _READS:
        return False
    words = _READS[name]
    return words is None or (len(argv) > 1 and argv[1] in words)


class Showing(Machine):
    """A machine that shows every command and file, and does nothing."""

    def __init__(self, kind: str, show: Callable[[str], None]) -> None:
        """:param show: gets each line to print."""
        self.kind = kind
        self._show = show

    def execute(self, command: Command) -> Result:
        self._show(shlex.join(check_declared(command.argv, command.user)))
        if command.stdin is not None and "PASSWORD" not in command.stdin:
            self._show_text(command.stdin)
        answer = self._answer(command.argv)
        if command.on_line is not None:
            for line in answer.splitlines():
                command.on_line(line)
        return Result(command.argv, 0, answer, "", 0.0, made_up=True)

    def _answer(self, argv: Sequence[str]) -> str:  # noqa: ARG002
        """Return the output that the command would print."""
        return ""

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        self._show(shlex.join(argv))
        yield iter(())

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self._show(f"write {target} (mode {mode:o}):")
        held = source.read_bytes()
        self._show_text(f"{len(held):,} bytes" if b"\0" in held else held.decode(errors="replace"))

    def replace(self, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        self._show(f"write {target} (mode {mode:o}), in the place of the old one:")
        self._show_text(text)

    def get(self, source: PurePosixPath, target: Path) -> None:
        self._show(f"read {source} into {target}")

    def _show_text(self, text: str) -> None:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}\n…"
        for line in shown.strip().splitlines():
            self._show(f"  < {line}")


class DryRun(Showing):
    """A machine on which nothing changes."""

    def __init__(self, machine: Machine, show: Callable[[str], None]) -> None:
        super().__init__(machine.kind, show)
        self._machine = machine
        self._made = set[str]()
        self._written: dict[tuple[str, int], str] = {}
        self._files: dict[str, str] = {}

    def execute(self, command: Command) -> Result:
        if only_reads(command.argv):
            return self._read(command)
        self._made.update(command.argv[1:])
        for word in command.argv[1:]:
            self._files.pop(word, None)
        if PurePosixPath(command.argv[0]).name == "dd" and command.stdin is not None:
            device, at, _ = _place(command.argv, "of", "seek")
            self._written[device, at] = command.stdin
        return super().execute(command)

    def _read(self, command: Command) -> Result:
        """Run a reading command; the result is made up where it fails after a simulated change."""
        name, words = PurePosixPath(command.argv[0]).name, command.argv[1:]
        if name == "cat" and len(words) == 1 and words[0] in self._files:
            return Result(command.argv, 0, self._files[words[0]], "", 0.0)
        if name == "dd":
            # A label that would have been written is read again by the steps that follow.
            device, first, count = _place(command.argv, "if", "skip")
            texts = [
                text
                for (name, at), text in sorted(self._written.items())
                if name == device and first <= at < first + count
            ]
            if texts:
                return Result(command.argv, 0, "".join(texts), "", 0.0)
        try:
            result = self._machine.execute(command)
        except (CommandTimeoutError, PrerequisiteMissingError):
            if not self._made:
                raise
        else:
            if not (result.rc and self._made and self._may_come(result)):
                return result
        # What lists files finds none of what does not exist: its names are taken for devices'.
        text = "" if name == "find" else f"<{name}>"
        return Result(command.argv, 0, text, "", 0.0, made_up=True)

    def _may_come(self, result: Result) -> bool:
        """True if the failure may be due to what does not exist yet: a program, a device, or what
        would have been made. Any other failure is the answer."""
        paths = [word for word in result.argv[1:] if word.startswith("/")]
        return (
            result.rc == _NO_PROGRAM
            or not paths
            or any(
                (path.startswith(("/dev/", "/sys/")) or path in self._made)
                and self._machine.run(["test", "-e", path], check=False).rc != 0
                for path in paths
            )
        )

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self._made.add(str(target))
        self._files[str(target)] = source.read_text(encoding="utf-8", errors="replace")
        super().put(source, target, mode)

    def replace(self, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        self._made.add(str(target))
        self._files[str(target)] = text
        super().replace(text, target, mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        self._machine.get(source, target)

    def port(self, wanted: int) -> int:
        return self._machine.port(wanted)

    def address(self, port: int) -> tuple[str, int]:
        return self._machine.address(port)


def _place(argv: Sequence[str], name: str, start: str) -> tuple[str, int, int]:
    """Device, first byte and number of bytes of a ``dd``."""
    options = dict(word.split("=", 1) for word in argv[1:])
    size = int(options["bs"]) if options.get("bs", "").isdigit() else 0
    count = int(options.get("count", "1"))
    return options.get(name, ""), int(options.get(start, "0")) * size, count * size
