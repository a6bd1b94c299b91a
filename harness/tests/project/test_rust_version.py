"""The Rust that the crates promise to build with is the oldest that the set-up may bring."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
CRATES = (ROOT / "cache-layer/crates", ROOT / "tpcc/driver")


def test_the_promise_is_one_and_the_same() -> None:
    promised = set()
    for crate in CRATES:
        manifest = tomllib.loads((crate / "Cargo.toml").read_text())
        package = manifest.get("package") or manifest["workspace"]["package"]
        promised.add(package["rust-version"])
    for script in ("scripts/setup.sh", "Makefile"):
        text = (ROOT / script).read_text()
        promised |= set(re.findall(r"^RUST=(.*)|/usr/lib/rust-([0-9.]+)", text, re.MULTILINE)[0])
    assert promised - {""} == {"1.85"}


def test_no_let_chains_which_came_with_1_88() -> None:
    """Debian 13 has 1.85, and no lint of a newer Rust says what it will not compile."""
    found = []
    for crate in CRATES:
        for source in crate.rglob("*.rs"):
            if "target" in source.relative_to(crate).parts:
                continue
            text = re.sub(r"//.*", "", source.read_text())
            for chain in re.finditer(r"&&\s*let\b", text):
                line = text.count("\n", 0, chain.start()) + 1
                found.append(f"{source.relative_to(ROOT)}:{line}")
    assert found == []
