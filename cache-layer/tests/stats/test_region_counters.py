"""The engine's counters per region."""

from __future__ import annotations

import json

import pytest

from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.stats.heat import Grid, Tally
from hotset.cachelayer.stats.region_counters import parse_regions
from hotset.cachelayer.tiers.base import TierFailedError

REPLY = {
    "origin_bytes": 1 << 20,
    "region_bytes": 65536,
    "begun": 1000.25,
    "regions": [[0, 9, 1, 4, 0], [15, 0, 0, 0, 2]],
}


def test_the_engines_answer() -> None:
    reading = parse_regions(json.dumps(REPLY))
    assert reading.grid == Grid(Bytes(1 << 20), Bytes(65536))
    assert (reading.begun, reading.epoch, reading.dropped) == (1000.25, "engine 1000.250", 0)
    assert reading.tallies == {0: Tally(10, 4, 9, 1, 4, 0, None), 15: Tally(0, 2, 0, 0, 0, 2, None)}


def test_errors_and_unknown_fields_are_told() -> None:
    with pytest.raises(TierFailedError, match="going down"):
        parse_regions('{"error": "going down"}')
    with pytest.raises(ValueError, match="extra"):
        parse_regions(json.dumps({**REPLY, "extra": 1}))
    with pytest.raises(ValueError, match="begun"):
        parse_regions(json.dumps({key: REPLY[key] for key in REPLY if key != "begun"}))
