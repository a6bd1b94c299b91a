"""Control of a running bcache device of the kernel through sysfs. (``hotset-boot`` makes and
stops it.)

Attributes of drivers/md/bcache/sysfs.c. Names such as ``dm-3`` and ``bcache0`` change from boot to
boot, so they are asked for each time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.core.clock import wait_until
from hotset.core.machines.base import Machine, PrerequisiteMissingError

from ..base import MetadataDamagedError
from .sysfs import IN_ATTRIBUTES, Key, parse_key

SYS, _DEBUG = PurePosixPath("/sys/fs/bcache"), PurePosixPath("/sys/kernel/debug")
_POLL_S = 0.1
_START_LIMIT_S = 20.0
_SET_LIMIT_S = 30.0
"""None takes a second, unless the flash hangs: its waiters hold the kernel's lock."""

_SET = """\
shift
for pair; do echo "${pair#*=}" > "${pair%%=*}"; done
"""


class Kernel:
    """One backing device and its cache set, as the kernel has them."""

    def __init__(self, machine: Machine, backing: str, set_uuid: str) -> None:
        """:param backing: the backing device's device-mapper name."""
        self._machine = machine
        self._backing = backing
        self._set = SYS / set_uuid

    def wait(self, ready: Callable[[], bool], otherwise: str) -> None:
        """:raises MetadataDamagedError: not within the limit; shows the kernel's last words."""
        if not wait_until(ready, _START_LIMIT_S, _POLL_S):
            log = self._machine.run(["dmesg"], check=False).stdout.splitlines()
            words = [line for line in log if "bcache" in line][-3:]
            raise MetadataDamagedError(f"{otherwise}; the kernel says: {' / '.join(words)}")

    def device(self) -> PurePosixPath | None:
        """``/dev/bcacheN``, which bcache gives a running backing device; None while it has none."""
        link = self.attributes() / "dev"
        name = PurePosixPath(self._machine.run(["readlink", "-f", str(link)]).stdout.strip()).name
        return None if name == link.name else PurePosixPath("/dev") / name

    def attributes(self) -> PurePosixPath:
        """The folder of the backing device's attributes."""
        argv = ["dmsetup", "info", "--columns", "--noheadings", "-o", "blkdevname", self._backing]
        return PurePosixPath("/sys/block") / self._machine.run(argv).stdout.strip() / "bcache"

    def set(self, *pairs: tuple[str, str | int]) -> None:
        """Set attributes of the backing device, in their order."""
        words = [f"{attribute}={value}" for attribute, value in pairs]
        argv = ["sh", "-ec", IN_ATTRIBUTES + _SET, "set", self._backing, *words]
        self._machine.run(argv, timeout_s=_SET_LIMIT_S)

    def get(self, *attributes: str) -> list[str]:
        """Read attributes; empty where there is none of that name."""
        folder = self.attributes()
        argv = ["grep", "-sH", "", *(str(folder / attribute) for attribute in attributes)]
        lines = self._machine.run(argv, check=False, timeout_s=_SET_LIMIT_S).stdout.splitlines()
        values = {path: value for path, _, value in (line.partition(":") for line in lines)}
        return [values.get(str(folder / attribute), "") for attribute in attributes]

    def shows_keys(self) -> bool:
        """True if the kernel shows what is cached: without debugfs, or in lockdown, it does not.

        debugfs is mounted for it where it is not.
        """
        keys = _DEBUG / "bcache"
        if not self._exists(keys):
            self._machine.run(["mount", "-t", "debugfs", "debugfs", str(_DEBUG)], check=False)
        return self._exists(keys)

    def list_keys(self) -> list[Key]:
        """All keys of the cache set.

        :raises PrerequisiteMissingError: the kernel does not show them.
        """
        if not self.shows_keys():
            raise PrerequisiteMissingError(
                "what bcache holds cannot be read: this machine's kernel has no debugfs, or does"
                " not let it be used (lockdown)"
            )
        dump = self._machine.run(
            ["cat", str(_DEBUG / "bcache" / f"bcache-{self._set.name}")]
        ).stdout
        # Written while the cache works: a line may be seen twice, which merging takes care of.
        return [key for line in dump.splitlines() if (key := parse_key(line)) is not None]

    def _exists(self, path: PurePosixPath) -> bool:
        listed = self._machine.run(["ls", str(path.parent)], check=False).stdout
        return path.name in listed.split()
