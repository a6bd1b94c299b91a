"""The ``flashdev`` program: where it lies, how it is put on a machine, what its commands say."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import CommandError, EnvironmentLacksError, Machine
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.units import Bytes

Model = str | dict[str, Any]
"""A device model: the name of a built-in one, or its JSON form (see ``flashdev models``)."""

_ON_MACHINE = PurePosixPath("/usr/local/lib/hotset")
_START_LIMIT_S = 20.0
_REFUSED = 2
# A database of some terabytes, throttled; a dead link ends a copy by itself.
_COPY_TIMEOUT_S = 7 * 24 * 3600.0


class RefusedError(Exception):
    """``flashdev`` cannot do what was asked for as it stands; the message says what would do."""


def program(local: Local) -> Path:
    """HOTSET_FLASHDEV, this checkout's release build, or PATH.

    :raises EnvironmentLacksError: it is not built.
    """
    crate = Path(__file__).resolve().parents[2] / "flashdev"
    named = os.environ.get("HOTSET_FLASHDEV")
    for candidate in (Path(named) if named else None, crate / "target/release/flashdev",
                      local.which("flashdev")):  # fmt: skip
        if candidate is not None and candidate.exists():
            return candidate
    raise EnvironmentLacksError("flashdev is not built: run `make build` in hotset's folder")


def on(machine: Machine) -> str:
    """The program on a machine, this very build of it; put there if need be."""
    here = program(Local())
    if machine.kind == "local":
        return str(here)
    path = _ON_MACHINE / _digest(here, here.stat().st_mtime_ns) / "flashdev"
    if machine.run(["test", "-x", str(path)], check=False).rc != 0:
        machine.run(["mkdir", "-p", str(path.parent)])
        # A copy that breaks off must not be taken for the program.
        machine.put(here, path.with_suffix(".new"), 0o755)
        machine.run(["mv", "-f", str(path.with_suffix(".new")), str(path)])
    return str(path)


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


def expected(local: Local, model: Model, words: Sequence[str]) -> dict[str, Any]:
    """What a model promises (``flashdev expect``), as its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        argument = model_argument(model, Path(folder), "model")
        argv = [str(program(local)), "expect", "--model", argument, *words, "--json"]
        result = local.run(argv, check=False)
    if result.rc == _REFUSED:
        raise RefusedError(_words(result.stderr))
    if result.rc != 0:
        raise CommandError(local.kind, result)
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def model_argument(model: Model, folder: Path, name: str) -> str:
    """A model as an argument; one given as JSON is written to ``folder`` under ``name``."""
    if isinstance(model, str):
        return model
    file = folder / f"{name}.json"
    file.write_text(json.dumps(model))
    return str(file)


def serve(
    local: Local, words: Sequence[str], mount: Path, log: Path, takedown: Takedown, name: str
) -> subprocess.Popen[bytes]:
    """Start a serving command (``serve``, ``tier``) and wait until its files are there.

    :param words: the command and its options, ``--mount`` left out.
    :param name: what the ledger and messages call it.
    :raises RefusedError: it does not take what it was given.
    :raises EnvironmentLacksError: it did not start for another reason, which the message quotes.
    """
    mount.mkdir(exist_ok=True)
    unmount = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
    argv = [*unmount, "-q", str(mount)]
    # It unmounts itself when it ends in order; not so when somebody kills it.
    takedown.leftover(f"unmount the {name}", argv)
    takedown.call(f"unmount the {name}", lambda: local.run(argv, check=False))
    process = local.spawn([str(program(local)), *words, "--mount", str(mount)], log)
    takedown.process(name, process.pid)
    deadline = time.monotonic() + _START_LIMIT_S
    while "ready " not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace")
            if process.poll() == _REFUSED:
                raise RefusedError(f"the {name} is refused: {_words(said)}")
            raise EnvironmentLacksError(f"the {name} did not start: {_words(said)}")
        time.sleep(0.02)
    return process


def _words(said: str) -> str:
    return said.strip().removeprefix("flashdev: ")[-600:]
