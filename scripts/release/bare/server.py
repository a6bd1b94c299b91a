"""A bare Debian system in namespaces of its own, which is switched on and off like a server.

The kernel is this computer's, so a power-off ends the system's processes and mounts, and no more:
its loop devices are let go of here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hotset.core.machines.base import Command, Result
from hotset.core.machines.local import Local
from release.bare.enter import enter
from release.bare.steps import NETWORK
from release.bare.unpack import NAMESPACES, SCRIPTS, build_base, prepare

SYSTEM = "debian13"
PACKAGES = ("python3", "fuse3", "e2fsprogs", "util-linux", "mount", "procps", "kmod", "udev")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_UP = "up"
_ABORT = """
mount -t fusectl none /mnt
while read -r _ _ device _ _ _ _ rest; do
    case $rest in *fuse*) echo 1 > "/mnt/${device#*:}/abort" ;; esac
done < /proc/self/mountinfo
"""
"""Nobody answers what is served any more. Else the last mount on it, which goes down with its
server's last thread, waits for that for ever."""


class Server(Local):
    """Commands on it, while it is up.

    :ivar root: the folder of its files.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self._keeper: subprocess.Popen[str] | None = None
        self._enter: tuple[str, ...] = ()

    def execute(self, command: Command) -> Result:
        done = super().execute(replace(command, argv=self.argv(command.argv)))
        return replace(done, argv=command.argv)

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        with super().stream(self.argv(argv)) as lines:
            yield lines

    @contextmanager
    def talk(self, argv: Sequence[str]) -> Iterator[Callable[[str, float], str]]:
        """Talk as :meth:`hotset.core.machines.ssh.Remote.talk` does."""
        with self.popen(argv) as process:
            asked, answers = process.stdin, process.stdout
            assert asked is not None
            assert answers is not None

            def ask(line: str, limit_s: float) -> str:  # noqa: ARG001 - it ends with the system
                asked.write(f"{line}\n")
                asked.flush()
                return answers.readline()

            yield ask
            with suppress(BrokenPipeError):
                asked.close()

    def popen(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program whose standard input and output are pipes."""
        return subprocess.Popen(
            self.argv(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def argv(self, argv: Sequence[str]) -> tuple[str, ...]:
        """A command that runs another one there."""
        clean = ("env", "-i", "HOME=/root", "USER=root", f"PATH={_PATH}", "LANG=C.UTF-8")
        return (*self._enter, *clean, *argv)

    def sh(self, script: str, timeout_s: float = 120) -> str:
        """Run a shell script on it; returns what it printed."""
        return self.run(["sh", "-ec", script], timeout_s=timeout_s).stdout.strip()

    def install(self, packages: Sequence[str]) -> None:
        """Packages of its archive."""
        network = [f"{name}={os.environ[name]}" for name in NETWORK if name in os.environ]
        apt = ["env", *network, "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet=2"]
        self.run([*apt, "update"], timeout_s=600)
        self.run([*apt, "install", "--yes", *packages], timeout_s=600)

    def boot(self) -> None:
        """Switch it on."""
        assert self._keeper is None
        inside = (sys.executable, __file__, str(self.root))
        argv = ["unshare", *NAMESPACES, "--fork", "--kill-child", *inside]
        paths = {"PYTHONPATH": str(SCRIPTS)}
        self._keeper = subprocess.Popen(
            argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **paths}
        )
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline().strip() != _UP:
            raise RuntimeError("the system does not come up; it has said why")
        pid = self._keeper.pid
        (first,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self._enter = ("nsenter", f"--target={first}", "--mount", "--pid", "--ipc", "--uts")
        self._enter += ("--root", "--wdns=/", "--")

    def power_off(self) -> None:
        """End all its processes at once, whatever they do."""
        if self._keeper is None:
            return
        loops = self._loops()
        self.run(["sh", "-c", _ABORT], check=False)
        self._keeper.kill()
        self._keeper.wait()
        self._keeper, self._enter = None, ()
        for loop in loops:
            subprocess.run(["losetup", "--detach", loop], check=False, capture_output=True)

    def _loops(self) -> list[str]:
        """Its loop devices: those behind its devices, and those over its files."""
        links = self.run(["sh", "-c", "readlink /dev/hotset/* || :"], check=False)
        over = Local().run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"])
        own = [line.split()[0] for line in over.stdout.splitlines() if str(self.root) in line]
        return sorted({*links.stdout.split(), *own})

    def path(self, place: PurePosixPath) -> Path:
        """A file of its, from outside."""
        return self.root / place.relative_to("/")


def unpack(work: Path, root: Path) -> None:
    """A fresh system in a folder; what was fetched for it is kept for the next time.

    :raises subprocess.CalledProcessError: a package cannot be fetched.
    """
    ready = work / f"{SYSTEM}-upgrade.tar"
    if not ready.exists():
        _make(work, root, ready)
        return
    subprocess.run(["tar", "-C", str(root), "-xf", str(ready)], check=True)


def _make(work: Path, root: Path, ready: Path) -> None:
    base = build_base(SYSTEM, work)
    subprocess.run(["tar", "-C", str(root), "-xf", str(base)], check=True)
    prepare(root)
    server = Server(root)
    server.boot()
    try:
        server.install(PACKAGES)
    finally:
        server.power_off()
    unfinished = ready.with_suffix(".unfinished")
    subprocess.run(["tar", "-C", str(root), "-cf", str(unfinished), "."], check=True)
    unfinished.rename(ready)


def _keep(root: Path) -> None:
    """The system's first process: bury the others, until it is switched off."""
    enter(root)
    print(_UP, flush=True)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.5)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
