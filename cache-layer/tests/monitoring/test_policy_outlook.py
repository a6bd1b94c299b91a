"""What is said of a policy must be true of it: which sentences come when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.core.units import Blocks, Bytes
from hotset.monitoring import explain
from hotset.tier.base import Counters, TierKind, TierSpec

SPEC = TierSpec("writeback", "smq", Bytes(65536), Bytes(1), Bytes(1), Bytes(0))
ROOM = Counters(0, 0, 0, 0, 0, 0, Blocks(0), Blocks(5), Blocks(10))
FULL = replace(ROOM, used=Blocks(10))


@pytest.mark.parametrize(
    ("kind", "spec", "counters", "resident", "said", "unsaid"),
    [
        (
            "dm-cache",
            SPEC,
            ROOM,
            1.0,
            ["next read of any block is a hit", "What is cached stays"],
            ["promoted"],
        ),
        (
            "dm-cache",
            SPEC,
            ROOM,
            0.0,
            ["goes to the origin", "16 blocks", "whole block"],
            ["refused", "climbs"],
        ),
        (
            "dm-cache",
            SPEC,
            FULL,
            0.4,
            ["40.0 %", "has to miss again", "lowest clean level"],
            ["whole block is promoted at once"],
        ),
        ("dm-cache", replace(SPEC, mode="writethrough"), ROOM, 0.0, ["16 blocks"], ["whole block"]),
        (
            "dm-cache",
            replace(SPEC, policy="cleaner"),
            ROOM,
            0.0,
            ["promotes nothing"],
            ["16 blocks"],
        ),
        (
            "bcache",
            replace(SPEC, policy="lru", bypass=Bytes(4 * 1024**2)),
            ROOM,
            0.5,
            ["cached by the reading itself", "4 MiB in sequence", "dirty until"],
            ["smq", "16 blocks"],
        ),
        (
            "bcache",
            replace(SPEC, policy="lru", mode="writethrough"),
            ROOM,
            1.0,
            ["Nothing is bypassed", "origin and to the flash"],
            ["cached by the reading"],
        ),
    ],
)
def test_words_fit_policy_and_state(
    kind: TierKind,
    spec: TierSpec,
    counters: Counters,
    resident: float,
    said: list[str],
    unsaid: list[str],
) -> None:
    text = " ".join(explain.describe_outlook(kind, spec, counters, resident))
    for words in said:
        assert words in text
    for words in unsaid:
        assert words not in text
