"""Disks that were detached from a flash that could not be asked.

Should it come back, its writes are older than what the origin holds by then, and are never used.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

from .flash_devices import AttachedDisk

_FILE = PurePosixPath("/etc/hotset/abandoned")


def add(attached: AttachedDisk) -> None:
    machine, line = attached.machine, _line(attached)
    known = _lines(machine)
    if attached.flash.uuid and line not in known:
        machine.replace("".join(f"{entry}\n" for entry in [*known, line]), _FILE, 0o600)


def has(attached: AttachedDisk) -> bool:
    return _line(attached) in _lines(attached.machine)


def _line(attached: AttachedDisk) -> str:
    disk = attached.disk
    return f"{attached.flash.uuid} {disk.identity or disk.name}"


def _lines(machine: Machine) -> list[str]:
    return machine.run(["cat", str(_FILE)], check=False).stdout.splitlines()
