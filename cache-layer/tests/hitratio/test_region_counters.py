"""The engine's counters per region."""

from __future__ import annotations

import json

from hotset.core.units import Bytes
from hotset.hitratio.heat import Grid, Tally
from hotset.hitratio.region_counters import reading_of
from hotset.tier.engine.control import parse_reply

REPLY = {
    "protocol": 1,
    "origin_bytes": 1 << 20,
    "region_bytes": 65536,
    "begun": 1000.25,
    "regions": [[0, 9, 1, 4, 0], [15, 0, 0, 0, 2]],
}


def test_the_engines_answer() -> None:
    reading = reading_of(parse_reply(json.dumps(REPLY)))
    assert reading.grid == Grid(Bytes(1 << 20), Bytes(65536))
    assert (reading.begun, reading.epoch, reading.dropped) == (1000.25, "engine 1000.250", 0)
    assert reading.tallies == {0: Tally(10, 4, 9, 1, 4, 0, None), 15: Tally(0, 2, 0, 0, 0, 2, None)}
