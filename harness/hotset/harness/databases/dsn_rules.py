"""Which keywords a DSN may have: an allow-list, so that one which libpq gains is refused at first.

The names are those of libpq 18 (PostgreSQL's manual, "Parameter Key Words").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from psycopg.conninfo import conninfo_to_dict

from hotset.cachelayer.common.errors import RequestError

from ..errors import ForbiddenError
from .sqlserver import dsn as sqlserver_dsn

PLAIN = frozenset(
    (
        *("host", "hostaddr", "port", "dbname", "user", "connect_timeout", "application_name"),
        *("fallback_application_name", "client_encoding", "target_session_attrs"),
        *("load_balance_hosts", "keepalives", "keepalives_idle", "keepalives_interval"),
        *("keepalives_count", "tcp_user_timeout", "channel_binding", "require_auth"),
        *("sslmode", "sslnegotiation", "sslcompression", "sslsni", "sslcertmode"),
        *("ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("min_protocol_version", "max_protocol_version", "gssencmode"),
    )
)
"""Taken from everybody."""
FILES = frozenset(("sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile"))
"""Name a file that is read; taken from elsewhere only below allowed folders."""
LOCAL = frozenset(
    (
        *("service", "servicefile", "options", "requirepeer", "krbsrvname", "gsslib"),
        *("gssdelegation", "sslkeylogfile"),
    )
)
"""Use what belongs to who runs hotset (files, tickets), or set what they like in the server's
session: of the command line alone."""
SECRETS = frozenset(
    ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
)
"""Would be seen in process lists and logs."""
_SYSTEM = "system"
"""``sslrootcert=system``: the certificates of the system, no file."""


class DsnKeywordError(ForbiddenError):
    """A keyword that only the command line may use."""


def require_known(keywords: Iterable[str]) -> None:
    """:raises RequestError: a DSN has a keyword that hotset does not take from anybody."""
    for one in sorted(keywords):
        if one in SECRETS:
            raise RequestError(
                f"the DSN holds {one}, which logs and process lists would show: use a way to log in"
                " that needs none there",
                field="dsn",
            )
        if one not in PLAIN | FILES | LOCAL:
            known = ", ".join(sorted(PLAIN | FILES | LOCAL))
            raise RequestError(
                f"the DSN has the keyword {one}, which hotset does not take; it takes {known}",
                field="dsn",
            )


def files_of(engine: str, dsn: str) -> Iterator[tuple[str, str]]:
    """Keyword and path of the files that a DSN from elsewhere names.

    :param dsn: one that was found to be well-formed.
    :raises DsnKeywordError: it has a keyword of the command line alone, or leads to the server's
        own socket.
    """
    if engine == "sqlserver":
        driver = sqlserver_dsn.parse(dsn).driver
        if driver and ("/" in driver or "\\" in driver):
            raise _local(f"driver={driver}, a library of the server's")
        return
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
    for key in sorted(LOCAL & parts.keys()):
        raise _local(f"the keyword {key}")
    if not parts.get("host") and not parts.get("hostaddr"):
        raise _local("no host, which leads to the server's own socket, as its own user: name it")
    for host in parts.get("host", "").split(","):
        if host.startswith(("/", "@")):
            yield "host", host
    for key in sorted(FILES & parts.keys()):
        if not (key == "sslrootcert" and parts[key] == _SYSTEM):
            yield key, parts[key]


def _local(what: str) -> DsnKeywordError:
    return DsnKeywordError(
        f"the DSN has {what}: the API and the console do not take that", field="dsn"
    )
