"""HammerDB itself, where HAMMERDB_HOME names a release: its settings, a build, a timed run.

The build and the run take some minutes: HammerDB's clock ticks in minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.bench.tpcc import HAMMERDB_KEEPS
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hammerdb import batch, release, settings, tpcc
from hotset.hammerdb.process import output
from hotset.hammerdb.process.failures import HammerdbFailed
from hotset.tpcc.data.consistency import check
from hotset.tpcc.record import RunOptions
from tests.hammerdb.test_settings import SqlServer
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = [
    pytest.mark.database,
    pytest.mark.skipif(
        "HAMMERDB_HOME" not in os.environ,
        reason="HAMMERDB_HOME names no HammerDB release: the stand-in's tests must do",
    ),
]
WAREHOUSES = 1


@pytest.mark.parametrize("asked", [settings.Tpcc(1), settings.Tpch(1)])
@pytest.mark.parametrize("engine", ["postgres", "sqlserver"])
def test_this_release_has_exactly_our_keys(
    engine: str, asked: settings.Tpcc | settings.Tpch, tmp_path: Path
) -> None:
    connection: settings.Connection = (
        SqlServer() if engine == "sqlserver" else PostgresDatabase("h", 1, "u", PASSWORD, "d")
    )
    call = batch.Batch(release.find(), connection, tmp_path, 60)
    ours = settings.dictionary(connection, asked)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    batch.check_settings(call, scratch, settings.workload(asked), ours)
    section = list(ours)[-1]
    ours[section]["pg_unheard_of"] = "1"
    with pytest.raises(HammerdbFailed, match=f"{section}:pg_unheard_of is unknown to it"):
        batch.check_settings(call, scratch, settings.workload(asked), ours)


@pytest.fixture(scope="module")
def built(
    cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PostgresDatabase, Path]]:
    """A database of one warehouse that HammerDB built, and the folder of the build."""
    folder = tmp_path_factory.mktemp("build")
    with cluster.fresh("hammerdb") as database:
        assert tpcc.build(database, WAREHOUSES, folder).rows["stock"] == 100_000
        yield database, folder


def test_a_timed_run_on_a_build(built: tuple[PostgresDatabase, Path], tmp_path: Path) -> None:
    database, of_build = built
    seen: list[output.Line] = []
    options = RunOptions(users=2, warehouses=WAREHOUSES, rampup_s=0, duration_s=60)
    result = tpcc.run(database, options, tmp_path / "run", observe=seen.append)
    assert result.nopm > 100
    # 10 of 23 transactions are new-orders in HammerDB's mix; the server counts nearly the same.
    assert result.tpm == pytest.approx(result.nopm * 2.3, rel=0.1)
    assert result.server_tpm == pytest.approx(result.tpm, rel=0.2)
    assert result.duration_s == pytest.approx(60, abs=5)
    assert len(result.server_series) > 10
    assert abs(result.server_series[0].at - result.span[0]) < 30
    assert (result.failed, result.server_errors and result.server_errors.deadlocks) == (0, 0)
    for kind in result.transactions.values():
        assert kind.committed > 0
        assert kind.latency_ms is not None
        assert kind.latency_ms.p50 is not None
        assert kind.latency_ms.p99 is not None
        assert 0 < kind.latency_ms.p50 <= kind.latency_ms.p99
    with closing(database.session()) as session:
        found = check(database, session, HAMMERDB_KEEPS, by_hammerdb=True)
        assert [one for one in found if not one.holds] == []
    for folder in (of_build, tmp_path):
        for file in folder.rglob("*"):
            assert file.is_dir() or PASSWORD.encode() not in file.read_bytes(), file


def test_a_server_that_turns_read_only_ends_a_run(
    built: tuple[PostgresDatabase, Path], tmp_path: Path
) -> None:
    """In the midst of the window; the run went on to its end, and its NOPM were a result."""
    database, _ = built
    options = RunOptions(users=2, warehouses=WAREHOUSES, rampup_s=0, duration_s=60)
    begun = time.monotonic()

    def turn(line: output.Line) -> None:
        if isinstance(line, output.WindowEdge) and line.phase == "measure":
            session.script("ALTER SYSTEM SET default_transaction_read_only = on")
            session.script("SELECT pg_reload_conf()")

    with closing(database.session()) as session:
        try:
            with pytest.raises(HammerdbFailed, match=r"read-only|transactions of virtual user"):
                tpcc.run(database, options, tmp_path / "run", observe=turn)
        finally:
            session.script("SET default_transaction_read_only = off")
            session.script("ALTER SYSTEM RESET default_transaction_read_only")
            session.script("SELECT pg_reload_conf()")
    assert time.monotonic() - begun < 45


def test_a_second_build_is_refused_by_hammerdb_and_told(
    built: tuple[PostgresDatabase, Path], tmp_path: Path
) -> None:
    with pytest.raises(HammerdbFailed, match="exists but is not empty"):
        tpcc.build(built[0], WAREHOUSES, tmp_path)


def test_a_wrong_password_is_told_and_not_shown(
    built: tuple[PostgresDatabase, Path], tmp_path: Path
) -> None:
    database = replace(built[0], password="not-that-one")  # noqa: S106
    with pytest.raises(HammerdbFailed, match="authentication failed") as failed:
        tpcc.build(database, WAREHOUSES, tmp_path)
    assert "not-that-one" not in str(failed.value)
    assert all(b"not-that-one" not in one.read_bytes() for one in tmp_path.iterdir())


def test_a_dying_server_ends_a_build(cluster: Cluster, tmp_path: Path) -> None:
    died = False

    def kill(line: output.Line) -> None:
        nonlocal died
        if isinstance(line, output.Message) and "Loading" in line.text and not died:
            died = True
            cluster.kill()

    with cluster.fresh("dies") as database:
        try:
            with pytest.raises(HammerdbFailed, match="virtual user 1"):
                tpcc.build(database, 1, tmp_path, observe=kill)
        finally:
            cluster.start()
