"""Readings of a server while its users work, by whichever product: their session-seconds per class,
and counters of its own I/O since it started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from hotset.core.sql import Row, Session, TimeClass

Spent: TypeAlias = Mapping[TimeClass, float]
"""Session-seconds per class since the first reading."""
Counts: TypeAlias = Mapping[str, int | None]
"""Since the server started, by `COUNTED`; None: not counted here."""
COUNTED = (
    "reads",
    "read_bytes",
    "read_ms",
    "writes",
    "write_bytes",
    "write_ms",
    "fsyncs",
    "log_bytes",
    "log_writes",
    "log_syncs",
)


class Io(Protocol):
    """Reader of the server's own I/O counters.

    :ivar missing: counters that it does not keep or show, and what enables them.
    """

    missing: str

    def read(self) -> Counts | None:
        """None where nothing is counted, or this login may not see it."""


class Readings(Protocol):
    """Readings of how a product's users spend their time.

    :ivar missing: what is hidden, and what permits it.
    """

    interval_s: float
    missing: str

    def read(self, now: float) -> Spent:
        """Session-seconds so far; ``now`` is monotonic. Raises `DatabaseError`."""

    @property
    def io(self) -> Io:
        """Over the same connection."""

    def close(self) -> None:
        """Close the connection."""


class OverConnection:
    """Base of the readings: one connection."""

    def __init__(self, connection: Session) -> None:
        self._connection = connection
        self.missing = ""

    def close(self) -> None:
        self._connection.close()


def counts(rows: Sequence[Row]) -> Counts:
    """Parse rows of name and value."""
    known = {str(name): None if value is None else round(float(str(value))) for name, value in rows}
    return {name: known.get(name) for name in COUNTED}
