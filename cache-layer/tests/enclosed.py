"""This computer with an /etc/hotset, /run/hotset and /dev/hotset of its own: a mount namespace, so
that a test's flash devices are nobody else's and nothing of them is left. Without ublk, whose
devices would be the whole computer's, and which not every computer has: disks in it are served by
FUSE."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hotset.core.machines.base import Command, Result
from hotset.core.machines.local import Local

_FOLDERS = (
    "/etc/hotset",
    "/run/hotset",
    "/dev/hotset",
    "/etc/udev/rules.d",
    "/usr/local/lib/hotset",
    "/etc/modprobe.d",
)
_OPEN = """
for one in "$@"; do mkdir -p "$one" && mount -t tmpfs none "$one" || exit 1; done
echo install ublk_drv /bin/false > /etc/modprobe.d/hotset.conf
[ ! -e /dev/ublk-control ] || mount --bind /dev/null /dev/ublk-control || exit 1
echo open
exec sleep infinity
"""


class Enclosed(Local):
    """Commands in that namespace."""

    def __init__(self, keeper: int, *, network: bool = False) -> None:
        super().__init__()
        spaces = ["--mount=/proc/{}/ns/mnt", *(["--net=/proc/{}/ns/net"] if network else [])]
        names = (one.format(keeper) for one in spaces)
        self.enter: tuple[str, ...] = ("nsenter", *names, "--wd=/")

    def without_mounts(self) -> Enclosed:
        """The same, as a container has it: its root may not mount anything."""
        other = copy(self)
        other.enter = (*self.enter, "setpriv", "--bounding-set=-sys_admin", "--")
        return other

    def execute(self, command: Command) -> Result:
        argv = command.argv
        if command.user is not None:
            argv = ("runuser", "-u", command.user, "--", *argv)
        done = super().execute(replace(command, argv=(*self.enter, *argv), user=None))
        return replace(done, argv=command.argv)

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        return super().stream((*self.enter, *argv))

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        script = 'cp "$3" "$1" && chmod "$2" "$1"'
        self.run(["sh", "-c", script, "put", str(target), f"{mode:o}", str(source)])

    def get(self, source: PurePosixPath, target: Path) -> None:
        target.write_text(self.run(["cat", str(source)]).stdout)


@contextmanager
def enclosed(*more: str, network: bool = False) -> Iterator[Enclosed]:
    """The machine; its engines must have ended before the context does.

    :param more: folders that it has of its own besides.
    :param network: it has one of its own, too, of which nobody else hears.
    """
    argv = ["unshare", "--mount", "--propagation", "private", *(["--net"] if network else [])]
    argv += ["sh", "-c", _OPEN, "open", *_FOLDERS, *more]
    keeper = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "open\n"
        yield Enclosed(keeper.pid, network=network)
    finally:
        keeper.kill()
        keeper.wait()
