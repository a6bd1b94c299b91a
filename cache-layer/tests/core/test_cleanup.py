"""What was made is taken down: in order, also on failure, also by the next run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.base import (
    Command,
    CommandError,
    CommandTimeoutError,
    PrerequisiteMissingError,
    Result,
)
from hotset.core.machines.cleanup import (
    BusyError,
    Cleanup,
    clear_journal,
    end_process,
    exclusive,
    read_journal,
)
from hotset.core.machines.local import Local, start_time
from hotset.lab import lab as labs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lab"
    made.mkdir()
    return made


@pytest.fixture
def cleanup(folder: Path) -> Cleanup:
    return Cleanup(folder, Local())


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def wait_until_gone(pid: int, limit_s: float = 5.0) -> bool:
    return wait_until(lambda: start_time(pid) is None, limit_s)


def alive(pid: int) -> bool:
    return start_time(pid) is not None


def test_the_last_made_goes_first(cleanup: Cleanup) -> None:
    done: list[str] = []
    for name in ("one", "two", "three"):
        cleanup.call(name, lambda name=name: done.append(name))  # type: ignore[misc]
    cleanup.undo()
    assert done == ["three", "two", "one"]
    cleanup.undo()
    assert len(done) == 3


def fail(text: str) -> None:
    raise ValueError(text)


def test_every_step_runs_and_the_errors_come_together(cleanup: Cleanup, folder: Path) -> None:
    done: list[str] = []
    cleanup.owner("run 1")
    cleanup.call("one", lambda: done.append("one"))
    cleanup.call("two", lambda: fail("disk is busy"))
    cleanup.call("three", lambda: done.append("three"))
    cleanup.call("four", lambda: fail("link is gone"))
    with pytest.raises(ExceptionGroup) as failures:
        cleanup.undo()
    assert done == ["three", "one"]
    assert [str(one) for one in failures.value.exceptions] == ["link is gone", "disk is busy"]
    assert failures.value.exceptions[0].__notes__ == ["while removing: four"]
    # What could not be undone is left to the next run.
    assert read_journal(folder)


def test_a_mark_leaves_what_was_made_before_it(cleanup: Cleanup, folder: Path) -> None:
    done: list[str] = []
    cleanup.owner("run 1")
    cleanup.call("before", lambda: done.append("before"))
    mark = cleanup.mark()
    cleanup.call("after", lambda: done.append("after"))
    cleanup.undo(mark)
    assert done == ["after"]
    assert read_journal(folder)
    cleanup.undo()
    assert done == ["after", "before"]
    assert not read_journal(folder)


def test_what_is_forgotten_is_not_undone(cleanup: Cleanup) -> None:
    done: list[str] = []
    cleanup.call("before", lambda: done.append("before"))
    mark = cleanup.mark()
    cleanup.call("after", lambda: done.append("after"))
    cleanup.forget(mark)
    cleanup.undo()
    assert done == ["before"]


def test_a_part_is_taken_down_at_its_end(cleanup: Cleanup) -> None:
    done: list[str] = []
    cleanup.call("around", lambda: done.append("around"))
    with cleanup.part():
        cleanup.call("inside", lambda: done.append("inside"))
        assert done == []
    assert done == ["inside"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_a_part_keeps_the_original_error(cleanup: Cleanup, kind: type[BaseException]) -> None:
    done: list[str] = []
    with pytest.raises(kind, match="the real cause") as kept, cleanup.part():  # noqa: PT012
        cleanup.call("one", lambda: done.append("one"))
        cleanup.call("two", lambda: fail("disk is busy"))
        raise kind("the real cause")
    assert done == ["one"]
    assert len(kept.value.__notes__) == 1
    assert "clean-up failed as well" in kept.value.__notes__[0]
    assert "disk is busy" in kept.value.__notes__[0]


def test_a_part_whose_clean_up_fails_is_no_success(cleanup: Cleanup) -> None:
    with pytest.raises(ExceptionGroup, match="could not be removed"), cleanup.part():
        cleanup.call("two", lambda: fail("disk is busy"))


def test_steps_of_this_computer_really_run(cleanup: Cleanup, folder: Path) -> None:
    victim = folder / "made"
    cleanup.command("remove made", ["rm", str(victim)])
    # Written down before the thing is made.
    assert read_journal(folder) == [{"command": "remove made", "argv": ["rm", str(victim)]}]
    victim.touch()
    cleanup.undo()
    assert not victim.exists()
    cleanup.command("remove made", ["rm", str(victim)])
    with pytest.raises(ExceptionGroup) as failures:
        cleanup.undo()
    assert isinstance(failures.value.exceptions[0], CommandError)


def test_a_leftover_is_for_the_next_run_only(cleanup: Cleanup, folder: Path) -> None:
    victim = folder / "made"
    victim.touch()
    cleanup.leftover("remove made", ["rm", str(victim)])
    assert len(read_journal(folder)) == 1
    cleanup.undo()
    assert victim.exists()
    assert not read_journal(folder)


def test_a_process_is_ended(cleanup: Cleanup, sleeper: subprocess.Popen[bytes]) -> None:
    cleanup.process("sleeper", sleeper.pid)
    cleanup.undo()
    assert wait_until_gone(sleeper.pid)


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        started = start_time(process.pid)
        assert started is not None
        end_process(process.pid, started, grace_s=0.2)
        assert not alive(process.pid)


def test_a_zombie_is_no_process(sleeper: subprocess.Popen[bytes]) -> None:
    assert start_time(sleeper.pid) is not None
    assert start_time(sleeper.pid) != start_time(1)
    sleeper.kill()
    assert wait_until_gone(sleeper.pid)
    assert Path(f"/proc/{sleeper.pid}").exists(), "reaped too early: nothing was tested"


def test_a_name_with_spaces_and_brackets_hides_no_start_time(tmp_path: Path) -> None:
    program = tmp_path / "a) S (b 1 2"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "300"]) as process:
        try:
            time.sleep(0.05)
            stat = Path(f"/proc/{process.pid}/stat").read_text()
            if "a) S (b" not in stat:
                pytest.skip("sleep is not a program of its own here")
            assert start_time(process.pid) == stat.split()[-31]
        finally:
            process.kill()


KILLED_RUN = """
import sys
from pathlib import Path
from hotset.core.machines.local import Local
from hotset.core.machines.cleanup import Cleanup, exclusive

folder = Path(sys.argv[1])
with exclusive(folder):
    cleanup = Cleanup(folder, Local())
    cleanup.owner("experiment demo")
    for name in ("one", "two"):
        cleanup.command(f"remove {name}", ["rm", str(folder / name)])
        (folder / name).touch()
    child = Local().spawn(["sh", "-c", "exec sleep 300"], folder / "log")
    cleanup.process("slow disk", child.pid)
    cleanup.command("remove never made", ["rm", str(folder / "never")])
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def killed_run(folder: Path) -> Iterator[int]:
    """A run that was SIGKILLed; gives the pid of the process that it left behind."""
    argv = [sys.executable, "-c", KILLED_RUN, str(folder)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        child = int(run.stdout.readline())
        with (
            pytest.raises(BusyError, match=rf"pid {run.pid}\b"),
            exclusive(folder),
        ):
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
    yield child
    if alive(child):
        os.kill(child, signal.SIGKILL)


def test_the_next_run_clears_what_a_killed_one_left(killed_run: int, folder: Path) -> None:
    assert alive(killed_run)
    with exclusive(folder):  # a killed holder holds nothing
        undone = clear_journal(folder, Local())
    assert undone == [f"ended slow disk (pid {killed_run})", "remove two", "remove one"]
    assert wait_until_gone(killed_run)
    assert not (folder / "one").exists()
    assert not (folder / "two").exists()
    assert not (folder / "cleanup.jsonl").exists()
    assert clear_journal(folder, Local()) == []


def test_what_was_to_be_removed_twice_is_said_once(folder: Path) -> None:
    """`lab down` once said twice that it removed one and the same disk."""
    cleanup = Cleanup(folder, Local())
    for name in ("slow.img", "flash.img", "slow.img"):
        cleanup.command(f"remove {name}", ["rm", "-f", str(folder / name)])
    assert clear_journal(folder, Local()) == ["remove slow.img", "remove flash.img"]


def test_what_was_killed_shows_as_left_over_and_is_cleared(killed_run: int, folder: Path) -> None:
    status = labs.status(folder)
    assert (status.state, status.purpose) == ("left over", "experiment demo")
    assert status.processes == (labs.LabProcess("slow disk", killed_run, True),)
    assert alive(killed_run), "looking changed something"
    said: list[str] = []
    labs.refuse_or_clear(folder, said.append)
    assert wait_until_gone(killed_run)
    assert any(f"ended slow disk (pid {killed_run})" in line for line in said)
    assert labs.status(folder).state == "down"
    labs.refuse_or_clear(folder, fail)  # nothing is left to say


def write_ledger(folder: Path, *entries: dict[str, Any]) -> None:
    lines = [json.dumps(entry) for entry in entries]
    (folder / "cleanup.jsonl").write_text("\n".join(lines) + "\n")


def test_another_process_with_the_same_pid_is_left_alone(
    folder: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    write_ledger(folder, {"process": "slow disk", "pid": sleeper.pid, "started": "1"})
    assert clear_journal(folder, Local()) == []
    end_process(sleeper.pid, "1")
    assert alive(sleeper.pid)


def test_a_half_written_line_does_not_hide_the_others(folder: Path) -> None:
    victim = folder / "made"
    victim.touch()
    write_ledger(
        folder, {"owner": "x", "pid": 1}, {"command": "remove", "argv": ["rm", str(victim)]}
    )
    with (folder / "cleanup.jsonl").open("a") as file:
        file.write('{"process": "virt')
    assert len(read_journal(folder)) == 2
    assert clear_journal(folder, Local()) == ["remove"]
    assert not victim.exists()


def test_no_ledger(folder: Path) -> None:
    assert read_journal(folder) == []
    assert clear_journal(folder, Local()) == []


class Hanging(Local):
    """A computer on which some commands cannot be done."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.done: list[str] = []

    def execute(self, command: Command) -> Result:
        if command.argv[-1] == "bad":
            raise self.error
        self.done.append(command.argv[-1])
        return Result(command.argv, 0, "", "", 0)


@pytest.mark.parametrize(
    "error",
    [
        CommandError("local", Result(("rm", "bad"), 1, "", "not there", 0)),
        PrerequisiteMissingError("rm is not installed"),
        CommandTimeoutError("local", ["rm", "bad"], 60),
    ],
)
def test_one_command_that_cannot_be_done_does_not_stop_the_others(
    folder: Path, error: Exception
) -> None:
    write_ledger(folder, *({"command": name, "argv": ["rm", name]} for name in ("a", "bad", "c")))
    local = Hanging(error)
    try:
        undone = clear_journal(folder, local)
    finally:
        assert local.done == ["c", "a"]
    assert undone == ["c", "a"]


def test_the_lock_is_for_one(folder: Path) -> None:
    with exclusive(folder):
        with pytest.raises(BusyError, match=rf"pid {os.getpid()}\)"), exclusive(folder):
            pass
        assert (folder / "lock").read_text() == str(os.getpid())
    with exclusive(folder):
        pass


def test_the_lock_is_given_back_on_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match="stop"), exclusive(folder):
        fail("stop")
    with exclusive(folder):
        pass


def test_a_lab_left_up_on_purpose_is_refused(
    folder: Path, cleanup: Cleanup, sleeper: subprocess.Popen[bytes]
) -> None:
    cleanup.owner(labs.LEFT_UP)
    cleanup.process("virtual machine", sleeper.pid)
    assert labs.status(folder).state == "up"
    with pytest.raises(BusyError, match="a lab is up"):
        labs.refuse_or_clear(folder, fail)
    assert alive(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert labs.status(folder).state == "left over"
    labs.refuse_or_clear(folder, fail)
    assert labs.status(folder) == labs.Status("down", "", ())


def test_a_run_going_on_shows_as_running(
    folder: Path, cleanup: Cleanup, sleeper: subprocess.Popen[bytes]
) -> None:
    with exclusive(folder):
        cleanup.owner("experiment demo")
        cleanup.process("virtual machine", sleeper.pid)
        status = labs.status(folder)
    process = labs.LabProcess("virtual machine", sleeper.pid, True)
    assert status == labs.Status("running", "experiment demo", (process,))


def test_down_clears_the_lab_of_this_user(sleeper: subprocess.Popen[bytes]) -> None:
    folder = labs.lab_folder()
    cleanup = Cleanup(folder, Local())
    cleanup.owner(labs.LEFT_UP)
    cleanup.process("virtual machine", sleeper.pid)
    (folder / "flash.img").touch()
    said: list[str] = []
    assert labs.down(said.append) == 2
    assert said == [f"ended virtual machine (pid {sleeper.pid})", "removed flash.img"]
    assert wait_until_gone(sleeper.pid)
    assert labs.down(fail) == 0


def test_down_is_refused_while_a_run_goes_on() -> None:
    with exclusive(labs.lab_folder()), pytest.raises(BusyError):
        labs.down(fail)


def test_the_port_of_a_virtual_machine_that_is_up(
    folder: Path, cleanup: Cleanup, sleeper: subprocess.Popen[bytes]
) -> None:
    (folder / "ports.json").write_text('{"22": 40022, "5432": 40023}')
    assert labs.list_forwarded_ports(folder) == {}
    cleanup.owner(labs.LEFT_UP)
    cleanup.process("virtual machine", sleeper.pid)
    assert labs.list_forwarded_ports(folder) == {22: 40022, 5432: 40023}
    sleeper.kill()
    sleeper.wait()
    assert labs.list_forwarded_ports(folder) == {}
