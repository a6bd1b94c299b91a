"""Shared by benchmarks of databases: which it is; and of hotset's own tables: ask, drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotset.core import fields
from hotset.core.operation import Context, Lines, Lock, Request

if TYPE_CHECKING:
    from hotset.databases.connect import NamesDatabase
    from hotset.databases.product import SqlDatabase

    from ..ownership import Kit


class OneDatabase(Request):
    """A database that is to be measured, or holds what is."""

    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None


class Drop(OneDatabase):
    yes: fields.Yes = False


def lock(request: OneDatabase) -> Lock:
    return Lock("database", request.dsn)


def database(request: NamesDatabase) -> SqlDatabase:
    """The database, as HammerDB and readers of its catalog want it."""
    from hotset.databases import connect

    return connect.of_request(request)


def question(request: NamesDatabase, kit: Kit) -> str | None:
    """Compose the question before dropping a kit's tables; None where there are none."""
    from .. import ownership

    return ownership.question(database(request), kit)


def drop(request: Drop, kit: Kit, context: Context) -> Lines:
    """Remove what a kit made.

    :raises RequestError: something of somebody else's is in its schema, or needs it.
    """
    from .. import alone, ownership

    target = database(request)
    with alone.on(target, kit, context.report, removes=True):
        dropped = ownership.drop(target, kit)
    context.message(f"dropped {', '.join(dropped) or 'nothing: there was none'}")
    return Lines()
