"""Which keywords a DSN may have: an allow-list, so that one which libpq gains is refused at first.

The names are those of libpq 18 (PostgreSQL's manual, "Parameter Key Words").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest

from psycopg.conninfo import conninfo_to_dict

from hotset.core.errors import ForbiddenError, RequestError

from .sqlserver import dsn as sqlserver_dsn
from .sqlserver.client import SqlServerDatabase

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
_TICKETS = frozenset(("gss", "sspi"))
_SYSTEM = "system"
"""``sslrootcert=system``: the certificates of the system, no file."""


class DsnKeywordError(ForbiddenError):
    """A keyword that only the command line may use."""


def require_known(keywords: Iterable[str]) -> None:
    """:raises RequestError: a DSN has a keyword that hotset does not take from anybody."""
    for keyword in sorted(keywords):
        if keyword in SECRETS:
            raise RequestError(
                f"the DSN holds {keyword}, which logs and process lists would show: use a way to"
                " log in that needs none there",
                field="dsn",
            )
        if keyword not in PLAIN | FILES | LOCAL:
            known = ", ".join(sorted(PLAIN | FILES | LOCAL))
            raise RequestError(
                f"the DSN has the keyword {keyword}, which hotset does not take; it takes {known}",
                field="dsn",
            )


def files_of(engine: str, dsn: str) -> Iterator[tuple[str, str]]:
    """Keyword and path of the files that a DSN from elsewhere names.

    :param dsn: one that was found to be well-formed.
    :raises DsnKeywordError: it has a keyword of the command line alone, leads to the server's own
        socket, or logs in as who runs the server.
    """
    if engine == "sqlserver":
        _require_remote(sqlserver_dsn.parse(dsn))
        return
    parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
    for key in sorted(LOCAL & parts.keys()):
        raise _local(f"the keyword {key}")
    hosts, addresses = (parts.get(key, "").split(",") for key in ("host", "hostaddr"))
    for host, address in zip_longest(hosts, addresses, fillvalue=""):
        if not host and not address:
            raise _local(
                "no host, or an empty one in a list, which leads to the server's own socket, as its"
                " own user: name it"
            )
        if host.startswith(("/", "@")):
            yield "host", host
    if parts.get("gssencmode", "disable") != "disable" or _takes_tickets(parts):
        raise _local("a way to log in with the server's own Kerberos tickets")
    for key in sorted(FILES & parts.keys()):
        if not (key == "sslrootcert" and parts[key] == _SYSTEM):
            yield key, parts[key]


def _takes_tickets(parts: Mapping[str, str]) -> bool:
    """True if ``require_auth`` lets a server ask for tickets; without it, the environment forbids
    it (:func:`hotset.core.environment.of_server`)."""
    ways = {method.strip() for method in parts.get("require_auth", "").split(",")} - {""}
    if any(way.startswith("!") for way in ways):
        return not {f"!{ticket}" for ticket in _TICKETS} <= ways
    return not ways.isdisjoint(_TICKETS)


def _require_remote(named: SqlServerDatabase) -> None:
    """:raises DsnKeywordError: see :func:`files_of`."""
    if named.trusted:
        raise _local("trusted=yes, which logs in as who runs the server: name a user")
    if named.driver:
        raise _local(f"driver={named.driver}, which who runs the server chooses: leave it out")


def _local(what: str) -> DsnKeywordError:
    return DsnKeywordError(
        f"the DSN has {what}: the API and the console do not take that", field="dsn"
    )
