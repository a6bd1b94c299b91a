"""A control group of the kernel's whose processes have little memory, page cache included: what
does not fit is read from the disk again. Version 1 and 2 of the groups."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..clock import wait_until
from ..units import Bytes
from .base import PrerequisiteMissingError

_ROOT = Path("/sys/fs/cgroup")
_LIMITS = {"memory": "memory.limit_in_bytes", "": "memory.max"}
"""By the folder below the root: of version 1, and of version 2."""
_EMPTY_LIMIT_S = 5.0


@contextmanager
def limit_memory(limit: Bytes) -> Iterator[Path]:
    """A group with this much memory for as long as the context lasts.

    :return: where a process writes its number to join (see :func:`join`).
    :raises PrerequisiteMissingError: there are no such groups here, or they are not ours to make.
    """
    folder, name = _make_group()
    try:
        _set(folder / name, limit)
        yield folder / "cgroup.procs"
    finally:
        with suppress(OSError):
            wait_until(lambda: not (folder / "cgroup.procs").read_text(), _EMPTY_LIMIT_S)
            folder.rmdir()


def _set(file: Path, limit: Bytes) -> None:
    try:
        file.write_text(str(int(limit)))
    except PermissionError as error:
        raise _missing(error) from None


def join(group: Path) -> None:
    """Put this process into a group, with what it takes from now on."""
    group.write_text(str(os.getpid()))


def _make_group() -> tuple[Path, str]:
    for below, limit in _LIMITS.items():
        with suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="hotset-", dir=_ROOT / below))
            if (folder / limit).exists():
                return folder, limit
            folder.rmdir()
    raise _missing(f"no {' and no '.join(_LIMITS.values())} below {_ROOT}")


def _missing(why: object) -> PrerequisiteMissingError:
    return PrerequisiteMissingError(
        f"memory cannot be limited here ({why}): take a computer, or a container that may write to"
        f" {_ROOT}, whose kernel has the memory controller"
    )
