"""Where hotset keeps things, after the XDG base directory specification."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import PrerequisiteError


def cache_dir() -> Path:
    """Things that can be made again: the lab's image, loaded databases, calibrations."""
    return _folder("XDG_CACHE_HOME", ".cache")


def data_dir() -> Path:
    """Things to keep: the archive of runs."""
    return _folder("XDG_DATA_HOME", ".local/share")


def state_dir() -> Path:
    """What is up now: the lab's lock, its log files and the list of what must be taken down."""
    return _folder("XDG_STATE_HOME", ".local/state")


def config_dir() -> Path:
    """What its administrator sets; it may not be there."""
    return _place("XDG_CONFIG_HOME", ".config")


def _folder(variable: str, default: str) -> Path:
    folder = _place(variable, default)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrerequisiteError(
            f"hotset keeps files in {folder}, which cannot be created ({error.strerror}): set"
            f" {variable} to a folder that you may write to"
        ) from None
    return folder


def _place(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    # The specification: a relative path in the variable is to be ignored.
    root = Path(base) if base.startswith("/") else Path.home() / default
    return root / "hotset"


def write_whole(target: Path, text: str, mode: int = 0o644) -> None:
    """Write a small file atomically, whoever reads it or writes it at the same time.

    :raises OSError: the folder is not there, is full or may not be written to.
    """
    # Next to it: a rename within a file system is one step. Its own name: there may be two writers.
    with tempfile.NamedTemporaryFile(
        "w", dir=target.parent, prefix=f".{target.name}.", encoding="utf-8", delete=False
    ) as file:
        new = Path(file.name)
        try:
            # Made for its owner alone; opened to others only as far as was asked.
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            new.chmod(mode)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """One process at a time, each waiting for the one before; the file is made where it is not."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shipped(program: str) -> Path:
    """Where a wheel for this kind of computer has a program; it is not there in other
    installations, nor in a checkout."""
    return Path(__file__).resolve().parents[1] / "programs" / program


def repository_file(name: str) -> Path:
    """A file that ships with hotset (``experiments/demo.toml``), in a checkout or installed."""
    checkout = Path(__file__).resolve().parents[3] / name
    return checkout if checkout.exists() else Path(__file__).resolve().parents[1] / name
