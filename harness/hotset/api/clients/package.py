"""The PowerShell module as one file: for users of a console, and for a release."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping
from functools import cache
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hotset import __version__

from . import MODULE, make

_EPOCH = 1_577_836_800
"""Time of the files where none is named, 2020: the same module is the same bytes."""
_ABOUT = "Steers hotset servers: tiers, warm-up, TPC-C and TPC-H, hit ratios, runs."
_CONTENT_TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
{defaults}
</Types>
"""
_RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest"
    Target="/Hotset.nuspec" Id="R1" />
</Relationships>
"""
_NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2011/08/nuspec.xsd">
  <metadata>
    <id>Hotset</id>
    <version>{version}</version>
    <authors>The hotset authors</authors>
    <requireLicenseAcceptance>false</requireLicenseAcceptance>
    <license type="expression">Apache-2.0</license>
    <description>{about}</description>
    <tags>hotset PSModule PSEdition_Desktop PSEdition_Core</tags>
  </metadata>
</package>
"""


def contents() -> dict[str, bytes]:
    """Map each file of the module, as its folder has it, to its bytes."""
    made = {path: text.encode() for path, text in make().items()}
    by_hand = {path: path.read_bytes() for path in MODULE.rglob("*") if path.is_file()}
    return {str(path.relative_to(MODULE)): text for path, text in (by_hand | made).items()}


@cache
def zipped(epoch: int = _EPOCH) -> bytes:
    """The folder ``Hotset``, for a folder of modules.

    :param epoch: the time of every file in it, seconds since 1970.
    """
    return _archive({f"Hotset/{name}": text for name, text in contents().items()}, epoch)


def nupkg(epoch: int = _EPOCH) -> bytes:
    """The module as a repository of PSResourceGet takes it, a package of NuGet's."""
    files = contents()
    endings = sorted({name.rpartition(".")[2] for name in files} | {"nuspec", "rels"})
    kinds = {"rels": "application/vnd.openxmlformats-package.relationships+xml"}
    defaults = "\n".join(
        f'  <Default Extension="{ending}" ContentType="{kinds.get(ending, "application/octet")}" />'
        for ending in endings
    )
    about = {
        "[Content_Types].xml": _CONTENT_TYPES.format(defaults=defaults),
        "_rels/.rels": _RELATIONS,
        "Hotset.nuspec": _NUSPEC.format(version=__version__, about=escape(_ABOUT)),
    }
    return _archive(files | {name: text.encode() for name, text in about.items()}, epoch)


def _archive(files: Mapping[str, bytes], epoch: int) -> bytes:
    whole = io.BytesIO()
    with ZipFile(whole, "w", ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = ZipInfo(name, time.gmtime(epoch)[:6])
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, content)
    return whole.getvalue()
