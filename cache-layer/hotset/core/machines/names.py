"""Machines by name: ``--machine local | uml | vm | ssh://[user@]host[:port]``.

One place turns a name into an open connection, so that every verb reaches every machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from ..environment import require_host
from ..errors import Remedy, RequestError
from .base import Machine
from .local import Local

if TYPE_CHECKING:
    # This computer is reached without them.
    from .ssh import Account, Remote

Guest = Literal["uml", "vm"]
LOCAL, SSH = "local", "ssh://"
_LAB = "hotset.lab.standing"
"""Named, not imported: the lab is above all that works on machines."""
GUESTS: tuple[Guest, ...] = ("uml", "vm")
"""The lab that `hotset lab up` left up, by what it is."""

KEY_VARIABLE, KNOWN_HOSTS_VARIABLE = "HOTSET_SSH_KEY", "HOTSET_KNOWN_HOSTS"
_SSH_PORT = 22
_FORMS = "local (this computer), uml or vm (the lab that was left up) or ssh://[user@]host[:port]"


class MachineNameError(RequestError):
    """Not the name of a machine; the message shows the forms there are."""


@contextmanager
def open_machine(name: str) -> Iterator[Machine]:
    """The machine of a name, for the length of a ``with`` block.

    :raises MachineNameError: not a name of a machine.
    :raises PrerequisiteError: this computer is meant, and is a container.
    :raises PrerequisiteMissingError: no lab is up; the host's key is not known; login refused.
    :raises MachineGoneError: nothing answers there.
    """
    if name == LOCAL:
        server = {"machine": f"{SSH}root@HOST"}
        require_host("disks and devices", Remedy("reach them from here", parameters=server))
        yield Local()
        return
    guest = next((kind for kind in GUESTS if kind == name), None)
    machine = import_module(_LAB).guest(guest) if guest else _remote(account(name))
    try:
        yield machine
    finally:
        machine.close()


def account(name: str) -> Account:
    """Where ``ssh://[user@]host[:port]`` leads. The user is root unless another is named, since a
    tier needs one; keys come from the agent and ~/.ssh unless ``HOTSET_SSH_KEY`` names a file.

    :raises MachineNameError: not of that form, or a key file that is not there.

    >>> account("ssh://db1:2222").port
    2222
    """
    from .ssh import Account

    try:
        url = urlsplit(name)
        host, port = url.hostname, url.port or _SSH_PORT
    except ValueError:
        host, port = None, 0
    if host is None or not name.startswith(SSH) or url.path or url.query or url.password:
        raise MachineNameError(f"{name!r} is not a machine: write {_FORMS}", field="machine")
    key = os.environ.get(KEY_VARIABLE)
    if key and not Path(key).is_file():
        raise MachineNameError(f"{KEY_VARIABLE}={key}: there is no such file; name a private key")
    known = os.environ.get(KNOWN_HOSTS_VARIABLE) or str(Path.home() / ".ssh/known_hosts")
    return Account(host, port, url.username or "root", Path(key) if key else None, Path(known))


def _remote(where: Account) -> Remote:
    from .ssh import Remote

    return Remote(where, "ssh", lambda port: (where.host, port))
