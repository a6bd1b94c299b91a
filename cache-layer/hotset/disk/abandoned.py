"""Disks that were detached from a flash that could not be asked.

Should it come back, its writes are older than what the origin holds by then, and are never used.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

from .cache_device import Card, Disk

_FILE = PurePosixPath("/etc/hotset/abandoned")


def add(machine: Machine, card: Card, disk: Disk) -> None:
    line = _line(card, disk)
    known = _lines(machine)
    if card.uuid and line not in known:
        machine.replace("".join(f"{one}\n" for one in [*known, line]), _FILE, 0o600)


def has(machine: Machine, card: Card, disk: Disk) -> bool:
    return _line(card, disk) in _lines(machine)


def _line(card: Card, disk: Disk) -> str:
    return f"{card.uuid} {disk.identity or disk.name}"


def _lines(machine: Machine) -> list[str]:
    return machine.run(["cat", str(_FILE)], check=False).stdout.splitlines()
