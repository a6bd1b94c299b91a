"""Puts the Rust programs and the PowerShell module into the wheel: hatchling calls it when one is
built.

HOTSET_PROGRAMS names the folder that holds the programs (`make release` fills it). Without it, and
in an editable installation, the wheel has Python alone and fits every kind of computer.
HOTSET_MODULE names the folder of the module with what is generated of it; without it, the
checkout's is taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_OLDEST_GLIBC = 17
"""Oldest glibc of manylinux's names: the second number of 2.17."""
_ARCHITECTURES = {62: "x86_64", 183: "aarch64"}
"""By ELF's number: as wheels name them."""


class Programs(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the module, and HOTSET_PROGRAMS as ``hotset/programs`` with the tag that fits them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("HOTSET_PROGRAMS")
        if version != "editable":
            module = os.environ.get("HOTSET_MODULE") or str(Path(self.root, "scripts/Hotset"))
            build_data["force_include"][module] = "hotset/scripts/Hotset"
        if version == "editable" or not folder:
            return
        # Folders are those of other architectures, for servers (core/machines/fit.py).
        files = sorted(Path(folder).resolve().iterdir())
        build_data["pure_python"] = False
        own = [file for file in files if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
        build_data["tag"] = f"py3-none-{platform(own)}"
        build_data["force_include"] |= {str(file): f"hotset/programs/{file.name}" for file in files}


def platform(programs: Iterable[Path]) -> str:
    """Where all of these run, as the tag of a wheel names it (PEP 600): ``manylinux_2_34_x86_64``.

    :raises ValueError: there are none, or they are not for one and the same kind of computer.
    """
    held = [file.read_bytes() for file in programs]
    machines = {_ARCHITECTURES[int.from_bytes(program[18:20], "little")] for program in held}
    # A static program names none.
    minors = [
        int(number) for program in held for number in re.findall(rb"\0GLIBC_2\.(\d+)", program)
    ]
    glibc = max([_OLDEST_GLIBC, *minors])
    if len(machines) != 1:
        raise ValueError(
            f"HOTSET_PROGRAMS has programs for {sorted(machines) or 'nothing'}: a wheel is for one"
            " kind of computer"
        )
    return f"manylinux_2_{glibc}_{machines.pop()}"
