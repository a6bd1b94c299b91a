"""``hotset lab shell``: a root shell in the lab's machine."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from hotset.core.errors import Remedy


def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="Run this instead of a shell.")
    ] = None,
) -> None:
    """Open a root shell in the lab's machine (needs `hotset lab up`)."""
    from hotset.core.machines.base import PrerequisiteMissingError
    from hotset.core.machines.local import Local
    from hotset.lab import image
    from hotset.lab import lab as labs
    from hotset.lab.machines.guest import SSH_PORT, Files

    folder, built = labs.lab_folder(), image.find_built()
    port = labs.list_forwarded_ports(folder).get(SSH_PORT)
    if built is None or port is None:
        raise PrerequisiteMissingError("no lab is up", Remedy("start one", "lab up"))
    if Local().which("ssh") is None:
        raise PrerequisiteMissingError("ssh is not installed: apt-get install openssh-client")
    argv = [
        "ssh",
        "-q",
        "-p",
        str(port),
        "-i",
        str(built.client_key),
        "-o",
        f"UserKnownHostsFile={Files(folder).known_hosts}",
        "-o",
        "IdentitiesOnly=yes",
        "root@127.0.0.1",
        *(command or ()),
    ]
    os.execvp("ssh", argv)  # noqa: S606
