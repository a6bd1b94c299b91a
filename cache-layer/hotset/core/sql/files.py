"""Files of SQL, which hold every fact about a dialect, and batches that are run as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from . import DatabaseError, Session, SetupError

_COMMON = "common"
_SEPARATOR = re.compile(r"^\s*(?:--\s*)?GO\s*$", re.IGNORECASE | re.MULTILINE)


def split_batches(text: str) -> tuple[str, ...]:
    """The batches of an SQL file, which lines `GO` or `-- GO` part: the first is SQL Server's own,
    the second passes as a comment elsewhere, so that a file also runs in its engine's client.

    >>> split_batches("SELECT 1\\nGO\\nSELECT 2;\\n-- go\\n")
    ('SELECT 1', 'SELECT 2;')
    """
    return tuple(batch.strip() for batch in _SEPARATOR.split(text) if batch.strip())


@cache
def _batches(sql: SqlFiles, engine: str, name: str) -> tuple[str, ...]:
    return split_batches(sql.file(engine, name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class SqlFiles:
    """SQL of a package: `sql/<engine>/<name>.sql`, or `sql/common/<name>.sql`, which
    all products take."""

    package: str
    title: str

    def file(self, engine: str, name: str) -> Traversable:
        """:raises SetupError: the package has no SQL for that product."""
        root = files(self.package) / "sql"
        known = sorted(folder.name for folder in root.iterdir() if folder.is_dir())
        known = [name for name in known if name != _COMMON]
        if engine not in known:
            have = ", ".join(known)
            raise SetupError(f"no {self.title} SQL for engine {engine!r}; there is {have}")
        own = root / engine / f"{name}.sql"
        return own if own.is_file() else root / _COMMON / f"{name}.sql"

    def has(self, engine: str, name: str) -> bool:
        """True if there is such a file; not every question can be asked of every product."""
        return self.file(engine, name).is_file()

    def batches(self, engine: str, name: str) -> tuple[str, ...]:
        """The batches of a file."""
        return _batches(self, engine, name)

    def statement(self, engine: str, name: str) -> str:
        """The single batch of a file."""
        (only,) = self.batches(engine, name)
        return only

    def run(self, engine: str, session: Session, *names: str) -> None:
        """Run files as one transaction, which stays open where a batch of them fails."""
        run_whole(session, (batch for name in names for batch in self.batches(engine, name)))


def run_whole(session: Session, batches: Iterable[str]) -> None:
    """Run batches as one transaction, which stays open where one of them fails."""
    session.script("BEGIN TRANSACTION")
    for batch in batches:
        session.script(batch)
    session.script("COMMIT TRANSACTION")


@contextmanager
def nothing_half_done(
    open_: Callable[[], Session], drop: Callable[[Session], object]
) -> Iterator[None]:
    """Drop what was made when what is done inside fails, as far as the server lets it.

    :param drop: over a session of its own.
    """
    try:
        yield
    except BaseException:
        with suppress(DatabaseError), closing(open_()) as session:
            drop(session)
        raise
