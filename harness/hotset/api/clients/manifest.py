"""Exports of the module's manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from .cmdlets import Cmdlet


def with_exports(text: str, public: Path, every: Sequence[Cmdlet]) -> str:
    """The manifest with all cmdlets: the generated ones, and those by hand."""
    by_hand = [
        name
        for path in public.glob("*.ps1")
        if path.name != "Generated.ps1"
        for name in re.findall(
            r"^function (\S+) \{", path.read_text(encoding="ascii"), re.MULTILINE
        )
    ]
    names = sorted({*by_hand, *(cmdlet.name for cmdlet in every if not cmdlet.by_hand)})
    aliases = sorted(cmdlet.alias for cmdlet in every if cmdlet.alias)
    return _with(_with(text, "FunctionsToExport", names), "AliasesToExport", aliases)


def _with(text: str, key: str, names: Sequence[str]) -> str:
    listed = "\n".join(f"        '{name}'" for name in names)
    made, count = re.subn(
        rf"^(    {key} *= )@\(.*?\)$",
        lambda match: f"{match.group(1)}@(\n{listed}\n    )",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    assert count == 1, key
    return made
