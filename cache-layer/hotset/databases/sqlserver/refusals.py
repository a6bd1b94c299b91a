"""Refusals of SQL Server to a login, their reasons and what helps."""

from __future__ import annotations

from collections.abc import Collection

from hotset.core.sql import Aborted

_DENIED = ("error 229", "error 297", "error 300")
"""Messages of sys.messages: a permission was denied on an object; to do this; on the server."""
_GRANT = (
    "GRANT VIEW SERVER STATE to this login shows {them} (SQL Server 2022: VIEW SERVER PERFORMANCE"
    " STATE)"
)
_REMEDIES = {
    4060: "it is not there, or this user may not use it: CREATE USER … FOR LOGIN … in it, and GRANT"
    " CONNECT TO …",
    927: "wait for the restore, or end it: RESTORE DATABASE … WITH RECOVERY",
    18456: "name another user, or give this one's password (HOTSET_PASSWORD, --password-file)",
    262: "let this user own the benchmark's database: ALTER ROLE db_owner ADD MEMBER …",
    3906: "ALTER DATABASE … SET READ_WRITE, or name another database in the DSN",
}
"""By messages of sys.messages; the first that is there counts."""


def add_remedy(numbers: Collection[int], message: str) -> str:
    """A message of the server, and what helps.

    >>> add_remedy((3906,), "It is read-only.")
    'It is read-only: ALTER DATABASE … SET READ_WRITE, or name another database in the DSN'
    """
    remedy = next((text for number, text in _REMEDIES.items() if number in numbers), None)
    return f"{message.rstrip('.')}: {remedy}" if remedy else message


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
