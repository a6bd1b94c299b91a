"""Command that lists the targets of a warm-up or a pin on a database server."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, Context, Kind, Request, operation
from hotset.core.rights import Right

if TYPE_CHECKING:
    from .. import text


class Ask(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None
    count: Annotated[
        int, Field(ge=1, le=10_000, description="How many to list."), Cli(short="-n")
    ] = 100


@operation(
    "warmup targets",
    Kind.QUERY,
    Right.OPERATE,
    ("Get", "HotsetTarget"),
    result="warmup.text:WarmupTargets",
)
def list_targets(request: Ask, context: Context) -> text.WarmupTargets:  # noqa: ARG001
    """List what a warm-up or a pin can name on a database server.

    Databases first, then the tables and indexes of the database in --dsn, largest first.
    """
    from hotset.databases import connect

    from .. import text

    with closing(connect.of_request(request).looking().administer()) as server:
        return text.WarmupTargets(tuple(server.offers(request.count)))
