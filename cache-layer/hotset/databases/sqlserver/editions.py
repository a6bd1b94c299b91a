"""Size limits of SQL Server's editions, checked before hours of loading."""

from __future__ import annotations

from hotset.core.errors import RequestError
from hotset.core.sql import Aborted, Session

from ..base import number, sql

_EXPRESS = 4
_SQL_SERVER_2025 = 17
_BUILDING = 1.4
"""Every table is rebuilt into its clustered index: for a while the largest are there twice."""


def express_limit(edition: int, major: int) -> int | None:
    """Bytes that a database may have; None: any. Microsoft's editions and features of SQL Server.

    >>> express_limit(4, 16), express_limit(3, 16)
    (10737418240, None)
    """
    if edition != _EXPRESS:
        return None
    return (50 if major >= _SQL_SERVER_2025 else 10) * 1024**3


def require_room(connection: Session, estimated: int, what: str) -> None:
    """See `SqlDatabase.require_room`."""
    try:
        ((edition, major),) = connection.query(sql("sqlserver", "edition"))
    except Aborted:
        return  # a compatible server, which has no editions
    if edition is None or major is None:
        return
    limit = express_limit(number(edition), number(major))
    needed = estimated * _BUILDING
    if limit is not None and needed > limit:
        raise RequestError(
            f"about {needed / 1e9:.1f} GB while it is built, and SQL Server Express allows"
            f" {limit / 1024**3:.0f} GB a database: load less, or use another edition",
            field=what,
        )
