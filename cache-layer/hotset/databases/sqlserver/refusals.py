"""Refusals of SQL Server's management views to a login, and their reasons."""

from __future__ import annotations

from hotset.core.sql import Aborted

_DENIED = ("error 229", "error 297", "error 300")
"""Messages of sys.messages: a permission was denied on an object; to do this; on the server."""
_GRANT = (
    "GRANT VIEW SERVER STATE to this login shows {them} (SQL Server 2022: VIEW SERVER PERFORMANCE"
    " STATE)"
)


def explain_unseen(what: str, them: str, error: Aborted) -> str:
    """The grant where a permission is what lacks; else the server's own words, as no grant would
    help: a compatible server may not have the view.

    :param what: such as ``waits are``.

    >>> explain_unseen("waits are", "them", Aborted("error 208", False, "no such object"))
    'waits are not seen: error 208: no such object'
    """
    if error.cause in _DENIED or "permission" in error.detail.lower():
        return f"{what} hidden: {_GRANT.format(them=them)}"
    return f"{what} not seen: {error}"
