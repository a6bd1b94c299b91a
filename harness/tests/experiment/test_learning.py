"""Which blocks a warm-up by heat takes first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from hotset.block.extents import Run
from hotset.core.paths import repository_file
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.experiment import learning
from hotset.experiment.file.spec import read
from hotset.hitratio.heat import Grid, Reading, Tally

if TYPE_CHECKING:
    from hotset.experiment.site.context import Site

BLOCK = Bytes(64 * 1024)
GRID = Grid(Bytes(64 * BLOCK), Bytes(2 * BLOCK))


def tally(requests: int) -> Tally:
    return Tally(requests, 0, 0, requests, 0, 0, None)


class Counters:
    """What was counted before the workload ran, and after it."""

    def __init__(self) -> None:
        self.verbs: list[str] = []
        self._readings = [{3: tally(500), 7: tally(1)}, {3: tally(510), 7: tally(40), 9: tally(90)}]

    def start(self) -> bool:
        self.verbs.append("start")
        return True

    def stop(self) -> bool:
        self.verbs.append("stop")
        return True

    def read(self) -> Reading:
        self.verbs.append("read")
        return Reading(GRID, "one", 0.0, self._readings.pop(0))


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Counters:
    there = Counters()

    @contextmanager
    def cold(*_: object) -> Iterator[SimpleNamespace]:
        there.verbs.append("placed")
        yield SimpleNamespace(tier="a tier")
        there.verbs.append("taken down")

    monkeypatch.setattr(learning.arms, "cold", cold)
    monkeypatch.setattr(learning.region_counters, "find_counters", lambda _: there)
    monkeypatch.setattr(learning, "measure", lambda *_: there.verbs.append("tpcc"))
    monkeypatch.setattr(learning, "run_queries", lambda *_: there.verbs.append("tpch"))
    return there


def site() -> Site:
    spec = read(repository_file("experiments/demo.toml"))
    there = SimpleNamespace(
        spec=spec, report=Reporter(quiet=True), tier=SimpleNamespace(block=BLOCK)
    )
    return cast("Site", there)


def test_the_hottest_come_first_by_what_was_added(counters: Counters) -> None:
    assert learning.hottest(site(), ("tpcc",)) == tuple(
        Run(Blocks(2 * region), Blocks(2)) for region in (9, 7, 3)
    )
    assert counters.verbs == ["placed", "start", "read", "tpcc", "read", "stop", "taken down"]


def test_every_workload_of_a_placement_is_learned(counters: Counters) -> None:
    learning.hottest(site(), ("tpcc", "tpch"))
    assert [verb for verb in counters.verbs if verb.startswith("tpc")] == ["tpcc", "tpch"]


def test_counting_ends_when_the_workload_fails(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("the server died")

    monkeypatch.setattr(learning, "measure", fail)
    with pytest.raises(RuntimeError):
        learning.hottest(site(), ("tpcc",))
    assert counters.verbs[-1] == "stop"


@pytest.mark.parametrize(
    ("order", "cache", "wanted"),
    [("heat", "256MiB", True), ("heat", "1200MiB", False), ("disk", "256MiB", False)],
)
def test_nothing_is_learned_where_all_fits_or_disk_order_is_asked_for(
    order: str, cache: str, wanted: bool
) -> None:
    spec = read(
        repository_file("experiments/demo.toml"), (f"warmup.order={order}", f"tier.cache={cache}")
    )
    assert learning.is_wanted(spec) is wanted
