"""Debian's ``user-mode-linux`` package, from its archive into hotset's cache.

The kernels that boot on every CPU are in Debian's unstable suite alone (versions before 6.13 panic
where the register set is larger than their buffer, as with AMX). apt itself fetches and verifies:
the suite's signature with the keys of the lab's image, the package by the hash that the signed
index names. Nothing is installed on this computer. The archive keeps one version; what was fetched
stays in the cache, so that a lab is the same tomorrow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.paths import cache_dir, lock_file

from ..image import Image

PACKAGE = "user-mode-linux"
SUITE = "unstable"
_MIRROR = "http://deb.debian.org/debian"
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Kernel:
    """The package's files; the folder is named by its version."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @property
    def program(self) -> Path:
        return self.folder / "linux.uml"

    @property
    def modules(self) -> Path:
        """Content for ``/lib/modules``."""
        return self.folder / "modules"


def shelf() -> Path:
    """Where versions lie; removing it makes the next lab fetch what the archive has."""
    return cache_dir() / "user-mode-linux"


def find_fetched() -> Kernel | None:
    """The kernel that was fetched last."""
    kernels = [
        kernel for kernel in shelf().glob("*/linux.uml") if not kernel.parent.name.startswith(".")
    ]
    return (
        Kernel(max(kernels, key=lambda kernel: kernel.stat().st_mtime).parent) if kernels else None
    )


def ensure(local: Local, image: Image, say: Callable[[str], None]) -> Kernel:
    """The kernel, fetched (36 MB and the suite's index, 11 MB) if it is not cached.

    :raises PrerequisiteMissingError: the archive cannot be reached, or the package does not verify;
        nothing half-made stays.
    """
    shelf().mkdir(parents=True, exist_ok=True)
    # The second caller waits, and finds it there.
    with lock_file(shelf().with_suffix(".lock")):
        return find_fetched() or _fetch_package(local, image, say)


def _fetch_package(local: Local, image: Image, say: Callable[[str], None]) -> Kernel:
    say(f"fetching Debian's {PACKAGE} package from its {SUITE} suite (once)")
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=shelf()) as name:
        work = Path(name)
        try:
            package = _fetch(local, image, work)
            local.run(["dpkg-deb", "--extract", str(package), str(work / "files")], timeout_s=120)
        except CommandError as error:
            raise PrerequisiteMissingError(
                f"Debian's {PACKAGE} package could not be had: {error}"
            ) from error
        return _keep(work, package.name.split("_")[1])


def _keep(work: Path, version: str) -> Kernel:
    kernel = Kernel(shelf() / version)
    made = work / "kernel"
    made.mkdir()
    (work / "files/usr/bin/linux.uml").rename(made / kernel.program.name)
    (work / "files/usr/lib/uml/modules").rename(made / kernel.modules.name)
    made.chmod(0o755)
    shutil.rmtree(kernel.folder, ignore_errors=True)
    # One rename makes it visible: a fetch that is cut off leaves no kernel.
    made.rename(kernel.folder)
    return kernel


def _fetch(local: Local, image: Image, work: Path) -> Path:
    mirror = os.environ.get("HOTSET_DEBIAN_MIRROR", _MIRROR)
    sources, downloads = work / "etc", work / "downloads"
    for folder in (sources, downloads, work / "lists/partial", work / "cache/archives/partial"):
        folder.mkdir(parents=True)
    (sources / f"{SUITE}.sources").write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: {SUITE}\nComponents: main\n"
        f"Architectures: amd64\nSigned-By: {image.keyring}\n"
    )
    settings = {
        "Dir::State": work,
        "Dir::State::lists": work / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": work / "cache",
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": sources,
        "Dir::Etc::TrustedParts": "/dev/null",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled": "false",
        # A signature that does not verify or a mirror that does not answer ends it.
        "APT::Update::Error-Mode": "any",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    local.run(["apt-get", *options, "--quiet", "update"], timeout_s=_TIMEOUT_S)
    # It downloads into the folder it is called in.
    download = ["apt-get", *options, "--quiet", "download", PACKAGE]
    local.run(["env", "-C", str(downloads), *download], timeout_s=_TIMEOUT_S)
    return next(downloads.glob("*.deb"))
