"""Engines of the version before, of this one and of the version after, against what reads them.

An engine goes on while hotset is upgraded around it. The answers were recorded from real engines
(see tests/data/README.md); those of the version after are made of them.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.hitratio.region_counters import EngineCounters
from hotset.tier.base import TierFailedError, TierSpec
from hotset.tier.engine import control as engine
from hotset.tier.engine import service
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
def answering(
    folder: Path, version: int, change: Change = lambda reply: reply
) -> Iterator[Recorded]:
    """A tier over the answers of a version, each as ``change`` makes it."""
    lines = (DATA / f"engine-{version}.jsonl").read_text().splitlines()
    kept = {json.dumps(one["request"]): one["replies"] for one in map(json.loads, lines)}
    path = folder / "control"
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
                    for reply in kept[json.dumps(json.loads(lines.readline()))]:
                        lines.write(json.dumps(change(reply)) + "\n")

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield Recorded(path)
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def as_is(reply: Any) -> Any:  # noqa: ANN401 - any JSON
    return reply


def later(reply: Any) -> Any:  # noqa: ANN401 - any JSON
    """As the version after might answer: every object has a field more, a device and a figure of
    each region have come, and what can be done without has gone."""
    gone = {"promotions", "demotions", "write_backs", "latencies_us"}
    if isinstance(reply, list):
        return [later(one) for one in reply]
    if not isinstance(reply, dict):
        return reply
    made = {name: later(value) for name, value in reply.items() if name not in gone}
    if "devices" in made:
        made["devices"].append({**made["devices"][0], "name": "metadata"})
    if "regions" in made:
        made["regions"] = [[*row, 0] for row in made["regions"]]
    return {**made, "hereafter": {"more": [1]}, "protocol": PROTOCOL + 1}


@pytest.mark.parametrize(
    ("version", "change"), [(1, as_is), (2, as_is), (2, later)], ids=["before", "this", "after"]
)
def test_every_reader_reads_it(tmp_path: Path, version: int, change: Change) -> None:
    with answering(tmp_path, version, change) as tier:
        report = tier.report()
        assert (report.state, report.notes) == ("active", ())
        assert report.counters == tier.counters()
        counters = tier.counters()
        assert (counters.read_misses, counters.dirty, counters.total) == (16, 6, 256)
        assert counters.promotions == (None if change is later else 18)
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


@pytest.mark.parametrize(
    ("version", "speaks"), [(1, "an earlier .*version 1 of"), (2, "version 2 of")]
)
@pytest.mark.parametrize("field", ["dirty", "read_hits", "state"])
def test_what_it_does_not_tell_is_named_with_its_version(
    tmp_path: Path, field: str, version: int, speaks: str
) -> None:
    def without(reply: Any) -> Any:  # noqa: ANN401 - any JSON
        return {name: value for name, value in reply.items() if name != field}

    with answering(tmp_path, version, without) as tier:
        with pytest.raises(OtherVersionError, match=rf"{speaks}.*[Dd]eactivate") as raised:
            tier.counters()
        assert f"does not tell `{field}`" in str(raised.value)
        assert raised.value.remedies[0].operation == "tier deactivate"
        report = tier.report()
        assert (report.state, report.counters) == ("failed", None)
        assert report.notes == (str(raised.value),)


def test_a_state_that_nobody_knows_is_not_well(tmp_path: Path) -> None:
    with answering(tmp_path, 2, lambda reply: {**reply, "state": "half-asleep"}) as tier:
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
    with answering(tmp_path, 2, lambda reply: {**reply, "front": front}) as tier:
        report = tier.report()
    assert report.state == "active"
    assert dict(report.tunables).get("served by") == words


@pytest.mark.parametrize("line", ["", "hello", "[1]", "7"])
def test_what_is_no_answer_is_a_tier_that_failed(line: str) -> None:
    with pytest.raises(TierFailedError, match="not an answer"):
        engine.parse_serving(line)


def test_this_builds_answers_have_the_version_that_is_read(tmp_path: Path) -> None:
    last = max(int(file.stem.partition("-")[2]) for file in DATA.glob("engine-*.jsonl"))
    assert last == PROTOCOL
    with answering(tmp_path, last) as tier:
        (reply,) = engine.ask(tier.machine, tier.control, {"counters": {}})
    assert reply.protocol == PROTOCOL


def test_an_engine_that_an_earlier_version_started_counts_as_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script that started it knows no word for the question: a disk in use counted as one whose
    engine had ended, and nothing could be done with it after an upgrade but to take it down."""
    monkeypatch.setattr(service, "SCRIPTS", PurePosixPath(tmp_path))
    monkeypatch.setattr(service, "RUNTIME", PurePosixPath(tmp_path))
    tier = Userspace(Local(), SPEC, place(SPEC), "an-origin")
    name = tier.place.name
    of_now = service.script(name, "an-origin", PurePosixPath("/dev/origin"), ["engine"], ["true"])
    of_before, functions = re.subn(r"(?ms)^alive\(\) \{.*?^\}\n", "", of_now)
    assert functions == 1
    Path(service.script_of(name)).write_text(of_before)
    control = service.control_of(name)
    Path(control).parent.mkdir()
    argv = ["sh", "-c", "read -r line", "engine", "tier", "--control", str(control)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        Path(control.parent / "pid").write_text(f"{process.pid}\n")
        assert not tier.has_ended()
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)
        assert tier.has_ended()
