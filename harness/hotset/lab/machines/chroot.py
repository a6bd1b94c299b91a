"""The frozen image on this computer's own kernel: a machine at native speed.

A process of its own mount and PID namespace holds the image's file system (read-only, with a
layer in memory above it for what is written). Commands enter both namespaces and the image's
root. Ending that one process ends everything in it and drops every mount, so nothing leaks when
hotset is killed. The kernel, the devices and the network are this computer's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hotset.block import loop
from hotset.core.clock import wait_for_word
from hotset.core.machines.base import (
    Command,
    Machine,
    MachineGoneError,
    PrerequisiteMissingError,
    Result,
    check_declared,
    missing,
)
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local, OwnPorts, lacks_device, start_time

from ..image import Image

PROCESS, HOLDER = "image", "first process of the image"
"""Their names in the journal."""

_START_LIMIT_S = 20.0
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = ("env", "-i", _PATH, "LC_ALL=C.UTF-8", "HOME=/root")
_READY = "hotset-ready"
_HOLD_FOLDER = "image"
# $1: the image's disk, $2: an empty folder to mount on, $3: the lab's folder. Bash, because the
# first process of a PID namespace has to reap what others leave. Without ublk: its devices would
# outlive the process.
_HOLD = """
set -e
mount -t tmpfs tmpfs "$2"
mkdir "$2/image" "$2/upper" "$2/work" "$2/root"
mount -o loop,ro "$1" "$2/image"
root="$2/root"
mount -t overlay overlay -o "lowerdir=$2/image,upperdir=$2/upper,workdir=$2/work" "$root"
mount --rbind /dev "$root/dev"
mkdir -p "$root/etc/modprobe.d"
echo install ublk_drv /bin/false > "$root/etc/modprobe.d/hotset.conf"
[ ! -e "$root/dev/ublk-control" ] || mount --bind /dev/null "$root/dev/ublk-control"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mkdir -p "$root$3"
mount --bind "$3" "$root$3"
mkdir "$root/computer"
cd "$root"
pivot_root . computer
umount -l /computer
install -d -o postgres -g postgres /run/postgresql
echo hotset-ready
while :; do wait -n 2>/dev/null || sleep 1; done
"""
# What nsenter and env say when the program itself is not in the image.
_NOT_FOUND = 127


class Chroot(Machine):
    """Commands in the image; ``folder`` (the lab's) is there under the same path."""

    kind = "image"

    def __init__(self, local: Local, pid: int) -> None:
        """:param pid: the first process of the namespaces, as this computer counts."""
        self._local = local
        self._pid = pid
        self._started = start_time(pid)
        self._ports = OwnPorts()

    def execute(self, command: Command) -> Result:
        inside = tuple(self.enter(command.argv, command.user))
        result = self._local.execute(replace(command, argv=inside, user=None))
        if result.rc != 0 and self._is_gone():
            raise MachineGoneError("the image's first process is gone: somebody killed it")
        if result.rc == _NOT_FOUND:
            raise missing("the image", command.argv)
        return replace(result, argv=command.argv)

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        with self._local.stream(self.enter(argv, None)) as lines:
            yield lines

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        inside = self._inside(target)
        shutil.copyfile(source, inside)
        inside.chmod(mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        shutil.copyfile(self._inside(source), target)

    def port(self, wanted: int) -> int:
        return self._ports.port(wanted)

    def _is_gone(self) -> bool:
        # A process that is on its way out gives its namespaces up (``exit_task_namespaces`` of
        # kernel/exit.c) before it ends all others in them, and before it counts as gone itself.
        ends = not Path(f"/proc/{self._pid}/ns/mnt").exists()
        return ends or start_time(self._pid) != self._started

    def enter(self, argv: Sequence[str], user: str | None) -> list[str]:
        """The argv on this computer that runs an argv in the image."""
        # The namespace's root is the image: `start` turned it there.
        enter = ("nsenter", f"--target={self._pid}", "--mount", "--pid")
        return [*enter, *_ENVIRONMENT, *check_declared(argv, user)]

    def _inside(self, path: PurePosixPath) -> Path:
        return Path(f"/proc/{self._pid}/root{path}")


def start(local: Local, image: Image, folder: Path, cleanup: Cleanup) -> Chroot:
    """Enter the image.

    :param folder: the lab's state folder; the image sees it under the same path.
    :raises PrerequisiteMissingError: something the computer refuses; its words are in the message.
    """
    log = folder / "image.log"
    (folder / _HOLD_FOLDER).mkdir(exist_ok=True)
    process = local.spawn(hold_argv(image, folder), log)
    cleanup.process(PROCESS, process.pid, at_once=True)
    if not wait_for_word(process, log, _READY, _START_LIMIT_S):
        words = log.read_text(errors="replace").strip()[-600:]
        raise PrerequisiteMissingError(
            f"the image could not be entered: {words}; machine = 'vm' runs it in a virtual machine"
            " instead"
        )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    holder = int(children[0])
    # Unshare is gone before the process that dies of its end, and the mounts go with that one.
    cleanup.process(HOLDER, holder, at_once=True)
    return Chroot(local, holder)


def hold_argv(image: Image, folder: Path) -> list[str]:
    """The process that holds the namespaces."""
    # A slave, so that disks which are mounted later on this computer appear inside as well.
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "slave"]
    hold = folder / _HOLD_FOLDER
    script = ["bash", "-c", _HOLD, "hotset-image", str(image.root_disk), str(hold), str(folder)]
    return [*unshare, *script]


def lacking() -> str | None:
    """Explain why this computer cannot enter the image; None if it can."""
    if os.geteuid():
        return "it needs root"
    missing = lacks_device("/dev/fuse", "fuse") or lacks_device("/dev/loop-control", "loop")
    try:
        return missing or (None if loop.may_mount(Local()) else loop.NO_MOUNTS)
    except PrerequisiteMissingError as error:
        return str(error)
