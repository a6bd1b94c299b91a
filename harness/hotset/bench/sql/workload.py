"""Scripts on a database, as a workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hotset.core.sql import Value
from hotset.databases.product import SqlDatabase
from hotset.load.record import WindowOptions

from .sources import Source

Protocols: TypeAlias = Literal["prepared", "simple"]
"""With parameters and prepared once per connection, or with the values in the text."""


@dataclass(frozen=True, slots=True)
class SqlWorkload:
    """Scripts on a database.

    :ivar popular: the `default_seed`, by which pgbench's hashes choose the popular rows;
        None: the seed.
    """

    database: SqlDatabase
    sources: tuple[Source, ...]
    options: WindowOptions
    defined: Mapping[str, Value]
    protocol: Protocols = "prepared"
    popular: int | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(source.name for source in self.sources)
