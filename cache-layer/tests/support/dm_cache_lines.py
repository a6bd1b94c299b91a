"""A dm-cache as the kernel's status has it, and its sizes."""

from __future__ import annotations

from hotset.core.units import Bytes
from hotset.tier.base import TierSpec

MIB = 2**20
PARAMETERS = (
    "8 27/4096 128 10145/14336 1234 5 678 9 0 12 33"
    " 2 metadata2 writeback 2 migration_threshold 2048 smq 0 rw -"
)
LINE = f"0 3145728 cache {PARAMETERS}"
SPEC = TierSpec(
    "writeback", "smq", Bytes(64 * 1024), Bytes(5 * MIB), Bytes(896 * MIB), Bytes(256 * MIB)
)
