"""`hotset lab up` on this computer: a database on an accelerated disk, and nothing of it left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.cleanup import read_journal
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.databases import connect
from hotset.disk import flash_devices, lifecycle
from hotset.experiment.site import live
from hotset.lab.lab import lab_folder
from hotset.reports.archive import Archive
from tests.one_lab import ON_ONE_LAB, one_lab

pytestmark = ON_ONE_LAB


@pytest.fixture(autouse=True)
def own_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    with one_lab():
        yield


def nothing_is_left(folder: Path) -> None:
    local = Local()
    assert live.DISK not in [one.disk.name for one in flash_devices.list_disks(local)]
    assert not Path("/dev/hotset/lab").is_symlink()
    assert str(folder) not in local.run(["losetup", "--list"]).stdout
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()
    assert read_journal(folder) == []
    assert list(Path("/etc/udev/rules.d").glob(f"*hotset-{live.DISK}*")) == []
    assert not (folder / "password").exists()


def test_the_database_is_on_the_accelerated_disk_and_its_log_on_the_volume() -> None:
    up = live.up(1, "nas-2014", Reporter(True))
    local = Local()
    found = lifecycle.inspect(flash_devices.find(local, live.DISK))
    assert (found.report.state, str(found.disk.device)) == ("active", up.device)
    assert live.find_live() == up
    assert any("hotset tpcc run" in one for one in up.next_commands)
    password = Path(up.password_file)
    assert password.stat().st_mode & 0o777 == 0o600
    before = found.report.counters
    database = connect.database("postgres", up.dsn, password.read_text())
    with closing(database.session()) as session:
        assert session.query("SELECT count(*) FROM hotset_tpcc.warehouse") == [(1,)]
        session.script("SELECT sum(s_quantity) FROM hotset_tpcc.stock")
        ((folder,),) = session.query("SHOW data_directory")
    after = lifecycle.inspect(flash_devices.find(local, live.DISK)).report.counters
    assert before is not None
    assert after is not None
    assert after.read_hits + after.read_misses > before.read_hits + before.read_misses
    mounts = Path("/proc/self/mountinfo").read_text()
    assert f" {Path(str(folder)).parent} " in mounts
    live.take_down(print)
    nothing_is_left(lab_folder())
    assert live.find_live() is None


def test_a_measurement_knows_the_tier_that_its_database_lies_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without being asked: kind, mode, what the cache held, hits over the window, how much of each
    table is cached."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    up = live.up(1, "nas-2014", Reporter(True))
    program = Path(sys.executable).parent / "hotset"
    words = ("--warehouses=1", "--users=2", "--rampup=1", "--duration=4", "--no-check")
    login = ("--dsn", up.dsn, "--password-file", up.password_file)
    done = subprocess.run(
        [str(program), "tpcc", "run", *login, *words, "--format=json"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        assert done.returncode == 0, done.stderr
        run = Archive.default().load("last")
        assert run.run == json.loads(done.stdout)["run"]
        assert run.measurement is not None
        assert run.measurement.tier is not None, run.measurement.tier_unknown
        tier = run.measurement.tier
        assert (tier.disk, tier.kind) == (live.DISK, "userspace")
        assert tier.before is not None
        assert tier.after is not None
        assert tier.after.used_bytes
        assert tier.residents_unknown == ""
        stock = next(one for one in tier.residents if one.name.endswith(".stock"))
        assert stock.bytes > 1_000_000
        assert 0 <= stock.cached <= 1
        arm = run.arm("measured")
        assert arm is not None
        (window,) = arm.repeats
        assert window.counters is not None
        assert window.hit_ratio == pytest.approx(window.counters.hit_ratio(), abs=0.01)
        assert window.server_cpu is not None
        assert run.machine is not None
        assert "userspace" in run.measurement.where
    finally:
        live.take_down(print)


def test_what_a_killed_start_left_is_taken_down() -> None:
    live.up(1, "nas-2014", Reporter(True))  # so that its database is saved
    live.take_down(print)
    folder = lab_folder()
    program = Path(sys.executable).parent / "hotset"
    argv = [str(program), "lab", "up", "--warehouses", "1"]
    process = subprocess.Popen(argv, env=dict(os.environ), stdout=subprocess.DEVNULL)
    is_there = Path("/dev/hotset/lab").exists
    assert wait_until(is_there, 120, ended=lambda: process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert live.take_down(print) > 0
    nothing_is_left(folder)
