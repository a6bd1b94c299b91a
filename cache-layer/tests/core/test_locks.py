"""One operation at a time on a disk, whoever asks, also when one of them is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines import local, locks, programs
from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.machines.locks import MachineBusyError, held

FORK = multiprocessing.get_context("fork")


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(locks, "RUNTIME", PurePosixPath(tmp_path / "run"))
    monkeypatch.setattr(locks, "_WAIT_S", 1)
    return tmp_path / "run"


def test_a_disk_has_one_operation_at_a_time_and_the_other_is_told_which() -> None:
    with (
        held(Local(), "tier flush oltp", "oltp"),
        pytest.raises(MachineBusyError, match=rf"`hotset tier flush oltp` \(process {os.getpid()}"),
        held(Local(), "warmup run oltp", "oltp"),
    ):
        pytest.fail("both have it")
    with held(Local(), "warmup run oltp", "oltp"):
        assert len(locks.holders(Local())) == 1
    assert locks.holders(Local()) == []


def test_two_disks_are_worked_on_side_by_side_but_not_while_the_flash_is_cut() -> None:
    with (
        held(Local(), "tier flush oltp", "oltp"),
        held(Local(), "tier flush dwh", "dwh"),
        pytest.raises(MachineBusyError, match="tier flush"),
        held(Local(), "tier create third"),
    ):
        pytest.fail("both have it")
    with (
        held(Local(), "tier create third"),
        pytest.raises(MachineBusyError, match="tier create third"),
        held(Local(), "tier flush oltp", "oltp"),
    ):
        pytest.fail("both have it")


def test_those_who_read_share_it() -> None:
    with (
        held(Local(), "tier resident oltp", "oltp", "shared"),
        held(Local(), "warmup plan oltp", "oltp", "shared"),
        pytest.raises(MachineBusyError),
        held(Local(), "tier flush oltp", "oltp"),
    ):
        pytest.fail("it was read")


def _add_one(count: Path, times: int) -> None:
    for _ in range(times):
        while True:
            try:
                with held(Local(), "tier flush oltp", "oltp") as machine:
                    number = int(machine.run(["cat", str(count)]).stdout)
                    machine.run(["tee", str(count)], stdin=str(number + 1))
                break
            except MachineBusyError:
                continue


def test_side_by_side_nothing_is_lost(tmp_path: Path) -> None:
    """Reads a number and writes it back larger, as a flash device is read and saved."""
    count = tmp_path / "count"
    count.write_text("0")
    workers = [FORK.Process(target=_add_one, args=(count, 6)) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join(120)
    assert count.read_text() == "24"


def _killed(work: Callable[[], None], ready: Path) -> None:
    """Run work in a process that is killed as soon as a file is there."""
    process = FORK.Process(target=work)
    process.start()
    assert wait_until(ready.exists, 20)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def test_a_killed_operation_gives_its_lock_back(tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def work() -> None:
        with held(Local(), "tier flush oltp", "oltp"):
            ready.touch()
            time.sleep(60)

    _killed(work, ready)
    with held(Local(), "tier flush oltp", "oltp"):
        pass


def test_but_not_while_its_last_command_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"

    def work() -> None:
        with held(Local(), "tier flush oltp", "oltp") as machine:
            machine.run(["sh", "-c", f"touch {ready}; sleep 3"])

    _killed(work, ready)
    with (
        pytest.raises(MachineBusyError, match="was killed still run"),
        held(Local(), "tier flush oltp", "oltp"),
    ):
        pytest.fail("its command is still at work")
    monkeypatch.setattr(locks, "_WAIT_S", 10)
    with held(Local(), "tier flush oltp", "oltp"):
        pass


def test_commands_under_a_lock_fail_and_are_missing_as_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with held(Local(), "tier flush oltp", "oltp") as machine:
        assert machine.run(["sh", "-c", "exit 3"], check=False).rc == 3
        with pytest.raises(CommandError, match="`sh -c 'exit 3'` failed with code 3"):
            machine.run(["sh", "-c", "exit 3"])
        with pytest.raises(ValueError, match="'frobnicate' is not declared"):
            machine.run(["frobnicate"])
        monkeypatch.setattr(local, "search_path", lambda: "/usr/bin:/bin")
        monkeypatch.setitem(programs.PROGRAMS, "not-there", programs.Program("not-there", "p", "x"))
        with pytest.raises(PrerequisiteMissingError, match="apt-get install p"):
            machine.run(["not-there"])


def test_scratch_files_of_two_operations_never_meet() -> None:
    with (
        locks.scratch_folder(Local(), "oltp") as one,
        locks.scratch_folder(Local(), "oltp") as other,
    ):
        assert one != other
        assert Path(one).is_dir()
    assert not Path(one).exists()


@pytest.mark.parametrize("other", ["dwh", "oltp-2", "oltp-left", None])
def test_what_a_killed_operation_left_goes_and_what_another_uses_stays(
    runtime: Path, other: str | None
) -> None:
    """Taking the lock of disk oltp once removed the files of a running repair of oltp-2."""
    left = runtime / "scratch" / "disk-oltp" / "left"
    left.mkdir(parents=True)
    with (
        held(Local(), "tier repair", other or "transfer"),
        locks.scratch_folder(Local(), other) as used,
        held(Local(), "tier flush oltp", "oltp"),
    ):
        assert not left.exists(), "of one that was killed"
        assert Path(used).is_dir(), "another is at work"


def test_who_may_not_take_a_lock_is_not_told_of_somebody_elses_command(runtime: Path) -> None:
    """A folder that is a file here: nobody can make locks in it."""
    runtime.write_text("")
    with (
        pytest.raises(PrerequisiteMissingError, match=r"no lock can be taken in .*sudo"),
        held(Local(), "tier flush oltp", "oltp"),
    ):
        pytest.fail("it has one")
