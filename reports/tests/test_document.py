from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue, ValidationError

from hotset.reports.model.document import RunDocument
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.model.setup import Experiment
from hotset.reports.model.windows import Repeat
from hotset.reports.render import charts
from tests import documents

PUBLISHED = Path(__file__).parents[1] / "published"


def test_json_and_back() -> None:
    document = documents.complete()
    text = document.model_dump_json()
    assert RunDocument.model_validate_json(text) == document
    raw = json.loads(text)
    assert raw["schema_version"] == SCHEMA_VERSION
    assert raw["started_at"] == "2026-11-21T07:15:00Z"


def test_an_unknown_key_is_an_error_that_names_it() -> None:
    raw = documents.complete().model_dump()
    raw["arms"][0]["repeats"][0]["nopn"] = 1
    with pytest.raises(ValidationError, match=r"arms\.0\.repeats\.0\.nopn"):
        RunDocument.model_validate(raw)


def test_local_time_becomes_utc_and_naive_time_is_refused() -> None:
    raw = documents.complete().model_dump()
    document = RunDocument.model_validate(raw | {"started_at": "2026-11-21T08:15:00+01:00"})
    assert document.started_at.isoformat() == "2026-11-21T07:15:00+00:00"
    with pytest.raises(ValidationError, match="started_at"):
        RunDocument.model_validate(raw | {"started_at": "2026-11-21T08:15:00"})


def test_a_hit_ratio_must_come_from_its_counters() -> None:
    repeat = documents.repeat("accelerated", 1, 4000).model_dump()
    with pytest.raises(ValidationError, match="is not the counters'"):
        Repeat.model_validate(repeat | {"hit_ratio": 0.5})
    with pytest.raises(ValidationError, match="without counters"):
        Repeat.model_validate(repeat | {"counters": None})


def test_a_verdict_must_agree_with_its_interval() -> None:
    factor = documents.complete().factor()
    assert factor is not None
    with pytest.raises(ValidationError, match="contains 1"):
        type(factor).model_validate(factor.model_dump() | {"ci_low": 0.9})
    with pytest.raises(ValidationError, match="outside"):
        type(factor).model_validate(factor.model_dump() | {"ratio": 99.0})


def test_an_arm_appears_once() -> None:
    raw = documents.complete().model_dump()
    with pytest.raises(ValidationError, match="appears twice"):
        RunDocument.model_validate(raw | {"arms": [raw["arms"][0], raw["arms"][0]]})


def test_infinity_is_refused() -> None:
    raw = documents.complete().model_dump()
    with pytest.raises(ValidationError, match="seconds"):
        RunDocument.model_validate(raw | {"seconds": float("inf")})


@pytest.mark.parametrize("run", ["20261121-220932-demo", "20261121-232218-zdxl-2014"])
def test_a_run_of_version_3_is_read_and_drawn(run: str) -> None:
    document = RunDocument.model_validate_json((PUBLISHED / run / "result.json").read_text())
    assert document.schema_version == 3
    assert "latencies" in {figure.key for figure in charts.figures(document)}


BEFORE: dict[str, Any] = {
    "time_scale": 1.0,
    "machine": {"accel": None, "cpu_slowdown": 1.0},
    "experiment": {"spec": {"time_scale": "auto", "machine": {"cores": 2, "kind": "image"}}},
}
"""What every run had before version 15, where nothing was slowed."""


def test_an_earlier_run_at_real_speed_is_one_of_today() -> None:
    document = _as_before(BEFORE)
    assert document.model_dump().keys() == documents.complete().model_dump().keys()
    assert document.machine == documents.complete().machine
    assert document.experiment.spec["machine"] == {"kind": "image"}
    assert "time_scale" not in document.experiment.spec


@pytest.mark.parametrize(
    ("slowed", "key"),
    [
        ({"time_scale": 5.2}, "time_scale"),
        ({"machine": {"accel": "tcg"}}, r"machine\.accel"),
        ({"machine": {"cpu_slowdown": 5.2}}, r"machine\.cpu_slowdown"),
    ],
)
def test_an_earlier_run_that_was_slowed_is_refused(slowed: dict[str, Any], key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        _as_before(slowed)


def _as_before(more: dict[str, Any]) -> RunDocument:
    raw = documents.complete().model_dump() | {"schema_version": 14}
    for key, value in more.items():
        raw[key] = raw[key] | value if isinstance(value, dict) else value
    return RunDocument.model_validate(raw)


def test_earlier_runs_drew_items_in_the_one_way_that_there_was() -> None:
    assert _items({"warehouses": 2}) == "nurand"
    assert _items({"warehouses": 2, "driver": "hammerdb"}) == "uniform"
    assert _items({"warehouses": 2, "items": "uniform"}) == "uniform"


def _items(tpcc: dict[str, JsonValue]) -> object:
    read = Experiment(name="old", title="", spec={"tpcc": tpcc}).spec["tpcc"]
    assert isinstance(read, dict)
    return read["items"]
