"""Every key of HammerDB's dictionaries, per engine and workload, from what hotset was asked.

HammerDB keeps whatever was set last and falls back on defaults that suit no test of a cache
(`allwarehouse` false: a working set as small as the number of users), so nothing is left to it.
"""

from __future__ import annotations

import os
import re
import string
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from hotset.core.errors import GIVE_PASSWORD
from hotset.databases.product import SqlDatabase

from .process.failures import HammerdbFailed, HammerdbRefused

Workload = Literal["TPC-C", "TPC-H"]
Dictionary: TypeAlias = dict[str, dict[str, str]]
"""Section (connection, tpcc, tpch), then key, then value."""

PASSWORD_VARIABLE = "HOTSET_HAMMERDB_PASSWORD"  # noqa: S105 - a variable's name
PASSWORD_WORD = f"$::env({PASSWORD_VARIABLE})"
"""Placeholder for the password in every script, dictionary and table of HammerDB.

HammerDB pastes the value into Tcl scripts that its threads run; there it is read from the
environment. So the password itself is in no file. (`quote_passwords` would escape the dollar.)
"""
SCALES = (1, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)
"""The scale factors that HammerDB builds (clause 4.1.3)."""
_SAFE = frozenset(string.ascii_letters + string.digits + "!%&()*+,-./:<=>?@^_|~")


@runtime_checkable
class SqlServerConnection(Protocol):
    """Further settings of a connection to SQL Server.

    encrypt  the driver's own words: yes, no, strict, mandatory, optional
    trust    take the server's certificate unseen
    trusted  log in as the user who runs this
    """

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def user(self) -> str: ...
    @property
    def encrypt(self) -> str: ...
    @property
    def trust(self) -> bool: ...
    @property
    def trusted(self) -> bool: ...
    def odbc_driver(self) -> str:
        """The ODBC driver's name or path."""

    def uses_freetds(self) -> bool:
        """True if that is FreeTDS, which HammerDB's own connection string leaves unencrypted."""


@dataclass(frozen=True, slots=True)
class Tpcc:
    """TPC-C as HammerDB is asked for it; times in whole minutes."""

    warehouses: int
    build_users: int = 1
    rampup_min: int = 0
    duration_min: int = 1
    all_warehouses: bool = True
    think_time: bool = False
    stored_procedures: bool = True


@dataclass(frozen=True, slots=True)
class Tpch:
    """TPC-H as HammerDB is asked for it.

    parallel  workers that one query may use
    """

    scale: int
    build_users: int = 1
    refresh: bool = False
    parallel: int = 2


def workload(asked: Tpcc | Tpch) -> Workload:
    """The name that `dbset bm` takes."""
    return "TPC-C" if isinstance(asked, Tpcc) else "TPC-H"


def dictionary(connection: SqlDatabase, asked: Tpcc | Tpch) -> Dictionary:
    """All sections and keys for one engine and workload, of HammerDB 6.

    :raises HammerdbRefused: HammerDB cannot take what the connection holds.
    """
    match prefix := connection.hammerdb:
        case "mssqls" if isinstance(connection, SqlServerConnection):
            common = partial(_mssqls_connection, connection)
            of_tpcc, of_tpch = _mssqls_tpcc, _mssqls_tpch
        case "pg":
            common = partial(_pg_connection, connection)
            of_tpcc, of_tpch = _pg_tpcc, _pg_tpch
        case _:
            raise HammerdbRefused(f"engine {connection.engine}: HammerDB is not driven for it")
    _check(connection)
    if isinstance(asked, Tpcc):
        section, keys = "tpcc", of_tpcc(connection, asked) | _tpcc_driver(asked)
    else:
        section, keys = "tpch", of_tpch(connection, asked) | _tpch_driver(asked)
    return {
        name: {f"{prefix}_{key}": value for key, value in values.items()}
        for name, values in (("connection", common()), (section, keys))
    }


def _pg_connection(connection: SqlDatabase) -> dict[str, str]:
    more = dict(getattr(connection, "more", ()))
    return {
        "host": connection.host,
        "port": str(_postgres_port(connection)),
        "sslmode": more.get("sslmode", "prefer"),
    }


def _check(connection: SqlDatabase) -> None:
    """Refuse what HammerDB would take apart: it pastes values into Tcl and connection strings."""
    trusted = getattr(connection, "trusted", False)
    if not connection.password and not trusted:
        # Its build would also set this as the user's password (ALTER USER … PASSWORD).
        raise HammerdbRefused(
            "the password is empty, and HammerDB looks nowhere else for it",
            GIVE_PASSWORD,
            field="password",
        )
    odd = sorted(set(connection.password) - _SAFE)
    if odd:
        raise HammerdbRefused(
            f"the password holds {' '.join(map(repr, odd))}, which HammerDB cannot take: give the"
            " benchmark's user a password of letters, digits and simple signs"
        )
    for name in ("host", "user", "dbname"):
        value = str(getattr(connection, name))
        if not (trusted and name == "user") and not re.fullmatch(r"[\w.:/-]+", value):
            raise HammerdbRefused(
                f"{name} {value!r}: HammerDB needs it in the DSN, of letters, digits and . : / -"
            )


def _word(flag: bool) -> str:
    return "true" if flag else "false"


def _tpcc_driver(asked: Tpcc) -> dict[str, str]:
    """Keys that both engines have."""
    return {
        "count_ware": str(asked.warehouses),
        "num_vu": str(asked.build_users),
        "total_iterations": "1000000000",  # the clock ends a run, not a count
        "raiseerror": "false",  # an error ends a user for good; without, it is counted
        "keyandthink": _word(asked.think_time),
        "driver": "timed",
        "rampup": str(asked.rampup_min),
        "duration": str(asked.duration_min),
        "allwarehouse": _word(asked.all_warehouses),
        "timeprofile": "true",
        "async_scale": "false",
        "async_client": "10",
        "async_verbose": "false",
        "async_delay": "1000",
        "connect_pool": "false",
    }


def _tpch_driver(asked: Tpch) -> dict[str, str]:
    return {
        "scale_fact": str(asked.scale),
        "num_tpch_threads": str(asked.build_users),
        "total_querysets": "1",
        "raise_query_error": "true",  # a query that failed would be timed like any other
        "verbose": "false",
        "refresh_on": _word(asked.refresh),
        "update_sets": "1",
        "trickle_refresh": "0",
        "refresh_verbose": "false",
    }


def _pg_tpcc(connection: SqlDatabase, asked: Tpcc) -> dict[str, str]:
    return {
        "superuser": connection.user,
        "superuserpass": PASSWORD_WORD,
        "defaultdbase": connection.dbname,
        "user": connection.user,
        "pass": PASSWORD_WORD,
        "dbase": connection.dbname,
        "tspace": "pg_default",
        "vacuum": "false",
        "dritasnap": "false",
        "oracompat": "false",
        "cituscompat": "false",
        "storedprocs": _word(asked.stored_procedures),
        "partition": "false",
    }


def _pg_tpch(connection: SqlDatabase, asked: Tpch) -> dict[str, str]:
    return {
        "tpch_superuser": connection.user,
        "tpch_superuserpass": PASSWORD_WORD,
        "tpch_defaultdbase": connection.dbname,
        "tpch_user": connection.user,
        "tpch_pass": PASSWORD_WORD,
        "tpch_dbase": connection.dbname,
        "tpch_tspace": "pg_default",
        "tpch_gpcompat": "false",
        "tpch_gpcompress": "false",
        "degree_of_parallel": str(asked.parallel),
        "cloud_query": "false",
        "rs_compat": "false",
    }


def _postgres_port(connection: SqlDatabase) -> int:
    """:raises HammerdbRefused: libpq takes it from where HammerDB does not look."""
    elsewhere = {"service", "port"} & dict(getattr(connection, "more", ())).keys()
    environment = os.environ.get("PGPORT") or os.environ.get("PGSERVICE")
    if not connection.port and (elsewhere or environment):
        raise HammerdbRefused("HammerDB takes one host and one port: name both in the DSN")
    return connection.port or 5432


def _mssqls_connection(connection: SqlServerConnection) -> dict[str, str]:
    _require_same_encryption(connection)
    driver = connection.odbc_driver()
    authentication = "windows" if connection.trusted else "sql"
    return {
        "server": connection.host,
        "linux_server": connection.host,
        "tcp": "true",  # else the port is not looked at
        "port": str(connection.port),
        "azure": "false",
        "authentication": authentication,
        "msi_object_id": "null",
        "linux_authent": authentication,
        "odbc_driver": driver,
        "linux_odbc": driver,
        "uid": connection.user or "none",
        "pass": PASSWORD_WORD,
        "encrypt_connection": _word(connection.encrypt not in ("no", "optional")),
        "trust_server_cert": _word(connection.trust),
    }


def _require_same_encryption(connection: SqlServerConnection) -> None:
    """:raises HammerdbRefused: it would connect with less than the DSN asks for."""
    if connection.encrypt == "strict":
        raise HammerdbRefused(
            "HammerDB has no encrypt=strict: write encrypt=yes, which checks the certificate as"
            " well, or take hotset's own driver"
        )
    if connection.uses_freetds() and connection.encrypt not in ("no", "optional"):
        raise HammerdbRefused(
            f"HammerDB cannot have FreeTDS encrypt, and the DSN has encrypt={connection.encrypt}:"
            " install Microsoft's driver (msodbcsql18), or write encrypt=no"
        )


def _mssqls_tpcc(connection: SqlDatabase, asked: Tpcc) -> dict[str, str]:  # noqa: ARG001
    return {
        "dbase": connection.dbname,
        "imdb": "false",
        "bucket": "1",
        "durability": "SCHEMA_AND_DATA",
        "use_bcp": "false",  # bcp takes the password on its command line
        "checkpoint": "false",
    }


def _mssqls_tpch(connection: SqlDatabase, asked: Tpch) -> dict[str, str]:
    return {
        "maxdop": str(asked.parallel),
        "tpch_dbase": connection.dbname,
        "colstore": "false",
        "tpch_use_bcp": "false",  # bcp takes the password on its command line
        "tpch_partition_orders_and_lineitems": "false",
        "tpch_advanced_stats": "false",
    }


_SECTION = re.compile(r"^(\w+) *\{$")
_ENTRY = re.compile(r"^ (\w+) *=(?: (.*))?$")


def parse_printed(output: str) -> dict[str, frozenset[str]]:
    """Sections and their keys in what `print dict` wrote.

    >>> sorted(parse_printed("tpcc       {\\n pg_rampup = 2\\n pg_pass   = x = y\\n}\\n")["tpcc"])
    ['pg_pass', 'pg_rampup']
    """
    sections: dict[str, set[str]] = {}
    section: str | None = None
    for line in output.splitlines():
        if head := _SECTION.match(line):
            section = head[1]
            sections[section] = set()
        elif line == "}":
            section = None
        elif section is not None and (entry := _ENTRY.match(line)):
            sections[section].add(entry[1])
    return {name: frozenset(keys) for name, keys in sections.items()}


def compare(ours: Dictionary, theirs: dict[str, frozenset[str]], version: str) -> None:
    """See that this HammerDB has exactly the keys that hotset sets.

    :raises HammerdbFailed: names the keys and the version.
    """
    wrong = []
    for section in sorted(ours.keys() | theirs.keys()):
        mine, other = set(ours.get(section, {})), theirs.get(section, frozenset())
        wrong += [f"{section}:{key} is not set by hotset" for key in sorted(other - mine)]
        wrong += [f"{section}:{key} is unknown to it" for key in sorted(mine - other)]
    if wrong:
        raise HammerdbFailed(
            f"HammerDB {version} has other settings than hotset knows (of HammerDB 6.0):"
            f" {'; '.join(wrong)}"
        )
