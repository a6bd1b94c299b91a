"""What a job's process says of how far it is: in words, and in numbers beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hotset.bench.live import line_printer
from hotset.block.transfer import Progress
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.load.record import Tick
from hotset.operations.jobs import events
from hotset.tier.stalled import FlushWatch
from hotset.tpcc.data.load import LoadProgress
from hotset.tpch import record as tpch

NAMES = ("done", "total", "unit", "eta_s")


def tick(report: Reporter) -> None:
    line_printer(report, 70.0)(Tick(24, "window", 10, 25, 0, 1.5, 2.5))


def flush(report: Reporter) -> None:
    watch = FlushWatch(report, Bytes(4096))
    watch(Blocks(100))


SAID: list[tuple[Callable[[Reporter], Any], list[Any]]] = [
    (
        lambda report: report.on_step(Progress(Bytes(25), Bytes(100), 10.0)),
        [25, 100, "bytes", 30.0],
    ),
    (lambda report: report.on_step(LoadProgress(2, 8, 200, 10.0)), [2, 8, "warehouses", 30.0]),
    (
        lambda report: report.on_step(tpch.LoadProgress("rows", 50, 100, 8.0)),
        [50, 100, "bytes", 8.0],
    ),
    (lambda report: report.on_step(tpch.Begun(0, 7, 3, 22)), [2, 22, "queries", None]),
    (tick, [25, 70.0, "s", 45.0]),
    (flush, [0, 409600, "bytes", None]),
    # Nothing is done yet: how long it takes is not known.
    (lambda report: report.on_step(LoadProgress(0, 8, 0, 1.0)), [0, 8, "warehouses", None]),
    (
        lambda report: report.on_step(LoadProgress(8, 8, 9, 1.0, "indexes")),
        [None, None, None, None],
    ),
]


@pytest.mark.parametrize(("say", "expected"), SAID)
def test_numbers_stand_beside_the_words(
    say: Callable[[Reporter], Any],
    expected: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOTSET_PROGRESS", "json")
    say(Reporter())
    line = capsys.readouterr().err
    (event,) = events.parse(line.encode())
    assert [getattr(event, name) for name in NAMES] == expected
    assert event.text
    assert all(json.loads(line)[name] is not None for name in NAMES if name in json.loads(line))


@pytest.mark.parametrize(
    ("nopm", "said"), [(1200, "2,400 TPM, 1,200 NOPM,"), (None, "2,400 TPM, no")]
)
def test_a_second_of_a_run_without_new_orders_is_told_too(nopm: int | None, said: str) -> None:
    """Scripts of one's own have none; the whole job's events could not be read then."""
    tick = {"second": 0, "phase": "measure", "tpm": 2400, "nopm": nopm, "latency_ms_p95": None}
    (event,) = events.parse(json.dumps({"at": 1.0, "tick": {**tick, "failed": 0}}).encode())
    assert said in event.text
