"""The devices of a tier, which ``hotset-boot`` makes, changes and takes down: nothing else knows
their tables and their order (``cache-layer/crates/boot/src/devices``)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from hotset.block import programs
from hotset.block.devicemapper import IN_USER_SPACE, Place, active_names, device_size
from hotset.block.programs import InUseError
from hotset.core.errors import HotsetError, RequestError
from hotset.core.machines import copies
from hotset.core.machines.base import (
    CommandError,
    Machine,
    PrerequisiteMissingError,
    Result,
    missing,
    to_its_end,
)
from hotset.core.machines.local import Local
from hotset.core.machines.programs import PROGRAMS

from .base import MetadataDamagedError, TierFailedError, TierKind, TierSpec

Action = Literal[
    "parts",
    "open",
    "make",
    "empty",
    "unserved",
    "remove",
    "reload",
    "follow-origin",
    "follow-cache",
    "drop-cache",
    "install",
    "uninstall",
    "cache-options",
    "may-be-dirty",
]
"""Actions of ``hotset-boot devices``."""
_LIMIT_S, _REMOVE_LIMIT_S, _SWAP_LIMIT_S = 1800.0, 180.0, 300.0
_STOP_LIMIT_S = 1000.0
"""An engine writes its metadata first."""
_SWAPS = frozenset(("reload", "follow-origin", "follow-cache"))
"""Half-way through one of those a device is suspended, or has the table of another moment."""


class EngineRefusedError(RequestError):
    """The engine does not take what the label says; the message says why."""


_MISSING = 7
_ERRORS: dict[int, type[HotsetError]] = {
    5: InUseError,
    6: MetadataDamagedError,
    8: EngineRefusedError,
}
"""Errors by the exit code of ``hotset-boot`` (boot/src/main.rs)."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of one tier.

    :ivar identity: the disk's UUID; bcache's cache set has it, and an engine's metadata.
    """

    machine: Machine
    kind: TierKind
    spec: TierSpec
    place: Place
    identity: str

    def perform(self, action: Action) -> str:
        """Have that done; returns what is to be said of it, mostly nothing.

        :raises InUseError: somebody has the accelerated device.
        :raises MetadataDamagedError: the metadata cannot be used.
        :raises PrerequisiteMissingError: the kernel lacks the cache, or the machine a program.
        :raises EngineRefusedError: its engine does not take what it is given.
        """
        argv, limit_s = [programs.boot(self.machine), "devices", action], _LIMIT_S
        if action in _SWAPS:
            argv, limit_s = to_its_end(argv), _SWAP_LIMIT_S
        elif action == "remove":
            limit_s = _STOP_LIMIT_S if self.kind == "userspace" else _REMOVE_LIMIT_S
        done = self.machine.run(
            argv, stdin=_render(self.describe()), check=False, timeout_s=limit_s
        )
        if done.rc:
            raise self._failure(done)
        return self._rehearse(action) if done.made_up else done.stdout.strip()

    def describe(self, **more: object) -> dict[str, Any]:
        """The tier as the program takes it, as JSON; with ``facts`` for a dry run."""
        described: dict[str, Any] = {
            "kind": self.kind,
            "identity": self.identity,
            "spec": asdict(self.spec),
            "place": asdict(self.place),
            **more,
        }
        if self.kind == "userspace":
            described["engine_program"] = copies.install(self.machine, programs.find_engine())
            described["own_program"] = programs.boot(self.machine)
        return described

    def _failure(self, done: Result) -> Exception:
        words = done.stderr.strip().partition(": ")[2]
        if done.rc in _ERRORS:
            return _ERRORS[done.rc](words)
        if done.rc == _MISSING:
            program = words.removesuffix(" is not installed")
            if program in PROGRAMS:
                return missing(self.machine.kind, [program])
            return PrerequisiteMissingError(words, IN_USER_SPACE)
        if self.kind == "userspace":
            return TierFailedError(words)
        return CommandError(self.machine.kind, done)

    def _rehearse(self, action: Action) -> str:
        """In a dry run: show the commands that the program would run."""
        facts: dict[str, Any] = {"origin_size": 0, "sector_size": 512, "active": []}
        if self.kind != "userspace":
            argv = ["blockdev", "--getss", str(self.place.origin), str(self.place.flash)]
            sizes = self.machine.run(argv, check=False).stdout.split()
            facts = {
                "origin_size": device_size(self.machine, self.place.origin),
                "sector_size": max((int(size) for size in sizes if size.isdigit()), default=512),
                "active": sorted(active_names(self.machine)),
            }
        return rehearse(action, self.describe(facts=facts), self.machine)


def rehearse(action: str, described: dict[str, Any], machine: Machine) -> str:
    """Tell a machine that shows them the commands that ``hotset-boot`` would run; returns what it
    would say.

    :param described: the tier, with the facts that a dry run needs.
    """
    argv = [str(programs.find_boot()), "devices", action, "--dry-run"]
    answer = ""
    lines = Local().run(argv, stdin=_render(described)).stdout.splitlines()
    for step in map(json.loads, lines):
        if "argv" in step:
            machine.run(step["argv"], stdin=step["stdin"] or None)
        elif "path" in step:
            machine.replace(step["text"], PurePosixPath(step["path"]), step["mode"])
        else:
            answer = step["answer"]
    return answer


def _render(described: dict[str, Any]) -> str:
    return json.dumps(described, default=str)
