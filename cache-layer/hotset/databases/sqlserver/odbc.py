"""SQL Server over ODBC: which driver, how the connection string is built, what an error says.

Everything that is pyodbc's, a driver's or a connection string's own is in this file; what an
error means to a workload is for the adapters beside it (`sqlserver.py`, `sqlserver_tpch.py`).
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

from hotset.core.extras import Extra, is_packaged, missing_extra
from hotset.core.machines.base import NotInstalledError
from hotset.core.sql import CannotConnect, Locked

from ..base import LOOK_WAIT_S
from . import dsn, freetds, greeting
from .address import Address
from .freetds import is_freetds
from .refusals import add_remedy

if TYPE_CHECKING:
    import pyodbc


CONNECT_TIMEOUT_S = 10
_KINDS = {4060: "unknown-database", 18456: "log-in"}
"""Kinds of refusals, by messages of sys.messages."""
LOCK_TIMEOUT = 1222
"""The number of an error: a lock was not had in time."""
_ROWS_PER_SEND = 10_000
_INSTALLED = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server")
_REMEDY = f"{missing_extra(Extra.SQLSERVER)} brings pyodbc" + (
    "; apt-get install tdsodbc brings the driver FreeTDS, Microsoft's package msodbcsql18 its own"
    if is_packaged()
    else " and Microsoft's driver; they use the system's libraries: apt-get install libodbc2"
    " libodbcinst2 libltdl7 libgssapi-krb5-2"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Error of a driver: SQLSTATE, the server's message numbers (may be none), the text."""

    state: str
    numbers: tuple[int, ...]
    message: str

    @property
    def with_remedy(self) -> str:
        """The text, and what helps against it where that is known."""
        return add_remedy(self.numbers, self.message)

    @property
    def gone(self) -> bool:
        """The connection does not work any more."""
        return (
            self.state.startswith("08")
            or self.state == "HYT01"
            or bool(_GONE_NUMBERS.intersection(self.numbers))
        )


_GONE_NUMBERS = frozenset({596, 6005, 10053, 10054, 10060})
"""Killed session; shutdown in progress; connection aborted, reset, timed out (TCP's own)."""
_NUMBER = re.compile(r" \((-?\d+)\)(?= \(SQL\w+\)|;|$)")
_PREFIX = re.compile(r"^\[[0-9A-Z]{5}\]\s*(?:\[[^\]]*\]){0,3}\s*")
"""SQLSTATE, vendor, driver, server. Brackets behind them are the message's own."""
_NEXT = re.compile(r"; (?=\[[0-9A-Z]{5}\] )")
_CLOSED = re.compile(r"TCP Provider: Error code 0x(?:2746|68)\b")
"""Connection reset, by the numbers of Windows and of Linux."""
_CALL = re.compile(r"(?: \(-?\d+\))? \(SQL\w+\)$| \(-?\d+\)$")


def failure(error: pyodbc.Error) -> Failure:
    """Read pyodbc's error: ``(SQLSTATE, '[state] [vendor][driver][server]text (number) (call)')``.

    Several messages are joined by "; ".
    """
    state = str(error.args[0]) if error.args else ""
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    numbers = tuple(int(number) for number in _NUMBER.findall(text))
    parts = [_CALL.sub("", _PREFIX.sub("", part)).strip() for part in _NEXT.split(text)]
    parts = [_CLOSED.sub(r"\g<0> (the server closed the connection)", part) for part in parts]
    return Failure(state, numbers, "; ".join(dict.fromkeys(filter(None, parts))))


def driver(wanted: str | None) -> str:
    """The ODBC driver to load: a name from odbcinst.ini, or the path of its library.

    :param wanted: what the user named; None takes Microsoft's as installed, or the one that the
        package mssql-python-odbc carries, or FreeTDS, in this order.
    :raises NotInstalledError: there is none; names what installs it.
    """
    names = _module().drivers()
    if wanted is not None:
        if wanted in names or Path(wanted).is_file():
            return wanted
        known = ", ".join(names) or "none"
        raise NotInstalledError(
            f"driver={wanted}: neither the name of an installed ODBC driver ({known}) nor a file;"
            f" leave it out to take Microsoft's own: {_REMEDY}"
        )
    for name in _INSTALLED:
        if name in names:
            return name
    bundled = _find_bundled()
    if bundled is not None:
        return str(bundled)
    if "FreeTDS" in names:
        return "FreeTDS"
    raise NotInstalledError(f"no ODBC driver for SQL Server here: {_REMEDY}")


def connection_string(database: Address, driver_name: str) -> str:
    """The string of SQLDriverConnect.

    :raises PrerequisiteMissingError: FreeTDS cannot do what the DSN asks for.
    """
    if is_freetds(driver_name):
        quoted, server = freetds.quote, {"SERVERNAME": freetds.section(database)}
    else:
        quoted = _brace
        server = {
            "SERVER": f"tcp:{database.host},{database.port}",
            "Encrypt": database.encrypt,
            "TrustServerCertificate": "yes" if database.trust else "no",
            # A server that is powered off sends nothing, not even a reset.
            "KeepAlive": "5",
            "KeepAliveInterval": "2",
        }
    server |= {"APP": "hotset"}
    if database.dbname:
        server |= {"DATABASE": database.dbname}
    if database.trusted:
        server |= {"Trusted_Connection": "yes"}
    else:
        server |= {"UID": database.user, "PWD": database.password}
    values = [_brace("DRIVER", driver_name), *(quoted(*option) for option in server.items())]
    # FreeTDS looks for the semicolon behind the last one, too.
    return "".join(f"{value};" for value in values)


def connect(database: Address) -> tuple[pyodbc.Connection, bool]:
    """Open a connection in autocommit, and whether it can send rows by the array.

    :raises CannotConnect: says to what, as whom and why not, in one line without the password.
    """
    if wrong := dsn.fault(database.password):
        raise CannotConnect(
            f"cannot connect to {database.where}: the password {wrong}", kind="log-in"
        )
    name, module = driver(database.driver), _module()
    text = connection_string(database, name)
    if is_freetds(name):
        freetds.configure(database)
    try:
        connection = module.connect(text, autocommit=True, timeout=CONNECT_TIMEOUT_S)
        if database.looks:
            connection.execute(f"SET LOCK_TIMEOUT {1000 * LOOK_WAIT_S}")
    except module.Error as error:
        refused = failure(error)
        # A driver tries again until its time is up, and says that; a server that refuses says why.
        met = not refused.state.startswith(("08", "HY"))
        reason = None if met else greeting.obstacle(database)
        reason = reason or _refusal(refused.with_remedy, database)
        kinds = (_KINDS[number] for number in refused.numbers if number in _KINDS)
        raise CannotConnect(
            f"cannot connect to {database.where}: {reason}", kind=next(kinds, "")
        ) from None
    return connection, not is_freetds(name)


def lock_error(failure: Failure, database: Address) -> Locked | None:
    """Return the error of a look that did not get its lock in time; None if it failed otherwise."""
    if not database.looks or LOCK_TIMEOUT not in failure.numbers:
        return None
    return Locked(
        f"a table was not to be had for {LOOK_WAIT_S} s: another session has it, or a part of it,"
        " to itself (sys.dm_tran_locks says which). Try again after that"
    )


def _refusal(message: str, database: Address) -> str:
    """With what helps, where a DSN or the system's certificates can."""
    is_strict = database.encrypt == "strict"
    if is_strict and _CLOSED.search(message):
        return f"{message}. encrypt=strict takes SQL Server 2022 or later; earlier ones hang up"
    if "certificate" in message:  # strict checks it whatever the DSN says
        remedy = "update-ca-certificates" if is_strict else "add trust=yes to the DSN"
        return f"{message}. If you trust this server's own certificate: {remedy}"
    return message


def drain(cursor: pyodbc.Cursor) -> None:
    """Read to the end of what a batch sent: an error after the first result shows up only then."""
    while cursor.nextset():
        pass


def insert(
    connection: pyodbc.Connection,
    table: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    by_array: bool,
) -> int:
    """Insert rows in one transaction; returns how many.

    An array of rows travels in one go, described once from the table's own columns. Without
    arrays, for which FreeTDS would prepare a statement a row, it travels as JSON, as texts.
    """
    names = ", ".join(columns)
    statement = f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    if not by_array:
        texts = ", ".join(f"{name} nvarchar(4000) '$[{at}]'" for at, name in enumerate(columns))
        rows_of = f"OPENJSON(CAST(? AS nvarchar(max))) WITH ({texts})"
        statement = f"INSERT INTO {table} ({names}) SELECT {names} FROM {rows_of}"
    count, source = 0, iter(rows)
    connection.autocommit = False
    try:
        cursor = connection.cursor()
        cursor.fast_executemany = by_array
        while block := list(islice(source, _ROWS_PER_SEND)):
            if by_array:
                cursor.executemany(statement, block)
            else:
                cursor.execute(statement, json.dumps(block, default=_text, ensure_ascii=False))
            count += len(block)
        connection.commit()
        cursor.close()
    except BaseException:
        with suppress(_module().Error):
            connection.rollback()
        raise
    finally:
        with suppress(_module().Error):
            connection.autocommit = True
    return count


def _text(value: object) -> str:
    """A value that JSON has no word for, as every server reads it.

    >>> _text(datetime(2026, 11, 29, 18, 0))
    '2026-11-29T18:00:00.000'
    """
    return value.isoformat(timespec="milliseconds") if isinstance(value, datetime) else str(value)


def _brace(key: str, value: str) -> str:
    """
    >>> _brace("PWD", "x}y;")
    'PWD={x}}y;}'
    """
    return f"{key}={{{value.replace('}', '}}')}}}"


def _find_bundled() -> Path | None:
    """Microsoft's driver inside the package mssql-python-odbc, for this system and processor."""
    spec = find_spec("mssql_python_odbc")
    if spec is None or spec.origin is None:
        return None
    libraries = Path(spec.origin).parent / "libs" / platform.system().lower()
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    like = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    machine = platform.machine().replace("aarch64", "arm64")
    for folder, ids in {
        "rhel": {"rhel", "fedora", "centos"},
        "suse": {"suse", "opensuse", "sles"},
        "alpine": {"alpine"},
        "debian_ubuntu": like,  # what else there is: a plain glibc build
    }.items():
        drivers = sorted((libraries / folder / machine / "lib").glob("libmsodbcsql*"))
        if like & ids and drivers:
            return drivers[-1]
    return None


def _module() -> ModuleType:
    """pyodbc itself, which is in an extra and needs the system's ODBC manager."""
    try:
        import pyodbc
    except ImportError as error:
        raise NotInstalledError(f"SQL Server needs pyodbc: {error}; {_REMEDY}") from None
    return cast("ModuleType", pyodbc)
