"""``hotset-engine``, the program that a server runs: where it lies, what it is asked.

It holds no model of a device; the lab's program, :mod:`.flashdev`, does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from hotset.core.errors import RequestError
from hotset.core.machines import copies
from hotset.core.machines.base import CommandError, Machine, PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.paths import shipped_folder
from hotset.core.units import Bytes

NAME = "hotset-engine"
LAB_NAME = "flashdev"

REFUSED = 2
"""Exit code: it cannot do what was requested."""
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
    raise PrerequisiteMissingError(
        f"{name} is not here: run `make build` in hotset's folder, or install a wheel for this kind"
        " of computer"
    )


def _beside(lab: Path, name: str) -> Path:
    return lab if name == LAB_NAME else lab.with_name(name)


def find_built() -> Path:
    """The program as it was built. Raises as :func:`find`."""
    return find(Local(), NAME)


def on(machine: Machine) -> str:
    """The program on a machine, this very build of it; put there if need be."""
    return place(machine, find_built())


def place(machine: Machine, here: Path) -> str:
    """A program of this computer's on a machine: on this one where it was built."""
    return str(here) if machine.kind == "local" else copies.install(machine, here)


def look_argv(program: str, control: PurePosixPath, what: str) -> list[str]:
    """The command that asks an engine's socket; ends with 124 if no answer comes in time."""
    return ["timeout", f"{LOOK_S:g}", program, "ask", str(control), what]


def digest(here: Path) -> str:
    """Names a build of a program by what is in it."""
    return copies.digest(here)[:12]


def last_message(stderr: str, name: str = NAME) -> str:
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

    argv = [on(machine), "copy", *words]
    result = machine.run(argv, timeout_s=_COPY_TIMEOUT_S, on_line=on_line)
    return float(json.loads(result.stdout.splitlines()[-1])["seconds"])


def compare(
    machine: Machine, path: PurePosixPath, other: PurePosixPath, runs: PurePosixPath
) -> tuple[int, int]:
    """``hotset-engine compare`` on a machine; returns how many runs were compared, and how many
    of them differ.

    :param runs: a file there, ``OFFSET BYTES OFFSET_IN_THE_OTHER`` a line.
    """
    argv = [on(machine), "compare", str(path), str(other), "--runs", str(runs)]
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
