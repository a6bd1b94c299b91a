"""The lab that `hotset lab up` left up, as the machine ``uml`` or ``vm``."""

from __future__ import annotations

from hotset.core.errors import Remedy
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.names import Guest
from hotset.core.machines.ssh import Remote

from . import image, lab
from .machines.guest import Files, account, parse_forwarding


def guest(kind: Guest) -> Remote:
    """The machine of the lab that was left up.

    :raises PrerequisiteMissingError: none is up, or one of another kind.
    """
    folder, built = lab.lab_folder(), image.find_built()
    up, ports = lab.up(folder), lab.list_forwarded_ports(folder)
    if up is not None and up != kind:
        raise PrerequisiteMissingError(
            f"the lab that is up is {up!r}, not {kind!r}",
            Remedy("use that one", parameters={"machine": up}),
            field="machine",
        )
    if built is None or not ports:
        raise PrerequisiteMissingError(
            "no lab is up",
            Remedy("start one", "lab up"),
            field="machine",
        )
    where = account(built, Files(folder), ports)
    return Remote(where, kind, lambda port: parse_forwarding(ports, port))
