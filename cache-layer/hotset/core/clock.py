"""Time that nobody can set: the kernel's, beside the wall clock that people read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """``wall``: seconds since 1970, by a clock that may be set. ``up``: seconds since the start of
    this computer that ``boot`` names, its sleep included (clock_gettime(2), CLOCK_BOOTTIME)."""

    wall: float
    boot: str = ""
    up: float = 0.0

    def since(self, earlier: Moment) -> float:
        """Seconds from an earlier moment to this one, by the wall clock only where the computer
        was started in between; 0 where that was set back."""
        if self.boot and self.boot == earlier.boot:
            return max(0.0, self.up - earlier.up)
        return max(0.0, self.wall - earlier.wall)


def boot_id() -> str:
    """What names this start of this computer."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def moment() -> Moment:
    """Now."""
    return Moment(time.time(), boot_id(), time.clock_gettime(time.CLOCK_BOOTTIME))
