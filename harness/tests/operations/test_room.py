"""Callers from elsewhere leave room on this computer's disks."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BeforeValidator

from hotset.core import fields
from hotset.core.operation import Context, FieldKind, Kind
from hotset.core.paths import repository_file
from hotset.core.rights import Right
from hotset.experiment.file import spec
from hotset.experiment.site import live
from hotset.operations import lab, room, run, table
from hotset.operations.jobs import store
from hotset.tpch.data import text_bytes
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
    for found in table.every():
        if found.kind is not Kind.JOB or not Right.OPERATE.includes(found.right):
            continue
        for name, field in found.fields.items():
            marks = FieldKind.from_field(field).metadata
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


def test_what_frees_room_or_writes_back_begins_on_a_disk_that_is_full(
    begun: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    free(monkeypatch, 4 * GIB)
    allow('machines = ["ssh://db1"]\nfolders = ["/srv/allowed"]')
    dsn, disk = (
        {"dsn": "host=127.0.0.1 user=x dbname=x", "yes": True},
        {"socket": "/srv/allowed/disk"},
    )
    for name, values in (
        *(("lab down", {}), ("tier flush", {}), ("heat stop", {})),
        *(("tpcc drop", dsn), ("tpch drop", dsn)),
        *(("disk fail", {**disk, "member": 0}), ("disk replace", {**disk, "member": 0})),
        *(("disk power-cut", disk), ("warmup schedule remove", {"name": "nightly"})),
        ("warmup run", {"disk": "db", "targets": ["all"], "machine": "ssh://db1"}),
    ):
        run.start(name, values)
    assert len(begun) == 10
    for values in ({"machine": "local"}, {"machine": "uml"}):
        with pytest.raises(room.NoRoomError):
            run.start("warmup run", {"disk": "db", "targets": ["all"], **values})


def test_what_frees_room_or_works_elsewhere_is_not_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free(monkeypatch, 0)
    for name, values in (
        *(("tpch drop", {}), ("disk replace", {}), ("warmup unpin", {"machine": "local"})),
        *(("warmup run", {"machine": "ssh://db1"}), ("tier flush", {})),
    ):
        with room.guard_room(name, values, look_s=0.01) as guard:
            time.sleep(0.1)
        assert guard.why == "", name


def test_nothing_is_interrupted_once_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk becomes full while the room is looked at for the last time."""
    looking, leaving = threading.Event(), threading.Event()

    def measured(path: Path) -> SimpleNamespace:  # noqa: ARG001
        looking.set()
        assert leaving.wait(60)
        time.sleep(0.2)
        return SimpleNamespace(total=100 * GIB, used=0, free=0)

    monkeypatch.setattr(shutil, "disk_usage", measured)
    with room.guard_room("demo", {}, look_s=0.01) as guard:
        assert looking.wait(60)
        leaving.set()
    time.sleep(0.5)
    assert guard.why == ""
    assert not [one for one in threading.enumerate() if one.name == "room"]


def test_an_experiment_takes_room_for_all_that_it_makes() -> None:
    """Its saved image is as large as the slow disk; a split has several of those."""
    file = repository_file("experiments/demo.toml")
    texts = ("storage.size=10GiB", "flash.size=20GiB", "tier.volume=1GiB")
    plain = spec.read_any(file, texts)
    assert plain.tpch is not None
    rows = text_bytes(plain.tpch.scale)
    assert plain.disk_bytes == (10 + 10 + 20 + 1) * GIB + rows
    split = spec.read_any(
        file, (*texts, 'arms=["baseline", "split-disks"]', "storage.split_disks=4")
    )
    assert split.disk_bytes == (10 + 40 + 20 + 1) * GIB + rows


def test_rows_that_are_generated_have_to_leave_room() -> None:
    dsn = "host=127.0.0.1 port=1 user=x dbname=x"
    job = wait(run.start("tpch build", {"dsn": dsn, "scale": 100_000}).id)
    assert "leave free" in store.cause(job)


def test_a_lab_has_to_leave_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(wanted: int, field: str | None) -> None:
        raise room.NoRoomError(f"{wanted} bytes", field=field)

    monkeypatch.setattr(live, "lacking", lambda: None)
    for values, field in (
        (lab.Up(warehouses=100), "warehouses"),
        (lab.Up(machine="uml"), "machine"),
    ):
        with pytest.raises(room.NoRoomError, match=r"[0-9]{10}") as refused:
            lab.up(values, Context(require_room=refuse))
        assert refused.value.field == field


def test_what_leaves_too_little_room_as_it_runs_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a trace nobody knows the size before, and several jobs may begin at once."""
    looked = threading.Event()
    usage = SimpleNamespace(total=100 * GIB, used=0, free=3 * GIB)

    def measured(path: Path) -> SimpleNamespace:
        if path == tmp_path:
            looked.set()
        return usage

    monkeypatch.setattr(shutil, "disk_usage", measured)
    values = {"output": str(tmp_path / "trace")}
    with room.guard_room("whatif trace tpcc", values, look_s=0.01) as guard:
        assert looked.wait(60)
    assert guard.why == ""
    usage.free = 2 * GIB
    with pytest.raises(KeyboardInterrupt), room.guard_room("demo", values, look_s=0.01) as guard:
        time.sleep(60)
    assert "half of the 5 GiB" in guard.why
    with room.guard_room("tier flush", {}, look_s=0.01) as guard:
        time.sleep(0.1)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_job_is_ended_on_a_disk_that_becomes_full_and_says_so(tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", str(full)], check=True)
    try:
        allow(f'folders = ["{full}"]')
        values = {"folder": str(full), "size": "100kB", "passes": 1000}
        begun = run.start("disk raffle", values)
        (full / "others").write_bytes(bytes(65_000_000))
        job = wait(begun.id)
        assert job.state == "interrupted", job.messages
        assert f"ended, as {full} has" in store.cause(job)
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


def test_what_an_experiment_sets_has_to_leave_room_too() -> None:
    job = wait(run.start("demo", {"set": ["storage.size=100TB", "flash.size=110TB"]}).id)
    assert job.state == "failed"
    assert "leave free" in store.cause(job)
