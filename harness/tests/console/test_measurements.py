"""Measurements on the page of runs: listed, compared by label, and what cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from starlette.testclient import TestClient

from hotset.reports.archive import DOCUMENT, Archive
from hotset.reports.model.document import Arm, RunDocument
from hotset.reports.model.measurement import Measurement
from tests import documents
from tests.console_client import client, hashed, try_password  # noqa: F401 - fixtures

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def measured(hour: int, label: str, nopm: float) -> str:
    """Keep a measurement; returns its run."""
    archive, at = Archive.default(), NOON + timedelta(hours=hour)
    run = archive.new("tpcc", at)
    repeat = documents.repeat("baseline", hour + 1, nopm, duration_s=5)
    archive.save(
        RunDocument(
            run=run,
            state="complete",
            started_at=at,
            seconds=5,
            command=(),
            experiment=documents.complete(3).experiment,
            measurement=Measurement(of="tpcc run", label=label, tier_unknown="nobody looked"),
            arms=(Arm(name="measured", repeats=(repeat.model_copy(update={"repeat": 1}),)),),
        )
    )
    return run


def test_labels_are_compared_in_their_order_and_what_is_unreadable_is_listed(
    client: TestClient,  # noqa: F811
) -> None:
    for hour, (label, nopm) in enumerate((("before", 400), ("after", 4000)) * 3):
        measured(hour, label, nopm + hour)
    broken = measured(7, "before", 400)
    archive = Archive.default()
    (archive.path(broken) / DOCUMENT).write_text("{")
    archive.folder.with_suffix(".sqlite").unlink()
    try_password(client)
    page = client.get("/runs").text
    assert page.index("<option>before</option>") < page.index("<option>after</option>")
    assert "cannot be read" in page
    assert f"/runs/{broken}/report" not in page
    compared = client.get("/runs/compare?run=before&run=after").text
    assert "Compared with <strong>before</strong>." in compared
    assert "faster" in compared
    assert "after: 3 runs (" in compared
    assert f"not known whether labelled so: {broken} (unreadable)" in compared
    pair = "run=20261121-120000-tpcc&run=20261121-130000-tpcc"
    assert "not known" in client.get(f"/runs/compare?{pair}").text
    measured(8, "after", 4000)


def test_a_long_list_shows_the_newest_and_offers_all(client: TestClient) -> None:  # noqa: F811
    from hotset.console.pages import runs

    for hour in range(4):
        measured(hour, "before", 400)
    shown, runs._LISTED = runs._LISTED, 3
    try:
        try_password(client)
        page = client.get("/runs").text
        assert page.count("/trend") == 3
        assert "The newest 3 of 4 runs." in page
        assert client.get("/runs?all=true").text.count("/trend") == 4
    finally:
        runs._LISTED = shown
