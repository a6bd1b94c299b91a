"""The module's manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hotset import __version__

from . import own
from .cmdlets import Cmdlet

_TEXT = """# Generated from the table of operations: `make build` makes it again.
@{{
    RootModule           = 'Hotset.psm1'
    ModuleVersion        = '{version}'
    GUID                 = '6d3c1a52-7f0e-4c1b-9a86-2f4b8e0d5c37'
    Author               = 'The hotset authors'
    CompanyName          = 'The hotset authors'
    Copyright            = 'Apache License 2.0'
    Description          = 'Steers hotset servers: tiers, warm-up, benchmarks, hit ratios, runs.'
    PowerShellVersion    = '5.1'
    # Windows PowerShell's: HttpClientHandler judges certificates from then on.
    DotNetFrameworkVersion = '4.7.1'
    CompatiblePSEditions = @('Desktop', 'Core')
    FormatsToProcess     = @('Hotset.format.ps1xml', 'Hotset.Generated.format.ps1xml')
    FunctionsToExport    = @(
{functions}
    )
    CmdletsToExport      = @()
    VariablesToExport    = @()
    AliasesToExport      = @(
{aliases}
    )
    PrivateData          = @{{
        PSData = @{{
            # No ProjectUri, IconUri, HelpInfoUri: the project has no public address yet.
            LicenseUri   = 'https://www.apache.org/licenses/LICENSE-2.0'
            ReleaseNotes = 'Get-Help about_Hotset; docs/powershell.md in the repository.'
            Tags         = @('hotset', 'SQLServer', 'dm-cache', 'bcache', 'TPC-C', 'TPC-H')
        }}
    }}
}}
"""


def manifest(public: Path, every: Sequence[Cmdlet]) -> str:
    """Its text, with all cmdlets: the generated ones, and those by hand."""
    by_hand = [
        name
        for path in public.glob("*.ps1")
        if path.name != "Generated.ps1"
        for name in re.findall(
            r"^function (\S+) \{", path.read_text(encoding="ascii"), re.MULTILINE
        )
    ]
    generated = (cmdlet.name for cmdlet in every if not cmdlet.by_hand)
    names = {*by_hand, *generated, *(cmdlet.name for cmdlet in own.EVERY)}
    aliases = (cmdlet.alias for cmdlet in every if cmdlet.alias)
    return _TEXT.format(version=__version__, functions=_list(names), aliases=_list(aliases))


def _list(names: Iterable[str]) -> str:
    return "\n".join(f"        '{name}'" for name in sorted(names))
