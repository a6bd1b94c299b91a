"""HammerDB as the driver of an experiment: what its file may say, and what a window leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hotset.bench.server.sampled import ServerUse, add_use
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.paths import repository_file
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.experiment import timed
from hotset.experiment.file.spec import Spec, SpecError, read
from hotset.experiment.site import base_image
from hotset.hammerdb import settings
from hotset.hitratio.sampler import Cpu, Sample, Window
from hotset.reports.analysis import answer, stats
from hotset.reports.model.document import Arm
from tests.support.hammerdb_database import Connection

DEMO = repository_file("experiments/demo.toml")
WHOLE = ("tpcc.driver=hammerdb", "tpcc.rampup_s=0", "tpcc.duration_s=60", "tpcc.users=3")


def spec(*overrides: str) -> Spec:
    return read(DEMO, (*WHOLE, "tpcc.warehouses=2", *overrides))


def hammerdb(wanted: Spec) -> timed.Timed:
    found = timed.find_timed(wanted)
    assert isinstance(found, timed.Tpcc)
    assert not found.by_seconds
    return found


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("tpcc.rampup_s=3", "rampup_s 3: HammerDB takes whole minutes"),
        ("tpcc.duration_s=90", "duration_s 90: HammerDB takes whole minutes"),
        ("tpcc.find_rate=p95<5ms", "HammerDB's users keep to no rate"),
        ("tpcc.driver=sysbench", "tpcc.driver = 'sysbench'"),
    ],
)
def test_what_hammerdb_cannot_do_is_told_when_the_file_is_read(override: str, said: str) -> None:
    with pytest.raises(SpecError) as refused:
        spec(override)
    assert said in str(refused.value)


def test_its_database_is_another_one() -> None:
    own = read(DEMO, (*WHOLE, "tpcc.warehouses=2", "tpcc.driver=hotset"))
    assert base_image.path_for(spec(), "image") != base_image.path_for(own, "image")
    assert base_image.path_for(spec("tpcc.seed=9"), "image") == base_image.path_for(spec(), "image")


def test_a_computer_without_it_is_told_before_anything_is_set_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HAMMERDB_HOME", raising=False)
    with pytest.raises(PrerequisiteMissingError, match="HAMMERDB_HOME is not set"):
        hammerdb(spec()).require()


def test_it_draws_items_in_one_way() -> None:
    assert hammerdb(spec()).options(3, 0, 60, 1).items == "uniform"
    with pytest.raises(SpecError, match="HammerDB draws items uniformly"):
        spec("tpcc.items=nurand")


def test_a_probe_takes_a_whole_minute() -> None:
    options = hammerdb(spec()).options(3, 0, 4, 1)
    assert (options.rampup_s, options.duration_s) == (0, 60)


def test_a_window_of_its_is_a_repeat_of_an_arm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a stand-in for the program; it tells no single seconds, and no latency of all kinds."""
    home = tmp_path / "HammerDB-6.0"
    home.mkdir()
    source = Path(__file__).parents[1].joinpath("fake_hammerdb.py").read_text(encoding="utf-8")
    (home / "hammerdbcli").write_text(f"#!{sys.executable}\n{source}", encoding="utf-8")
    (home / "hammerdbcli").chmod(0o755)
    asked = settings.dictionary(Connection(), settings.Tpcc(2))
    (home / "dictionary.json").write_text(json.dumps(asked))
    monkeypatch.setenv("HAMMERDB_HOME", str(home))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FAKE_HAMMERDB", "good")
    run: Any = hammerdb(spec())
    run.require()
    result = run.drive(Connection(), run.options(3, 0, 60, 1), Reporter(quiet=True))
    record = add_use(result, ServerUse(_window(), ()), Bytes(65536))
    assert (record.nopm, record.rate, record.series) == (16115, 16115, ())
    assert record.latency_ms is not None
    assert (record.latency_ms.p95, record.server_cpu) == (None, 0.5)
    assert answer.mean_latency([record.latency_ms]) is None
    assert (record.items, record.hottest_fifth, record.seed) == ("uniform", 0.2, None)
    latency = record.transactions["new_order"].latency_ms
    assert latency is not None
    assert (latency.p50, latency.p95, latency.p90) == (4, 13, None)
    arm = Arm(name="baseline", repeats=(record,))
    fast = record.model_copy(update={"nopm": 32230.0})
    factor = stats.factor(Arm(name="accelerated", repeats=(fast,)), arm)
    assert (factor.ratio, factor.significant) == (2, False)
    (kept,) = (tmp_path / "data/hotset/hammerdb").iterdir()
    assert {"script.tcl", "output.log"} <= {one.name for one in kept.iterdir()}


def _window() -> Window:
    sample = Sample(0.0, Cpu(0, 0, 0, 0, 0, 0), None)
    return Window(60, 0.5, 0.4, 0.1, 0.1, 0, None, sample, sample)
