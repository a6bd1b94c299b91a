"""hotset's own programs that a server runs: ``hotset-engine``, the cache in user space, and
``hotset-boot``, which makes the devices of disks and knows who uses one. Where they and their files
are, and what they are asked.

Neither holds a model of a device; the lab's program, :mod:`.flashdev`, does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from hotset.core.errors import PrerequisiteError, Remedy, RequestError
from hotset.core.machines import copies
from hotset.core.machines.base import CommandError, Machine, NotInstalledError
from hotset.core.machines.local import Local
from hotset.core.paths import shipped_folder
from hotset.core.units import Bytes

ENGINE, BOOT, LAB = "hotset-engine", "hotset-boot", "flashdev"
RUNTIME = PurePosixPath("/run/hotset/engine")
SCRIPTS = PurePosixPath("/etc/hotset/engine")
"""Where an engine keeps what it needs on its machine; ``hotset-boot`` starts it there."""

REFUSED = 2
"""Exit code: it cannot do what was requested."""
_UNKNOWN = 9
"""Exit code of ``hotset-boot``: nobody can tell who uses it."""
LOOK_S = 2.0
"""How long an inspection waits for an answer: other engines are to be inspected, too."""
# A database of some terabytes, throttled; a dead link ends a copy by itself.
_COPY_TIMEOUT_S = 7 * 24 * 3600.0


class RefusedError(RequestError):
    """A program cannot do what was requested; the message says what would do."""


def find(local: Local, name: str) -> Path:
    """One of the programs of ``make build``: beside HOTSET_FLASHDEV, of this checkout's
    release build, installed with hotset, or on the PATH.

    :raises PrerequisiteMissingError: it is not built.
    """
    crates = Path(__file__).resolve().parents[2] / "crates"
    named = os.environ.get("HOTSET_FLASHDEV")
    for candidate in (
        _beside(Path(named), name) if named else None,
        crates / "target/release" / name,
        shipped_folder(name),
        local.which(name),
    ):
        if candidate is not None and candidate.exists():
            return candidate
    raise NotInstalledError(
        f"{name} is not here: run `make build` in hotset's folder, or install a wheel for this kind"
        " of computer"
    )


def _beside(lab: Path, name: str) -> Path:
    return lab if name == LAB else lab.with_name(name)


def find_engine() -> Path:
    """The program as it was built. Raises as :func:`find`."""
    return find(Local(), ENGINE)


def engine(machine: Machine) -> str:
    """The program on a machine, this very build of it; put there if need be."""
    return place(machine, find_engine())


def find_boot() -> Path:
    """The program as it was built. Raises as :func:`find`."""
    return find(Local(), BOOT)


def boot(machine: Machine) -> str:
    """The program where a boot of the machine finds it, put there if need be."""
    return copies.install(machine, find_boot())


def place(machine: Machine, here: Path) -> str:
    """A program of this computer's on a machine: on this one where it was built."""
    return str(here) if machine.kind == "local" else copies.install(machine, here)


def control_of(disk: str) -> PurePosixPath:
    """The engine's control socket."""
    return RUNTIME / disk / "control"


def witness_of(disk: str) -> PurePosixPath:
    """Where an engine says, until the computer stops, that both devices have all it wrote."""
    return RUNTIME / disk / "control.witness"


def script_of(disk: str) -> PurePosixPath:
    """The script that starts the engine, and tells whether it runs."""
    return SCRIPTS / f"{disk}.sh"


def look_argv(program: str, control: PurePosixPath, what: str) -> list[str]:
    """The command that asks an engine's socket; ends with 124 if no answer comes in time."""
    return ["timeout", f"{LOOK_S:g}", program, "ask", str(control), what]


def digest(here: Path) -> str:
    """Names a build of a program by what is in it."""
    return copies.digest(here)[:12]


def last_message(stderr: str, name: str = ENGINE) -> str:
    """Extract a failed program's message, without the program's name before it."""
    return stderr.strip().removeprefix(f"{name}: ")[-600:]


def copy(
    machine: Machine, words: Sequence[str], on_bytes: Callable[[Bytes], None] = lambda _: None
) -> float:
    """``hotset-engine copy`` on a machine, where reads and writes overlap; returns its seconds.

    :param words: ``--from DEVICE [--to DEVICE] [--bytes N | --runs FILE] [--rate BYTES]
        [--piece BYTES] [--exclusive]``.
    """

    def on_line(line: str) -> None:
        word, _, figure = line.partition(" ")
        if word == "copied":
            on_bytes(Bytes(int(figure)))

    argv = [engine(machine), "copy", *words]
    result = machine.run(argv, timeout_s=_COPY_TIMEOUT_S, on_line=on_line)
    return float(json.loads(result.stdout.splitlines()[-1])["seconds"])


def compare(
    machine: Machine, path: PurePosixPath, other: PurePosixPath, runs: PurePosixPath
) -> tuple[int, int]:
    """``hotset-engine compare`` on a machine; returns how many runs were compared, and how many
    of them differ.

    :param runs: a file there, ``OFFSET BYTES OFFSET_IN_THE_OTHER`` a line.
    """
    argv = [engine(machine), "compare", str(path), str(other), "--runs", str(runs)]
    result = json.loads(machine.run(argv, timeout_s=_COPY_TIMEOUT_S).stdout)
    return int(result["runs"]), int(result["differing"])


OnRead = Callable[[int, float | None], None]


def figures(
    machine: Machine,
    program: str,
    words: Sequence[str],
    on_read: OnRead = lambda _, __: None,
) -> dict[str, Any]:
    """A command whose last line is JSON: what that holds.

    :param program: on the machine.
    :param on_read: told about once a second how many requests of a trace were read and which share
        of all that is (None: not known), of commands that take ``--progress``; what it raises ends
        the command.
    :raises RefusedError: it does not take what it was given; its words.
    """

    def on_line(line: str) -> None:
        word, *figures = line.split()
        if word == "read":
            on_read(int(figures[0]), float(figures[1]) if len(figures) > 1 else None)

    argv = [program, *words]
    result = machine.run(argv, timeout_s=_COPY_TIMEOUT_S, on_line=on_line, check=False)
    if result.rc == REFUSED:
        raise RefusedError(last_message(result.stderr, PurePosixPath(program).name))
    if result.rc != 0:
        raise CommandError(machine.kind, result)
    loaded: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return loaded


class InUseError(PrerequisiteError):
    """A device is in use; the message says by whom, and what to do."""


class UsersUnknownError(InUseError):
    """Nobody can tell who uses it; the message says why, and what to do."""


Who = Literal["all", "writers", "loops"]
"""Which users count; ``writers``: not who only reads it; ``loops``: of a file, the loop devices
over it alone."""


def users(machine: Machine, device: PurePosixPath, who: Who = "all") -> str:
    """Who uses a device, in whichever namespace or container of the machine, or what is built on
    it, and who may write to a file; empty: nobody, or there is no such device, or a dry run where
    the program is not on the machine yet.

    :raises UsersUnknownError: nobody can tell.
    """
    program = place(machine, find_boot())
    result = machine.run([program, "users", "--who", who, str(device)], check=False)
    if result.rc == _UNKNOWN:
        raise UsersUnknownError(last_message(result.stderr, "hotset"))
    if result.rc:
        raise CommandError(machine.kind, result)
    return "" if result.made_up else result.stdout.strip()


def require_unused(
    machine: Machine, device: PurePosixPath, who: Who = "all", field: str | None = None
) -> None:
    """:raises InUseError: somebody uses it, or nobody can tell; see :func:`users`."""
    try:
        message = users(machine, device, who)
    except UsersUnknownError as error:
        message = str(error)
    if message:
        raise InUseError(message, field=field)


def require_idle(machine: Machine, device: PurePosixPath) -> None:
    """:raises InUseError: an offline warm-up needs it idle, and somebody uses it."""
    if message := users(machine, device):
        online = Remedy("warm it up while it is in use", parameters={"method": "online"})
        raise InUseError(f"an offline warm-up needs it idle: {message}", online)


def count_writes(machine: Machine, device: PurePosixPath) -> int | None:
    """A number that every write to a device raises, by whatever name of it, in this boot of the
    machine; of a file, when it was written to last. None in a dry run where the program is not on
    the machine yet.

    :raises PrerequisiteError: the kernel counts nothing there.
    """
    result = machine.run([boot(machine), "writes", str(device)])
    if result.made_up:
        return None
    if result.stdout.strip() == "uncounted":
        raise PrerequisiteError(
            f"the kernel does not count what is written to {device} (its queue/iostats is 0), so"
            " nobody would know whether it was changed meanwhile: write 1 there",
            Remedy("warm it up while it is in use", parameters={"method": "online"}),
        )
    return int(result.stdout)
