"""A folder on the machine for the files of one operation, and of no other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from . import locks
from .base import Machine


@contextmanager
def folder(machine: Machine, disk: str | None) -> Iterator[PurePosixPath]:
    """:param disk: whose lock is held; None: that of none. The next operation that holds a disk's
    lock, or the machine's, removes what a killed one left (:mod:`.locks`)."""
    path = locks.scratch_of(disk) / uuid.uuid4().hex[:12]
    machine.run(["mkdir", "-p", "-m", "700", str(locks.RUNTIME), str(path)])
    try:
        yield path
    finally:
        machine.run(["rm", "-rf", str(path)], check=False)
