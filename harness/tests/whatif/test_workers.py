"""Simulations on a real Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotset.core.errors import PrerequisiteError, RequestError
from hotset.core.machines.local import Local, free_port
from hotset.core.paths import state_dir
from hotset.whatif import caches, workers
from hotset.whatif.caches import Cache, Outcome
from hotset.whatif.workers import Cluster, Cores
from tests.cli_server import CommandLine

BLOCK = 8192
LOAD = "tpcc:warehouses=2,buffer=16MiB,tpm=6000,seconds=3"
SIZES = (100, 200, 300, 400)


def lru(slots: int) -> Cache:
    return Cache("lru", slots * BLOCK, BLOCK, "writeback")


@dataclass
class Dask:
    address: str
    scheduler: subprocess.Popen[bytes]


@contextmanager
def started(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", f"distributed.cli.{argv[0]}", *argv[1:], "--no-dashboard"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def cluster(many: int) -> Iterator[Dask]:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with ExitStack() as stack:
        scheduler = stack.enter_context(
            started("dask_scheduler", "--host", "127.0.0.1", "--port", str(port))
        )
        for _ in range(many):
            stack.enter_context(started("dask_worker", address, "--nthreads", "1", "--no-nanny"))
        if many:
            wait_for_workers(address, many)
        yield Dask(address, scheduler)


def wait_for_workers(address: str, many: int) -> None:
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(many, timeout=60)


@pytest.fixture(scope="module")
def dask() -> Iterator[Dask]:
    with cluster(2) as found:
        yield found


def hits(found: Sequence[tuple[Cache, Outcome]]) -> list[int]:
    return [outcome.hits for _, outcome in found]


@pytest.mark.night
def test_a_cluster_finds_what_the_cores_find(dask: Dask) -> None:
    wanted, told = [lru(one) for one in SIZES], []
    with Cores(Local(), 2) as cores:
        here = caches.sweep(cores, LOAD, wanted, [], lambda *_: None)
    with Cluster(dask.address, LOAD) as there:
        assert there.at_a_time == 2
        found = caches.sweep(there, LOAD, wanted, [], lambda *one: told.append(one))
    assert found == here
    assert sorted(left for *_, left in told) == [0, 1, 2, 3]
    assert not list((state_dir() / "whatif").iterdir())


@pytest.mark.night
def test_the_command_line(dask: Dask, hotset: CommandLine) -> None:
    words = ["whatif", "simulate", LOAD, "--cache", "4MiB", "--cache", "8MiB", "--policy", "lru"]
    here = hotset(*words, "--format", "json")
    there = hotset(*words, "--format", "json", "--scheduler", dask.address)
    assert (here.code, there.code) == (0, 0), there.err
    assert there.out == here.out
    assert "2 at a time" in there.err
    both = hotset(*words, "--scheduler", dask.address, "--workers", "3")
    assert both.code == 2
    assert "--workers" in both.err


@pytest.mark.night
def test_what_a_worker_refuses_is_told_in_its_words(dask: Dask) -> None:
    with (
        pytest.raises(RequestError, match="give a smaller one"),
        Cluster(dask.address, LOAD) as there,
    ):
        caches.sweep(there, LOAD, [lru(2 * 10**8)], [], lambda *_: None)


@pytest.mark.night
def test_a_trace_that_a_worker_does_not_have_is_told_first(dask: Dask, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text("0.0 R 0 4096\n")
    with Cluster(dask.address, str(file)):
        pass
    # A path that leads to the file in this process alone.
    with file.open() as opened, pytest.raises(PrerequisiteError, match="under the same path"):
        Cluster(dask.address, f"/proc/self/fd/{opened.fileno()}")


def test_who_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_CONNECT_S", 2.0)
    with pytest.raises(RequestError, match=r"such as tcp://host:8786"):
        Cluster("smoke://signal", LOAD)
    with pytest.raises(PrerequisiteError, match="no Dask scheduler answers"):
        Cluster(f"tcp://127.0.0.1:{free_port()}", LOAD)


@pytest.mark.night
def test_a_cluster_without_workers_is_refused() -> None:
    with (
        cluster(0) as found,
        pytest.raises(PrerequisiteError, match=f"dask worker {found.address}"),
    ):
        Cluster(found.address, LOAD)


@pytest.mark.night
def test_a_cluster_that_goes_away_leaves_what_was_found(dask: Dask) -> None:
    wanted = [lru(one) for one in SIZES]
    with (
        cluster(1) as dying,
        pytest.raises(PrerequisiteError, match="given the simulations up"),
        Cluster(dying.address, LOAD) as there,
    ):
        caches.sweep(there, LOAD, wanted, [], lambda *_: dying.scheduler.kill())
    done: list[Cache] = []
    with Cluster(dask.address, LOAD) as there:
        found = caches.sweep(there, LOAD, wanted, [], lambda cache, *_: done.append(cache))
    assert len(done) < len(wanted), "the first was known"
    assert hits(found) == sorted(hits(found))
