"""Which computer a machine is: so that a flash that two of them reach has one owner.

As LVM's system ID of the kind ``appmachineid``: derived from /etc/machine-id, which is not to be
shown to others (machine-id(5)). Clones of a machine have that in common, so labels also have what
the firmware calls the computer: hypervisors give every virtual machine another UUID, and makers of
computers each of them (SMBIOS reference specification, 7.2.1).
"""

from __future__ import annotations

import hashlib
import re
import uuid
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

_MACHINE_ID = PurePosixPath("/etc/machine-id")
_OWN_ID = PurePosixPath("/etc/hotset/host-id")
_SALT = "hotset flash owner"
_FIRMWARE = PurePosixPath("/sys/class/dmi/id/product_uuid")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOBODYS = re.compile(r"0[0-]*|f[f-]*|03000200-0400-0500-0006-000700080009")
"""UUIDs of firmware without a UUID of its own."""


def host_id(machine: Machine) -> str:
    """The machine's id, the same as long as its root disk is; empty: it has none so far, and no
    label names it."""
    for path in (_OWN_ID, _MACHINE_ID):
        text = machine.run(["cat", str(path)], check=False).stdout.strip()
        if text and text != "uninitialized":
            return _derive(text)
    return ""


def settle(machine: Machine) -> str:
    """:func:`host_id`, before something is to bear it: who has none is given one."""
    if not host_id(machine):
        machine.replace(f"{uuid.uuid4().hex}\n", _OWN_ID, 0o600)
    return host_id(machine)


def hardware_id(machine: Machine) -> str:
    """By what the firmware tells it from a clone; empty where it does not."""
    text = machine.run(["cat", str(_FIRMWARE)], check=False).stdout.strip().lower()
    if not _UUID.fullmatch(text) or _NOBODYS.fullmatch(text):
        return ""
    return _derive(text)


def host_name(machine: Machine) -> str:
    """Return the machine's host name; for messages alone."""
    return machine.run(["uname", "-n"], check=False).stdout.strip() or machine.kind


def _derive(text: str) -> str:
    return hashlib.sha256(f"{_SALT} {text}".encode()).hexdigest()[:32]
