"""What a power run leaves: one record per query, their sum and their geometric mean."""

from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["ok", "timed out", "failed"]


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One query of one stream.

    number    1 to 22
    seconds   from sending it to its last row; of a query that timed out, the time it was given
    rows      how many it returned, None when it did not finish
    checksum  of the rows, equal on every engine that answers alike; None as above
    cause     the server's words for a query that failed
    """

    number: int
    seconds: float
    outcome: Outcome
    rows: int | None = None
    checksum: str | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class PowerResult:
    """One power run (clause 5.3.3): the queries in the order they ran.

    started, ended  seconds since 1970
    refresh_s       RF1 before the queries and RF2 after them (clause 2.5); None: not run
    """

    scale: float
    seed: int | None
    started: float
    ended: float
    queries: tuple[QueryResult, ...]
    refresh_s: tuple[float, float] | None = field(default=None)

    @property
    def complete(self) -> bool:
        """All 22 queries came to their end."""
        return len(self.queries) == 22 and all(one.outcome == "ok" for one in self.queries)

    @property
    def total_s(self) -> float:
        """Seconds of all queries, a floor when one timed out."""
        return sum(one.seconds for one in self.queries)
