"""The page of all cmdlets."""

from __future__ import annotations

from collections.abc import Sequence

from . import own, wording
from .cmdlets import Cmdlet

_BY_HAND = (
    ("Connect-Hotset", "Connects the session to servers."),
    *(
        (cmdlet.name, cmdlet.synopsis)
        for cmdlet in own.EVERY
        if cmdlet.name != "Export-HotsetReport"
    ),
)


def markdown(every: Sequence[Cmdlet]) -> str:
    """All cmdlets: those of connections and jobs, and one for each operation."""
    rows = [f"| `{name}` | | {text} |" for name, text in _BY_HAND]
    for cmdlet in sorted(every, key=lambda cmdlet: cmdlet.operation.name):
        alias = f", `{cmdlet.alias}`" if cmdlet.alias else ""
        summary = wording.summary(cmdlet.operation).replace("|", "\\|")
        name = cmdlet.operation.name
        link = f"[`{name}`](cli.md#hotset-{name.replace(' ', '-')})"
        rows.append(f"| `{cmdlet.name}`{alias} | {link} | {summary} |")
    return "\n".join(
        [
            "<!-- Generated: run `make docs`. -->",
            "",
            "# Cmdlets",
            "",
            "`Get-Help NAME -Full` shows the full help of each. [How to use"
            " them](../powershell.md).",
            "",
            "| PowerShell | Command | What it does |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
