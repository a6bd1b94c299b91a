"""Makes a release into `dist/`: wheel, source, packages, PowerShell module, checksums, bill of
materials, licences, changelog.

    make release                      for this kind of computer
    make release TWICE=1              in two clones at two places, and compares every byte
    make release TARGET=aarch64-unknown-linux-gnu      for another kind, if Rust has its library

The time in it is that of the last commit, so that commit with the same versions of
Rust and uv makes the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hotset import __version__
from hotset.api.clients.package import contents, nupkg, zipped

from . import bill, crates, packages, programs
from .programs import CannotBuildError

ROOT = Path(__file__).resolve().parents[2]
WHEEL_MAX_BYTES = 15_000_000
"""So that it is soon on a server."""
SUMS = "SHA256SUMS"
_TAG = re.compile(r"tag: v(\d[^,]*)")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where to put it")
    parser.add_argument("--target", help="Rust's name of the kind of computer")
    parser.add_argument("--twice", action="store_true", help="compare two builds")
    given = parser.parse_args()
    try:
        target = given.target or _own_target()
        _require_committed()
        if given.twice:
            return _compare(target)
        release(given.dist.resolve(), target)
    except CannotBuildError as error:
        print(f"release: {error}", file=sys.stderr)
        return 3
    return 0


def release(dist: Path, target: str) -> None:
    """Make all of it.

    :raises CannotBuildError: something is missing, or the wheel has grown too large.
    """
    work = dist / ".build"
    into = work / "programs" / target
    dist.mkdir(parents=True, exist_ok=True)
    for old in (file for file in dist.iterdir() if file.is_file()):
        old.unlink()
    shutil.rmtree(into, ignore_errors=True)
    programs.build(ROOT, target, work, into)
    files = sorted(into.iterdir())
    linked = crates.linked_crates(ROOT, target)
    (into / "LICENCES.txt").write_text(crates.notices(linked), encoding="utf-8")
    epoch = _epoch()
    wheel = package(dist, into, epoch)
    whole = bill.complete(bill.python_bill(ROOT), __version__, linked, files, epoch)
    text = json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
    (dist / f"hotset-{__version__}.cdx.json").write_text(text, encoding="utf-8")
    (dist / "LICENCES.md").write_text(bill.table(whole), encoding="utf-8")
    (dist / "CHANGELOG.md").write_text(changelog(ROOT, __version__), encoding="utf-8")
    machine = target.partition("-")[0]
    (dist / f"hotset-powershell-{__version__}.zip").write_bytes(zipped(epoch))
    (dist / f"Hotset.{__version__}.nupkg").write_bytes(nupkg(epoch))
    made = packages.Release(ROOT, wheel, __version__, machine, epoch, (dist / "CHANGELOG.md",))
    packages.build(made, work / "packages", dist)
    (dist / SUMS).write_text(sums(dist), encoding="utf-8")
    for file in sorted(file for file in dist.iterdir() if file.is_file()):
        print(f"{file.stat().st_size:>12,}  {file.name}")


def package(dist: Path, with_programs: Path, epoch: int) -> Path:
    """The source and, built of that, the wheel; returns the wheel.

    :param with_programs: the folder that goes into it.
    :raises CannotBuildError: it is larger than :data:`WHEEL_MAX_BYTES`.
    """
    environment = {"SOURCE_DATE_EPOCH": str(epoch), "HOTSET_PROGRAMS": str(with_programs)}
    source = dist / f"hotset-{__version__}.tar.gz"
    _build(["--sdist", str(ROOT)], dist, environment)
    require_tracked(source)
    with tempfile.TemporaryDirectory(prefix="hotset-module-") as module:
        # The source has nothing of what is generated of it.
        for name, content in contents().items():
            file = Path(module, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        _build(["--wheel", str(source)], dist, environment | {"HOTSET_MODULE": module})
    (wheel,) = dist.glob(f"hotset-{__version__}-*.whl")
    require_small(wheel)
    return wheel


def require_tracked(source: Path) -> None:
    """Refuse a source that holds files git does not know; uncommitted ones may be in it.

    :raises CannotBuildError: it holds a file that git is told to ignore, such as a tool's cache.
    """
    with tarfile.open(source) as opened:
        held = {member.name.partition("/")[2] for member in opened.getmembers() if member.isfile()}
    known = {
        *_describe("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(
            "\0"
        ),
        "PKG-INFO",
    }
    if strangers := sorted(held - known):
        raise CannotBuildError(
            f"{source.name} would hold what git does not have: {', '.join(strangers[:5])}; name"
            " it in .gitignore, or remove it"
        )


def require_small(wheel: Path) -> None:
    """:raises CannotBuildError: it is larger than :data:`WHEEL_MAX_BYTES`."""
    size = wheel.stat().st_size
    if size > WHEEL_MAX_BYTES:
        raise CannotBuildError(f"{wheel.name} has {size:,} bytes, more than {WHEEL_MAX_BYTES:,}")


def sums(dist: Path) -> str:
    """Format the checksums as `sha256sum --check` reads them."""
    files = sorted(file for file in dist.iterdir() if file.is_file() and file.name != SUMS)
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files
    )


def changelog(root: Path, version: str) -> str:
    """Each version and what changed for it, the newest first. A version begins after the tag
    (``v0.1.0``) of the one before.

    :param version: a version that has no tag yet.
    """
    argv = ["git", "log", "--no-merges", "--format=%D%x1f%cs%x1f%s"]
    output = subprocess.run(argv, check=True, cwd=root, stdout=subprocess.PIPE, text=True).stdout
    lines, name = ["# Changes"], version
    for number, line in enumerate(output.splitlines()):
        tags, day, subject = line.split("\x1f")
        tagged = _TAG.search(tags)
        if tagged or number == 0:
            name = tagged[1] if tagged else name
            lines += ["", f"## {name} ({day})", ""]
        lines.append(f"- {subject}")
    return "\n".join(lines) + "\n"


def _build(what: list[str], dist: Path, environment: Mapping[str, str]) -> None:
    # With what the lock file has: another hatchling would write another wheel.
    argv = ["uv", "build", "--quiet", "--no-build-isolation", f"--python={sys.executable}"]
    argv += [f"--out-dir={dist}", *what]
    if subprocess.run(argv, check=False, env={**os.environ, **environment}).returncode:
        raise CannotBuildError(f"{' '.join(argv)} failed")
    (dist / ".gitignore").unlink(missing_ok=True)


def _compare(target: str) -> int:
    """Two clones, at places of unlike names."""
    sums = []
    with tempfile.TemporaryDirectory(prefix="hotset-release-") as folder:
        for name in ("one", "another-place"):
            clone = Path(folder) / name
            _run(["git", "clone", "--quiet", str(ROOT), str(clone)])
            _run(["uv", "sync", "--quiet", "--locked", "--all-extras", f"--project={clone}"])
            python = clone / ".venv/bin/python"
            _run([str(python), "-m", "release.dist", f"--target={target}"], clone / "scripts")
            sums.append((clone / "dist" / SUMS).read_text())
    first, other = (set(text.splitlines()) for text in sums)
    for line in sorted(first ^ other):
        print(f"differs: {line}", file=sys.stderr)
    print("both builds are equal" if first == other else "the builds differ", file=sys.stderr)
    return int(first != other)


def _run(argv: list[str], folder: Path = ROOT) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    if subprocess.run(argv, check=False, cwd=folder, env=environment).returncode:
        raise CannotBuildError(f"{' '.join(argv)} failed")


def _describe(*argv: str) -> str:
    done = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuildError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


def _epoch() -> int:
    return int(_describe("git", "log", "-1", "--format=%ct"))


def _own_target() -> str:
    return _describe("rustc", "--print=host-tuple").strip()


def _require_committed() -> None:
    if changed := _describe("git", "status", "--short"):
        raise CannotBuildError(
            f"not committed: {', '.join(line[3:] for line in changed.splitlines())}. A release is"
            " made of a commit: commit this, or put it aside with git stash --include-untracked"
        )


if __name__ == "__main__":
    sys.exit(main())
