"""Puts the Rust programs into the wheel: hatchling calls it when one is built.

HOTSET_PROGRAMS names the folder that holds them (`make release` fills it). Without it, and in an
editable installation, the wheel has Python alone and fits every kind of computer.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ELF = Path(__file__).parents[2] / "cache-layer/hotset/core/machines/elf.py"
_OLDEST_GLIBC = 17
"""Oldest glibc of manylinux's names: the second number of 2.17."""


def _load_elf() -> ModuleType:
    """hotset's own reader of programs; hotset itself is not installed where a wheel is built."""
    spec = importlib.util.spec_from_file_location("hotset_elf", _ELF)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


elf = _load_elf()


class Programs(BuildHookInterface):  # type: ignore[type-arg]
    """Adds what is in HOTSET_PROGRAMS, as ``hotset/programs``, and the tag that fits it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("HOTSET_PROGRAMS")
        if version == "editable" or not folder:
            return
        # Folders are those of other architectures, for servers (core/machines/fit.py).
        files = sorted(Path(folder).resolve().iterdir())
        build_data["pure_python"] = False
        own = [one for one in files if one.is_file() and elf.is_program(one)]
        build_data["tag"] = f"py3-none-{platform(own)}"
        build_data["force_include"] |= {str(one): f"hotset/programs/{one.name}" for one in files}


def platform(programs: Iterable[Path]) -> str:
    """Where all of these run, as the tag of a wheel names it (PEP 600): ``manylinux_2_34_x86_64``.

    :raises ValueError: there are none, or they are not for one and the same kind of computer.
    """
    needs = [elf.needs_of(file) for file in programs]
    machines = {one.architecture for one in needs}
    glibc = max([_OLDEST_GLIBC, *(one.glibc[1] for one in needs if one.glibc)])
    if len(machines) != 1:
        raise ValueError(
            f"HOTSET_PROGRAMS has programs for {sorted(machines) or 'nothing'}: a wheel is for one"
            " kind of computer"
        )
    return f"manylinux_2_{glibc}_{machines.pop()}"
