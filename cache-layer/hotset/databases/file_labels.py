"""Which database or table a file belongs to, by its path as the machine sees it.

The numbers in it are of the server whose folder it is in, and of no other. PostgreSQL: "Database
File Layout" of the manual; `base/DATABASE/RELATION[.SEGMENT|_FORK]`, below a tablespace
`PG_…/DATABASE/RELATION`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from hotset.hitratio.attribution import SystemName

Label: TypeAlias = Callable[[str], str]
Level = Literal["database", "table"]
LOG, SERVER = SystemName("(log)"), SystemName("(server)")
OTHERS = SystemName("(other files)")
ANOTHER = SystemName("(another server)")
_INDEX = " (index)"
_RELATION = re.compile(r"/(?:base|PG_\d+_\d+)/(\d+)/(\d+)(?:_[a-z]+)?(?:\.\d+)?$")
_DATABASE = re.compile(r"/(?:base|PG_\d+_\d+)/(\d+)/[^/]+$")


def postgres(
    folders: Sequence[PurePosixPath],
    databases: Mapping[int, str],
    relations: Mapping[tuple[int, int], str] | None,
) -> Label:
    """Labels of PostgreSQL's files.

    :param folders: the server's own, as the machine sees them.
    :param databases: names by OID.
    :param relations: names by database and file number, of the database one is connected to, those
        of the server's own catalog as `SystemName`; None tells databases apart and no tables.

    >>> label = postgres([PurePosixPath("/data")], {5: "erp"}, {(5, 16384): "public.stock"})
    >>> label("/data/base/5/16384.1"), label("/data/base/5/16384_fsm")
    ('public.stock', 'public.stock')
    >>> label("/data/base/5/99"), label("/data/pg_wal/000000010000000000000001")
    ('erp: (other files)', '(log)')
    >>> label("/old/base/5/16384"), label("/old/notes.txt")
    ('(another server)', '(other files)')
    """
    own = tuple(f"{folder}/" for folder in folders)

    def label(path: str) -> str:
        if not path.startswith(own):
            return ANOTHER if _DATABASE.search(path) or "/pg_wal/" in path else OTHERS
        if "/pg_wal/" in path:
            return LOG
        if "/global/" in path or "/pg_xact/" in path or "/pg_multixact/" in path:
            return SERVER
        within = _DATABASE.search(path)
        if within is None:
            return OTHERS
        database = databases.get(int(within[1]), f"database {within[1]}")
        if relations is None:
            return database
        file = _RELATION.search(path)
        number = (int(within[1]), int(file[2])) if file else (0, 0)
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
