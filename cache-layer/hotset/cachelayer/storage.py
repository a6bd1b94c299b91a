"""Slow storage: the disk that the database suffers from, and the iSCSI link to it.

A modelled one is ``flashdev serve`` (a FUSE file with a device model) exported by tgtd, logged
into by the machine over real iSCSI. A real one is a device the user names by id.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import EnvironmentLacksError, Machine, missing
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.units import Bytes

IQN = "iqn.2026-11.hotset:slow"
_DISK_NAME = "disk"
_REMOTE_FLASHDEV = PurePosixPath("/usr/local/bin/flashdev")
_START_LIMIT_S = 20.0
_LOGIN_LIMIT_S = 40.0
_COPY_TIMEOUT_S = 3600.0


class SlowStorage(Protocol):
    """The origin of the tier, as the machine sees it."""

    def attach(self, takedown: Takedown) -> PurePosixPath:
        """Make the disk appear on the machine; ``takedown`` holds how it goes away again."""

    def restore(self, image: Path) -> None:
        """Put a saved disk image on it (only while it is not attached)."""


@dataclass(frozen=True, slots=True)
class Portal:
    """An iSCSI portal: its address as the machine sees it, and how host daemons get there.

    :param enter: argv prefix that puts a host daemon into the lab's network ([] = the host's own).
    """

    listen: str
    reach: str
    port: int
    enter: tuple[str, ...] = ()


def flashdev(local: Local) -> Path:
    """The ``flashdev`` program: HOTSET_FLASHDEV, this checkout's release build, or PATH.

    :raises EnvironmentLacksError: it is not built.
    """
    crate = Path(__file__).resolve().parents[2] / "flashdev"
    named = os.environ.get("HOTSET_FLASHDEV")
    for candidate in (Path(named) if named else None, crate / "target/release/flashdev",
                      local.which("flashdev")):  # fmt: skip
        if candidate is not None and candidate.exists():
            return candidate
    raise EnvironmentLacksError("flashdev is not built: run `make build` in hotset's folder")


def flashdev_on(machine: Machine) -> str:
    """The ``flashdev`` program on a machine, put there if need be."""
    program = flashdev(Local())
    if machine.kind == "local":
        return str(program)
    if machine.run(["test", "-x", str(_REMOTE_FLASHDEV)], check=False).rc != 0:
        machine.put(program, _REMOTE_FLASHDEV, 0o755)
    return str(_REMOTE_FLASHDEV)


def copy(
    machine: Machine, words: Sequence[str], on_bytes: Callable[[Bytes], None] = lambda _: None
) -> float:
    """``flashdev copy`` on a machine, where reads and writes overlap; returns its seconds.

    :param words: ``--from DEVICE [--to DEVICE] [--bytes N]``.
    """

    def on_line(line: str) -> None:
        word, _, figure = line.partition(" ")
        if word == "copied":
            on_bytes(Bytes(int(figure)))

    argv = [flashdev_on(machine), "copy", *words]
    result = machine.run(argv, timeout_s=_COPY_TIMEOUT_S, on_line=on_line)
    return float(json.loads(result.stdout.splitlines()[-1])["seconds"])


class Target:
    """tgtd, serving iSCSI for as long as the lab stands."""

    def __init__(self, local: Local, portal: Portal, folder: Path) -> None:
        self.portal = portal
        self._local = local
        self._folder = folder
        # Its own control socket: no clash with a tgtd that this computer runs for others.
        self._env = ("env", f"TGT_IPC_SOCKET={folder}/tgtd.sock")

    def start(self, takedown: Takedown) -> None:
        """:raises EnvironmentLacksError: tgtd is missing or its port is taken."""
        for name in ("tgtd", "tgtadm"):
            if self._local.which(name) is None:
                raise missing("this computer", [name])
        log = self._folder / "tgtd.log"
        process = self._local.spawn(self.daemon_argv(), log)
        takedown.process("iSCSI target", process.pid)
        deadline = time.monotonic() + _START_LIMIT_S
        while self._admin("--op", "show", "--mode", "target", check=False) != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                words = log.read_text(errors="replace").strip()[-600:]
                raise EnvironmentLacksError(
                    f"the iSCSI target did not start on {self.portal.listen}:{self.portal.port}"
                    f" (port taken?): {words}"
                )
            time.sleep(0.1)

    def daemon_argv(self) -> list[str]:
        portal = f"portal={self.portal.listen}:{self.portal.port}"
        pid_file = f"{self._folder}/tgtd.pid"
        tgtd = ("tgtd", "-f", "-C", "7", "-p", pid_file, "--iscsi", portal)
        return [*self.portal.enter, *self._env, *tgtd]

    def export(self, file: Path, takedown: Takedown) -> None:
        """Offer a file as LUN 1.

        ``--bstype aio``: the default store has 16 threads, too few to fill a disk's queue.
        """
        self._admin("--op", "new", "--mode", "target", "--tid", "1", "-T", IQN)
        takedown.call(
            "withdraw the iSCSI target",
            lambda: self._admin("--op", "delete", "--mode", "target", "--tid", "1", "--force"),
        )
        self._admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1",
                    "--bstype", "aio", "-b", str(file))  # fmt: skip
        self._admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")

    def _admin(self, *words: str, check: bool = True) -> int:
        argv = [*self._env, "tgtadm", "-C", "7", "--lld", "iscsi", *words]
        return self._local.run(argv, check=check, timeout_s=20).rc


class ModelledStorage:
    """A modelled disk behind iSCSI."""

    def __init__(
        self,
        local: Local,
        machine: Machine,
        target: Target,
        model: dict[str, Any] | str,
        size: Bytes,
        time_scale: float,
        folder: Path,
    ) -> None:
        """:param model: a built-in model's name, or its JSON form (see ``flashdev models``)."""
        self._local = local
        self._machine = machine
        self._target = target
        self._model = model
        self._size = size
        self._time_scale = time_scale
        self._folder = folder
        self._backing = folder / "slow.img"

    def restore(self, image: Path) -> None:
        if image.stat().st_size > self._size:
            raise ValueError(
                f"the database image ({Bytes(image.stat().st_size)}) is larger than the origin"
                f" (storage.size = {self._size}): enlarge storage.size"
            )
        self._local.run(["cp", "--sparse=always", "--", str(image), str(self._backing)],
                        timeout_s=900)  # fmt: skip

    def attach(self, takedown: Takedown) -> PurePosixPath:
        takedown.command(f"remove {self._backing.name}", ["rm", "-f", str(self._backing)])
        file = self._serve(takedown)
        self._target.export(file, takedown)
        return self._login(takedown)

    def serve_argv(self) -> list[str]:
        mount = self._folder / "slow"
        return [
            str(flashdev(self._local)), "serve", "--model", self._model_argument(),
            "--backing", str(self._backing), "--mount", str(mount), "--name", _DISK_NAME,
            "--time-scale", f"{self._time_scale:g}",
        ]  # fmt: skip

    def _model_argument(self) -> str:
        if isinstance(self._model, str):
            return self._model
        file = self._folder / "model.json"
        file.write_text(json.dumps(self._model))
        return str(file)

    def _serve(self, takedown: Takedown) -> Path:
        mount, log = self._folder / "slow", self._folder / "flashdev.log"
        mount.mkdir(exist_ok=True)
        self._local.run(["truncate", "-s", str(int(self._size)), str(self._backing)])
        argv = self.serve_argv()
        unmount = ["umount", "-l"] if os.geteuid() == 0 else ["fusermount3", "-u", "-z"]
        takedown.leftover("unmount the slow disk", [*unmount, "-q", str(mount)])
        process = self._local.spawn(argv, log)
        takedown.process("slow disk", process.pid)
        deadline = time.monotonic() + _START_LIMIT_S
        while "ready " not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                words = log.read_text(errors="replace").strip()[-600:]
                raise EnvironmentLacksError(f"the modelled disk did not start: {words}")
            time.sleep(0.02)
        return mount / _DISK_NAME

    def _login(self, takedown: Takedown) -> PurePosixPath:
        portal = f"{self._target.portal.reach}:{self._target.portal.port}"
        node = ["iscsiadm", "-m", "node", "-T", IQN, "-p", portal]
        self._machine.run(["modprobe", "iscsi_tcp"])
        # Already running is no error worth a word: the next command would say if it were not.
        self._machine.run(["iscsid"], check=False)
        self._machine.run([*node, "-o", "new"])
        self._machine.run([*node, "--login"], timeout_s=60)

        def log_out() -> None:
            self._machine.run([*node, "--logout"], timeout_s=60)
            self._machine.run([*node, "-o", "delete"])

        takedown.call("log out of the slow disk", log_out)
        device = PurePosixPath(f"/dev/disk/by-path/ip-{portal}-iscsi-{IQN}-lun-1")
        wait_for_device(self._machine, device)
        return device


def wait_for_device(machine: Machine, device: PurePosixPath) -> None:
    """:raises EnvironmentLacksError: the device node did not appear in time."""
    deadline = time.monotonic() + _LOGIN_LIMIT_S
    while machine.run(["test", "-b", str(device)], check=False).rc != 0:
        if time.monotonic() > deadline:
            raise EnvironmentLacksError(f"{device} did not appear on {machine.kind}")
        machine.run(["udevadm", "settle", "--timeout=10"], check=False)
        time.sleep(0.1)


def expected(local: Local, model: dict[str, Any] | str, words: Sequence[str]) -> dict[str, Any]:
    """What the model promises (``flashdev expect``), as its JSON."""
    argument = model if isinstance(model, str) else json.dumps(model)
    result = local.run([str(flashdev(local)), "expect", "--model", argument, *words, "--json"])
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded
