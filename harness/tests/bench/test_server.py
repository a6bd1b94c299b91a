"""The database's server beside a run: which devices, what is said where it is not to be seen."""

from __future__ import annotations

from io import StringIO
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hotset.bench.server import sampled as server
from hotset.bench.server.sampled import ServerUse, TierDevices
from hotset.bench.window import Outcome
from hotset.block.io_counters import CACHE, ORIGIN, Direction, IoCounters, KernelDevice, between
from hotset.core.units import Bytes
from hotset.hitratio.sampler import Cpu, Sample
from hotset.hitratio.sampler import between as windowed
from hotset.reports.model.windows import Repeat, Second
from tests.benchmark_results import run_of
from tests.fake_machine import FakeMachine

COUNTED = IoCounters(
    "engine", Direction(10, Bytes(40960), 5.0, ((500, 10),)), Direction(0, Bytes(0), 0.0, ()), 4.0
)


class EngineTier:
    """A tier that counts by itself."""

    def __init__(self, active: bool = True) -> None:
        self._active = active

    def is_active(self) -> bool:
        return self._active

    def status_argv(self) -> list[str]:
        return ["hotset-engine", "ask", "/run/a b"]

    def devices(self) -> dict[str, PurePosixPath]:
        return {}

    def parse_devices(self, line: str) -> dict[str, IoCounters]:
        assert line == "counted"
        return {CACHE: COUNTED}


class KernelTier(EngineTier):
    """One whose devices the kernel counts."""

    def parse_devices(self, line: str) -> dict[str, IoCounters]:
        raise AssertionError(f"nobody asks it for them: {line}")

    def devices(self) -> dict[str, PurePosixPath]:
        return {ORIGIN: PurePosixPath("/dev/sdb")}


def on_server(monkeypatch: pytest.MonkeyPatch, **tiers: Any) -> FakeMachine:  # noqa: ANN401
    disks = [
        SimpleNamespace(disk=SimpleNamespace(name=name), tier=tier) for name, tier in tiers.items()
    ]
    monkeypatch.setattr(server.flash_devices, "list_disks", lambda _: disks)
    return FakeMachine({"stat --dereference": "8 10\n"})


def test_one_disk_s_devices_have_their_plain_names(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on_server(monkeypatch, shop=EngineTier())
    (found,) = server.sources(machine)
    assert isinstance(found, TierDevices)
    assert found.command == "hotset-engine ask '/run/a b'"
    assert found.parse("counted") == {CACHE: COUNTED}


def test_several_disks_devices_have_their_disk_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = on_server(monkeypatch, shop=EngineTier(), old=EngineTier(active=False))
    (found,) = server.sources(machine)
    assert found.parse("counted") == {f"shop {CACHE}": COUNTED}


def test_a_server_without_accelerated_disks_has_its_cpu_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert server.sources(on_server(monkeypatch)) == []


def test_what_the_kernel_counts_is_read_there(monkeypatch: pytest.MonkeyPatch) -> None:
    tier = KernelTier()
    (found,) = server.sources(on_server(monkeypatch, shop=tier))
    assert found == KernelDevice(ORIGIN, PurePosixPath("/sys/dev/block/8:16/stat"))


def test_a_server_that_gives_no_samples_costs_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with server.watch_server(on_server(monkeypatch), said.append) as watch:
        assert watch(10.0, 12.0) is None
    assert "could not be sampled" in said[0]
    with server.watch_server(None, said.append) as watch:
        assert watch(10.0, 12.0) is None
    assert len(said) == 1


def use() -> ServerUse:
    later = IoCounters(
        "engine",
        Direction(110, Bytes(450560), 55.0, ((500, 110),)),
        Direction(0, Bytes(0), 0.0, ()),
        504.0,
    )
    first = Sample(100, Cpu(10, 6, 4, 5, 0, 100), None, {CACHE: COUNTED})
    last = Sample(101, Cpu(90, 56, 34, 10, 2, 200), None, {CACHE: later})
    assert between(first.devices, last.devices, 1)
    one = windowed(first, last, 0)
    return ServerUse(one, (one, None))


WINDOW = Repeat(
    rampup_s=0,
    duration_s=2,
    tpm=60,
    failed=0,
    retries=0,
    series=(Second(second=0, tpm=60), Second(second=1, tpm=60)),
)


def test_as_text() -> None:
    out = StringIO()
    window = server.add_use(WINDOW, use(), Bytes(1))
    run_of(Outcome(window)).show(Console(width=100, file=out))
    text = out.getvalue()
    assert "Server CPU: 50 % user, 30 % system, 2 % stolen." in text
    assert [line.split() for line in text.splitlines() if "flash cache" in line] == [
        ["flash", "cache", "50", "%", "0.05", "reads", "100", "0.41", "0.5", "0.5"]
    ]


def test_as_json() -> None:
    found = server.add_use(WINDOW, use(), Bytes(1)).model_dump(mode="json")
    assert (found["server_user"], found["series"][1]["devices"]) == (0.5, [])
    (device,) = found["series"][0]["devices"]
    assert (device["name"], device["read"]["latency_ms_p99"]) == (CACHE, 0.5)
