"""What a warm-up or a pin can name on a database server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from ..base import fields, records
from ..base.context import Context
from ..base.registry import Cli, Kind, Request, operation
from ..base.result import Text
from ..base.rights import Right

if TYPE_CHECKING:
    from pydantic import BaseModel

    from hotset.databases.offers import Offer


class Ask(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None
    count: Annotated[
        int, Field(ge=1, le=10_000, description="How many to list."), Cli(short="-n")
    ] = 100


@dataclass(frozen=True, slots=True)
class Offered(Text):
    offers: list[Offer]

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.databases.offers import Offer

        return records.record_of("WarmupTargets", targets=list[Offer])

    def text(self, form: str) -> str:
        from hotset.warmup import text

        return text.render_offers(self.offers, form)


@operation("warmup targets", Kind.QUERY, Right.OPERATE, ("Get", "HotsetTarget"))
def list_targets(request: Ask, context: Context) -> Offered:  # noqa: ARG001
    """List what a warm-up or a pin can name on a database server.

    Databases first, then the tables and indexes of the database in --dsn, largest first.
    """
    from hotset.databases import offers

    password = fields.secret(request.password)
    return Offered(offers.list_offers(request.engine, request.dsn, password, request.count))
