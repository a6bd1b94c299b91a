"""A folder on the machine for the files of one operation, and of no other."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from . import locks
from .base import Machine


@contextmanager
def folder(machine: Machine, owner: str) -> Iterator[PurePosixPath]:
    """:param owner: the disk (or what else is locked): the next operation that holds its lock
    removes what a killed one left (:mod:`.locks`)."""
    path = locks.RUNTIME / "scratch" / f"{owner}-{uuid.uuid4().hex[:12]}"
    machine.run(["mkdir", "-p", str(path)])
    try:
        yield path
    finally:
        machine.run(["rm", "-rf", str(path)], check=False)
