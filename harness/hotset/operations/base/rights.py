"""What who calls an operation must be allowed to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Right(StrEnum):
    """Each includes those before it."""

    METRICS = "metrics"
    """Fetch the counters at ``/metrics``, for a scraper: nothing else."""
    READ = "read"
    """See what there is: changes nothing."""
    OPERATE = "operate"
    """Benchmarks, warm-ups, experiments on the lab: loses no data."""
    ADMIN = "admin"
    """Also what may erase data, or changes how a server is set up."""

    def includes(self, needed: Right) -> bool:
        """
        >>> Right.OPERATE.includes(Right.READ), Right.OPERATE.includes(Right.ADMIN)
        (True, False)
        """
        order = list(Right)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Needs:
    """Marks a field of a request that takes a right of its own where it is set."""

    right: Right

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
        found: dict[str, Any] = handler(core)
        return {**found, "x-hotset-right": self.right.value}
