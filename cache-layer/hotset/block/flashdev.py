"""The ``flashdev`` program: where it lies, how it is put on a machine, what its commands say."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from hotset.core.errors import RequestError
from hotset.core.machines.base import CommandError, Machine, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.core.waiting import wait_for_word

Model = str | dict[str, Any]
"""A device model: the name of a built-in one, or its JSON form (see ``flashdev models``)."""

_ON_MACHINE = PurePosixPath("/usr/local/lib/hotset")
_MTAB = Path("/etc/mtab")
_START_LIMIT_S = 20.0
_REFUSED = 2
# A database of some terabytes, throttled; a dead link ends a copy by itself.
_COPY_TIMEOUT_S = 7 * 24 * 3600.0


class RefusedError(RequestError):
    """``flashdev`` cannot do what was asked for as it stands; the message says what would do."""


def program(local: Local) -> Path:
    """HOTSET_FLASHDEV, this checkout's release build, or PATH.

    :raises PrerequisiteMissingError: it is not built.
    """
    crate = Path(__file__).resolve().parents[2] / "flashdev"
    named = os.environ.get("HOTSET_FLASHDEV")
    for candidate in (
        Path(named) if named else None,
        crate / "target/release/flashdev",
        local.which("flashdev"),
    ):
        if candidate is not None and candidate.exists():
            return candidate
    raise PrerequisiteMissingError("flashdev is not built: run `make build` in hotset's folder")


def on(machine: Machine) -> str:
    """The program on a machine, this very build of it; put there if need be."""
    here = program(Local())
    return str(here) if machine.kind == "local" else installed(machine, here)


def installed(machine: Machine, here: Path) -> str:
    """A program of this computer's where a boot of the machine finds it, this very build of it. Not
    where it was built, on this computer neither: a boot would miss that once it is moved or not
    mounted yet, and root would run what another may write."""
    path = _ON_MACHINE / _digest(here, here.stat().st_mtime_ns) / here.name
    if machine.run(["test", "-x", str(path)], check=False).rc != 0:
        machine.run(["mkdir", "-p", str(path.parent)])
        # A copy that breaks off must not be taken for the program.
        machine.put(here, path.with_suffix(".new"), 0o755)
        # Nor one that a power cut leaves empty: it is what the next boot starts.
        machine.run(["sync", str(path.with_suffix(".new"))])
        machine.run(["mv", "-f", str(path.with_suffix(".new")), str(path)])
    return str(path)


def build(local: Local) -> str:
    """Names this computer's build of the program by what is in it."""
    here = program(local)
    return _digest(here, here.stat().st_mtime_ns)


@cache
def _digest(file: Path, changed_ns: int) -> str:
    """Names a build by what is in it. ``changed_ns``: a new build is looked at anew."""
    del changed_ns
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def copy(
    machine: Machine, words: Sequence[str], on_bytes: Callable[[Bytes], None] = lambda _: None
) -> float:
    """``flashdev copy`` on a machine, where reads and writes overlap; returns its seconds.

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
    machine: Machine, one: PurePosixPath, other: PurePosixPath, runs: PurePosixPath
) -> tuple[int, int]:
    """``flashdev compare`` on a machine; returns how many runs were compared and how many differ.

    :param runs: a file there, ``OFFSET BYTES OFFSET_IN_THE_OTHER`` a line.
    """
    argv = [on(machine), "compare", str(one), str(other), "--runs", str(runs)]
    found = json.loads(machine.run(argv, timeout_s=_COPY_TIMEOUT_S).stdout)
    return int(found["runs"]), int(found["differing"])


OnRead = Callable[[int, float | None], None]


def figures(
    machine: Machine, words: Sequence[str], on_read: OnRead = lambda _, __: None
) -> dict[str, Any]:
    """A command whose last line is JSON: what that holds.

    :param on_read: told about once a second how many requests of a trace were read and which share
        of all that is (None: not known), of commands that take ``--progress``; what it raises ends
        the command.
    :raises RefusedError: it does not take what it was given; its words.
    """

    def on_line(line: str) -> None:
        word, *figures = line.split()
        if word == "read":
            on_read(int(figures[0]), float(figures[1]) if len(figures) > 1 else None)

    argv = [on(machine), *words]
    result = machine.run(argv, timeout_s=_COPY_TIMEOUT_S, on_line=on_line, check=False)
    if result.rc == _REFUSED:
        raise RefusedError(_words(result.stderr))
    if result.rc != 0:
        raise CommandError(machine.kind, result)
    loaded: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return loaded


def expected(local: Local, model: Model, words: Sequence[str]) -> dict[str, Any]:
    """What a model promises (``flashdev expect``), as its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        argument = model_argument(model, Path(folder), "model")
        return figures(local, ["expect", "--model", argument, *words, "--json"])


def library(local: Local) -> list[str]:
    """The names of the models that come with it (``flashdev models``)."""
    return local.run([str(program(local)), "models"]).stdout.split()


def library_model(local: Local, name: str) -> dict[str, Any]:
    """A model of the library as its JSON: title, device tree, where its values come from."""
    loaded: dict[str, Any] = json.loads(local.run([str(program(local)), "models", name]).stdout)
    return loaded


def model_argument(model: Model, folder: Path, name: str) -> str:
    """A model as an argument; one given as JSON is written to ``folder`` under ``name``."""
    if isinstance(model, str):
        return model
    file = folder / f"{name}.json"
    file.write_text(json.dumps(model))
    return str(file)


def serve(
    local: Local, words: Sequence[str], mount: Path, log: Path, cleanup: Cleanup, name: str
) -> subprocess.Popen[bytes]:
    """Start a serving command (``serve``, ``tier``) and wait until its files are there.

    :param words: the command and its options, ``--mount`` left out.
    :param name: what the journal and messages call it.
    :raises RefusedError: it does not take what it was given.
    :raises PrerequisiteMissingError: it did not start for another reason, which the message quotes.
    """
    mount.mkdir(exist_ok=True)
    argv = [*_unmount(), "-q", str(mount)]
    # It unmounts itself when it ends in order; not so when somebody kills it.
    cleanup.leftover(f"unmount the {name}", argv)
    cleanup.call(f"unmount the {name}", lambda: local.run(argv, check=False))
    process = local.spawn([str(program(local)), *words, "--mount", str(mount)], log)
    cleanup.process(name, process.pid)
    if not wait_for_word(process, log, "ready ", _START_LIMIT_S):
        said = log.read_text(errors="replace")
        if process.poll() == _REFUSED:
            raise RefusedError(f"the {name} is refused: {_words(said)}")
        raise PrerequisiteMissingError(f"the {name} did not start: {_words(said)}")
    return process


def _unmount() -> list[str]:
    """How this user frees a mount."""
    if os.geteuid() == 0:
        return ["umount", "-l"]
    if not _MTAB.exists():
        raise PrerequisiteMissingError(
            f"{_MTAB} is missing, where fusermount3 looks for a user's mounts, so that none could"
            f" be unmounted again: have root run ln -s /proc/self/mounts {_MTAB}"
        )
    return ["fusermount3", "-u", "-z"]


def _words(said: str) -> str:
    return said.strip().removeprefix("flashdev: ")[-600:]
