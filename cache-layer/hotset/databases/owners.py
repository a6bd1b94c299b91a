"""Who owns a file on a disk, as its database server names it."""

from __future__ import annotations

from contextlib import closing
from pathlib import PurePosixPath

from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.hitratio import attribution

from . import connect
from .base import Unavailable
from .connect import NamesDatabase
from .file_labels import Label


def label_of(
    machine: Machine, device: PurePosixPath | None, by: str, request: NamesDatabase
) -> Label:
    """Return a function that names the owner of a file: itself, its database or its table.

    :param device: the accelerated disk, where one is meant: the server's files may be there under
        other names than the server has for them.
    :raises PrerequisiteMissingError: the server does not tell, or has no file there.
    """
    if by not in ("database", "table"):
        return str
    if request.dsn is None:
        raise RequestError(
            f"by {by} hotset has to ask the database server for its files: name the server, or use"
            " by file",
            field="by",
        )
    below = None if device is None else attribution.mount_point(machine, device)
    with closing(connect.of_request(request).administer()) as server:
        label = server.labels("database" if by == "database" else "table", machine, below)
    if isinstance(label, Unavailable):
        raise PrerequisiteMissingError(label.unavailable)
    return label
