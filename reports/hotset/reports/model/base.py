"""Base of all records of the result document."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
UtcTime = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]
PolicyArm = Literal["hotset", "smq", "lru", "sieve", "s3-fifo", "arc"]
"""Arms like `accelerated`, with this policy of hotset's own engine."""
ComparedArm = (
    Literal["baseline", "split-disks", "in-memory", "flash-volume", "accelerated", "all-flash"]
    | PolicyArm
)
"""Arms that an experiment can set up."""
ArmName = ComparedArm | Literal["measured"]
"""``measured``: a database as it was found, in a run that is a measurement."""
TimedWorkload = Literal["tpcc", "sql"]
"""Many users for a while; an experiment has one of them, or none."""


class Record(BaseModel):
    """An unknown key is an error that names it; a record never changes; no NaN, no infinity."""

    # Built when first used: a list of runs reads none of them.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
