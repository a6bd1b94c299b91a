"""The page of all cmdlets, and their twins in bash."""

from __future__ import annotations

from collections.abc import Sequence

from . import wording
from .cmdlets import Cmdlet, twin_name

_BY_HAND = (
    ("Connect-Hotset", "connect", "Connects the session to servers."),
    ("Get-HotsetConnection", "", "Lists the servers that the session is connected to."),
    ("Disconnect-Hotset", "", "Disconnects from a server and forgets its token."),
    ("Get-HotsetJob", "get-job", "Lists the jobs, or shows one."),
    ("Wait-HotsetJob", "wait-job", "Waits for jobs, with a progress bar each; returns results."),
    ("Stop-HotsetJob", "stop-job", "Cancels a job."),
    ("Remove-HotsetJob", "remove-job", "Removes a job that has ended."),
    ("Show-HotsetReport", "", "Opens a report in the browser."),
)


def markdown(every: Sequence[Cmdlet]) -> str:
    """All cmdlets: those of connections and jobs, and one for each operation."""
    rows = [f"| `{name}` | {_code(twin)} | | {text} |" for name, twin, text in _BY_HAND]
    for one in sorted(every, key=lambda one: one.operation.name):
        alias = f", `{one.alias}`" if one.alias else ""
        summary = wording.summary(one.operation).replace("|", "\\|")
        name = one.operation.name
        link = f"[`{name}`](cli.md#hotset-{name.replace(' ', '-')})"
        rows.append(f"| `{one.name}`{alias} | `{twin_name(one.name)}` | {link} | {summary} |")
    return "\n".join(
        [
            "<!-- Generated: run `make docs`. -->",
            "",
            "# Cmdlets",
            "",
            "`Get-Help NAME -Full` shows the full help of each. [How to use"
            " them](../powershell.md).",
            "",
            "| PowerShell | `hotset-api.sh` | Command | What it does |",
            "|---|---|---|---|",
            *(row.replace("|  |", "| |") for row in rows),
            "",
        ]
    )


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
