"""What bcache in the kernel is asked to do by way of sysfs: register, attach, set, stop.

Attributes of drivers/md/bcache/sysfs.c. Names such as ``dm-3`` and ``bcache0`` change from boot to
boot, so they are asked for each time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.cachelayer import flash
from hotset.cachelayer.bcachesys import Key, parse_key
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import MetadataDamagedError, TierFailedError

SYS, _DEBUG = PurePosixPath("/sys/fs/bcache"), PurePosixPath("/sys/kernel/debug")
_POLL_S = 0.1
_START_LIMIT_S = 20.0
_STOP_LIMIT_S = 30.0


class Kernel:
    """One backing device and its cache set, as the kernel has them."""

    def __init__(self, machine: Machine, backing: str, set_uuid: str) -> None:
        """:param backing: the backing device's device-mapper name."""
        self._machine = machine
        self._backing = backing
        self._set = SYS / set_uuid

    def register(self, device: PurePosixPath) -> None:
        """Show bcache a device. udev may have done so, which ``register_quiet`` takes for success;
        what it refuses shows in what follows."""
        argv = ["tee", str(SYS / "register_quiet")]
        self._machine.run(argv, stdin=f"{device}\n", check=False)

    def attach(self) -> None:
        """Attach the backing device to the cache set, once that is there (udev may be at it).

        :raises MetadataDamagedError: bcache refuses.
        """
        argv = ["tee", str(self.attributes() / "attach")]
        self.wait(
            lambda: self._machine.run(argv, stdin=f"{self._set.name}\n", check=False).rc == 0,
            "bcache refuses the cache set",
        )

    def await_device(self) -> None:
        """:raises MetadataDamagedError: bcache does not start the backing device."""
        self.wait(lambda: self.device() is not None, "bcache does not start the device")

    def wait(self, ready: Callable[[], bool], otherwise: str) -> None:
        """:raises MetadataDamagedError: not within the limit; shows the kernel's last words."""
        deadline = time.monotonic() + _START_LIMIT_S
        while not ready():
            if time.monotonic() > deadline:
                log = self._machine.run(["dmesg"], check=False).stdout.splitlines()
                words = [line for line in log if "bcache" in line][-3:]
                raise MetadataDamagedError(f"{otherwise}; the kernel says: {' / '.join(words)}")
            time.sleep(_POLL_S)

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
        folder = self.attributes()
        for attribute, value in pairs:
            self._machine.run(["tee", str(folder / attribute)], stdin=f"{value}\n")

    def get(self, *attributes: str) -> list[str]:
        """What attributes are; empty where there is none of that name."""
        folder = self.attributes()
        return [
            self._machine.run(["cat", str(folder / one)], check=False).stdout.strip()
            for one in attributes
        ]

    def cached_keys(self) -> list[Key]:
        """All keys of the cache set, by debugfs, which is mounted for it where it is not."""
        folder = _DEBUG / "bcache"
        if not self._there(folder):
            self._machine.run(["mount", "-t", "debugfs", "debugfs", str(_DEBUG)])
        dump = self._machine.run(["cat", str(folder / f"bcache-{self._set.name}")]).stdout
        # Written while the cache works: a line may be seen twice, which merging takes care of.
        return [key for line in dump.splitlines() if (key := parse_key(line)) is not None]

    def stop(self) -> None:
        """Let go of the backing device, as far as there is one.

        :raises TierFailedError: it is in use.
        """
        if self._backing in flash.standing(self._machine):
            self._stop(self.attributes())

    def stop_set(self) -> None:
        """Let go of the cache set; raises as :meth:`stop` does."""
        self._stop(self._set)

    def _stop(self, folder: PurePosixPath) -> None:
        if not self._there(folder):
            return
        self._machine.run(["tee", str(folder / "stop")], stdin="1\n", check=False)
        deadline = time.monotonic() + _STOP_LIMIT_S
        while self._there(folder):
            if time.monotonic() > deadline:
                raise TierFailedError(
                    f"bcache does not stop: {folder} is still there; is {self._backing} in use?"
                )
            time.sleep(_POLL_S)

    def _there(self, path: PurePosixPath) -> bool:
        listed = self._machine.run(["ls", str(path.parent)], check=False).stdout
        return path.name in listed.split()
