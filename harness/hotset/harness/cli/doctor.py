"""``hotset doctor``."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from hotset.harness.cli.codes import LACKS
from hotset.harness.cli.options import Format, FormatOption

_STYLES = {"ok": "green", "missing": "bold red", "note": "yellow"}


def doctor(format_: FormatOption = Format.TABLE) -> None:
    """What this computer has and lacks for hotset, and what installs it (code 3: it lacks some)."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from hotset.harness.doctor import examine
    from hotset.harness.progress import to_stdout
    from hotset.reports.document import SCHEMA_VERSION
    from hotset.reports.tables import csv_text

    findings = examine()
    if format_ is Format.JSON:
        rows = [asdict(finding) for finding in findings]
        to_stdout(json.dumps({"schema_version": SCHEMA_VERSION, "findings": rows}, indent=1))
    elif format_ is Format.CSV:
        lines = ((finding.state, finding.what, finding.detail) for finding in findings)
        to_stdout(csv_text(("state", "what", "detail"), lines))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            state = Text(finding.state, style=_STYLES[finding.state])
            table.add_row(state, finding.what, Text(finding.detail))
        Console().print(table)
    if any(finding.state == "missing" for finding in findings):
        raise typer.Exit(LACKS)
