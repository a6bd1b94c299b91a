"""What is wrong with an example of a command or cmdlet for who has SQL Server."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotset.databases.sqlserver.product import SqlServerDatabase

_TABLES = re.compile(r"\b(?:table|index):|[-]by table\b", re.IGNORECASE)
_ADDRESS = re.compile(r"\bsqlserver://[^\s'\"`;|]+")


def faults(example: str) -> Iterator[str]:
    """A default server's certificate is its own, and SQL Server keeps tables in shared files."""
    addresses = _ADDRESS.findall(example)
    for address in addresses:
        if not SqlServerDatabase.parse(re.sub("://(?!.*@)", "://sa@", address), "").trust:
            yield f"a server as it is installed is refused without trust=yes: {example}"
    if _TABLES.search(example) and (addresses or "dbo." in example):
        yield f"no table of SQL Server is told apart: {example}"
