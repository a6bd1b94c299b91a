"""The PowerShell module of a release: a folder for a workstation's modules, as a zip."""

from __future__ import annotations

import time
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hotset.api.clients import MODULE, make


def write(dist: Path, version: str, epoch: int) -> Path:
    """The module with what is generated of it.

    :param epoch: the time of every file in it, seconds since 1970.
    """
    target = dist / f"hotset-powershell-{version}.zip"
    texts = {path: text.encode() for path, text in make().items()}
    whole = {path: path.read_bytes() for path in MODULE.rglob("*") if path.is_file()} | texts
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path, content in sorted(whole.items()):
            entry = ZipInfo(str(path.relative_to(MODULE.parent)), time.gmtime(epoch)[:6])
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, content)
    return target
