"""Puts the Rust programs into the wheel: hatchling calls it when one is built.

HOTSET_PROGRAMS names the folder that holds them (`make release` fills it). Without it, and in an
editable installation, the wheel has Python alone and fits every kind of computer.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MACHINES = {62: "x86_64", 183: "aarch64"}
_INTERPRETER = 3
"""The kind of program header that names who loads the libraries; a static program has none."""
_OLDEST_GLIBC = 17
"""Of manylinux's names, the second number of 2.17."""


class Programs(BuildHookInterface):  # type: ignore[type-arg]
    """Adds what is in HOTSET_PROGRAMS, as ``hotset/programs``, and the tag that fits it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("HOTSET_PROGRAMS")
        if version == "editable" or not folder:
            return
        files = sorted(Path(folder).resolve().iterdir())
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(file for file in files if is_program(file))}"
        build_data["force_include"] |= {str(one): f"hotset/programs/{one.name}" for one in files}


def is_program(file: Path) -> bool:
    """Whether it is one, and no text beside it."""
    with file.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def platform(programs: Iterable[Path]) -> str:
    """Where all of these run, as the tag of a wheel names it (PEP 600): ``manylinux_2_34_x86_64``.

    :raises ValueError: there are none, or they are not for one and the same kind of computer.
    """
    machines, glibc = set(), _OLDEST_GLIBC
    for file in programs:
        held = file.read_bytes()
        machine, dynamic = _header(held)
        if machine not in _MACHINES:
            raise ValueError(f"{file}: ELF machine {machine} is none of {sorted(_MACHINES)}")
        machines.add(_MACHINES[machine])
        if dynamic:
            glibc = max(glibc, *map(int, re.findall(rb"\0GLIBC_2\.(\d+)", held)))
    if len(machines) != 1:
        raise ValueError(
            f"HOTSET_PROGRAMS has programs for {sorted(machines) or 'nothing'}: a wheel is for one"
            " kind of computer"
        )
    return f"manylinux_2_{glibc}_{machines.pop()}"


def _header(held: bytes) -> tuple[int, bool]:
    """ELF's number of the machine, and whether the program loads libraries."""
    (machine,) = struct.unpack_from("<H", held, 18)
    (table,) = struct.unpack_from("<Q", held, 32)
    size, count = struct.unpack_from("<HH", held, 54)
    kinds = {struct.unpack_from("<I", held, table + number * size)[0] for number in range(count)}
    return machine, _INTERPRETER in kinds
