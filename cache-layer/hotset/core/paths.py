"""Where hotset keeps things, after the XDG base directory specification."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import PrerequisiteError


def cache_dir() -> Path:
    """Things that can be made again: the lab's image, loaded databases, calibrations."""
    return _folder("XDG_CACHE_HOME", ".cache")


def data_dir() -> Path:
    """Things to keep: the archive of runs."""
    return _folder("XDG_DATA_HOME", ".local/share")


def state_dir() -> Path:
    """Folder of active state: the lab's lock, its log files and the cleanup journal."""
    return _folder("XDG_STATE_HOME", ".local/state")


def config_dir() -> Path:
    """Folder of the administrator's settings; it may not exist."""
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
    """Write a small file as `whole` does.

    :raises OSError: the folder is not there, is full or may not be written to.
    """
    with whole(target, mode) as new:
        new.write_text(text, encoding="utf-8")


@contextmanager
def whole(target: Path, mode: int = 0o644) -> Iterator[Path]:
    """A new file to write, which takes the target's place at the end, in one step, also while
    others read or write the target. For all files that a user names, too: only a file is
    replaced, where a link leads if it is one. A device, a pipe, a standard output by its name, or a
    file that cannot be replaced is written to.

    :raises OSError: as `write_whole`.
    """
    place = through_links(target)
    replaced = place.is_file() or not place.exists()
    if _is_descriptor(place) or (place.exists() and not os.access(place.parent, os.W_OK)):
        replaced = False
    # Next to it: a rename within a file system is one step. Its own name: there may be two writers.
    with tempfile.NamedTemporaryFile(
        dir=place.parent if replaced else None, prefix=f".{place.name}.", delete=False
    ) as file:
        new = Path(file.name)
    try:
        # Made for its owner alone; opened to others only as far as was asked.
        yield new
        with new.open("rb") as made:
            os.fsync(made.fileno())
            new.chmod(mode)
            if not (replaced and _try_rename(new, place)):
                with os.fdopen(_open(place), "wb") as out:
                    shutil.copyfileobj(made, out)
    finally:
        new.unlink(missing_ok=True)


def through_links(target: Path) -> Path:
    """The file that a name stands for: itself, or where the link leads that it is.

    :raises OSError: links that lead to each other.
    """
    with suppress(FileNotFoundError):
        target.stat()
    while target.is_symlink() and not _is_descriptor(target):
        target = target.parent.resolve() / target.readlink()
    return target.parent.resolve() / target.name if _is_descriptor(target) else target


def _is_descriptor(path: Path) -> bool:
    """True if the path is a descriptor, as of `/dev/stdout`: an open file, maybe without a name."""
    folder = path.parent.resolve()
    return folder.name == "fd" and folder.is_relative_to("/proc")


def _try_rename(new: Path, place: Path) -> bool:
    try:
        new.replace(place)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False  # a mount of its own, as the one file that a container was given
    return True


def _open(place: Path) -> int:
    if place.parent == Path(f"/proc/{os.getpid()}/fd"):
        return os.dup(int(place.name))  # behind what was written to it, whatever it is
    return os.open(place, os.O_WRONLY | os.O_TRUNC | os.O_NOCTTY)


@contextmanager
def lock_file(file: Path) -> Iterator[None]:
    """One process at a time, each waiting for the one before; the file is made where it is not."""
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_json_lines(file: Path) -> Iterator[Any]:
    """Yield what each line of a file holds, but for one that was cut short by a crash, a kill or a
    full disk; nothing where there is no file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        with suppress(ValueError):
            yield json.loads(line)


def shipped_folder(program: str) -> Path:
    """Where a wheel for this kind of computer has a program; it is not there in other
    installations, nor in a checkout."""
    return Path(__file__).resolve().parents[1] / "programs" / program


def repository_file(name: str) -> Path:
    """A file that ships with hotset (``experiments/demo.toml``), in a checkout or installed."""
    checkout = Path(__file__).resolve().parents[3] / name
    return checkout if checkout.exists() else Path(__file__).resolve().parents[1] / name


def read_commit() -> str:
    """Commit of the checkout that hotset runs from, without what was changed since; empty: not
    known, as of an installation."""
    checkout = Path(__file__).resolve().parents[3]
    git = checkout / ".git"
    try:
        if git.is_file():  # of a further work tree
            git = checkout / git.read_text(encoding="utf-8").partition(": ")[2].strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        name, common = head.removeprefix("ref: "), git / "commondir"
        shared = git / common.read_text(encoding="utf-8").strip() if common.exists() else git
        if (shared / name).is_file():
            return (shared / name).read_text(encoding="utf-8").strip()
        packed = (shared / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
    except OSError:
        return ""
