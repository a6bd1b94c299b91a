"""Two versions of hotset, each built of its commit, and installed side by side."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shipping.programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
_CRATES = Path("cache-layer/flashdev")
_FLAGS = "-C strip=symbols -C target-feature=+crt-static"
_EXTRAS = "[console,report]"
_START = """\
#!/bin/sh
PATH={prefix}/programs:$PATH PYTHONPATH={prefix}/lib exec python3 {prefix}/lib/bin/hotset "$@"
"""


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it was built. ``name``: of its prefix, ``/opt/NAME``."""

    name: str
    commit: str
    source: Path
    wheel: Path
    programs: Path

    @property
    def protocol(self) -> int:
        """Of its engine's answers; 1: they carry no number."""
        found = [
            int(number)
            for file in (self.source / _CRATES).glob("*/src/tier/protocol.rs")
            for number in re.findall(r"const PROTOCOL: u32 = (\d+)", file.read_text())
        ]
        return max(found, default=1)

    @property
    def hotset(self) -> PurePosixPath:
        """Its command line, once it is installed."""
        return self.prefix / "hotset"

    @property
    def prefix(self) -> PurePosixPath:
        return PurePosixPath("/opt") / self.name


def build(name: str, commit: str, work: Path) -> Version:
    """Build the programs and the wheel of a commit. What was compiled is kept for the next time.

    :raises subprocess.CalledProcessError: it cannot be built; what failed has said why.
    """
    folder = work / name
    source, programs, wheels = (folder / one for one in ("source", "programs", "wheels"))
    commit = _said("git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}")
    if not source.exists():
        _run("git", "clone", "--quiet", "--no-checkout", str(ROOT), str(source))
    _run("git", "-C", str(source), "fetch", "--quiet", str(ROOT), commit)
    _run("git", "-C", str(source), "checkout", "--quiet", "--force", commit)
    target = _said("rustc", "--print=host-tuple")
    argv = ["cargo", "--quiet", "build", "--release", "--locked", "--bins", f"--target={target}"]
    argv.append(f"--target-dir={folder / 'target'}")
    flags = {"RUSTFLAGS": _FLAGS, "CARGO_INCREMENTAL": "0"}
    subprocess.run(argv, check=True, cwd=source / _CRATES, env={**os.environ, **flags})
    for one in (programs, wheels):
        shutil.rmtree(one, ignore_errors=True)
        one.mkdir()
    # An earlier version may not have all of them.
    for program in (one for one in PROGRAMS if one.crate == str(_CRATES)):
        built = folder / "target" / target / "release" / program.name
        if built.exists():
            shutil.copy(built, programs)
    _build_wheel(source, programs, wheels)
    (wheel,) = wheels.glob("*.whl")
    return Version(name, commit[:12], source, wheel, programs)


def _build_wheel(source: Path, programs: Path, wheels: Path) -> None:
    argv = ["uv", "build", "--quiet", "--wheel", "--no-build-isolation"]
    argv += [f"--python={sys.executable}", f"--out-dir={wheels}", str(source)]
    own = {"HOTSET_PROGRAMS": str(programs)}
    subprocess.run(argv, check=True, env={**os.environ, **own})


def install(version: Version, system: Path, python: str) -> None:
    """Install it into its prefix of a system, with all that it depends on, in the place of what was
    there.

    :param python: the system's, such as ``3.13``.
    """
    prefix = system / version.prefix.relative_to("/")
    shutil.rmtree(prefix, ignore_errors=True)
    _run(
        *("uv", "pip", "install", "--quiet", f"--target={prefix / 'lib'}"),
        *(f"--python-version={python}", "--python-platform=x86_64-manylinux_2_34"),
        f"hotset{_EXTRAS} @ {version.wheel.as_uri()}",
    )
    # A version of before the wheel had them finds them on the PATH.
    shutil.copytree(version.programs, prefix / "programs")
    start = system / version.hotset.relative_to("/")
    start.write_text(_START.format(prefix=version.prefix), encoding="utf-8")
    start.chmod(0o755)


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True)


def _said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
