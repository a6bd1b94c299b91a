"""Requirements of a program on its computer, read from its file (ELF, 64 bit)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

MACHINES = {62: "x86_64", 183: "aarch64"}
"""By ELF's number: the architectures as ``uname -m`` names them."""
_INTERPRETER, _NOTE = 3, 4
"""Kinds of program headers: who loads the libraries, of which a static program has none; notes."""
_ABI_TAG = struct.pack("<III", 4, 16, 1) + b"GNU\0"
"""The head of the note that tells the oldest kernel: four numbers follow, the first is 0 on
Linux."""


@dataclass(frozen=True, slots=True)
class Needs:
    """``kernel``: the oldest that its C library bears, ``(3, 2)``; ``glibc``: the oldest that it
    can be loaded with, ``(2, 34)``, None of a static program."""

    architecture: str
    kernel: tuple[int, int]
    glibc: tuple[int, int] | None


def is_program(file: Path) -> bool:
    """True if the file is an ELF program, not a script."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def needs_of(file: Path) -> Needs:
    """:raises ValueError: no program for any of :data:`MACHINES`."""
    held = file.read_bytes()
    if held[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{file}: no program of 64 bit")
    (machine,) = struct.unpack_from("<H", held, 18)
    if machine not in MACHINES:
        raise ValueError(f"{file}: ELF machine {machine} is none of {sorted(MACHINES)}")
    (table,) = struct.unpack_from("<Q", held, 32)
    size, count = struct.unpack_from("<HH", held, 54)
    kernel, is_static = (0, 0), True
    for number in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", held, table + number * size)
        is_static = is_static and kind != _INTERPRETER
        if kind == _NOTE and (tag := held.find(_ABI_TAG, at, at + length)) >= 0:
            _, *oldest, _ = struct.unpack_from("<IIII", held, tag + len(_ABI_TAG))
            kernel = (oldest[0], oldest[1])
    versions = () if is_static else re.findall(rb"\0GLIBC_2\.(\d+)", held)
    glibc = None if is_static else (2, max(map(int, versions), default=0))
    return Needs(MACHINES[machine], kernel, glibc)
