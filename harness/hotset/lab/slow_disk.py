"""Slow storage: the disk that the database suffers from, and the way from it to the machine.

A modelled one is ``flashdev serve`` (a FUSE file with a device model). Kernel tiers see it through
real iSCSI (tgtd here, open-iscsi on the machine); on this computer's own kernel, where there is
no initiator to log in with, a loop device shows it and the model's own link stands for the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Protocol

from hotset.block import devices, flashdev, loop, programs
from hotset.block.flashdev import Model
from hotset.block.io_counters import KernelDevice, ServedDevice, Source
from hotset.core.clock import wait_until
from hotset.core.machines.base import Machine, PrerequisiteMissingError, Result, missing
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes

IQN = "iqn.2026-11.hotset:slow"
DISK_NAME = "disk"
_START_LIMIT_S = 20.0
_LOGIN_LIMIT_S = 40.0


class Transport(Protocol):
    """How a file of this computer becomes a disk of the machine."""

    is_here: bool
    """True if the machine shares this computer's files, and so reaches a control socket."""

    @property
    def description(self) -> str:
        """For reports: ``behind iSCSI``."""

    def show(self, file: Path, cleanup: Cleanup) -> PurePosixPath:
        """The disk's path on the machine; ``cleanup`` holds how it goes away again."""


@dataclass(frozen=True, slots=True)
class Portal:
    """An iSCSI portal: its address as the machine sees it, and how host daemons get there.

    :param enter: argv prefix that puts a host daemon into the lab's network ([] = the host's own).
    """

    listen: str
    reach: str
    port: int
    enter: tuple[str, ...] = ()


class Target:
    """tgtd, serving iSCSI for as long as the lab stands."""

    def __init__(self, local: Local, portal: Portal, folder: Path) -> None:
        self.portal = portal
        self._local = local
        self._folder = folder
        self._taken: set[int] = set()
        # Its own control socket: no clash with a tgtd that this computer runs for others.
        self._env = ("env", f"TGT_IPC_SOCKET={folder}/tgtd.sock")

    def start(self, cleanup: Cleanup) -> None:
        """:raises PrerequisiteMissingError: tgtd is missing or its port is taken."""
        for name in ("tgtd", "tgtadm"):
            if self._local.which(name) is None:
                raise missing("this computer", [name])
        log = self._folder / "tgtd.log"
        process = self._local.spawn(self.daemon_argv(), log)
        # It ignores SIGTERM, and has nothing to tidy up.
        cleanup.process("iSCSI target", process.pid, at_once=True)

        def portals() -> Result:
            return self._admin("--op", "show", "--mode", "portal", check=False)

        if not wait_until(
            lambda: portals().rc == 0, _START_LIMIT_S, 0.1, lambda: process.poll() is not None
        ):
            words = log.read_text(errors="replace").strip()[-600:]
            raise PrerequisiteMissingError(f"the iSCSI target did not start: {words}")
        # Where it cannot bind its port it runs on without, and a login may find somebody else's.
        address = f"{self.portal.listen}:{self.portal.port}"
        if f"Portal: {address}," not in portals().stdout:
            raise PrerequisiteMissingError(
                f"the iSCSI target cannot listen on {address}, somebody else does: end that"
                " (`ss -ltnp` names it) and run again"
            )

    def daemon_argv(self) -> list[str]:
        portal = f"portal={self.portal.listen}:{self.portal.port}"
        pid_file = f"{self._folder}/tgtd.pid"
        tgtd = ("tgtd", "-f", "-C", "7", "-p", pid_file, "--iscsi", portal)
        return [*self.portal.enter, *self._env, *tgtd]

    def export(self, file: Path, cleanup: Cleanup) -> str:
        """Offer a file as LUN 1 of a target of its own; returns the target's name.

        ``--bstype aio``: the default store has 16 threads, too few to fill a disk's queue.
        """
        number = next(free for free in count(1) if free not in self._taken)
        self._taken.add(number)
        tid, iqn = str(number), IQN if number == 1 else f"{IQN}{number}"
        self._admin("--op", "new", "--mode", "target", "--tid", tid, "-T", iqn)

        def withdraw() -> None:
            self._admin("--op", "delete", "--mode", "target", "--tid", tid, "--force")
            self._taken.discard(number)

        cleanup.call("withdraw the iSCSI target", withdraw)
        self._admin(
            "--op",
            "new",
            "--mode",
            "logicalunit",
            "--tid",
            tid,
            "--lun",
            "1",
            "--bstype",
            "aio",
            "-b",
            str(file),
        )
        self._admin("--op", "bind", "--mode", "target", "--tid", tid, "-I", "ALL")
        return iqn

    def _admin(self, *words: str, check: bool = True) -> Result:
        argv = [*self._env, "tgtadm", "-C", "7", "--lld", "iscsi", *words]
        return self._local.run(argv, check=check, timeout_s=20)


class Iscsi:
    """Real iSCSI: exported by the lab's target, logged into by the machine."""

    description = "behind iSCSI"
    is_here = False

    def __init__(self, machine: Machine, target: Target) -> None:
        self._machine = machine
        self._target = target

    def show(self, file: Path, cleanup: Cleanup) -> PurePosixPath:
        iqn = self._target.export(file, cleanup)
        device = self.log_in(iqn)

        def log_out() -> None:
            self._machine.run(["iscsiadm", *self._node(iqn), "--logout"], timeout_s=60)
            self._machine.run(["iscsiadm", *self._node(iqn), "-o", "delete"])

        cleanup.call("log out of the slow disk", log_out)
        wait_for_device(self._machine, device)
        return device

    def log_in(self, iqn: str) -> PurePosixPath:
        """Log into a target, also after a power cut; returns the path that its disk will have."""
        self._machine.run(["modprobe", "iscsi_tcp"])
        # Already running is no error worth a word: the next command would say if it were not.
        self._machine.run(["iscsid"], check=False)
        self._machine.run(["iscsiadm", *self._node(iqn), "-o", "new"])
        self._machine.run(["iscsiadm", *self._node(iqn), "--login"], timeout_s=60)
        return PurePosixPath(f"/dev/disk/by-path/ip-{self._portal}-iscsi-{iqn}-lun-1")

    @property
    def _portal(self) -> str:
        return f"{self._target.portal.reach}:{self._target.portal.port}"

    def _node(self, iqn: str) -> list[str]:
        return ["-m", "node", "-T", iqn, "-p", self._portal]


class LoopDevice:
    """A loop device of this computer; its link is the model's."""

    description = "with its network link modelled as well"
    is_here = True

    def __init__(self, local: Local) -> None:
        self._local = local

    def show(self, file: Path, cleanup: Cleanup) -> PurePosixPath:
        return loop.attach(self._local, file, cleanup)


class SlowDisk(Protocol):
    """The origin of a tier, or a slow disk beside it."""

    @property
    def description(self) -> str:
        """Description of the disk, for reports."""

    def restore(self, image: Path, cleanup: Cleanup) -> None:
        """Put a saved disk image on it (only while it is not attached)."""

    def attach(self, cleanup: Cleanup) -> PurePosixPath:
        """Make the disk appear on the machine; ``cleanup`` holds how it goes away again."""

    def counter_source(self, machine: Machine, name: str) -> Source:
        """Where the counters of the attached disk come from, under this name."""


class RealDisk:
    """A disk that the user named. Everything on it is written over."""

    def __init__(self, machine: Machine, device: PurePosixPath) -> None:
        self.device = device
        self._machine = machine
        self._image: Path | None = None

    @property
    def description(self) -> str:
        return f"{self.device}, as fast as it is"

    def restore(self, image: Path, cleanup: Cleanup) -> None:  # noqa: ARG002 - it stays
        self._image = image

    def attach(self, cleanup: Cleanup) -> PurePosixPath:  # noqa: ARG002 - it is there
        if self._image is not None:
            words = ["--from", str(self._image), "--to", str(self.device)]
            programs.copy(self._machine, words)
        return self.device

    def counter_source(self, machine: Machine, name: str) -> Source:
        return KernelDevice.find(machine, name, self.device)


class ModelledStorage:
    """A modelled disk: the origin of the tier, as the machine sees it."""

    def __init__(
        self,
        local: Local,
        way: Transport,
        model: Model,
        size: Bytes,
        folder: Path,
        name: str = "slow",
    ) -> None:
        """:param name: of its files in the lab's folder; no two disks have the same."""
        self.way = way
        self.model = model
        self.size = size
        self.name = name
        self.backing = folder / f"{name}.img"
        self._local = local
        self._folder = folder
        self._device: PurePosixPath | None = None

    @property
    def description(self) -> str:
        return f"modelled disk {self.way.description}"

    def restore(self, image: Path, cleanup: Cleanup) -> None:
        if image.stat().st_size > self.size:
            raise ValueError(
                f"the database image ({Bytes(image.stat().st_size)}) is larger than the origin"
                f" (storage.size = {self.size}): enlarge storage.size"
            )
        self._remove_in_the_end(cleanup)
        self._local.run(
            ["cp", "--sparse=always", "--", str(image), str(self.backing)], timeout_s=900
        )

    def lay_out(self, cleanup: Cleanup) -> Path:
        """The backing file in its full size; it is removed in the end."""
        self._remove_in_the_end(cleanup)
        self._local.run(["truncate", "-s", str(int(self.size)), str(self.backing)])
        return self.backing

    def _remove_in_the_end(self, cleanup: Cleanup) -> None:
        cleanup.command(f"remove {self.backing.name}", ["rm", "-f", str(self.backing)])

    def model_words(self, option: str) -> list[str]:
        """The model as ``flashdev`` takes it."""
        return [option, flashdev.model_argument(self.model, self._folder, self.name)]

    def attach(self, cleanup: Cleanup) -> PurePosixPath:
        backing, mount = self.lay_out(cleanup), self._folder / self.name
        # Volatile: the disk is thrown away after the run, and this computer's own disk must not
        # add its flushes to the model's.
        words = [
            "serve",
            *self.model_words("--model"),
            "--backing",
            str(backing),
            "--name",
            DISK_NAME,
            "--control",
            str(self._control),
            "--volatile",
        ]
        log = self._folder / f"{self.name}.log"
        flashdev.serve(self._local, words, mount, log, cleanup, f"{self.name} disk")
        self._device = self.way.show(mount / DISK_NAME, cleanup)
        return self._device

    @property
    def _control(self) -> Path:
        return self._folder / f"{self.name}.sock"

    def counter_source(self, machine: Machine, name: str) -> Source:
        if self.way.is_here:
            return ServedDevice.ask(machine, name, PurePosixPath(self._control))
        assert self._device is not None, "the disk is not attached"
        return KernelDevice.find(machine, name, self._device)


def wait_for_device(machine: Machine, device: PurePosixPath) -> None:
    """:raises PrerequisiteMissingError: the device node did not appear in time."""

    def has_appeared() -> bool:
        if devices.type_of(machine, device) == "device":
            return True
        machine.run(["udevadm", "settle", "--timeout=10"], check=False)
        return False

    if not wait_until(has_appeared, _LOGIN_LIMIT_S, 0.1):
        raise PrerequisiteMissingError(f"{device} did not appear on {machine.kind}")
