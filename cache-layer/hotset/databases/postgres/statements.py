"""Single statements on PostgreSQL, with the server's own settings.

They go straight to libpq through psycopg's wrapper of it, without psycopg's own adaptation, which
would cost the client more than the statement costs the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from hotset.core.sql import CannotConnect, ServerGone, Value

from ..statements import Protocols, Rows, SyntaxProblem, exact, fill_gaps, text_of
from . import limits
from .client import PostgresDatabase, meaning

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

_SYNTAX = "42601"
_BOOL, _INT8, _INT4, _UNKNOWN, _NUMERIC = 16, 20, 23, 0, 1700
"""Numbers of types, fixed in pg_type.dat."""
_ENDED_WELL = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY)


class PostgresStatements:
    """One connection; see `statements.Client`."""

    def __init__(self, database: PostgresDatabase, protocol: Protocols) -> None:
        """:raises CannotConnect: with the server's reason."""
        try:
            self._connection = database.connect("")
        except psycopg.Error as error:
            raise CannotConnect(database.refusal(error)) from None
        self._libpq = self._connection.pgconn
        self._is_prepared = protocol == "prepared"
        self._names: dict[tuple[tuple[str, ...], tuple[int, ...]], bytes] = {}

    def execute(
        self, parts: Sequence[str], values: Sequence[Value], *, rows: bool = True
    ) -> Rows | None:
        """Run one statement."""
        if self._is_prepared:
            name = self._prepared(tuple(parts), tuple(map(_type, values)))
            sent: Any = [
                _sent(value) for value in values
            ]  # None is a null; the stub knows only bytes
            result = self._libpq.exec_prepared(name, sent)
        else:
            result = self._libpq.exec_(text_of(parts, values).encode())
        self._require(result)
        return self._rows(result) if rows and result.status == ExecStatus.TUPLES_OK else None

    def _prepared(self, parts: tuple[str, ...], types: tuple[int, ...]) -> bytes:
        """The name of a statement with parameters of these types, prepared at its first use."""
        found = self._names.get((parts, types))
        if found is None:
            found = f"hotset_{len(self._names)}".encode()
            self._require(self._libpq.prepare(found, _numbered(parts).encode(), list(types)))
            self._names[parts, types] = found
        return found

    def _rows(self, result: PGresult) -> Rows:
        reader = Transformer(self._connection)
        reader.set_pgresult(result)
        names = [result.fname(place) or b"" for place in range(result.nfields)]
        columns = tuple(name.decode() for name in names)
        return Rows(columns, reader.load_rows(0, result.ntuples, tuple))

    def _require(self, result: PGresult) -> None:
        """Raises `Aborted` and `ServerGone`."""
        if result.status in _ENDED_WELL:
            return
        if result.status != ExecStatus.FATAL_ERROR:
            # COPY would leave the connection waiting for rows.
            self._connection.close()
            raise ServerGone("COPY between client and server is not supported in scripts")
        diagnosis = psycopg.errors.Diagnostic(result)
        message = diagnosis.message_primary or self._libpq.get_error_message()
        raise meaning(
            diagnosis.sqlstate,
            " ".join(message.split()),
            broken=self._libpq.status == ConnStatus.BAD,
        )

    def check(self, parts: Sequence[str]) -> SyntaxProblem | None:
        """By an unnamed prepared statement."""
        text = _numbered(parts) if self._is_prepared else "1".join(parts)
        found = self._libpq.prepare(b"", text.encode())
        if found.status != ExecStatus.FATAL_ERROR:
            return None
        diagnosis = psycopg.errors.Diagnostic(found)
        if diagnosis.sqlstate == limits.LOCKED:
            raise limits.locked(self._connection)
        if diagnosis.sqlstate != _SYNTAX:
            return None
        place = int(diagnosis.statement_position or 1) - 1
        return SyntaxProblem(
            diagnosis.message_primary or "syntax error", text.count("\n", 0, place)
        )

    def in_transaction(self) -> bool:
        """As libpq knows it."""
        return self._libpq.transaction_status != TransactionStatus.IDLE

    def rollback(self) -> None:
        """Where there is something to roll back."""
        if self.in_transaction():
            self._require(self._libpq.exec_(b"ROLLBACK"))

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._connection.close()


def _numbered(parts: Sequence[str]) -> str:
    """
    >>> _numbered(("SELECT ", " + ", ""))
    'SELECT $1 + $2'
    """
    marks = [f"${place}" for place in range(1, len(parts))]
    return fill_gaps(parts, marks)


def _type(value: Value) -> int:
    """As the server types the literal: text is of no type until the server sees where it stands."""
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INT4 if -(2**31) <= value < 2**31 else _INT8
    return _NUMERIC if isinstance(value, float | Decimal) else _UNKNOWN


def _sent(value: Value) -> bytes | None:
    """As text, which the server reads by the type.

    >>> _sent(True), _sent(0.1), _sent("x"), _sent(None)
    (b't', b'0.1', b'x', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, float):
        return str(exact(value)).encode()
    return (value.isoformat(" ") if isinstance(value, datetime) else str(value)).encode()
