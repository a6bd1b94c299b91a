"""Callers from elsewhere leave room on this computer's disks."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BeforeValidator

from hotset.harness.jobs import store
from hotset.harness.operations.base import fields, registry, room, run
from hotset.harness.operations.base.kinds import FieldKind
from hotset.harness.operations.base.registry import Kind
from hotset.harness.operations.base.rights import Right
from tests.operations.test_remote import FakeJob, allow, wait

GIB = 1024**3
NO_FILES = {
    # In memory, on the flash or of a model's table.
    *("block", "buffer", "cache", "id_size", "memory", "read_rate", "sequential_cutoff"),
}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []
    monkeypatch.setattr(store, "start", lambda *given: found.append(given[0]) or FakeJob)
    return found


def free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    usage = SimpleNamespace(total=100 * GIB, used=0, free=size)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)  # noqa: ARG005


def test_every_size_that_becomes_a_file_is_marked() -> None:
    for found in registry.every():
        if found.kind is not Kind.JOB or not Right.OPERATE.includes(found.right):
            continue
        for name, field in found.fields.items():
            marks = FieldKind.of(field).metadata
            is_size = any(
                isinstance(one, BeforeValidator) and one.func is fields.size for one in marks
            )
            if is_size and name not in NO_FILES:
                assert any(isinstance(one, room.Makes) for one in marks), (found.name, name)


def test_files_have_to_leave_room(begun: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    allow('folders = ["/srv/allowed"]')
    free(monkeypatch, 50 * GIB)
    raffle = {"folder": "/srv/allowed/x", "size": "4GiB"}
    run.start("disk raffle", raffle)
    for name, values in (
        ("disk raffle", {**raffle, "size": "5GiB"}),
        ("disk raffle", {"model": "nas-2014", "size": "100TB"}),
        ("disk calibrate", {"model": "nas-2014", "size": "46GiB"}),
        ("disk arrays", {"size": "1TiB"}),
    ):
        with pytest.raises(room.NoRoomError, match="leave free") as refused:
            run.start(name, values)
        assert refused.value.field == "size"
    assert len(begun) == 1


def test_nothing_begins_on_a_disk_that_is_full(
    begun: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archives of runs and records of jobs take a little each."""
    free(monkeypatch, 4 * GIB)
    with pytest.raises(room.NoRoomError):
        run.start("tpcc check", {"dsn": "host=127.0.0.1 user=x dbname=x"})
    assert begun == []


def test_what_an_experiment_sets_has_to_leave_room_too() -> None:
    job = wait(run.start("demo", {"set": ["storage.size=100TB", "flash.size=110TB"]}).id)
    assert job.state == "failed"
    assert "leave free" in store.cause(job)
