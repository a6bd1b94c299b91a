"""Environment facts: whether this is a container, and which processes get the secrets.

A password that a user put there for hotset is for the process that opens the database, and no
program that it starts. A server, whose callers are others than who started it, and its jobs have
none of that user's at all.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from .errors import PrerequisiteError, Remedy, RequestError

PASSWORD = "HOTSET_PASSWORD"  # noqa: S105 - a variable's name
CONTAINER = "HOTSET_CONTAINER"
"""Set by hotset's container image."""
# What of libpq's own variables says how, and not where to or as whom: TLS.
_OF_TLS = re.compile(r"PGSSL(?!CERT$|KEY$)|PG(SSL)?(MIN|MAX)PROTOCOLVERSION$")
# libpq would look into the home of who started the server (~/.pgpass, ~/.postgresql). A file that
# cannot be there is none for it. Nor may it use that user's Kerberos tickets.
_INSTEAD = {
    "PGPASSFILE": f"{os.devnull}/none",
    "PGSSLCERT": f"{os.devnull}/none",
    "PGGSSENCMODE": "disable",
    "PGREQUIREAUTH": "!gss,!sspi",
}
_kept: dict[str, str] = {}
_asker: list[Callable[[str], str]] = []


def require_host(what: str, *remedies: Remedy) -> None:
    """For what a container has not.

    :param what: that is needed, as the subject of a sentence in the plural.
    :raises PrerequisiteError: this is hotset's container.
    """
    if os.environ.get(CONTAINER):
        raise PrerequisiteError(
            f"{what} are the host's, and this is a container: install hotset on the host for them",
            *remedies,
        )


def hide_password() -> None:
    """Take the password out of the environment, which every child inherits, and write no memory of
    this process to a core file."""
    if PASSWORD in os.environ:
        _kept[PASSWORD] = os.environ.pop(PASSWORD)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def password() -> str:
    """Return HOTSET_PASSWORD, hidden or not; empty where it is not set.

    :raises RequestError: it is no text.
    """
    value = os.environ.get(PASSWORD, _kept.get(PASSWORD, ""))
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise RequestError(f"{PASSWORD} is not valid UTF-8: set it in a UTF-8 locale")
    return value


@contextmanager
def asking(ask: Callable[[str], str]) -> Iterator[None]:
    """Have the user at the terminal asked for a missing password, meanwhile.

    :param ask: is given whose password, and returns it.
    """
    _asker.append(ask)
    try:
        yield
    finally:
        _asker.remove(ask)


def can_ask() -> bool:
    """True if somebody sits at the terminal, and the command is theirs."""
    return bool(_asker)


def ask_password(whose: str) -> str:
    """Return the password that is typed; the next to ask for the same is given it, too."""
    if whose not in _kept:
        _kept[whose] = _asker[-1](whose)
    return _kept[whose]


def of_server(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server or a job: without what lets its user in somewhere, or says where
    a database is that a caller has not named."""
    return {
        name: text
        for name, text in inherited.items()
        if name != PASSWORD and (not name.startswith("PG") or _OF_TLS.match(name))
    } | _INSTEAD
