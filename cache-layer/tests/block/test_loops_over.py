"""The loop devices over a file, on this computer's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import devices, flashdev, programs
from hotset.core.clock import wait_until
from hotset.core.machines.local import Local

HERE = Local()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[str]:
    """A loop device over the file `data`, by another name of it."""
    if os.geteuid() != 0:
        pytest.skip("root makes loop devices")
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    (tmp_path / "other").hardlink_to(tmp_path / "data")
    made = HERE.run(["losetup", "--find", "--show", str(tmp_path / "other")], check=False)
    if made.rc != 0:
        pytest.skip("no loop devices here")
    yield made.stdout.strip()
    HERE.run(["/sbin/losetup", "--detach", made.stdout.strip()])


def test_a_loop_device_over_another_name_of_a_file_is_known(loop: str, tmp_path: Path) -> None:
    file = PurePosixPath(tmp_path / "data")
    whose: tuple[programs.Who, ...] = ("all", "writers", "loops")
    for who in whose:
        assert f"data is behind {loop}" in programs.users(HERE, file, who)
    with pytest.raises(programs.InUseError, match=f"data is behind {loop}") as refused:
        devices.check(HERE, devices.inspect(HERE, file), "flash", yes=True)
    assert refused.value.field == "flash"


def test_whoever_serves_a_file_is_no_loop_device_over_it(tmp_path: Path) -> None:
    """An engine has its origin open: its disk would always be used past its cache."""
    with (tmp_path / "data").open("wb"):
        file = PurePosixPath(tmp_path / "data")
        assert "may write to" in programs.users(HERE, file, "writers")
        assert programs.users(HERE, file, "loops") == ""


@pytest.fixture
def dead(tmp_path: Path) -> Iterator[str]:
    """A loop device over a file of FUSE whose server has ended."""
    backing, mount = tmp_path / "backing", tmp_path / "mount"
    mount.mkdir()
    backing.write_bytes(bytes(1 << 20))
    argv = [str(flashdev.program(HERE)), "serve", "--model=nvme-2024", f"--backing={backing}"]
    with subprocess.Popen([*argv, f"--mount={mount}"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        if not server.stdout.readline().startswith("ready"):
            pytest.skip("no FUSE here")
        made = HERE.run(["losetup", "--find", "--show", str(mount / "disk")], check=False)
        server.kill()
    HERE.run(["umount", "--lazy", str(mount)])
    if made.rc != 0:
        pytest.skip("no loop devices here")
    loop = made.stdout.strip()
    # The kernel knows the file's attributes for a second more.
    asks = ["losetup", "--noheadings", "--output=BACK-INO", loop]
    assert wait_until(lambda: not HERE.run(asks).stdout.strip(), 10, 0.1)
    yield loop
    HERE.run(["losetup", "--detach", loop])


def test_a_loop_device_over_a_dead_file_system_is_over_no_file_that_answers(
    dead: str, tmp_path: Path
) -> None:
    """An engine that ended anywhere on a computer had every file refused as an origin."""
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    assert not programs.users(HERE, PurePosixPath(tmp_path / "data"), "loops"), dead


@pytest.mark.parametrize("answer", ["exec sleep 60", "exit 1", "exit 127"])
def test_a_loop_device_that_does_not_tell_its_file_is_not_known(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """No answer, and a computer without losetup, were taken for a loop device over another file."""
    programs.boot(HERE)
    asked = tmp_path / "bin/losetup"
    asked.parent.mkdir()
    asked.write_text(f"#!/bin/sh\n{answer}\n")
    asked.chmod(0o755)
    monkeypatch.setenv("PATH", f"{asked.parent}:{os.environ['PATH']}")
    file = PurePosixPath(tmp_path / "data")
    text = f"whether {file} is in use is not known: nothing tells which file is behind "
    with pytest.raises(programs.UsersUnknownError, match=text) as unknown:
        programs.users(HERE, file, "loops")
    assert loop in str(unknown.value)
    with pytest.raises(programs.InUseError, match=text):
        programs.require_unused(HERE, file, "writers")
    with pytest.raises(programs.InUseError, match=text) as error:
        devices.check(HERE, devices.inspect(HERE, file), "origin", yes=True)
    assert loop in str(error.value)
    assert error.value.field == "origin"
