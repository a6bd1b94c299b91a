"""Which database or table a file belongs to, by its path as the machine sees it.

The numbers in it are of the server whose folder it is in, and of no other. PostgreSQL: "Database
File Layout" of the manual; `base/DATABASE/RELATION[.SEGMENT|_FORK]`, below a tablespace
`PG_…/DATABASE/RELATION`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from hotset.hitratio.attribution import SystemName

Label: TypeAlias = Callable[[str], str]
Level = Literal["database", "table"]
LOG, SERVER = SystemName("(log)"), SystemName("(server)")
OTHERS = SystemName("(other files)")
ANOTHER = SystemName("(another server)")
_INDEX = " (index)"
_OF_A_DATABASE = re.compile(r"(?:base|pg_tblspc/\d+/PG_\d+_\d+)/(\d+)/(?:(\d+)(?:[._]|$))?[^/]*")
_OF_SOME_SERVER = re.compile(r"/(?:base|PG_\d+_\d+)/\d+/[^/]+$|/pg_wal/")


def postgres(
    named: Callable[[str], str | None],
    databases: Mapping[int, str],
    relations: Mapping[tuple[int, int], str] | None,
) -> Label:
    """Labels of PostgreSQL's files.

    :param named: what the server calls a file, from its data directory on; None: it is not its own.
    :param databases: names by OID.
    :param relations: names by database and file number, of the database one is connected to, those
        of the server's own catalog as `SystemName`; None tells databases apart and no tables.

    >>> named = lambda path: path.removeprefix("/data/") if path.startswith("/data/") else None
    >>> label = postgres(named, {5: "erp"}, {(5, 16384): "public.stock"})
    >>> label("/data/base/5/16384.1"), label("/data/base/5/16384_fsm")
    ('public.stock', 'public.stock')
    >>> label("/data/base/5/99"), label("/data/pg_wal/000000010000000000000001")
    ('erp: (other files)', '(log)')
    >>> label("/old/base/5/16384"), label("/old/notes.txt")
    ('(another server)', '(other files)')
    """

    def label(path: str) -> str:
        name = named(path) or ""
        if name.startswith("pg_wal/"):
            return LOG
        if name.startswith(("global/", "pg_xact/", "pg_multixact/")):
            return SERVER
        within = _OF_A_DATABASE.fullmatch(name)
        if within is None:
            return ANOTHER if _OF_SOME_SERVER.search(path) else OTHERS
        database = databases.get(int(within[1]), f"database {within[1]}")
        if relations is None:
            return database
        number = (int(within[1]), int(within[2] or 0))
        return relations.get(number) or SystemName(f"{database}: {OTHERS}")

    return label


def target_of(by: str, name: str) -> str | None:
    """Return the warm-up or pin target of an owner in a report; None: it has no target of its
    own.

    :param by: unit of the report: ``file``, ``table``, ``database`` or ``extent``.

    >>> target_of("table", "public.stock"), target_of("table", "public.stock_pkey (index)")
    ('table:public.stock', 'index:public.stock_pkey')
    >>> target_of("database", "erp"), target_of("table", "erp: (other files)")
    ('database:erp', None)
    """
    if by == "file":
        return name if name.startswith("/") else None
    if by == "table" and name.endswith(_INDEX):
        return f"index:{name.removesuffix(_INDEX)}"
    return None if by == "extent" or name.endswith(")") else f"{by}:{name}"


def by_path(databases: Iterable[tuple[str, str]]) -> Label:
    """Labels by full paths: a name alone is another server's file as well.

    :param databases: database and path of each of its files.

    >>> label = by_path([("erp", "/var/opt/mssql/data/erp.mdf")])
    >>> label("/var/opt/mssql/data/erp.mdf"), label("/old/data/erp.mdf")
    ('erp', '(other files)')
    """
    paths = {path: database for database, path in databases}
    return lambda path: paths.get(path, OTHERS)
