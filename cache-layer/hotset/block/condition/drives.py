"""The drives and pools that a device lies on, found by ``lsblk``; nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine


class NotKnownError(HotsetError):
    """A device does not tell what it is asked, or nobody could ask it; the message says why."""


@dataclass(frozen=True, slots=True)
class Below:
    """A device below another one. ``type_`` as lsblk has it: disk, part, loop, lvm, raid1, …"""

    name: str
    path: PurePosixPath
    type_: str
    is_last: bool


def below(machine: Machine, device: PurePosixPath) -> list[Below]:
    """A device and all that it lies on, each once, from the top.

    :raises NotKnownError: it is a file, or lsblk does not know it.
    """
    if machine.run(["test", "-f", str(device)], check=False).rc == 0:
        raise NotKnownError(f"{device} is a file: what it lies on is not asked")
    node = machine.run(["readlink", "-f", str(device)], check=False).stdout.strip() or str(device)
    argv = ["lsblk", "--json", "--inverse", "--output", "NAME,PATH,TYPE", node]
    done = machine.run(argv, check=False)
    try:
        trees = json.loads(done.stdout)["blockdevices"]
        by_name = {node.name: node for tree in trees for node in _walk(tree)}
    except (ValueError, KeyError, TypeError):
        message = (done.stderr.strip() or "no answer").splitlines()[0]
        raise NotKnownError(f"what {device} lies on is not known: lsblk says {message!r}") from None
    return list(by_name.values())


def _walk(tree: dict[str, Any]) -> Iterator[Below]:
    children = tree.get("children", ())
    yield Below(tree["name"], PurePosixPath(tree["path"]), tree["type"], not children)
    for child in children:
        yield from _walk(child)
