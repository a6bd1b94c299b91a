"""What is asked of a running engine: ``hotset-engine ask``, and a socket that answers as told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from hotset.block.extents import Run
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import TierFailedError
from hotset.tier.division import Owner, Owners, Part, SharedOwner
from hotset.tier.engine import control as engine
from hotset.tier.engine.control import OtherVersionError

PART = {"name": "pinned", "blocks": 20, "resident": 12, "guaranteed": 20, "most": 20}
EXCLUDED = {"name": "excluded", "blocks": 0, "resident": 0, "guaranteed": 0, "most": 0}
DIVISION = {
    "block_bytes": 65536,
    "total": 512,
    "available": 504,
    "pinned": PART,
    "excluded": EXCLUDED,
    "shares": [{**PART, "name": "database:shop", "most": 300}],
    "to_leave": 3,
}


@contextmanager
def answering(path: Path, reply: dict[str, object]) -> Iterator[list[object]]:
    """A socket that gives one reply to whatever it is asked, twice; yields what it was."""
    asked: list[object] = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            for _ in range(2):
                client, _ = listening.accept()
                with client, client.makefile("rw") as lines:
                    asked.append(json.loads(lines.readline()))
                    lines.write(json.dumps({"protocol": 1, **reply}) + "\n")

        served = threading.Thread(target=serve, daemon=True)
        served.start()
        yield asked
        served.join(30)


def test_owners_are_sent_as_the_engine_takes_them(tmp_path: Path) -> None:
    control = tmp_path / "control"
    runs = (Run(Blocks(3), Blocks(20)), Run(Blocks(90), Blocks(1)))
    wanted = Owners(
        (Owner("table:orders", runs),),
        (),
        (SharedOwner("database:shop", runs, Blocks(20), Blocks(300)),),
    )
    with answering(control, DIVISION) as asked:
        division = engine.divide(Local(), PurePosixPath(control), wanted)
    counters, sent = asked
    assert counters == {"counters": {}}, "whether it speaks this version"
    pairs = [[3, 20], [90, 1]]
    assert sent == {
        "share": {
            "pinned": [{"name": "table:orders", "runs": pairs}],
            "excluded": [],
            "shares": [
                {"name": "database:shop", "runs": pairs, "guaranteed": 20, "most": 300},
            ],
        }
    }
    assert (division.block, division.to_leave) == (Bytes(65536), 3)
    assert division.pinned == Part("pinned", Blocks(20), Blocks(12), Blocks(20), Blocks(20))
    assert [part.name for part in division.shares] == ["database:shop"]
    assert wanted.runs_of("database:shop") == runs
    assert wanted.runs_of("database:other") is None


def test_a_complaint_of_the_engine_is_told() -> None:
    with pytest.raises(TierFailedError, match="is not healthy") as raised:
        engine.parse_reply('{"error": "the tier is not healthy", "protocol": 1}')
    assert type(raised.value) is TierFailedError


SERVING = {
    **dict.fromkeys(("read_hits", "read_misses", "write_hits", "write_misses"), 1),
    **dict.fromkeys(("promotions", "demotions", "dirty", "used", "total", "begun", "protocol"), 1),
    **{"block_bytes": 65536, "policy": "hotset", "mode": "writethrough", "state": "serving"},
}


def test_what_is_fetched_again_is_told() -> None:
    refill = {"state": "fetching", "seen_to": 30, "fetched": 28, "total": 40, "left_out": 2}
    now = engine.parse_serving(json.dumps({**SERVING, "refill": refill}))
    assert now.refill == engine.Refill("fetching", Blocks(30), Blocks(28), Blocks(40))
    assert engine.parse_serving(json.dumps(SERVING)).refill is None
    with pytest.raises(OtherVersionError, match="`seen_to`"):
        engine.parse_serving(json.dumps({**SERVING, "refill": {"state": "done"}}))
