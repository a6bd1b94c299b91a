"""Engines of other versions of hotset, against what reads their answers.

An engine goes on while hotset is upgraded around it. The answers were recorded from a real engine
(see tests/data/README.md); those of others are made of them.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hotset.block import programs
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.hitratio.region_counters import EngineCounters
from hotset.tier.base import TierFailedError, TierSpec
from hotset.tier.division import Owners
from hotset.tier.engine import control as engine
from hotset.tier.engine.control import PROTOCOL, OtherVersionError
from hotset.tier.engine.tier import Userspace
from tests.fake_machine import place

DATA = Path(__file__).parents[1] / "data"
MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), Bytes(5 * MIB), Bytes(16 * MIB), Bytes(MIB))
Change = Callable[[Any], Any]


class Recorded(Userspace):
    """A tier whose engine is one that answers as recorded."""

    def __init__(self, control: Path) -> None:
        super().__init__(Local(), SPEC, place(SPEC), "an-origin")
        self.control = PurePosixPath(control)

    def is_active(self) -> bool:
        return True


@contextmanager
def answering(folder: Path, change: Change) -> Iterator[tuple[Recorded, list[str]]]:
    """A tier over the recorded answers, each as ``change`` makes it; and what it was asked."""
    lines = (DATA / f"engine-{PROTOCOL}.jsonl").read_text().splitlines()
    kept = {json.dumps(one["request"]): one["replies"] for one in map(json.loads, lines)}
    path, asked = folder / "control", list[str]()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client, client.makefile("rw") as lines:
                    asked.append(json.dumps(json.loads(lines.readline())))
                    for reply in kept[asked[-1]]:
                        lines.write(json.dumps(change(reply)) + "\n")

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield Recorded(path), asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def as_is(reply: Any) -> Any:  # noqa: ANN401 - any JSON
    return reply


def with_more(reply: Any) -> Any:  # noqa: ANN401 - any JSON
    """As a later build might answer: every object has a field more, a device and a figure of each
    region have come."""
    if isinstance(reply, list):
        return [with_more(one) for one in reply]
    if not isinstance(reply, dict):
        return reply
    made = {name: with_more(value) for name, value in reply.items()}
    if "devices" in made:
        made["devices"].append({**made["devices"][0], "name": "metadata"})
    if "regions" in made:
        made["regions"] = [[*row, 0] for row in made["regions"]]
    return {**made, "hereafter": {"more": [1]}}


def before_there_were_numbers(reply: Any) -> Any:  # noqa: ANN401 - any JSON
    return {name: value for name, value in reply.items() if name != "protocol"}


@pytest.mark.parametrize("change", [as_is, with_more], ids=["this build", "a later build"])
def test_every_reader_reads_it(tmp_path: Path, change: Change) -> None:
    with answering(tmp_path, change) as (tier, _):
        report = tier.report()
        assert (report.state, report.notes) == ("active", ())
        assert report.counters == tier.counters()
        counters = tier.counters()
        assert (counters.read_misses, counters.dirty, counters.total) == (16, 6, 256)
        assert counters.promotions == 18
        # As `tier watch`, `top` and a run's sampler ask.
        line = tier.machine.run(tier.status_argv()).stdout
        assert tier.parse(line) == counters
        devices = tier.parse_devices(line)
        assert {one.read.requests > 0 for one in devices.values()} == {True, False}
        assert len(devices) == 3
        assert sum(tally.reads for tally in _regions(tier)) == 16
        assert [run.count for run in tier.resident()] == [12, 6]
        assert tier.contents().dirty is not None
        assert sum(run.count for runs in tier.by_level().values() for run in runs) == 18
        assert tier.division().pinned.resident == Blocks(4)
        assert tier.owners().runs_of("table:log") is not None
        assert dict(report.tunables)["engine"] == "serving"
        assert tier.flush() == 6
        with pytest.raises(OtherVersionError, match="does not know `unheard_of`"):
            engine.ask(tier.machine, tier.control, {"unheard_of": {}})
        with pytest.raises(OtherVersionError, match="does not know `unheard_of`"):
            engine.ask(tier.machine, tier.control, {"counters": {"unheard_of": True}})


def _regions(tier: Recorded) -> Any:  # noqa: ANN401 - a view of tallies
    return EngineCounters(tier.machine, tier.control).read().tallies.values()


_ACTS: list[Callable[[Recorded], object]] = [
    Recorded.counters,
    Recorded.resident,
    Recorded.contents,
    Recorded.by_level,
    Recorded.division,
    Recorded.owners,
    Recorded.flush,
    Recorded.follow_origin,
    Recorded.settle,
    Recorded.reconfigure,
    lambda tier: tier.divide(Owners((), (), ())),
    lambda tier: tier.parse(tier.machine.run(tier.status_argv()).stdout),
    lambda tier: engine.ask(tier.machine, tier.control, {"warm": {"runs": [[0, 12]]}}),
]


@pytest.mark.parametrize(
    ("change", "speaks"),
    [
        (before_there_were_numbers, "none, as before the first release"),
        (lambda reply: {**reply, "protocol": 2}, "version 2"),
        (lambda reply: {**reply, "protocol": "two"}, "version 'two'"),
    ],
    ids=["earlier", "later", "nonsense"],
)
def test_one_that_speaks_another_protocol_is_refused_and_asked_to_do_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, speaks: str
) -> None:
    """What it is asked may mean something else to it; `settle` ended its process, as if it hung."""
    monkeypatch.setattr(programs, "SCRIPTS", PurePosixPath(tmp_path / "scripts"))
    with answering(tmp_path, change) as (tier, asked):
        for act in _ACTS:
            with pytest.raises(OtherVersionError, match=rf"{speaks}, this hotset 1") as raised:
                act(tier)
            assert "Deactivate the disk with that version" in str(raised.value)
            assert raised.value.remedies[0].operation == "tier deactivate"
        report = tier.report()
    assert (report.state, report.counters, report.notes) == ("failed", None, (str(raised.value),))
    assert {next(iter(json.loads(one))) for one in asked} == {"counters"}
    assert not (tmp_path / "scripts").exists()


@pytest.mark.parametrize("field", ["dirty", "read_hits", "promotions", "begun", "state"])
def test_what_it_does_not_tell_is_named(tmp_path: Path, field: str) -> None:
    def without(reply: Any) -> Any:  # noqa: ANN401 - any JSON
        return {name: value for name, value in reply.items() if name != field}

    with answering(tmp_path, without) as (tier, _):
        with pytest.raises(OtherVersionError, match=f"does not tell `{field}`") as raised:
            tier.counters()
        assert raised.value.remedies[0].operation == "tier deactivate"
        report = tier.report()
        assert (report.state, report.counters) == ("failed", None)
        assert report.notes == (str(raised.value),)


def test_a_state_that_nobody_knows_is_not_well(tmp_path: Path) -> None:
    with answering(tmp_path, lambda reply: {**reply, "state": "half-asleep"}) as (tier, _):
        report = tier.report()
    assert report.state == "degraded"
    assert "'half-asleep'" in report.notes[0]


@pytest.mark.parametrize(
    ("front", "words"),
    [
        ({"ublk": {"device": "/dev/ublkb0", "queues": 4}}, "ublk (/dev/ublkb0)"),
        ({"fuse": {"why": "it is not permitted"}}, "FUSE and a loop device (it is not permitted)"),
        ({"nvme": {"device": "/dev/nvme0n1"}}, None),
        ({"ublk": {}}, None),
        ("ublk", None),
        (None, None),
    ],
)
def test_how_a_disk_is_served_is_told_and_what_nobody_knows_keeps_nobody_from_the_rest(
    tmp_path: Path, front: object, words: str | None
) -> None:
    with answering(tmp_path, lambda reply: {**reply, "front": front}) as (tier, _):
        report = tier.report()
    assert report.state == "active"
    assert dict(report.tunables).get("served by") == words


@pytest.mark.parametrize("line", ["", "hello", "[1]", "7"])
def test_what_is_no_answer_is_a_tier_that_failed(line: str) -> None:
    with pytest.raises(TierFailedError, match="not an answer"):
        engine.parse_serving(line)
