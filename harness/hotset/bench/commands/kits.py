"""Shared steps of `tpcc` and `tpch` for hotset's own tables: ask first, and drop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotset.core import fields
from hotset.core.operation import Context, Lines, Request

if TYPE_CHECKING:
    from hotset.databases.connect import NamesDatabase
    from hotset.databases.product import SqlDatabase

    from ..ownership import Kit


class Drop(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None
    yes: fields.Yes = False


def database(request: NamesDatabase) -> SqlDatabase:
    """The database, as HammerDB and whoever looks at its catalog want it."""
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
