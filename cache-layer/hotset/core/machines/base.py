"""Machine: where commands run.

A machine runs an argv (never a shell string) and returns what came of it. Tier, storage and
database code only emits commands, so it is the same on this computer (``local``), on another one
(``ssh``) and in the lab's virtual machine (``vm``).
"""

from __future__ import annotations

import shlex
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ..errors import HotsetError, PrerequisiteError
from .programs import PROGRAMS

DEFAULT_TIMEOUT_S = 120.0
"""No command waits for ever: a lost udev cookie or a dead link ends as an error."""


class PrerequisiteMissingError(PrerequisiteError):
    """Something this machine would need is missing or in the way; the message says what helps."""


class NotInstalledError(PrerequisiteMissingError):
    """A program or a library is missing; the message says what installs it."""

    kind = "not-installed"


class MachineGoneError(HotsetError):
    """The machine stopped answering (power cut, crash, lost connection)."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a command: exit code, both streams as text, wall seconds; ``made_up``: the
    command was not run, and a dry run answers in its place."""

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str
    seconds: float
    made_up: bool = False


class CommandError(HotsetError):
    """A command failed; the message holds the command, its code and its last words."""

    def __init__(self, machine: str, result: Result) -> None:
        self.machine = machine
        self.result = result
        message = (result.stderr.strip() or result.stdout.strip() or "(no message)")[-1500:]
        super().__init__(
            f"{machine}: `{shlex.join(result.argv)[:400]}` failed with code {result.rc}: {message}"
        )


class CommandTimeoutError(HotsetError):
    """A command did not end within its time limit and was killed."""

    def __init__(self, machine: str, argv: Sequence[str], timeout_s: float) -> None:
        super().__init__(
            f"{machine}: `{shlex.join(argv)[:400]}` did not end within {timeout_s:.0f} s"
        )


@dataclass(frozen=True, slots=True)
class Command:
    """A command to run.

    :ivar stdin: text for its standard input; the place for secrets, which never go into argv.
    :ivar timeout_s: it is killed after so long.
    :ivar user: run as this user (None: the machine's own, root where the tier needs it).
    :ivar on_line: called with each line of standard output as it comes (progress), by what runs
        the command; it may use the machine.
    """

    argv: tuple[str, ...]
    stdin: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    user: str | None = None
    on_line: Callable[[str], None] | None = None


_REPLACE = """\
mkdir -p "${1%/*}" || exit
# Owned by no other user.
case $1 in /run/hotset/*|/etc/hotset/*/*) chmod 700 "${1%/*}" || exit ;; esac
umask 077
cat > "$1.new" && [ $(wc -c < "$1.new") = $3 ] && chmod $2 "$1.new" || exit
# On the disk before it takes the old one's place, and then its name as well.
sync "$1.new" && mv -f "$1.new" "$1" && sync "${1%/*}"
"""


class Machine(ABC):
    """Where commands run. Every method may raise :class:`MachineGoneError`.

    :ivar kind: ``local``, ``image``, ``uml``, ``vm`` or ``ssh``.
    """

    kind: str

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
        """Run a declared program and wait for it; the options are those of :class:`Command`.

        :raises CommandError: ``check`` and the exit code is not 0.
        :raises CommandTimeoutError: it ran longer than ``timeout_s`` and was killed.
        :raises PrerequisiteMissingError: the program is not installed there.
        """
        result = self.execute(Command(tuple(argv), stdin, timeout_s, user, on_line))
        if check and result.rc != 0:
            raise CommandError(self.kind, result)
        return result

    @abstractmethod
    def execute(self, command: Command) -> Result:
        """Run a command and wait for it, whatever its exit code; raises as :meth:`run` does."""

    @abstractmethod
    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        """Run a program in the background and hand out its lines as they come.

        Leaving the context ends the program.
        """

    @abstractmethod
    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        """Copy a file of this computer onto the machine."""

    def replace(self, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        """Write a small file on the machine atomically, and its folder if need be. One command, as
        each costs a round trip; of a text that did not come whole nothing is kept."""
        words = [str(target), f"{mode:o}", str(len(text.encode()))]
        self.run(["sh", "-c", _REPLACE, "replace", *words], stdin=text)

    @abstractmethod
    def get(self, source: PurePosixPath, target: Path) -> None:
        """Copy a file of the machine onto this computer."""

    def port(self, wanted: int) -> int:
        """The port that a service there may listen on: the wanted one where nobody else can be,
        else one that is free (the same one for the same wish)."""
        return wanted

    def address(self, port: int) -> tuple[str, int]:
        """Where a client on this computer reaches the machine's TCP ``port``."""
        return "127.0.0.1", port


class Forwarding(Machine):
    """A machine in front of another one: what it does not do otherwise, the other one does."""

    def __init__(self, machine: Machine) -> None:
        self.kind = machine.kind
        self._machine = machine

    def execute(self, command: Command) -> Result:
        return self._machine.execute(command)

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        return self._machine.stream(argv)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self._machine.put(source, target, mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        self._machine.get(source, target)

    def port(self, wanted: int) -> int:
        return self._machine.port(wanted)

    def address(self, port: int) -> tuple[str, int]:
        return self._machine.address(port)


def to_its_end(argv: Sequence[str]) -> list[str]:
    """A command that is not ended by the end of its caller, which would be half-way: it
    has a session of its own, and has to limit its time itself.

    >>> to_its_end(["sh", "-c", "true"])
    ['setsid', '--wait', 'sh', '-c', 'true']
    """
    return ["setsid", "--wait", *argv]


def put_text(machine: Machine, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
    """Write a small file on the machine."""
    put_lines(machine, (text,), target, mode)


def put_lines(
    machine: Machine, lines: Iterable[str], target: PurePosixPath, mode: int = 0o644
) -> None:
    """Write a file on the machine that need not fit into memory; lines have their ends."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(lines)
        file.flush()
        machine.put(Path(file.name), target, mode)


def check_declared(argv: Sequence[str], user: str | None) -> tuple[str, ...]:
    """The argv to run, checked against the list of programs; with ``user``, through runuser.

    >>> check_declared(["ls", "/dev"], None)
    ('ls', '/dev')
    >>> check_declared(["frobnicate"], None)
    Traceback (most recent call last):
    ValueError: 'frobnicate' is not declared in hotset.core.machines.programs
    """
    name = PurePosixPath(argv[0]).name
    if name not in PROGRAMS:
        raise ValueError(f"{name!r} is not declared in hotset.core.machines.programs")
    if user is None:
        return tuple(argv)
    return ("runuser", "-u", user, "--", *argv)


def missing(machine: str, argv: Sequence[str]) -> NotInstalledError:
    """The error for a program that is not installed: names the package."""
    name = PurePosixPath(argv[0]).name
    package = PROGRAMS[name].package
    return NotInstalledError(
        f"{name} is not installed on {machine} (needed to {PROGRAMS[name].purpose});"
        f" install it: apt-get install {package}"
        if " " not in package
        else f"{name} is missing on {machine}: {package}"
    )
