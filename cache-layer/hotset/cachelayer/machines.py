"""Machines by name: ``--machine local | vm | ssh://[user@]host[:port]``.

One place turns a name into an open connection, so that every verb reaches every machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from hotset.cachelayer import image, lab, vm
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import EnvironmentLacksError, Machine
from hotset.cachelayer.remote import Account, Remote

LOCAL, LAB, SSH = "local", "vm", "ssh://"
KEY_VARIABLE, KNOWN_HOSTS_VARIABLE = "HOTSET_SSH_KEY", "HOTSET_KNOWN_HOSTS"
_SSH_PORT = 22
_FORMS = (
    "local (this computer), vm (the lab that `hotset lab up` left up) or ssh://[user@]host[:port]"
)


class MachineNameError(ValueError):
    """Not the name of a machine; the message shows the forms there are."""


@contextmanager
def opened(name: str) -> Iterator[Machine]:
    """The machine of a name, for the length of a ``with`` block.

    :raises MachineNameError: not a name of a machine.
    :raises EnvironmentLacksError: no lab is up; the host's key is not known; login refused.
    :raises MachineGoneError: nothing answers there.
    """
    if name == LOCAL:
        yield Local()
        return
    machine = _lab() if name == LAB else _remote(account(name))
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
    try:
        url = urlsplit(name)
        host, port = url.hostname, url.port or _SSH_PORT
    except ValueError:
        host, port = None, 0
    if host is None or not name.startswith(SSH) or url.path or url.query or url.password:
        raise MachineNameError(f"--machine {name!r}: write {_FORMS}")
    key = os.environ.get(KEY_VARIABLE)
    if key and not Path(key).is_file():
        raise MachineNameError(f"{KEY_VARIABLE}={key}: there is no such file; name a private key")
    known = os.environ.get(KNOWN_HOSTS_VARIABLE) or str(Path.home() / ".ssh/known_hosts")
    return Account(host, port, url.username or "root", Path(key) if key else None, Path(known))


def _remote(where: Account) -> Remote:
    return Remote(where, "ssh", lambda port: (where.host, port))


def _lab() -> Remote:
    folder, built = lab.lab_folder(), image.cached()
    ports = lab.forwarded_ports(folder)
    if built is None or not ports:
        raise EnvironmentLacksError(
            "--machine vm: no virtual machine is up; start one with `hotset lab up`"
        )
    where = Account("127.0.0.1", ports[vm.SSH_PORT], "root", built.client_key,
                    vm.known_hosts(folder))  # fmt: skip
    return Remote(where, "vm", lambda port: ("127.0.0.1", ports[port]))
