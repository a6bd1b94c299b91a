"""The load that prepares every arm's server, until what it reads is level."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from hotset.block.io_counters import KernelDevice
from hotset.core.machines.local import Local
from hotset.core.paths import repository_file
from hotset.core.progress import Reporter
from hotset.databases.postgres.product import PostgresDatabase
from hotset.experiment import timed
from hotset.experiment.file.spec import Spec, SpecError, read
from hotset.experiment.preparation import OnProbe, Second, end_sessions, is_level, prepare
from hotset.load.record import RunFailed
from hotset.load.steady import LEVEL_LEAST, LEVEL_MOST
from hotset.reports.model.windows import Preparation

DEMO = repository_file("experiments/demo.toml")
SHOP = repository_file("experiments/shop.toml")
PAGE = 8192
BUFFERS = 1000 * PAGE
RISING = [round(20_000 * 1.25**second) for second in range(40)]
"""A quarter more in each second: it is all the same when a busy computer begins to count."""


def spec(*overrides: str) -> Spec:
    return read(DEMO, ("tpcc.warehouses=2", "tpcc.users=2", *overrides))


def seconds(reads: list[float | None], transactions: float = 30) -> list[Second]:
    return [Second(float(at), one, transactions) for at, one in enumerate(reads)]


def pages(each_second: list[float]) -> list[tuple[float, int]]:
    """What the server had read at the end of each second."""
    total, found = 0.0, [(0.0, 0)]
    for at, one in enumerate(each_second, 1):
        total += one
        found.append((float(at), int(total * PAGE)))
    return found


def level(reads: list[float], buffers_bytes: int = BUFFERS) -> bool | None:
    return is_level(seconds([*reads]), pages(reads), buffers_bytes)


def test_reads_that_are_steady_while_buffers_fill_are_not_level() -> None:
    """As a server's that has just started."""
    filling = [100.0] * LEVEL_LEAST
    assert level(filling) is False
    assert level(filling, 0) is True
    assert level([100.0] * (10 + LEVEL_LEAST - 1)) is None, "full after ten seconds"
    assert level([100.0] * (10 + LEVEL_LEAST)) is True


def test_only_what_follows_full_buffers_is_judged() -> None:
    published = [959.0, 990, 936, 555, 527, 520]
    assert level(published, 0) is False
    assert level([*published[:3], *[530.0] * LEVEL_LEAST], 2885 * PAGE) is True
    assert level([*published[:3], *[530.0] * LEVEL_LEAST], 0) is None


def test_a_computer_that_others_slow_down_has_level_reads_all_the_same() -> None:
    """As many reads for each transaction, however many there are in a second."""
    busy = [100.0, 480, 300, 150, 420, 90, 500, 310, 220, 130]
    scattered = [Second(float(at), 16 * one, one) for at, one in enumerate(busy)]
    assert level([16 * one for one in busy], 0) is None, "per second"
    assert is_level(scattered, pages([16 * one for one in busy]), 0) is True


def test_a_disk_at_its_limit_may_read_more_for_each_transaction() -> None:
    each = [Second(float(at), 600, 20 if at < 10 else 40) for at in range(20)]
    assert level([600.0] * 20, 0) is True, "per second"
    assert is_level(each, pages([600.0] * 20), 0) is False


def test_what_was_not_seen_or_not_counted_is_not_known() -> None:
    steady = [100.0] * LEVEL_MOST
    assert is_level(seconds([*steady]), [], 0) is None
    assert is_level(seconds([*steady[1:], None]), pages(steady), 0) is None
    assert is_level([], [], 0) is None
    assert is_level(seconds([None] * LEVEL_MOST), pages(steady), 0) is None


def test_what_memory_serves_is_level_and_never_fills_the_buffers() -> None:
    assert level([2.0] * LEVEL_LEAST, BUFFERS * 1000) is True
    assert level([2.0] * (LEVEL_LEAST - 1), BUFFERS * 1000) is False
    assert level([4.0] * LEVEL_LEAST, BUFFERS * 1000) is False


def test_a_server_that_does_nothing_is_not_known_to_be_level() -> None:
    for reads in (0.0, 100.0):
        each = [reads] * LEVEL_LEAST
        assert is_level(seconds([*each], transactions=0), pages(each), 0) is None


@contextmanager
def device(folder: Path, rates: list[int]) -> Iterator[KernelDevice]:
    """A device with so many reads in each second, the last rate from then on."""
    stat, over = folder / "stat", threading.Event()
    start = time.monotonic()

    def write() -> None:
        passed = time.monotonic() - start
        whole = int(passed)
        each = [*rates, *[rates[-1]] * (whole + 1)]
        reads = int(sum(each[:whole]) + each[whole] * (passed - whole))
        new = stat.with_suffix(".new")
        new.write_text(f"{reads} 0 {reads * 16} {reads} 0 0 0 0 0 {reads} {reads}\n")
        new.replace(stat)

    def run() -> None:
        while not over.wait(0.02):
            write()

    write()
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield KernelDevice("origin", PurePosixPath(stat))
    finally:
        over.set()
        thread.join()


def prepared(
    database: PostgresDatabase,
    origin: KernelDevice,
    wanted: Spec,
    on_probe: OnProbe,
    buffers: int = 0,
) -> Preparation:
    """Of a server that runs."""
    site: Any = SimpleNamespace(spec=wanted, machine=Local(), report=Reporter(quiet=True))
    server = SimpleNamespace(database=lambda _: database)
    placed: Any = SimpleNamespace(server=server, devices=(origin,), tier=None)
    run = timed.find_timed(wanted)
    assert run is not None
    return prepare(site, placed, run, buffers, 1, on_probe)


class Prepared:
    """A preparation, and what its probe said."""

    def __init__(
        self, database: PostgresDatabase, origin: KernelDevice, wanted: Spec, buffers: int = 0
    ) -> None:
        self.probes: list[tuple[float | None, float]] = []
        begun = time.monotonic()
        self.record = prepared(
            database, origin, wanted, lambda *probe: self.probes.append(probe), buffers
        )
        self.took = time.monotonic() - begun


@pytest.mark.database
@pytest.mark.night
def test_the_load_ends_when_reads_are_level(database: PostgresDatabase, tmp_path: Path) -> None:
    with device(tmp_path, [60_000, 60_000, 60_000, 40_000]) as origin:
        found = Prepared(database, origin, spec("warmup.probe_s=2", "warmup.probe_max_s=60"))
    record = found.record
    assert (record.level, record.users, record.limit_s) == (True, 2, 60)
    assert LEVEL_LEAST <= record.seconds < 40
    assert found.took < 45
    assert record.read_bytes is not None
    assert max(one or 0 for one in record.reads_per_s) > 50_000
    assert record.reads_per_s[-1] == pytest.approx(40_000, rel=0.1)
    assert found.probes == [(None, 2)], "nobody counts hits below"


@pytest.mark.database
@pytest.mark.parametrize(
    ("rates", "buffers"), [(RISING, 0), pytest.param([50_000], 2**50, marks=pytest.mark.night)]
)
def test_the_load_ends_at_the_limit_and_reads_do_not_pass_for_level(
    rates: list[int], buffers: int, database: PostgresDatabase, tmp_path: Path
) -> None:
    """Reads that rise, and buffers that are not full."""
    with device(tmp_path, rates) as origin:
        wanted = spec("warmup.probe_s=2", "warmup.probe_max_s=10")
        found = Prepared(database, origin, wanted, buffers)
    assert (found.record.level, found.record.seconds) == (False, 10)
    assert len(found.probes) == 1


@pytest.mark.database
def test_the_load_has_ended_when_its_last_session_has(database: PostgresDatabase) -> None:
    """And one that was there before it is no reason to wait."""
    with closing(database.session()):
        with end_sessions(database):
            left, began = database.session(), time.monotonic()
            later = threading.Timer(1.5, left.close)
            later.start()
        took = time.monotonic() - began
        later.join()
    assert 1.4 < took < 45


@pytest.mark.database
def test_a_probe_that_refuses_ends_the_load(database: PostgresDatabase, tmp_path: Path) -> None:
    class RefusedError(Exception):
        pass

    def refuse(*_: object) -> None:
        raise RefusedError

    wanted = spec("warmup.probe_s=1", "warmup.probe_max_s=60")
    with device(tmp_path, [50_000]) as origin:
        begun = time.monotonic()
        with pytest.raises(RefusedError):
            prepared(database, origin, wanted, refuse)
    assert time.monotonic() - begun < 20


@pytest.mark.database
def test_the_load_comes_at_the_rate_of_the_windows(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    """The full load would leave a cache with more to write back than its windows do."""
    wanted = spec("warmup.probe_s=5", "warmup.probe_max_s=5", 'tpcc.rate="10/s"')
    with device(tmp_path, [50_000]) as origin:
        found = Prepared(database, origin, wanted)
    assert 0 < sum(found.record.transactions_per_s) / 5 < 20


@pytest.mark.database
@pytest.mark.parametrize("others", ["", pytest.param("SELECT 1;\n", marks=pytest.mark.night)])
def test_of_transactions_that_take_longer_it_is_not_known(
    others: str, database: PostgresDatabase, tmp_path: Path
) -> None:
    (tmp_path / "slow.sql").write_text("SELECT pg_sleep(20);\n")
    (tmp_path / "quick.sql").write_text(others)
    scripts = '["slow.sql@1", "quick.sql@1"]' if others else '["slow.sql"]'
    wanted = own_sql(tmp_path, scripts)
    with device(tmp_path, [50_000]) as origin:
        found = Prepared(database, origin, wanted)
    assert (found.record.level, found.record.seconds, len(found.probes)) == (None, 2, 1)


@pytest.mark.database
def test_transactions_that_fail_end_the_experiment(
    database: PostgresDatabase, tmp_path: Path
) -> None:
    (tmp_path / "slow.sql").write_text("SELECT 1 / (random() * 0)::int;\n")
    with device(tmp_path, [50_000]) as origin, pytest.raises(RunFailed):
        Prepared(database, origin, own_sql(tmp_path, '["slow.sql"]'))


def own_sql(folder: Path, scripts: str) -> Spec:
    shutil.copytree(SHOP.with_suffix(""), folder / "shop")
    file = Path(shutil.copy(SHOP, folder))
    more = ("sql.users=20", "warmup.probe_s=1", "warmup.probe_max_s=2", "sql.max_errors=100000")
    return read(file, (f"sql.scripts={scripts}", *more))


def test_the_probe_takes_a_second_at_least() -> None:
    with pytest.raises(SpecError, match=r"warmup\.probe_s.*1"):
        spec("warmup.probe_s=0.5", "warmup.probe_max_s=0.5")
    assert spec("warmup.probe_s=1", "warmup.probe_max_s=0.5").warmup.prepare_max_s == 1
