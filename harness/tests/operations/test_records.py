"""The API tells beforehand what a result holds, and that is what it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from hotset.api import app
from hotset.bench import thresholds
from hotset.bench.commands import disk
from hotset.bench.disks import raffle
from hotset.bench.disks.arrays import DiskArrays, compare
from hotset.bench.disks.disk_bench import DiskBench, JudgedBench
from hotset.bench.disks.disk_models import DiskModels, ModelLine
from hotset.bench.disks.fidelity import Cell as FidelityCell
from hotset.bench.disks.fidelity_table import DiskFidelity
from hotset.bench.disks.reread import DiskRereads, summarize
from hotset.core.operation import Lines
from hotset.core.record import Result, extend, model_of
from hotset.core.units import Bytes
from hotset.disk.boot.schedules import Schedule, Schedules
from hotset.experiment.site.live import LabStatus, Live
from hotset.hitratio.report import HitRatios, HitRow, moment
from hotset.lab import doctor as examination
from hotset.lab.calibrate import CalibratedLine, DiskCalibration
from hotset.lab.lab import LabProcess
from hotset.lab.served_model import DiskArray, DiskPowerCut, Member
from hotset.monitoring import heat_view
from hotset.monitoring.explain import Explanation
from hotset.monitoring.heat_view import Cell as Stretch
from hotset.monitoring.heat_view import Hot
from hotset.monitoring.tier_status import CachedRange, CachedRanges
from hotset.operations import run, table
from hotset.reports.archive import Archive
from hotset.reports.model import disks as disk_records
from hotset.reports.model.document import PredictedArm
from hotset.tier.pins import Preferences, Share
from hotset.warmup import text as warmup_text
from hotset.warmup.division import Kept, Location
from hotset.whatif.advice import CacheAdvice, Size, Wear
from hotset.whatif.caches import Cache as SimulatedCache
from hotset.whatif.caches import (
    Curve,
    CurvePoint,
    HitCurve,
    Outcome,
    RecordedTrace,
    Simulations,
    Trace,
    TraceFigures,
)
from hotset.whatif.checking import PredictionCheck
from hotset.whatif.demands import Demands
from hotset.whatif.doubt import doubt_of
from hotset.whatif.flash import FlashNeeds, Need
from hotset.whatif.prediction import Ceiling, PredictedLine, PredictedRun, Prediction
from tests import documents

DESCRIPTION: dict[str, Any] = app.create().openapi()
ROW = HitRow("all", 9, None, 0.5, None, 0.5, None)
SAMPLE = disk_records.BenchRun(mb_per_s=84.0, iops=66593.1, latency_us=12.5)
BENCH_LINE = disk_records.BenchLine(profile="RND4K Q1T1", direction="read", runs=(SAMPLE,))
DRAW = disk_records.RaffleDraw(name="a", seconds=0.5, bytes=100, in_memory=0.0, major_faults=3)
PASS = raffle.summarize(0, True, (DRAW,) * 2)
PREDICTED_RUN = extend(
    PredictedRun,
    Prediction(
        16,
        Demands(0.001, 0.9, 0.002, 3700.0, 24.7, 18.3, 0.003, 0.35),
        24.3,
        ("baseline", "all-flash"),
        (PredictedLine(0.5, 1706.0, 1536.0, 1855.0, 2.0, 250.2, 0.04, 0.98, "CPU", ("users",)),),
        Ceiling(100.0, 101.0),
        0.98,
        (doubt_of("users"), doubt_of("cores")),
        ("how many misses promote a block",),
    ),
    run="last",
    storage="nas-2014",
)
TRACE = extend(Trace, TraceFigures(3, 1, 8192, 4096, 12288, 0.5, True, False), trace="a.trace")
NEED = Need(0.5, Bytes(2**30), 0.2)
SIZE = Size(4096, 0.5, 0.6, 900.0, 450.0, 1800.0, 0.96, 1.5, None)
WEAR = Wear("hotset", "writeback", 0.5, 4096, 8192, 1.0, 0.1)
CHECKED = PredictedArm(
    arm="baseline",
    users=16,
    hit_ratio=0.0,
    measured_nopm=100.0,
    predicted_nopm=110.0,
    predicted_nopm_low=90.0,
    predicted_nopm_high=120.0,
    error=0.1,
    in_range=True,
)
RESULTS: list[Result] = [
    Lines(("one",)),
    DiskModels((ModelLine("ssd", "an SSD", 9e4, 0.01, 3e5, 500.0, 480.0),)),
    disk.BenchResult(
        extend(
            JudgedBench,
            DiskBench("x", False, 2**30, 5.0, (BENCH_LINE,)),
            thresholds=(thresholds.verdict(thresholds.parse("iops>=1"), 2.0),),
        )
    ),
    raffle.DiskRaffle((PASS,)),
    DiskRereads((summarize("hdd", (PASS,), PASS),)),
    DiskArray((Member(0, "active"), Member(1, "rebuilding", 0.5)), 1, Bytes(0)),
    DiskArrays(
        (compare("raid5", "SEQ1M Q1T1", "read", "MB/s", None, 1000.0),),
        (
            disk_records.DiskArrayFailure(
                array="raid5", before_iops=9e4, during_iops=8e4, rebuilt_s=1.5
            ),
        ),
        (
            disk_records.DiskPowerFailure(
                protected=False, reported_bytes=4096, lost_bytes=0, flushed_lost_bytes=0, files=()
            ),
        ),
    ),
    DiskPowerCut(Bytes(4096)),
    DiskCalibration("nas-2014", (CalibratedLine("random reads", "IOPS", 100.0, 101.0),)),
    DiskFidelity.from_cells(
        [FidelityCell("dc500m", "4k", 1, "read", 2, SAMPLE, (SAMPLE,), 60, 0.5, None)]
    ),
    examination.Findings((examination.Finding("fio", "missing", "apt-get install fio"),)),
    heat_view.HeatRanking("file", (Hot("/srv/a", 5.0, 0.5, 4096, None, 1.0, "/srv/a"),)),
    heat_view.HeatMap((Stretch(0, 4096, 5.0, 1280.0, None),)),
    LabStatus("up", "lab up", (LabProcess("tgtd", 7, True),), live=None),
    LabStatus(
        "up",
        "lab up",
        (),
        live=Live("shop", "/dev/a", "/dev/b", "/dev/c", "/srv", "host=x", "/password", 2),
    ),
    warmup_text.Preferences.from_preferences(
        Preferences(("/srv/a",), ("/srv/b",), (Share("database:shop", "20%", "5GiB"),)),
        {
            "/srv/a": Kept(Bytes(8192), Bytes(4096), None),
            "database:shop": Kept(Bytes(8192), Bytes(4096), Bytes(4096)),
        },
        {
            "/srv/a": Location("gone", Bytes(8192), Bytes(0), "no such file"),
            "database:shop": Location("not known", why="no server"),
        },
    ),
    HitRatios("shop", "dm-cache", "total", None, moment(5.0), "reads", (ROW,), ROW, ("a note",)),
    Schedules((Schedule("shop-boot", "boot", "done", "today", "hotset warmup run heat"),)),
    PREDICTED_RUN,
    FlashNeeds("shop", Bytes(2**20), (NEED,), None),
    FlashNeeds("shop", Bytes(2**20), (NEED,), PREDICTED_RUN),
    TRACE,
    extend(RecordedTrace, TRACE, device="/dev/sdb", recorded_s=60.0, cpu_share=0.01),
    PredictionCheck("a", "b", (CHECKED,)),
    CacheAdvice(
        *("a.trace", "last", 0.95, SIZE, 4096, 4096, 0.01, 0.01, None),
        *(WEAR, (SIZE,), (doubt_of("cores"),)),
    ),
    extend(
        HitCurve,
        Curve(3, 2, 4096, 1.0, 2, 1, 0, (1, 2), (CurvePoint(4096, 0.5, 0.4, 0.6, 0.5, 0.7),)),
        trace="a.trace",
    ),
    Simulations.from_outcomes(
        "a.trace",
        [
            (
                SimulatedCache("lru", 4096, 4096, "writeback"),
                Outcome(3, 1, 2, 0.67, 2, 1, 1, 1, 4096, 1, 0, 0),
            )
        ],
    ),
    CachedRanges("shop", Bytes(65536), Bytes(65536), 1, (CachedRange(Bytes(0), Bytes(65536)),)),
    Explanation(
        "/srv/a", "shop", "bcache", 9, 0.5, None, None, None, None, None, None, None, ("next",)
    ),
]


def described() -> Iterator[tuple[str, dict[str, Any]]]:
    for methods in DESCRIPTION["paths"].values():
        for one in methods.values():
            if "x-hotset" in one:
                yield one["x-hotset"]["operation"], one["x-hotset"]["result"]


NAMES = dict(described())


@pytest.mark.parametrize("result", RESULTS, ids=lambda one: type(one).__name__)
def test_a_result_is_what_its_record_says(result: Result) -> None:
    document = json.loads(json.dumps(result.document()))
    model_of(result.record()).model_validate(document)
    names = [one.name for one in table.every() if one.result is type(result)]
    for name in names:
        reference = NAMES.get(name)
        if reference is not None:
            whole = {**reference, "components": DESCRIPTION["components"]}
            jsonschema.validate(document, whole)


@pytest.mark.parametrize("name", ["lab status", "runs list", "runs show", "doctor", "warmup plans"])
def test_a_query_answers_what_its_record_says(name: str) -> None:
    archive, document = Archive.default(), documents.complete()
    kept = document.model_copy(update={"run": archive.new("demo", document.started_at)})
    archive.save(kept)
    result = run.answer(name, {"run": kept.run} if name == "runs show" else {})
    model_of(result.record()).model_validate(json.loads(json.dumps(result.document())))


def test_every_operation_tells_what_it_comes_to() -> None:
    for one in table.every():
        assert model_of(one.result.record()).model_fields, one.name


def test_units_are_told() -> None:
    fields = DESCRIPTION["components"]["schemas"]["DiskStatus"]["properties"]
    assert fields["dirty_bytes"]["x-unit"] == "bytes"
    assert fields["hit_ratio"]["x-unit"] == "0-1"
    assert "x-unit" not in fields["disk"]
