"""FreeTDS: the driver that Debian has, made to check as Microsoft's does.

It looks at a certificate only where its settings name a CA file, and takes settings from a file
alone (freetds.conf(5)): one of this process's own, in memory, with a section for each server.
``system`` is what the system trusts, which Microsoft's driver goes by, too.
"""

from __future__ import annotations

import hashlib
import os
from threading import Lock

from hotset.core.machines.base import PrerequisiteMissingError

from .address import Address

_ENCRYPTION = {"no": "off", "optional": "request", "yes": "require", "mandatory": "require"}
_SYSTEM = "system"
_MICROSOFTS = "install Microsoft's driver (msodbcsql18)"
_lock = Lock()
_sections: dict[str, str] = {}


def is_freetds(driver: str) -> bool:
    """FreeTDS: other connection keys, and it crashes on pyodbc's fast_executemany."""
    return "freetds" in driver.lower() or "tdsodbc" in driver.lower()


def is_checked(database: Address) -> bool:
    """True if the DSN asks for a check of the server's certificate."""
    return not database.trust and _ENCRYPTION.get(database.encrypt) == "require"


def settings(database: Address) -> str:
    """The lines of the section of a server.

    :raises PrerequisiteMissingError: it cannot do what the DSN asks for.
    """
    if database.encrypt not in _ENCRYPTION:
        raise PrerequisiteMissingError(
            f"encrypt={database.encrypt}: FreeTDS has no such encryption: {_MICROSOFTS}, or write"
            " encrypt=yes, which checks the certificate as well"
        )
    lines = {
        "host": database.host,
        "port": str(database.port),
        "tds version": "7.4",
        "client charset": "UTF-8",
        # Microsoft's driver goes by the system, which has none below 1.2.
        "enable tls v1": "no",
        "encryption": _ENCRYPTION[database.encrypt],
    }
    if is_checked(database):
        lines |= {"ca file": _SYSTEM, "check certificate hostname": "yes"}
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


def section(database: Address) -> str:
    """Its name: another one for other settings."""
    return f"hotset-{hashlib.sha256(settings(database).encode()).hexdigest()[:16]}"


def configure(database: Address) -> None:
    """Have the section where FreeTDS reads it, for every connection of this process from now on:
    in a file of memory, of which nothing is left however the process ends (memfd_create(2))."""
    name = section(database)
    with _lock:
        if name in _sections:
            return
        _sections[name] = settings(database)
        # Another one each time: a connection may just read the one before.
        file = os.memfd_create("freetds.conf")
        text = "".join(f"[{known}]\n{lines}" for known, lines in _sections.items())
        with open(file, "w", encoding="utf-8", closefd=False) as stream:
            stream.write(text)
        os.environ["FREETDSCONF"] = f"/proc/self/fd/{file}"


def quote(key: str, value: str) -> str:
    """A value of a connection string. Some versions double a brace that closes, some do not: it
    has no braces then.

    :raises PrerequisiteMissingError: it cannot be said so that every version reads the same.

    >>> quote("PWD", "a;b"), quote("PWD", "a}b")
    ('PWD={a;b}', 'PWD=a}b')
    """
    if "}" not in value:
        return f"{key}={{{value}}}"
    if ";" in value or value.startswith("{"):
        what = "password" if key == "PWD" else f"value of {key}"
        raise PrerequisiteMissingError(
            f"FreeTDS cannot be given a {what} with '}}' beside ';' or after '{{' at its begin:"
            f" {_MICROSOFTS}, or change it"
        )
    return f"{key}={value}"
