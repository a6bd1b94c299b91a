"""The URL by which a user names a SQL Server database.

``sqlserver://user@host:1433/dbname?encrypt=yes&trust=yes&driver=…``, or, to log in as who runs
hotset (Windows, Kerberos), ``sqlserver://host/dbname?trusted=yes``. Everything may be
percent-encoded. A password has no place in it.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from hotset.core.errors import GIVE_PASSWORD

from ..product import A_PASSWORD, DsnError, DsnKeywordError

PORT = 1433
FORM = "sqlserver://user@host:1433/dbname?encrypt=yes&trust=yes"
_LONGEST, _LONGEST_HOST = 128, 253
_SWITCH = ("yes", "no")
_OPTIONS: dict[str, tuple[str, ...]] = {
    "encrypt": ("yes", "no", "strict", "mandatory", "optional"),
    "trust": _SWITCH,
    "trusted": _SWITCH,
    "driver": (),
}


def parse(dsn: str) -> dict[str, Any]:
    """Fields of the database a URL names, without a password.

    :raises DsnError: names the part that is wrong and what may stand there; never quotes what could
        be a password.
    """
    try:
        return _parse(dsn)
    except ValueError as error:
        own = (GIVE_PASSWORD,) if A_PASSWORD in str(error) else ()
        raise DsnError(f"the DSN {error}", *own, field="dsn") from None


def require_remote(parts: dict[str, Any]) -> None:
    """:raises DsnKeywordError: it would be the server's own login, or driver."""
    if parts["trusted"]:
        raise DsnKeywordError("trusted=yes, which logs in as who runs the server: name a user")
    if driver := parts["driver"]:
        raise DsnKeywordError(f"driver={driver}, which who runs the server chooses: leave it out")


def fault(value: str) -> str:
    """The reason that no log-in carries a name or a password whole (MS-TDS 2.2.6.4), as drivers cut
    it off; empty where one does.

    >>> fault("p" * 129)
    'has 129 characters, and SQL Server takes 128'
    """
    size = len(value.encode("utf-16-le", "surrogatepass")) // 2
    if size > _LONGEST:
        return f"has {size} characters, and SQL Server takes {_LONGEST}"
    cannot_be_sent = any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
    return "holds a character that cannot be sent" if cannot_be_sent else ""


def _parse(dsn: str) -> dict[str, Any]:
    try:
        url = urlsplit(dsn)
        host, port = url.hostname, url.port
    except ValueError:
        raise ValueError(f"is no URL such as {FORM}: host and port cannot be read") from None
    if url.scheme != "sqlserver" or url.fragment:
        raise ValueError(f"is no URL such as {FORM}")
    if url.password is not None:
        raise ValueError(f"holds {A_PASSWORD}")
    if not host:
        raise ValueError(f"names no host: write {FORM}")
    if "\\" in unquote(host):
        # Not `hostname`, which is in small letters.
        named = unquote(url.netloc).rpartition("@")[2].partition("\\")[2].partition(":")[0]
        raise ValueError(
            f"names instance {named!r}: write the server's host and its port instead, which SQL"
            " Server Configuration Manager shows under TCP/IP"
        )
    if not unquote(host).isprintable() or " " in unquote(host) or len(host) > _LONGEST_HOST:
        raise ValueError(
            f"names a host with blanks, over {_LONGEST_HOST} characters, or worse: write {FORM}"
        )
    options = _options(url.query)
    trusted = options.get("trusted") == "yes"
    user, dbname = unquote(url.username or ""), unquote(url.path.removeprefix("/"))
    _require_carried(user, dbname)
    if trusted and user:
        raise ValueError(f"names user {user!r}, and trusted=yes, which logs in without one")
    if not trusted and not user:
        raise ValueError(f"names no user: write {FORM}, or trusted=yes")
    return {
        "host": unquote(host),
        "port": PORT if port is None else port,
        "user": user,
        "dbname": dbname,
        "encrypt": options.get("encrypt", "yes"),
        "trust": options.get("trust") == "yes",
        "trusted": trusted,
        "driver": options.get("driver"),
    }


def _require_carried(user: str, dbname: str) -> None:
    for what, name in (("user", user), ("database", dbname)):
        if wrong := fault(name):
            raise ValueError(f"names {what} {name!r}, which {wrong}")
    if "\\" in user:
        raise ValueError(
            f"names user {user!r}: Windows' own are not logged in by password; trusted=yes, without"
            " a user, takes who runs hotset"
        )


def _options(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise ValueError("has options that are not key=value, joined by &") from None
    options: dict[str, str] = {}
    for key, value in pairs:
        if key not in _OPTIONS:
            raise ValueError(f"has an unknown option {key!r}: there are {', '.join(_OPTIONS)}")
        if key in options:
            raise ValueError(f"names option {key} twice")
        allowed = _OPTIONS[key]
        if not value:
            raise ValueError(f"option {key} is empty")
        if allowed and value not in allowed:
            raise ValueError(f"has {key}={value!r}: write {' or '.join(allowed)}")
        options[key] = value
    return options
