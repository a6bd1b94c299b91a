"""Secrets of the environment: who gets them, and who does not.

A password that a user put there for hotset is for the process that opens the database, and no
program that it starts. A server, whose callers are others than who started it, and its jobs have
none of that user's at all.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping

from hotset.cachelayer.common.errors import RequestError

PASSWORD = "HOTSET_PASSWORD"  # noqa: S105 - a variable's name
_OF_ITS_USER = (PASSWORD, "PGPASSWORD", "PGSERVICE", "PGSERVICEFILE", "PGSSLKEY", "PGOPTIONS")
# libpq would look into the home of who started the server (~/.pgpass, ~/.postgresql). A file that
# cannot be there is none for it.
_NONE = {"PGPASSFILE": f"{os.devnull}/none", "PGSSLCERT": f"{os.devnull}/none"}
_kept: dict[str, str] = {}


def hide_password() -> None:
    """Take the password out of the environment, which every child inherits, and write no memory of
    this process to a core file."""
    if PASSWORD in os.environ:
        _kept[PASSWORD] = os.environ.pop(PASSWORD)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def password() -> str:
    """What HOTSET_PASSWORD says, hidden or not; empty where it says nothing.

    :raises RequestError: it is no text.
    """
    found = os.environ.get(PASSWORD, _kept.get(PASSWORD, ""))
    if any("\ud800" <= sign <= "\udfff" for sign in found):
        raise RequestError(f"{PASSWORD} is not valid UTF-8: set it in a UTF-8 locale")
    return found


def of_server(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server or a job: without what lets its user in somewhere."""
    return {name: text for name, text in inherited.items() if name not in _OF_ITS_USER} | _NONE
