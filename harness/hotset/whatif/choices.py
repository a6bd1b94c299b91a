"""Options of a simulation; the command line needs them before anything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Policy = Literal[
    "hotset",
    "lru",
    "arc",
    "sieve",
    "s3-fifo",
    "smq",
    "bcache",
    "bound",
    "rates",
]
"""Policies of ``flashdev simulate``, and :data:`BOUNDS`."""
BOUNDS: Mapping[Policy, str] = {"bound": "future", "rates": "rates"}
"""No real policies, but what one would hit that knows this."""
Mode = Literal["writeback", "writethrough"]
