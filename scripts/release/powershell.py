"""The PowerShell module of a release: for a folder of modules, and for a PSResource repository."""

from __future__ import annotations

from pathlib import Path

from hotset.api.clients.package import contents, nupkg, zipped


def write(dist: Path, version: str, epoch: int) -> None:
    """The module with what is generated of it.

    :param epoch: the time of every file in it, seconds since 1970.
    """
    (dist / f"hotset-powershell-{version}.zip").write_bytes(zipped(epoch))
    (dist / f"Hotset.{version}.nupkg").write_bytes(nupkg(epoch))


def unpack(folder: Path) -> None:
    """The module as its folder has it, with what is generated of it: the source has not."""
    for name, content in contents().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
