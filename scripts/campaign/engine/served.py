"""The programs of a life of the engine: two devices that `flashdev serve` serves, and
`hotset-engine tier` over them, in a mount namespace of their own.

The kernel numbers no drives of FUSE's, so /sys/dev/block is ours there, and so is the number of the
computer's start.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotset.block import programs
from hotset.core.clock import BOOT_ID
from hotset.core.machines.local import Local

_CLONE_NEWNS, _MS_BIND, _MS_PRIVATE_BELOW = 0x20000, 0x1000, 0x44000
_DRIVES = Path("/sys/dev/block")
_LIMIT_S = 60.0
NOT_STARTED = "it was checked, and does not start"
"""How an engine's refusal begins that a look had not told."""
MODEL = {
    "name": "volatile",
    "device": {
        "ssd": {
            "power_loss_protection": False,
            **dict.fromkeys(("read_latency_us", "write_latency_us", "program_us"), 0),
            **dict.fromkeys(("read_iops", "write_iops"), 10_000_000),
        }
    },
}


def enclose(folder: Path) -> Path:
    """Have this process and its children a mount namespace of their own; returns the file that says
    which start of the computer it is."""
    libc = ctypes.CDLL(None, use_errno=True)
    boot = folder / "boot_id"
    boot.write_text(f"{uuid.uuid4()}\n")
    if (
        libc.unshare(_CLONE_NEWNS)
        or libc.mount(b"none", b"/", None, _MS_PRIVATE_BELOW, None)
        or libc.mount(b"tmpfs", bytes(_DRIVES), b"tmpfs", 0, None)
        or libc.mount(bytes(boot), bytes(BOOT_ID), None, _MS_BIND, None)
    ):
        raise OSError(ctypes.get_errno(), "no mount namespace: run it as root")
    return boot


def ask(socket: Path, question: dict[str, Any]) -> dict[str, Any]:
    """The last of what a control socket answers; empty: it refuses, or nobody is there."""
    done = subprocess.run(
        [_program(programs.ENGINE), "ask", socket, json.dumps(question)],
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    lines = done.stdout.splitlines()
    answer: dict[str, Any] = json.loads(lines[-1]) if lines and not done.returncode else {}
    return answer


def _program(name: str) -> Path:
    return programs.find(Local(), name)


def _ready(process: subprocess.Popen[str]) -> bool:
    """Whether it says so, rather than end."""
    assert process.stdout is not None
    if not select.select([process.stdout], [], [], _LIMIT_S)[0]:
        process.kill()
    return process.stdout.readline().startswith("ready ")


def _unmount(mount: Path) -> None:
    subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)


@dataclass
class Drive:
    """A modelled device that stores nothing but by a flush."""

    name: str
    folder: Path
    bytes: int
    number: int = 0
    process: subprocess.Popen[str] | None = None

    @property
    def file(self) -> Path:
        return self.folder / self.name / "disk"

    def begin(self) -> None:
        """Serve it, as the kernel sees a drive that was plugged in."""
        backing, model = (self.folder / f"{self.name}.{end}" for end in ("backing", "json"))
        model.write_text(json.dumps(MODEL))
        with backing.open("ab") as file:
            file.truncate(self.bytes)
        self.file.parent.mkdir(exist_ok=True)
        words: list[str | Path] = ["serve", "--volatile", "--die-with-parent"]
        words += ["--model", model, "--backing", backing]
        words += ["--mount", self.file.parent, "--control", self._socket]
        self.process = subprocess.Popen(
            [_program(programs.LAB), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        if not _ready(self.process):
            raise RuntimeError(f"{self.name} is not served")
        self.ask("hold")
        self.is_new()

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_LIMIT_S)
            self.process = None
            _unmount(self.file.parent)

    def is_new(self) -> None:
        """As the kernel sees it from now on."""
        self.number += 1
        device = self.file.stat().st_dev
        folder = _DRIVES / f"{os.major(device)}:{os.minor(device)}"
        folder.mkdir(exist_ok=True)
        (folder / "diskseq").write_text(f"{self.number}\n")

    def ask(self, what: str, **words: int) -> dict[str, Any]:
        answer = ask(self._socket, {what: words})
        if not answer:
            raise RuntimeError(f"the {self.name} does not answer: {what}")
        return answer

    @property
    def _socket(self) -> Path:
        return self.folder / f"{self.name}.socket"


@dataclass
class Engine:
    """`hotset-engine tier` over two drives.

    :ivar options: those that an administrator may change.
    """

    folder: Path
    flash: Drive
    origin: Drive
    metadata: int
    cache: int
    block: int
    options: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    @property
    def data(self) -> Path:
        return self.folder / "mount" / "data"

    @property
    def witness(self) -> Path:
        return self.folder / "witness"

    @property
    def given_up(self) -> Path:
        return self.folder / "given-up"

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        """One of its other programs."""
        argv: list[str | Path] = [_program(programs.ENGINE), verb, *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)

    def format(self) -> None:
        words = ["--flash", str(self.flash.file), *self._parts()[:2]]
        if message := self.run("format", *words).stderr:
            raise RuntimeError(message)

    def begin(self) -> str:
        """Start it as hotset-boot does; why it does not."""
        checked = self.check()
        if checked.returncode:
            return checked.stderr.strip()
        if _ready(self._launch()):
            return ""
        self.kill()
        return f"{NOT_STARTED}: {self.log()}"

    def begin_for(self, seconds: float) -> None:
        """Kill it while it starts, or soon after."""
        self._launch()
        time.sleep(seconds)
        self.kill()

    def check(self) -> subprocess.CompletedProcess[str]:
        return self.run("tier", *self._options(), "--check")

    def _options(self) -> list[str]:
        served = self.data.parent
        served.mkdir(exist_ok=True)
        words = [*self.words(), "--mount", str(served), "--control", str(self._socket)]
        words += [f"--{name}={value}" for name, value in self.options.items()]
        return [*words, "--discard"] if self.given_up.exists() else words

    def _launch(self) -> subprocess.Popen[str]:
        program = _program(programs.ENGINE)
        argv: list[str | Path] = [program, "tier", "--die-with-parent", *self._options()]
        with (self.folder / "log").open("w") as log:
            self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True)
        return self.process

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self._clean_up()

    def stop(self) -> int:
        """Its exit code."""
        assert self.process is not None
        self.process.terminate()
        try:
            return self.process.wait(_LIMIT_S)
        except subprocess.TimeoutExpired:
            return -1
        finally:
            self.kill()

    def ask(self, what: str, **words: object) -> dict[str, Any]:
        return ask(self._socket, {what: words})

    def state(self) -> str:
        return str(self.ask("counters").get("state", "gone"))

    def wait_for_state(self, *states: str, seconds: float = 5.0) -> bool:
        limit = time.monotonic() + seconds
        while self.state() not in states:
            if time.monotonic() > limit:
                return False
        return True

    def log(self) -> str:
        """The last that it said, but for its counters."""
        lines = (self.folder / "log").read_text().splitlines()
        messages = [line for line in lines if not line.startswith("{")]
        return messages[-1] if messages else ""

    def words(self) -> list[str]:
        """Which cache it is."""
        words = ["--origin", str(self.origin.file), "--origin-id", f"{7:032x}"]
        words += ["--given-up", str(self.given_up), "--witness", str(self.witness)]
        words += ["--flash", str(self.flash.file), *self._parts()]
        words += ["--metadata", str(self.metadata), "--cache", str(self.cache)]
        return [*words, "--block", str(self.block)]

    def parts(self, cache: int) -> list[str]:
        return [f"0:{self.metadata}", f"{self.metadata}:{cache}"]

    def _parts(self) -> list[str]:
        return [word for part in self.parts(self.cache) for word in ("--flash-part", part)]

    def _clean_up(self) -> None:
        if self.process is not None:
            self.process.wait(_LIMIT_S)
            self.process = None
            _unmount(self.data.parent)

    @property
    def _socket(self) -> Path:
        return self.folder / "control"
