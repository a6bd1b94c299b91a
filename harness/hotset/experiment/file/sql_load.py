"""How a database of one's own is made: what the experiment file names, and what loads it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

_ARCHIVE = b"PGDMP"
"""A custom-format archive begins with it (pg_backup_archiver.c of PostgreSQL)."""
_CONTENTS = "toc.dat"
"""A folder of pg_dump holds it."""
_READ_UP_TO = 1024**3


@dataclass(frozen=True, slots=True)
class Load:
    """The source of a database to load.

    :ivar given: its name in the experiment file.
    :ivar kind: ``sql``: files for psql, in their order; ``archive``: of pg_dump, for pg_restore.
    """

    given: str
    kind: Literal["sql", "archive"]
    files: tuple[Path, ...]

    def fingerprint(self) -> str:
        """Hash names and contents; of a large file, which would take minutes to read, its size and
        the time of its last change."""
        digest = hashlib.sha256()
        for file in self.files:
            for part in _files(file):
                facts = part.stat()
                digest.update(f"{part.name}\0{facts.st_size}\0".encode())
                if facts.st_size > _READ_UP_TO:
                    digest.update(str(facts.st_mtime_ns).encode())
                    continue
                with part.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
        return digest.hexdigest()


def find(given: str, folder: Path) -> Load:
    """
    :param folder: the folder that the name is relative to.
    :raises ValueError: there is no such file, or nothing that can be loaded; names it.
    """
    path = (folder / given).expanduser()
    if path.suffix.lower() == ".bak":
        raise ValueError(
            "a backup of SQL Server, and an experiment's server is PostgreSQL: restore it on a"
            " server of your own, and run your SQL there before and after"
        )
    if path.is_dir():
        if (path / _CONTENTS).is_file():
            return Load(given, "archive", (path,))
        files = tuple(sorted(path.glob("*.sql")))
        if not files:
            raise ValueError("the folder has neither SQL files (*.sql) nor an archive of pg_dump")
        return Load(given, "sql", files)
    with suppress(OSError):
        with path.open("rb") as content:
            begins = content.read(len(_ARCHIVE))
        is_archive = begins == _ARCHIVE or path.suffix.lower() == ".tar"
        return Load(given, "archive" if is_archive else "sql", (path,))
    raise ValueError(f"no such file or folder, or it cannot be read: {path}")


def _files(path: Path) -> Iterator[Path]:
    """A file, or all files of a folder."""
    yield from (
        sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    )
