"""The Rust programs of a release: the same bytes on every computer."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Program:
    """One program. ``crate``: the folder of its workspace; ``static``: it needs no libraries, as in
    the Makefile. The users of a run load libpq, so theirs does."""

    name: str
    crate: str
    static: bool = True


PROGRAMS = (
    Program("hotset-engine", "cache-layer/crates"),
    Program("hotset-boot", "cache-layer/crates"),
    Program("flashdev", "cache-layer/crates"),
    Program("hotset-tpcc", "tpcc/driver", static=False),
)


ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Go's names, which nfpm and OCI take, by those of Rust's targets."""


class CannotBuildError(Exception):
    """A release cannot be made here; the message says what is missing."""


def build(root: Path, target: str, work: Path, into: Path) -> None:
    """Build all programs.

    :param root: the checkout.
    :param target: such as ``x86_64-unknown-linux-gnu``.
    :param work: keeps what was compiled.
    :raises CannotBuildError: Rust has no library for the target, or a crate does not compile.
    """
    _require(target)
    into.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        built = work / program.crate
        argv = ["cargo", "--quiet", "build", "--release", "--locked", f"--target={target}"]
        argv += [f"--target-dir={built}", f"--package={program.name}", f"--bin={program.name}"]
        environment = {**os.environ, "RUSTFLAGS": _flags(root, program), "CARGO_INCREMENTAL": "0"}
        environment |= _linker(target)
        if subprocess.run(argv, check=False, cwd=root / program.crate, env=environment).returncode:
            raise CannotBuildError(f"{program.name} does not compile for {target}")
        shutil.copy(built / target / "release" / program.name, into / program.name)


def _linker(target: str) -> dict[str, str]:
    """Debian's cross-compiler, where one is installed; the caller's own choice goes before it."""
    machine, _, system = target.partition("-unknown-")
    linker = shutil.which(f"{machine}-{system}-gcc")
    name = f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER"
    return {name: linker} if linker and name not in os.environ else {}


def _flags(root: Path, program: Program) -> str:
    """No path of this computer is left in it."""
    home = os.environ.get("CARGO_HOME") or Path.home() / ".cargo"
    flags = [f"--remap-path-prefix={root}=hotset", f"--remap-path-prefix={home}=cargo"]
    flags.append("-C strip=symbols")
    if program.static:
        flags.append("-C target-feature=+crt-static")
    return " ".join(flags)


def _require(target: str) -> None:
    argv = ["rustc", "--print=target-libdir", f"--target={target}"]
    try:
        done = subprocess.run(argv, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotBuildError("rustc is missing: make setup") from None
    if done.returncode or not any(Path(done.stdout.strip()).glob("libstd-*")):
        raise CannotBuildError(
            f"Rust has no standard library for {target} here: rustup target add {target}, or"
            " Debian's libstd-rust-dev of that architecture, and its gcc (crossbuild-essential-…)"
        )
