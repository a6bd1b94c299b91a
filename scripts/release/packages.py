"""The Linux packages of a release: `hotset` and `hotset-bench`, each as .deb and .rpm, by nfpm.

In `/usr/lib/hotset` is an environment as of `python -m venv`, over the system's own Python: one
folder of modules for all its versions (:mod:`.modules`). What a package holds and asks for is in
`packaging/`.
"""

from __future__ import annotations

import gzip
import os
import shutil
import string
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hotset.core.extras import PACKAGED, Extra
from hotset.core.machines import needrestart
from pages import manual

from . import entry, modules
from .programs import ARCHITECTURES, CannotBuildError

PYTHONS = ("3.11", "3.12", "3.13")
"""Python's versions in Debian 12, Ubuntu 24.04 and Debian 13."""
PREFIX = Path(PACKAGED).relative_to("/")
_SITE = PREFIX / "lib/python3/site-packages"
_SHARE = Path("usr/share")
_DOC = _SHARE / "doc"
KINDS = ("deb", "rpm")
_ACTIVE = "#ACTIVE#\n"
_MAINTAINER = "hotset maintainers <maintainers@hotset.invalid>"


@dataclass(frozen=True, slots=True)
class Package:
    """One. ``extras``: whose modules it has, ``folder``: where, beside those of the others."""

    name: str
    extras: tuple[Extra, ...]
    folder: Path


PACKAGES = (
    Package("hotset", (Extra.CONSOLE,), _SITE),
    Package("hotset-bench", (Extra.BENCH, Extra.REPORT, Extra.SQLSERVER), PREFIX / "bench"),
)
"""The first has hotset itself; what one brings, those after it do not."""


@dataclass(frozen=True, slots=True)
class Release:
    """The release to pack. ``root``: the checkout; ``machine``: the first word of Rust's target;
    ``epoch``: seconds, the time of everything in it; ``texts``: licences and changes, for `doc`."""

    root: Path
    wheel: Path
    version: str
    machine: str
    epoch: int
    texts: tuple[Path, ...] = ()
    pythons: tuple[str, ...] = PYTHONS
    compression: str = "xz"


def build(
    release: Release,
    work: Path,
    dist: Path,
    which: Sequence[Package] = PACKAGES,
    kinds: Sequence[str] = KINDS,
) -> list[Path]:
    """All packages, into ``dist``.

    :param work: is emptied.
    :param which: the first, or all.
    :raises CannotBuildError: something is missing or does not fit; the message says what.
    """
    nfpm = _nfpm()
    shutil.rmtree(work, ignore_errors=True)
    files: list[Path] = []
    extras, brought = list[Extra](), set[str]()
    for package in which:
        folder = work / package.name
        extras += package.extras
        wanted = modules.requirements(release.root, extras, release.pythons[0])
        added = {name: line for name, line in wanted.items() if name not in brought}
        brought |= added.keys()
        lay_out(package, added, release, folder)
        files += [_pack(nfpm, package, release, folder, kind, dist) for kind in kinds]
        shutil.rmtree(folder)
    return files


def lay_out(package: Package, added: Mapping[str, str], release: Release, folder: Path) -> None:
    """Lay out all of a package below ``folder / "root"``.

    :param added: the distributions in it (:func:`.modules.requirements`).
    """
    described = release.root / "packaging" / package.name
    root, is_first = folder / "root", package.folder == _SITE
    wheels = [release.wheel] if is_first else []
    modules.install(added, wheels, release.pythons, release.machine, root / package.folder, folder)
    modules.move_programs(root / package.folder, root / PREFIX / "bin")
    if is_first:
        _environment(root, described, release)
        _share(root, described)
        _to_be_used(root / _SHARE / "hotset", release.root)
    _documents(root, package, release)
    shutil.copytree(described, folder / "scripts" / package.name)
    overrides = root / _SHARE / "lintian/overrides" / package.name
    overrides.parent.mkdir(parents=True)
    shutil.copy(described / "lintian-overrides", overrides)
    for file in (folder / "scripts" / package.name).iterdir():
        file.write_text(script(file), encoding="utf-8")
        file.chmod(0o755)
    _settle(folder, release.epoch)


def script(file: Path) -> str:
    """A script that dpkg and rpm call, which has to be one file: what two of them ask is put into
    both, in the place of :data:`_ACTIVE`."""
    text = file.read_text(encoding="utf-8")
    if _ACTIVE not in text:
        return text
    return text.replace(_ACTIVE, file.with_name("active").read_text(encoding="utf-8"))


def _environment(root: Path, described: Path, release: Release) -> None:
    """Make Python take the folder for an environment (PEP 405), for each of its versions."""
    prefix = root / PREFIX
    (prefix / "bin").mkdir(exist_ok=True)
    (prefix / "bin/python3").symlink_to("/usr/bin/python3")
    (prefix / "bin/hotset").write_text(entry.in_package(described), encoding="utf-8")
    (prefix / "bin/hotset").chmod(0o755)
    lines = "home = /usr/bin\ninclude-system-site-packages = false\n"
    (prefix / "pyvenv.cfg").write_text(lines, encoding="ascii")
    for python in release.pythons:
        (prefix / f"lib/python{python}").symlink_to("python3")
    # Folders of the other packages, where they are there.
    others = [os.path.relpath(package.folder, _SITE) for package in PACKAGES[1:]]
    (root / _SITE / "hotset-packages.pth").write_text("\n".join(others) + "\n", encoding="ascii")


def _share(root: Path, described: Path) -> None:
    """Man pages, completion, the console's unit, what keeps needrestart away."""
    for path, text in manual.files().items():
        into = root / _SHARE / path
        into.parent.mkdir(parents=True, exist_ok=True)
        if path.parts[0] == "man":
            _zip(text.encode(), into.with_name(f"{into.name}.gz"))
        else:
            into.write_text(text, encoding="utf-8")
    for name, place in (
        ("environment", Path("etc/hotset/console")),
        ("hotset-console.service", Path("usr/lib/systemd/system")),
    ):
        (root / place).mkdir(parents=True)
        shutil.copy(described / name, root / place / name)
    conf = root / "etc/needrestart/conf.d/hotset-package.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(needrestart.RULE, encoding="utf-8")


def _to_be_used(folder: Path, checkout: Path) -> None:
    """Lay out what the pages tell people to use: dashboard and rules, SQL Server's container."""
    shutil.copytree(checkout / "reports/grafana", folder / "grafana")
    (folder / "scripts").mkdir()
    for name in ("compose.yaml", "scripts/sqlserver.sh"):
        shutil.copy(checkout / name, folder / name)
    (folder / "experiments").symlink_to(f"/{_SITE}/hotset/experiments")


def _documents(root: Path, package: Package, release: Release) -> None:
    """Write what Debian's policy requires of a package (12.5, 12.7)."""
    into = root / _DOC / package.name
    into.mkdir(parents=True)
    terms = (release.root / "packaging/copyright").read_text(encoding="utf-8")
    parts = "".join(modules.licences(root / package.folder, Path("/", package.folder)))
    (into / "copyright").write_text(terms + parts, encoding="utf-8")
    day = datetime.fromtimestamp(release.epoch, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    entry = f"""\
{package.name} ({release.version}) unstable; urgency=medium

  * hotset {release.version}: CHANGELOG.md of the release says what changed.

 -- {_MAINTAINER}  {day}
"""
    _zip(entry.encode(), into / "changelog.gz")
    if package.folder == _SITE:
        for text in release.texts:
            _zip(text.read_bytes(), into / f"{text.name}.gz")


def _zip(held: bytes, into: Path) -> None:
    with into.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as zipped:
        zipped.write(held)


def _settle(folder: Path, epoch: int) -> None:
    """On every computer, at any time: the same modes and times."""
    for at, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            path = Path(at, name)
            if not path.is_symlink():
                is_run = path.is_dir() or (
                    path.stat().st_mode & 0o100 and ".so" not in path.suffixes
                )
                path.chmod(0o755 if is_run else 0o644)
            os.utime(path, (epoch, epoch), follow_symlinks=False)


def _nfpm() -> Path:
    path = Path(sys.executable).with_name("nfpm")
    if not path.exists():
        raise CannotBuildError(
            "nfpm, which makes .deb and .rpm, is missing: uv sync --locked --all-extras"
        )
    return path


def _pack(
    nfpm: Path, package: Package, release: Release, folder: Path, kind: str, dist: Path
) -> Path:
    minor = int(release.pythons[-1].partition(".")[2])
    described = {
        "ARCH": ARCHITECTURES[release.machine],
        "VERSION": release.version,
        "MAINTAINER": _MAINTAINER,
        "PYTHON_MIN": release.pythons[0],
        "PYTHON_BEYOND": f"3.{minor + 1}",
        "COMPRESSION": release.compression,
    }
    config, before = folder / "nfpm.yaml", set(dist.iterdir())
    text = (release.root / f"packaging/{package.name}.yaml").read_text(encoding="utf-8")
    config.write_text(string.Template(text).substitute(described), encoding="utf-8")
    argv = [str(nfpm), "package", f"--packager={kind}", f"--target={dist}", f"--config={config}"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(release.epoch)}
    done = subprocess.run(
        argv, check=False, cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise CannotBuildError(f"nfpm: {done.stdout}{done.stderr}".strip())
    (made,) = set(dist.iterdir()) - before
    return made
