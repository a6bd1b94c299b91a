"""Who did what: the log."""

from __future__ import annotations

import json
import os
import stat
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from hotset.cli.options import screen
from hotset.core.errors import ForbiddenError
from hotset.core.paths import data_dir
from hotset.core.rights import Right
from hotset.operations import audit, run, strangers, table
from hotset.operations.audit import ITSELF, Caller
from hotset.operations.jobs import store

OPERATOR = Caller("token nightly", Right.OPERATE, "192.0.2.7")


def test_a_call_is_kept_from_its_beginning_to_its_end() -> None:
    found = table.find("runs rm")
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


def test_the_log_is_shown_whole_in_a_pipe_and_folded_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Times and paths were once cut to 80 columns: "2026-11-25T00:10:3…"."""
    path = f"/srv/{'x' * 100}"
    audit.begin(OPERATOR, "warmup run", {"targets": [path, "/b"], "check": True})
    (entry,) = audit.entries(10)
    log = audit.AuditLog((entry,))
    monkeypatch.delenv("COLUMNS", raising=False)
    with redirect_stdout(StringIO()):
        wide = screen().width
    for width in (wide, 80):
        shown = StringIO()
        log.show(Console(file=shown, width=width))
        text = shown.getvalue()
        assert entry.at in text
        assert "…" not in text
        assert (f"warmup run targets={path},/b check=true" in text) == (width == wide)


def test_what_only_reads_is_not_kept() -> None:
    run.answer("runs list", {}, caller=OPERATOR)
    assert audit.entries(10) == []


def test_a_dry_run_is_not_kept() -> None:
    found = table.find("tier activate")
    with audit.doing(OPERATOR, found, found.parse({"disk": "erp", "dry_run": True})):
        pass
    assert audit.entries(10) == []


def test_who_may_not_is_kept_without_the_values() -> None:
    with pytest.raises(ForbiddenError):
        run.start("tier destroy", {"flash_name": "main"}, caller=OPERATOR)
    (refused,) = audit.entries(10)
    assert (refused.what, refused.outcome, refused.values) == ("tier destroy", "refused", {})
    assert "needs the right 'admin'" in refused.why


def test_no_secret_is_kept() -> None:
    found = table.find("tpcc check")
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


def test_a_full_log_is_put_aside_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_SIZE_MAX", 1000)
    ids = [audit.begin(ITSELF, "warmup run", {"number": one}) for one in range(100)]
    audit.end(ids[3], "done")
    kept = audit.entries(1000)
    assert [entry.id for entry in kept] == list(reversed(ids))
    assert [entry.id for entry in kept if entry.outcome == "done"] == [ids[3]]
    assert [entry.id for entry in audit.entries(3)] == ids[:-4:-1]
    assert len(audit._put_aside()) > 9, "sorted by number, not by name"


def test_a_file_goes_only_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_SIZE_MAX", 1000)
    old = audit.begin(ITSELF, "warmup run", {"long": "x" * 1000})
    os.utime(audit._put_aside()[0], (1, 1))
    new = audit.begin(ITSELF, "warmup run", {"long": "x" * 1000})
    assert [entry.id for entry in audit.entries(10)] == [new], f"{old} is from 1970"


def test_whoever_calls_from_elsewhere_pushes_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_SIZE_MAX", 300)
    monkeypatch.setattr(audit, "_FILES_MAX", 5)
    first = audit.begin(OPERATOR, "tier flush", {"long": "x" * 300})
    for _ in range(4):
        audit.begin(OPERATOR, "tier flush", {"long": "x" * 300})
    with pytest.raises(audit.AuditFullError, match=r"move the oldest .* away from"):
        audit.begin(OPERATOR, "tier flush", {})
    assert audit.entries(100)[-1].id == first
    begun: list[object] = []
    monkeypatch.setattr(store, "_spawn", lambda *given: begun.append(given))
    with pytest.raises(audit.AuditFullError):
        run.start("lab down", {}, caller=OPERATOR)
    assert (begun, store.every()) == ([], [])
    audit.begin(audit.on_command_line(), "tier flush", {})


def test_a_caller_makes_so_many_entries_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit.time, "time", lambda: 1_000_000.0)
    for _ in range(audit.A_MINUTE):
        with pytest.raises(ForbiddenError):
            run.start("tier destroy", {"flash_name": "main"}, caller=OPERATOR)
    with pytest.raises(audit.TooManyChangesError, match="token nightly"):
        run.start("tier destroy", {"flash_name": "main"}, caller=OPERATOR)
    audit.begin(Caller("token other", address="192.0.2.7"), "tier flush", {})
    monkeypatch.setattr(audit.time, "time", lambda: 1_000_060.0)
    audit.begin(OPERATOR, "tier flush", {})


@pytest.mark.parametrize(
    "values",
    [
        {"dsn": "x" * 10**6},
        {"targets": ['\u00ff"' * 2000] * 1000},
        {f"field{number}": [["x" * 100] * 100] for number in range(50)},
        {"x" * 10**5: 1},
    ],
)
def test_an_entry_is_small_whatever_it_is_of(values: dict[str, Any]) -> None:
    long = "\u00ff" * 10**5
    id_ = audit.begin(Caller(long, address=long), long, values, "refused", long)
    audit.end(id_, "failed", long)
    assert audit._file().stat().st_size < 32 * 1024
    (entry,) = audit.entries(10)
    assert len(entry.values) == len(values)
    assert entry.what.endswith("ÿ…")


def test_strangers_are_counted_by_address_and_minute() -> None:
    mine = audit.begin(OPERATOR, "tier flush", {})
    for _ in range(5000):
        strangers.note("203.0.113.9", "no token")
    for number in range(2000):
        strangers.note(f"2001:db8::{number:x}", "wrong password")
    found = strangers.latest(10_000)
    assert sum(one.count for one in found if one.address == "203.0.113.9") == 5000
    assert sum(one.count for one in found) == 7000
    assert len(found) <= 2 * (strangers._ADDRESSES_MAX + 1), "two minutes at most"
    assert strangers.OTHERS in {one.address for one in found}
    assert [entry.id for entry in audit.entries(10)] == [mine]
    (first, *_) = run.answer("audit", {"unknown": True, "limit": 1}).document()["entries"]
    assert (first["who"], first["outcome"]) == ("unknown", "refused")


def test_a_look_at_strangers_writes_nothing_down() -> None:
    """Each look made a line of its own of a minute's count, and failed where the disk was full."""
    strangers.write_down()
    for count in (1, 2, 3):
        strangers.note("203.0.113.9", "no token")
        assert not strangers._file().exists()
        assert sum(one.count for one in strangers.latest(10)) == count
    strangers.write_down()
    assert sum(one.count for one in strangers.latest(10)) == 3


def test_the_file_of_strangers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "_SIZE_MAX", 1000)
    for _ in range(50):
        strangers.note("203.0.113.9", "no token")
        strangers.write_down()
    files = [strangers._file(), strangers._older(strangers._file())]
    assert sum(file.stat().st_size for file in files if file.exists()) < 2500


def test_what_a_later_version_kept_more_of_an_entry_is_passed_over() -> None:
    """It was a TypeError in a traceback; the log is only added to, so nothing of it is lost."""
    id_ = audit.begin(ITSELF, "tier create", {})
    path = data_dir() / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "hereafter": 1}) + "\n" for line in lines))
    audit.end(id_, "done")
    assert [(one.what, one.outcome) for one in audit.entries(9)] == [("tier create", "done")]
