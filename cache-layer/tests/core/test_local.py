"""This computer as a machine: real commands, real processes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines import local as this_computer
from hotset.core.machines.base import (
    Command,
    CommandError,
    CommandTimeoutError,
    PrerequisiteMissingError,
    Result,
    check_declared,
    missing,
)
from hotset.core.machines.local import Local, search_path, start_time


@pytest.fixture
def local() -> Local:
    return Local()


def gone(pid: int) -> bool:
    return start_time(pid) is None


def end(pid: int) -> None:
    """Tidy up what a test found alive."""
    if not gone(pid):
        os.kill(pid, 9)


def test_a_command_that_works(local: Local) -> None:
    result = local.run(["sh", "-c", "echo out; echo err >&2"])
    assert (result.rc, result.stdout, result.stderr) == (0, "out\n", "err\n")
    assert result.argv == ("sh", "-c", "echo out; echo err >&2")
    assert 0 < result.seconds < 10


def test_an_argument_is_never_read_by_a_shell(local: Local) -> None:
    text = "$(id) `id` ; * \"' \n"
    assert local.run(["sh", "-c", 'printf %s "$1"', "x", text]).stdout == text


def test_a_command_that_fails_says_what_it_said(local: Local) -> None:
    with pytest.raises(
        CommandError, match=r"local: `sh -c .*` failed with code 3: too bad"
    ) as lost:
        local.run(["sh", "-c", "echo noise; echo too bad >&2; exit 3"])
    assert lost.value.result.rc == 3
    assert lost.value.result.stdout == "noise\n"
    assert local.run(["sh", "-c", "exit 3"], check=False).rc == 3
    with pytest.raises(CommandError, match="no message"):
        local.run(["sh", "-c", "exit 1"])


def test_standard_input_reaches_the_command_and_no_argv(local: Local) -> None:
    result = local.run(["sh", "-c", "cat; tr '\\0' ' ' < /proc/$$/cmdline"], stdin="s3cret")
    assert result.stdout.count("s3cret") == 1
    assert result.stdout.startswith("s3cret")
    assert "s3cret" not in " ".join(result.argv)


def test_without_input_a_command_does_not_wait_for_the_terminal(local: Local) -> None:
    assert local.run(["cat"], timeout_s=5).stdout == ""


def test_a_secret_is_in_no_error(local: Local) -> None:
    with pytest.raises(CommandError) as lost:
        local.run(["sh", "-c", "cat >/dev/null; exit 1"], stdin="s3cret")
    assert "s3cret" not in str(lost.value)
    with pytest.raises(CommandTimeoutError) as late:
        local.run(["sh", "-c", "sleep 60"], stdin="s3cret", timeout_s=0.1)
    assert "s3cret" not in str(late.value)


def test_broken_text_is_replaced(local: Local) -> None:
    assert local.run(["sh", "-c", r"printf 'a\377b'"]).stdout == "a\ufffdb"


def test_programs_speak_english(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert local.run(["sh", "-c", "echo $LC_ALL"]).stdout == "C.UTF-8\n"


@pytest.mark.parametrize("followed", [False, True])
def test_a_timeout_ends_the_command_and_its_children(
    local: Local, tmp_path: Path, followed: bool
) -> None:
    pids = tmp_path / "pids"
    script = 'sleep 300 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; wait'
    lines: list[str] = []
    begun = time.monotonic()
    with pytest.raises(CommandTimeoutError, match="did not end within 1 s"):
        local.run(
            ["sh", "-c", script, "x", str(pids)],
            timeout_s=0.6,
            on_line=lines.append if followed else None,
        )
    assert time.monotonic() - begun < 5
    for pid in map(int, pids.read_text().split()):
        assert wait_until(lambda pid=pid: gone(pid), 5), f"process {pid} outlived its time"  # type: ignore[misc]


def test_a_timeout_lets_a_command_tidy_up(local: Local, tmp_path: Path) -> None:
    script = "trap 'echo tidy > \"$1\"; exit 9' TERM; sleep 300 & wait"
    with pytest.raises(CommandTimeoutError):
        local.run(["sh", "-c", script, "x", str(tmp_path / "file")], timeout_s=0.3)
    assert (tmp_path / "file").read_text() == "tidy\n"


def test_a_timeout_ends_children_whose_parent_has_gone(local: Local, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    with pytest.raises(CommandTimeoutError):
        local.run(["sh", "-c", 'sleep 30 & echo $! > "$1"', "x", str(file)], timeout_s=0.5)
    pid = int(file.read_text())
    try:
        assert wait_until(lambda: gone(pid), 1.0)
    finally:
        end(pid)


def test_lines_come_as_they_are_written(local: Local) -> None:
    seen: list[tuple[str, float]] = []
    begun = time.monotonic()
    result = local.run(
        ["sh", "-c", "echo one; sleep 0.4; echo two"],
        on_line=lambda line: seen.append((line, time.monotonic() - begun)),
    )
    assert [line for line, _ in seen] == ["one", "two"]
    assert seen[1][1] - seen[0][1] > 0.25
    assert result.stdout == "one\ntwo\n"


def test_a_followed_command_fails_like_any_other(local: Local) -> None:
    with pytest.raises(CommandError, match="code 7: too bad"):
        local.run(["sh", "-c", "echo one; echo too bad >&2; exit 7"], on_line=lambda _: None)


def test_an_error_in_the_follower_ends_the_command(local: Local) -> None:
    def stop(line: str) -> None:
        raise ValueError(line)

    with pytest.raises(ValueError, match=r"\d+") as stopped:
        local.run(["sh", "-c", "echo $$; sleep 300"], on_line=stop)
    assert wait_until(lambda: gone(int(str(stopped.value))), 5)


def test_a_followed_command_may_say_much_on_standard_error(local: Local) -> None:
    script = "head -c 200000 /dev/zero >&2; echo done"
    assert local.run(["sh", "-c", script], timeout_s=1, on_line=lambda _: None).stdout == "done\n"


def test_an_undeclared_program_is_refused(local: Local, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'touch' is not declared"):
        local.run(["touch", str(tmp_path / "file")])
    with pytest.raises(ValueError, match="'touch' is not declared"):
        local.spawn(["/usr/bin/touch", str(tmp_path / "file")], tmp_path / "log")
    with pytest.raises(ValueError, match="not declared"), local.stream(["touch", "x"]):
        pass
    assert not (tmp_path / "file").exists()


def test_another_user_through_runuser() -> None:
    assert check_declared(["/usr/lib/x/psql", "-c", "x"], "postgres") == (
        "runuser",
        "-u",
        "postgres",
        "--",
        "/usr/lib/x/psql",
        "-c",
        "x",
    )


def test_a_missing_program_names_its_package(
    local: Local, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotset.core.machines.local._SBIN", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    wanted = "mmdebstrap is not installed on this computer .*apt-get install mmdebstrap"
    with pytest.raises(PrerequisiteMissingError, match=wanted):
        local.run(["mmdebstrap", "--version"])
    with pytest.raises(PrerequisiteMissingError, match="apt-get install tgt"):
        local.spawn(["tgtd"], tmp_path / "log")
    with (
        pytest.raises(PrerequisiteMissingError, match="apt-get install dash"),
        local.stream(["sh"]),
    ):
        pass
    assert local.which("sh") is None


def test_what_is_built_and_not_packaged_is_named_so() -> None:
    assert str(missing("vm", ["/x/hotset-engine"])) == (
        "hotset-engine is missing on vm: built by `make build`"
    )


def test_system_folders_are_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/a:/usr/sbin")
    assert search_path() == "/a:/usr/sbin:/usr/local/sbin:/sbin"
    monkeypatch.delenv("PATH")
    assert "/usr/sbin" in search_path().split(":")


def test_a_stream_ends_with_its_context(local: Local) -> None:
    script = "echo $$; sleep 300 & echo $!; while :; do echo tick; sleep 0.05; done"
    with local.stream(["sh", "-c", script]) as lines:
        pids = [int(next(lines)), int(next(lines))]
        assert next(lines) == "tick"
        assert not any(map(gone, pids))
    for pid in pids:
        assert wait_until(lambda pid=pid: gone(pid), 5)  # type: ignore[misc]


def test_a_stream_ends_also_on_an_error(local: Local) -> None:
    with (  # noqa: PT012
        pytest.raises(RuntimeError, match="stop"),
        local.stream(["sh", "-c", "echo $$; sleep 300"]) as lines,
    ):
        pid = int(next(lines))
        raise RuntimeError("stop")
    assert wait_until(lambda: gone(pid), 5)


def test_a_stream_that_ends_by_itself(local: Local) -> None:
    with local.stream(["sh", "-c", "echo one; echo two"]) as lines:
        assert list(lines) == ["one", "two"]


def test_a_daemon_lives_on_in_a_session_of_its_own(local: Local, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "echo out $X; echo err >&2; cat; echo no input; sleep 300"
    process = local.spawn(["sh", "-c", script], log, {"X": "set"})
    try:
        assert wait_until(lambda: "no input" in log.read_text(), 5)
        assert log.read_text() == "out set\nerr\nno input\n"
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        assert process.poll() is None
    finally:
        os.killpg(process.pid, 9)
        process.wait()


def test_put_and_get(local: Local, tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(b"\0\xff text")
    local.put(source, PurePosixPath(target), 0o600)
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o600
    local.get(PurePosixPath(target), tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == source.read_bytes()


def test_address(local: Local) -> None:
    assert local.address(5432) == ("127.0.0.1", 5432)


def test_a_command_that_cannot_be_killed_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that waits for a dead device: signals do nothing until the device answers."""
    monkeypatch.setattr(this_computer.os, "killpg", lambda *_: None)
    monkeypatch.setattr(this_computer, "_KILLED_WAIT_S", 0.2)
    begun = time.monotonic()
    with pytest.raises(CommandTimeoutError):
        Local().run(["sh", "-c", "sleep 20"], timeout_s=0.2)
    assert time.monotonic() - begun < 15


def test_a_file_is_replaced_whole_with_its_folder_and_mode(tmp_path: Path) -> None:
    target = PurePosixPath(tmp_path / "made" / "a file.json")
    Local().replace("first\n", target)
    Local().replace("größer\n", target, 0o600)
    kept = Path(target)
    assert kept.read_text() == "größer\n"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in kept.parent.iterdir()] == [kept.name]


def test_of_a_text_that_was_cut_off_on_its_way_nothing_is_kept(tmp_path: Path) -> None:
    class Torn(Local):
        def execute(self, command: Command) -> Result:
            assert command.stdin is not None
            return super().execute(replace(command, stdin=command.stdin[:-1]))

    target = tmp_path / "kept"
    target.write_text("old")
    with pytest.raises(CommandError):
        Torn().replace("newer", PurePosixPath(target))
    assert target.read_text() == "old"
