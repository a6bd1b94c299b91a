"""Which computer a machine is: so that a flash that two of them reach has one owner.

As LVM's system ID of the kind ``appmachineid``: derived from /etc/machine-id, which is not to be
shown to others (machine-id(5)).
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import PurePosixPath

from ...hosts.base import Machine

_MACHINE_ID = PurePosixPath("/etc/machine-id")
_OWN_ID = PurePosixPath("/etc/hotset/host-id")
_SALT = "hotset flash owner"


def host_id(machine: Machine) -> str:
    """The machine's id, the same as long as its root disk is."""
    for path in (_OWN_ID, _MACHINE_ID):
        text = machine.run(["cat", str(path)], check=False).stdout.strip()
        if text and text != "uninitialized":
            return _derived(text)
    text = uuid.uuid4().hex
    machine.replace(f"{text}\n", _OWN_ID)
    return _derived(text)


def host_name(machine: Machine) -> str:
    """What people call it; for messages alone."""
    return machine.run(["uname", "-n"], check=False).stdout.strip() or machine.kind


def _derived(text: str) -> str:
    return hashlib.sha256(f"{_SALT} {text}".encode()).hexdigest()[:32]
