"""The PowerShell module, generated from the table of operations.

`make build` makes those that :func:`make` names, which are not kept in git; `make docs` writes
those of :func:`files`. Everything else in `scripts/` is written by hand.
"""

from __future__ import annotations

from pathlib import Path

from hotset.core.paths import repository_file

from . import cmdlets, manifest, own, page, powershell, views

MODULE = repository_file("scripts/Hotset")
PAGE = repository_file("docs/reference/powershell.md")


def make() -> dict[Path, str]:
    """Map each wholly generated file of the PowerShell module to its text."""
    every = cmdlets.every()
    return {
        MODULE / "Hotset.psd1": manifest.manifest(MODULE / "Public", every),
        MODULE / "Public/Generated.ps1": f"{powershell.functions(every)}\n{own.functions()}",
        MODULE / "Private/Operations.ps1": powershell.table(every, own.table()),
        MODULE / "Hotset.Generated.format.ps1xml": views.xml(every),
    }


def files() -> dict[Path, str]:
    """Every file that is generated for readers, with the text it has to have."""
    return {PAGE: page.markdown(cmdlets.every())}
