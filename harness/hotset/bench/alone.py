"""One run, load or removal of a benchmark at a time in a database.

Two would each measure the other's load as the server's slowness, count the other's orders, and a
removal would end a run half-way. The server keeps the lock, so that it holds whichever computer the
other comes from, and goes with a killed process.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from hotset.core.errors import PrerequisiteError
from hotset.core.progress import Reporter
from hotset.core.sql import Aborted
from hotset.databases.base import sql
from hotset.databases.product import SqlDatabase
from hotset.tpcc.database import Session

from .ownership import Kit


class DatabaseInUse(PrerequisiteError):
    """Somebody else runs, loads or removes the same benchmark there, or may do so."""


@contextmanager
def on(database: SqlDatabase, kit: Kit, report: Reporter, removes: bool = False) -> Iterator[None]:
    """Have the benchmark's tables to oneself; nobody may be able to tell, which is said.

    :param removes: existing tables go: then it must be known that they are not in use.
    :raises DatabaseInUse: somebody else has.
    """
    with closing(database.session()) as session:
        _take(session, database.engine, kit, report, removes)
        yield


def _take(session: Session, engine: str, kit: Kit, report: Reporter, removes: bool) -> None:
    whose = f"process {os.getpid()} of {socket.gethostname()}".replace("'", "")
    try:
        session.script(sql(engine, "keep_session").format(whose=whose))
        ((is_taken,),) = session.query(sql(engine, "take_benchmark").format(benchmark=kit.word))
    except Aborted as error:
        unknown = f"whether anybody else runs {kit.title} on this database is not known: {error}"
        if removes:
            raise DatabaseInUse(
                f"{unknown}. What is removed would end their run: take a role that may ask, or"
                " remove the tables yourself once nobody uses them"
            ) from None
        report.warn(unknown)
        return
    if not is_taken:
        raise DatabaseInUse(
            f"{_holder(session, engine, kit)} runs, loads or removes {kit.title} in this database"
            " now: wait until it has ended, or end it"
        )


def _holder(session: Session, engine: str, kit: Kit) -> str:
    try:
        rows = session.query(sql(engine, "benchmark_taken_by").format(benchmark=kit.word))
    except Aborted:
        rows = []  # not every role may ask
    return ", ".join(str(row[0]) for row in rows) or "somebody else"
