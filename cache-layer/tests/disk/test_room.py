"""What a cache takes of a machine, told before it is made."""

from __future__ import annotations

import pytest

from hotset.block.devices import DeviceRefusedError
from hotset.core.units import Bytes
from hotset.disk import room
from hotset.tier.base import TierSpec
from tests.fake_machine import FakeMachine

GIB = 2**30
SPEC = TierSpec("writeback", "lru", Bytes(65536), Bytes(GIB), Bytes(200 * GIB), Bytes(0))


def memory(kib: int | None) -> FakeMachine:
    shown = "" if kib is None else f"MemAvailable:   {kib} kB\n"
    return FakeMachine({"cat /proc/meminfo": f"MemTotal:  99999999 kB\n{shown}"})


def test_a_cache_that_takes_more_memory_than_there_is_is_refused_or_said() -> None:
    """The kernel ended the database for it."""
    said: list[str] = []
    origin = Bytes(100 * 1024 * GIB)
    with pytest.raises(DeviceRefusedError, match="would end a database for it"):
        room.check_memory(memory(1024), "userspace", SPEC, origin, False, said.append)
    assert not said
    for kib, words in (
        (1024, "would end a database for it"),
        (64 * 1024**2, "of memory, which is not swapped out"),
        (None, "is not known"),
    ):
        room.check_memory(memory(kib), "userspace", SPEC, origin, True, said.append)
        assert words in said[-1]
    room.check_memory(memory(1024), "dm-cache", SPEC, origin, False, said.append)
    assert len(said) == 3, "the kernel's take the kernel's"
