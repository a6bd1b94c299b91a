"""Experiments that come with hotset, by their names: ``demo`` is ``experiments/demo.toml``."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotset.core.paths import repository_file
from hotset.core.record import Record


@dataclass(frozen=True, slots=True)
class Shipped:
    """An experiment that comes with hotset. ``file``: where it lies, to be copied."""

    name: str
    title: str
    file: str


@dataclass(frozen=True, kw_only=True)
class ShippedExperiments(Record):
    """The experiments that come with hotset."""

    csv_rows = "experiments"

    experiments: tuple[Shipped, ...]

    def to_text(self) -> str:
        width = max(len(each.name) for each in self.experiments)
        lines = [f"{each.name:<{width}}  {each.title}" for each in self.experiments]
        folder = Path(self.experiments[0].file).parent
        return "\n".join((*lines, f"run one: hotset experiment run NAME; their files: {folder}"))


def known() -> tuple[Shipped, ...]:
    """Every experiment that comes with hotset, by its file's name."""
    return tuple(
        Shipped(file.stem, str(tomllib.loads(file.read_text(encoding="utf-8"))["title"]), str(file))
        for file in sorted(_folder().glob("*.toml"))
    )


def path_of(given: Any) -> Any:  # noqa: ANN401 - whatever was given
    """Return the file of a name; any other text is a file's own path."""
    if not isinstance(given, str) or not re.fullmatch(r"[\w-]+", given) or Path(given).exists():
        return given
    file = _folder() / f"{given}.toml"
    return str(file) if file.is_file() else given


def name_of(path: str) -> str:
    """As it is named on the command line: one that comes with hotset by its name."""
    file = Path(path)
    return file.stem if file.is_absolute() and file.parent == _folder() else path


def _folder() -> Path:
    return repository_file("experiments")
