"""``flashdev``, the lab's program: modelled devices, hotset's engine over such, and the simulator.

No server needs it; what one runs is in :mod:`.programs`.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotset.core.clock import wait_for_word
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local

from . import programs
from .programs import REFUSED, OnRead, RefusedError, last_message

NAME = programs.LAB
Model = str | dict[str, Any]
"""A device model: the name of a built-in one, or its JSON form (see ``flashdev models``)."""

_MTAB = Path("/etc/mtab")
_START_LIMIT_S = 20.0


def program(local: Local) -> Path:
    """HOTSET_FLASHDEV, this checkout's release build, or PATH.

    :raises PrerequisiteMissingError: it is not built.
    """
    return programs.find(local, NAME)


def on(machine: Machine) -> str:
    """The program on a machine of the lab, this very build of it; put there if need be."""
    return programs.place(machine, program(Local()))


def build(local: Local) -> str:
    """Names this computer's build of the program by what is in it."""
    return programs.digest(program(local))


def figures(
    local: Local, words: Sequence[str], on_read: OnRead = lambda _, __: None
) -> dict[str, Any]:
    """A command on this computer whose last line is JSON; as :func:`.programs.figures`."""
    return programs.figures(local, str(program(local)), words, on_read)


def read_promise(local: Local, model: Model, words: Sequence[str]) -> dict[str, Any]:
    """Read a model's expected performance (``flashdev expect``) as JSON."""
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
    :param name: name in the journal and in messages.
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
        words_of = last_message(log.read_text(errors="replace"), NAME)
        if process.poll() == REFUSED:
            raise RefusedError(f"the {name} is refused: {words_of}")
        raise PrerequisiteMissingError(f"the {name} did not start: {words_of}")
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
