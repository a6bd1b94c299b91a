"""Other people's crates that are in the programs, and their licences."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .programs import PROGRAMS

_TEXTS = ("LICEN", "COPYING", "NOTICE", "COPYRIGHT")
_APACHE = Path(__file__).resolve().parents[2] / "LICENSE"
"""Of hotset itself: Apache-2.0."""


@dataclass(frozen=True, slots=True, order=True)
class Crate:
    """One. ``licence``: an SPDX expression; ``folder``: its source, with the licence's text."""

    name: str
    version: str
    licence: str
    folder: Path

    @property
    def purl(self) -> str:
        return f"pkg:cargo/{self.name}@{self.version}"


def linked_crates(root: Path, target: str) -> list[Crate]:
    """All that the programs are made of but what is hotset's own, by name."""
    crates = set[Crate]()
    for folder in sorted({program.crate for program in PROGRAMS}):
        argv = [
            "cargo",
            "metadata",
            "--locked",
            "--format-version=1",
            f"--filter-platform={target}",
        ]
        done = subprocess.run(argv, check=True, cwd=root / folder, stdout=subprocess.PIPE)
        names = {program.name for program in PROGRAMS if program.crate == folder}
        crates.update(_reach(json.loads(done.stdout), names))
    return sorted(crates)


def _reach(metadata: dict[str, Any], names: set[str]) -> Iterator[Crate]:
    """From the programs' packages on, without what only builds or tests them."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    left = {
        id_
        for id_, package in packages.items()
        if package["name"] in names and not package["source"]
    }
    seen = set[str]()
    while left:
        id_ = left.pop()
        seen.add(id_)
        for each in nodes[id_]["deps"]:
            if any(kind["kind"] is None for kind in each["dep_kinds"]) and each["pkg"] not in seen:
                left.add(each["pkg"])
    for package in (packages[id_] for id_ in seen):
        if package["source"]:
            # As it was written before SPDX had expressions.
            licence = (package["license"] or "").replace("/", " OR ")
            yield Crate(
                package["name"], package["version"], licence, Path(package["manifest_path"]).parent
            )


def texts(crate: Crate) -> list[str]:
    """Read the texts of its licence, as they come with the source; where none does, that of
    Apache-2.0, if it may be used by that."""
    files = sorted(file for file in crate.folder.iterdir() if file.name.upper().startswith(_TEXTS))
    if not files and "Apache-2.0" in crate.licence.split():
        files = [_APACHE]
    return [file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()]


def notices(crates: Iterable[Crate]) -> str:
    """Compose the programs' notices: whose work is in them, and on which terms; a text once."""
    owners: dict[str, list[str]] = {}
    lines = [
        "The programs in this folder contain work of others.",
        "",
        "Rust's standard library: MIT OR Apache-2.0.",
        "glibc, linked statically into all but hotset-tpcc: LGPL-2.1-or-later. hotset's own source",
        "is free, and `make release` in it links them again, with a glibc of yours.",
        "",
    ]
    for crate in crates:
        lines.append(f"{crate.name} {crate.version}: {crate.licence or 'not stated'}")
        for text in texts(crate):
            owners.setdefault(text.strip(), []).append(f"{crate.name} {crate.version}")
    for text, named in owners.items():
        lines += ["", "-" * 80, ", ".join(named), "", text]
    return "\n".join(lines) + "\n"
