"""PostgreSQL, as a product, and what a DSN of libpq's may say. Which keywords it may have is an
allow-list, so that one which libpq gains is refused at first.

The names are those of libpq 18 (PostgreSQL's manual, "Parameter Key Words").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, ClassVar, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import DiagnosticField

from hotset.core.errors import GIVE_PASSWORD, RequestError
from hotset.core.sql import Row

from ..base import sql
from ..product import A_PASSWORD, DsnError, DsnKeywordError, Says
from . import limits
from .admin import PostgresEngine
from .client import Address
from .copies import copy_database
from .readings import PostgresReadings, WaitSamplingReadings, open_readings
from .tpch import PostgresTpch

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
_UNKNOWN = re.compile(r'^invalid (?:connection option|URI query parameter):? (".*")')
_WRONG = ("42601", "42703", "42P01", "42883", "42725", "42P18")
"""SQLSTATEs of a statement that no run gets through: no SQL, no such column, table or function, or
parameters of which the server cannot tell the type."""


@dataclass(frozen=True, slots=True)
class PostgresDatabase(Address):
    """A PostgreSQL database."""

    hammerdb: ClassVar[str] = "pg"
    cancelled: ClassVar[str] = f"error {limits.CANCELLED}"
    tells_its_files: ClassVar[bool] = True

    @classmethod
    def parse(cls, dsn: str, password: str) -> Self:
        parts = keywords_of(dsn)
        return cls(
            host=str(parts.pop("host", "")),
            port=_take_port(parts),
            user=str(parts.pop("user", "")),
            password=password,
            dbname=str(parts.pop("dbname", "")),
            more=tuple((key, str(value)) for key, value in parts.items()),
        )

    @classmethod
    def files_of(cls, dsn: str) -> Iterator[tuple[str, str]]:
        parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items()}
        for key in sorted(LOCAL & parts.keys()):
            raise DsnKeywordError(f"the keyword {key}")
        hosts, addresses = (parts.get(key, "").split(",") for key in ("host", "hostaddr"))
        for host, address in zip_longest(hosts, addresses, fillvalue=""):
            if not host and not address:
                raise DsnKeywordError(
                    "no host, or an empty one in a list, which leads to the server's own socket, as"
                    " its own user: name it"
                )
            if host.startswith(("/", "@")):
                yield "host", host
        if parts.get("gssencmode", "disable") != "disable" or _takes_tickets(parts):
            raise DsnKeywordError("a way to log in with the server's own Kerberos tickets")
        for key in sorted(FILES & parts.keys()):
            if not (key == "sslrootcert" and parts[key] == _SYSTEM):
                yield key, parts[key]

    def administer(self) -> PostgresEngine:
        return PostgresEngine(self.session())

    def tpch(self) -> PostgresTpch:
        return PostgresTpch(self)

    def identify(self) -> tuple[str, Row]:
        # By the connection: libpq takes what the DSN leaves out from its environment and services.
        with closing(self.session()) as session:
            (row,) = session.query(sql(self.engine, "measured_database"))
            return session.server, row

    def readings(self) -> PostgresReadings | WaitSamplingReadings:
        return open_readings(self.session(), self.user)

    def limit(self) -> str:
        with closing(self.session()) as session:
            return str(session.limit) if session.limit.limit_ms else ""

    def describe(self, statements: Iterable[str]) -> list[str | None]:
        """Return what the server has against each statement, which it reads and does not run; None:
        nothing that is lasting."""
        refusals = list[str | None]()
        try:
            with closing(self.connect("")) as connection:
                for statement in statements:
                    description = connection.pgconn.prepare(b"", statement.encode())
                    state = (description.error_field(DiagnosticField.SQLSTATE) or b"").decode()
                    message = description.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
                    refusals.append(message.decode() if state in _WRONG else None)
                if connection.broken:  # the last answers were none
                    raise psycopg.OperationalError("the server ended the session")
        except psycopg.Error as error:
            raise self.unreached(error) from None
        return refusals

    def require_copies(self) -> None:
        """It makes them."""

    def copy(self, report: Says) -> AbstractContextManager[PostgresDatabase]:
        return copy_database(self, report)

    def is_pooled(self) -> bool:
        with closing(self.session()) as session:
            return session.is_pooled()


def keywords_of(dsn: str) -> dict[str, Any]:
    """Its keywords, as libpq has them.

    :raises DsnError: it cannot be understood, or holds a password.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown:
            raise DsnError(
                f"the DSN has a keyword that libpq does not know: {unknown[1]}", field="dsn"
            ) from None
        # The library's other messages quote the DSN, secrets included.
        raise DsnError(
            "the DSN is neither a URI such as postgresql://user@host:5432/dbname nor keywords such"
            " as 'host=… user=… dbname=…'",
            field="dsn",
        ) from None
    if parts.pop("password", None) is not None:
        raise DsnError(f"the DSN holds {A_PASSWORD}", GIVE_PASSWORD, field="dsn")
    require_known(parts.keys())
    return parts


def _take_port(parts: dict[str, Any]) -> int:
    """Taken out where it is one; 0 leaves it to libpq: those of several servers, and what the
    environment, a service or the default says where the DSN does not."""
    given = str(parts.get("port") or "")
    each = given.split(",")
    if any(port and not (port.isdecimal() and 0 < int(port) <= 65535) for port in each):
        raise DsnError(f"the DSN's port {given!r} is not a number from 1 to 65535", field="dsn")
    if len(each) > 1 or not given:
        return 0
    del parts["port"]
    return int(given)


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


def _takes_tickets(parts: Mapping[str, str]) -> bool:
    """True if ``require_auth`` lets a server ask for tickets; without it, the environment forbids
    it (:func:`hotset.core.environment.of_server`)."""
    ways = {method.strip() for method in parts.get("require_auth", "").split(",")} - {""}
    if any(way.startswith("!") for way in ways):
        return not {f"!{ticket}" for ticket in _TICKETS} <= ways
    return not ways.isdisjoint(_TICKETS)
