from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from hotset.core.record import SCHEMA_VERSION
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Repeat
from hotset.reports.render import sections
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


@pytest.mark.parametrize("run", sorted(one.parent.name for one in PUBLISHED.glob("*/result.json")))
def test_every_published_run_is_of_this_version_and_drawn(run: str) -> None:
    text = (PUBLISHED / run / "result.json").read_text()
    document = RunDocument.model_validate_json(text)
    assert document.model_dump_json(indent=1) == text.rstrip("\n"), "as it would be written today"
    assert document.disks is not None or sections.page_of(document).sections
