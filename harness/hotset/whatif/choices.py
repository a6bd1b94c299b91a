"""What can be asked of a simulation; the command line needs it before anything else."""

from __future__ import annotations

from typing import Literal

Policy = Literal[
    "hotset",
    "lru",
    "fifo",
    "clock",
    "2q",
    "arc",
    "lirs",
    "w-tinylfu",
    "sieve",
    "s3-fifo",
    "smq",
    "bcache",
    "bound",
]
"""Those of ``flashdev simulate``, and Belady's bound: what one hits that knows the future."""
Mode = Literal["writeback", "writethrough"]
