"""A bare system: unpacked into a folder, and entered from there (:mod:`.enter`)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SUITES = {"debian12": "bookworm", "debian13": "trixie", "ubuntu2404": "noble"}
TOO_OLD = {"debian11": "bullseye"}
"""Its Python is 3.9."""
UBUNTU = "http://archive.ubuntu.com/ubuntu"
USER_ID = 1000
SCRIPTS = Path(__file__).resolve().parents[2]
NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--propagation", "private")
"""Options of `unshare` for the namespaces."""


def build_base(system: str, work: Path) -> Path:
    """The system's archive: essential packages, apt, make and passwd. Kept for the next time."""
    suite, archive = (SUITES | TOO_OLD)[system], work / f"{system}.tar"
    if archive.exists():
        return archive
    argv = ["mmdebstrap", "--quiet", "--variant=apt", "--include=make,passwd"]
    if system.startswith("ubuntu"):
        # Debian has no keyring of Ubuntu's; what runs there is thrown away again.
        pockets = (suite, f"{suite}-updates", f"{suite}-security")
        sources = [f"deb [trusted=yes] {UBUNTU} {pocket} main universe" for pocket in pockets]
        argv += ['--aptopt=Acquire::AllowInsecureRepositories "true"', suite]
    else:
        mirror = os.environ.get("HOTSET_DEBIAN_MIRROR")
        sources, argv = ([mirror] if mirror else []), [*argv, suite]
    unfinished = archive.with_suffix(".unfinished.tar")
    subprocess.run([*argv, str(unfinished), *sources], check=True)
    unfinished.rename(archive)
    return archive


@contextmanager
def unpacked(base: Path, name: str, work: Path, keep: bool = False) -> Iterator[Path]:
    """A fresh copy of a system, which is removed afterwards.

    :param base: of :func:`build_base`.
    :param keep: leave it there.
    """
    root = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=work))
    root.chmod(0o755)
    try:
        subprocess.run(["tar", "-C", str(root), "-xf", str(base)], check=True)
        prepare(root)
        yield root
    finally:
        if not keep:
            shutil.rmtree(root)


def call_inside(module: str, words: Sequence[str]) -> None:
    """Call a program of ours, with ``--inside`` and these words, in new namespaces; what it starts
    ends with them."""
    argv = ["unshare", *NAMESPACES, "--fork", "--kill-child", sys.executable]
    argv += ["-m", module, "--inside", *words]
    subprocess.run(argv, check=True, env={**os.environ, "PYTHONPATH": str(SCRIPTS)})


def remove_on_signals() -> None:
    """Exit on signals, to remove what was unpacked; its processes end with their namespace."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _end)


def _end(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def prepare(root: Path) -> None:
    """Set up what an installer would: name servers, certificates and proxies, the table of mounts,
    what tells the system from others (machine-id(5)), a user."""
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    (root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/mtab").unlink(missing_ok=True)
    (root / "etc/mtab").symlink_to("/proc/self/mounts")
    own = Path("/usr/local/share/ca-certificates")
    if own.is_dir():
        shutil.copytree(own, root / "usr/local/share/ca-certificates", dirs_exist_ok=True)
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True)
    lines = re.findall(r'^Acquire::(?:https?|Check)\b.* ".+";$', dump.stdout, re.MULTILINE)
    (root / "etc/apt/apt.conf.d/90this-computer").write_text("\n".join(lines) + "\n")
    subprocess.run(
        [
            "chroot",
            str(root),
            "useradd",
            "--create-home",
            "--shell",
            "/bin/bash",
            "--uid",
            str(USER_ID),
            "user",
        ],
        check=True,
    )
