"""What a warm-up or a pin can name on a database server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, Context, Kind, Recorded, Request, operation, write
from hotset.core.rights import Right

if TYPE_CHECKING:
    from rich.console import Console

    from .. import text


class Ask(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None
    count: Annotated[
        int, Field(ge=1, le=10_000, description="How many to list."), Cli(short="-n")
    ] = 100


@dataclass(frozen=True, slots=True)
class Offered(Recorded["text.WarmupTargets"]):
    """What a server has that can be named."""

    rows = "targets"

    @classmethod
    def record(cls) -> type[text.WarmupTargets]:
        from .. import text

        return text.WarmupTargets

    def show(self, console: Console) -> None:
        from .. import text

        write(console, text.render_offers(self.found))


@operation("warmup targets", Kind.QUERY, Right.OPERATE, ("Get", "HotsetTarget"))
def list_targets(request: Ask, context: Context) -> Offered:  # noqa: ARG001
    """List what a warm-up or a pin can name on a database server.

    Databases first, then the tables and indexes of the database in --dsn, largest first.
    """
    from hotset.databases import offers

    from .. import text

    password = fields.secret(request.password)
    found = offers.list_offers(request.engine, request.dsn, password, request.count)
    return Offered(text.WarmupTargets(tuple(found)))
