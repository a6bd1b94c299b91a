"""A server with a real sshd and a small root of its own: busybox, no bash, no Python, no sftp."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from hotset.core import clock
from hotset.core.machines.local import free_port
from hotset.core.machines.ssh import Account, Remote

_SSHD = Path("/usr/sbin/sshd")
_FOLDERS = ("bin", "dev", "etc", "lib", "proc", "run", "tmp", "usr/local/lib")
_APPLETS = (
    *("basename", "cat", "chmod", "cut", "df", "find", "grep", "id", "kill", "ls", "mkdir", "mv"),
    *("readlink", "rm", "rmdir", "sed", "sh", "sha256sum", "sleep", "sync", "tail", "test", "tr"),
    *("uname", "wc"),
)
# In a mount namespace, which ends with the server: root's shell is the one that there is.
_SERVE = """\
set -e
mount --bind "$1" /mnt
mount -t proc proc /mnt/proc
mount --rbind /dev /mnt/dev
mount --bind "$2/passwd" /etc/passwd
mkdir -p /run/sshd
while [ $# -gt 2 ]; do mount -t tmpfs -o "$4" none "/mnt/$3"; set -- "$1" "$2" "${@:5}"; done
exec /usr/sbin/sshd -D -e -f "$2/config"
"""
_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
ChrootDirectory /mnt
StrictModes no
UsePAM no
PidFile none
SetEnv PATH=/bin
"""


@dataclass(frozen=True, slots=True)
class Server:
    """``root``: its root folder, seen from outside; what is mounted there is not."""

    root: Path
    account: Account

    @contextmanager
    def connected(self, kind: type[Remote] = Remote) -> Iterator[Remote]:
        machine = kind(self.account, "ssh", lambda port: ("127.0.0.1", port))
        try:
            yield machine
        finally:
            machine.close()

    def program(self, name: str, script: str) -> None:
        """In place of one of busybox's; its shell would take its own all the same, so that goes,
        too."""
        for one in (name, "sh"):
            (self.root / "bin" / one).unlink(missing_ok=True)
        _copy_with_libraries(self.root, Path("/bin/dash"), "sh")
        (self.root / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.root / "bin" / name).chmod(0o755)

    def plain(self) -> None:
        """With nothing of hotset's on it, and busybox's own programs."""
        shutil.rmtree(self.root / "usr/local/lib/hotset", ignore_errors=True)
        for file in (self.root / "bin").iterdir():
            if file.name != "busybox":
                file.unlink()
        for one in _APPLETS:
            (self.root / "bin" / one).symlink_to("busybox")


@contextmanager
def serving(folder: Path, mounts: Mapping[str, str] | None = None) -> Iterator[Server]:
    """:param mounts: folders of the root that get a tmpfs of their own, with its options."""
    busybox = shutil.which("busybox")
    if os.geteuid() or busybox is None or not _SSHD.exists():
        pytest.skip("no root, no busybox or no sshd here: apt-get install openssh-server busybox")
    root, port = folder / "server", free_port()
    for one in _FOLDERS:
        (root / one).mkdir(parents=True)
    _copy_with_libraries(root, Path(busybox), "busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    server = Server(root, Account("127.0.0.1", port, "root", folder / "user", folder / "known"))
    server.plain()
    for name in ("host", "user"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(str(folder / name))
        (folder / name).chmod(0o600)
        key.write_public_key(str(folder / f"{name}.pub"))
    shown = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {shown}")
    passwd = Path("/etc/passwd").read_text()
    (folder / "passwd").write_text(re.sub(r"(?m)^(root:.*:).*$", r"\1/bin/sh", passwd))
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    words = [word for pair in (mounts or {}).items() for word in pair]
    argv = ["unshare", "--mount", "--propagation", "private", "bash", "-c", _SERVE, "serve"]
    log = (folder / "sshd.log").open("w+")
    sshd: subprocess.Popen[bytes] = subprocess.Popen(
        [*argv, str(root), str(folder), *words], stderr=log
    )
    try:
        listens = clock.wait_for_word(sshd, Path(log.name), "listening on", 60)
        assert listens, Path(log.name).read_text()
        yield server
    finally:
        sshd.kill()
        sshd.wait()
        log.close()


def _copy_with_libraries(root: Path, program: Path, name: str) -> None:
    linked = subprocess.run(["ldd", str(program)], check=False, capture_output=True, text=True)
    for library in re.findall(r"(/\S+) \(0x", linked.stdout):
        (root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library[1:])
    shutil.copy(program, root / "bin" / name)
