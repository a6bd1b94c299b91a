"""Who did what: the log."""

from __future__ import annotations

import stat

import pytest

from hotset.harness.errors import ForbiddenError
from hotset.harness.operations.base import audit, registry, run
from hotset.harness.operations.base.audit import Caller
from hotset.harness.operations.base.rights import Right

OPERATOR = Caller("token nightly", Right.OPERATE, "192.0.2.7")


def test_a_call_is_kept_from_its_beginning_to_its_end() -> None:
    found = registry.find("runs rm")
    request = found.parse({"run": "20260101-000000-demo", "yes": True})
    with audit.doing(OPERATOR, found, request):
        (begun,) = audit.entries(10)
    assert (begun.who, begun.address, begun.what) == ("token nightly", "192.0.2.7", "runs rm")
    assert (begun.values["run"], begun.outcome) == ("20260101-000000-demo", "started")
    assert [entry.outcome for entry in audit.entries(10)] == ["done"]
    with pytest.raises(ValueError, match="lost"), audit.doing(OPERATOR, found, request):
        raise ValueError("the disk is lost")
    failed = audit.entries(10)[0]
    assert (failed.outcome, failed.why) == ("failed", "the disk is lost")


def test_what_only_reads_is_not_kept() -> None:
    run.answer("runs list", {}, caller=OPERATOR)
    assert audit.entries(10) == []


def test_a_dry_run_is_not_kept() -> None:
    found = registry.find("tier activate")
    with audit.doing(OPERATOR, found, found.parse({"disk": "erp", "dry_run": True})):
        pass
    assert audit.entries(10) == []


def test_who_may_not_is_kept_without_the_values() -> None:
    with pytest.raises(ForbiddenError):
        run.start("tier destroy", {"card": "main"}, caller=OPERATOR)
    (refused,) = audit.entries(10)
    assert (refused.what, refused.outcome, refused.values) == ("tier destroy", "refused", {})
    assert "needs the right 'admin'" in refused.why


def test_no_secret_is_kept() -> None:
    found = registry.find("tpcc check")
    request = found.parse({"dsn": "host=127.0.0.1", "password": "open-sesame"}, strict=False)
    with audit.doing(OPERATOR, found, request):
        pass
    text = audit._file().read_text()
    assert "127.0.0.1" in text or audit.entries(1) == []
    assert "open-sesame" not in text
    assert stat.S_IMODE(audit._file().stat().st_mode) == 0o600


def test_an_end_may_be_written_before_the_beginning() -> None:
    audit.end("job-1", "done")
    audit.begin(OPERATOR, "warmup run", {}, id_="job-1")
    assert [(entry.id, entry.outcome) for entry in audit.entries(10)] == [("job-1", "done")]


def test_a_full_log_is_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_SIZE_MAX", 2000)
    ids = [audit.begin(OPERATOR, "warmup run", {"number": one}) for one in range(20)]
    kept = [entry.id for entry in audit.entries(100)]
    assert kept == list(reversed(ids))[: len(kept)]
    assert 5 < len(kept) < 20
    assert len(audit.entries(3)) == 3
