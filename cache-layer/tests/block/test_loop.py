"""Loop devices are released, whatever happens to whoever made them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import loop
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup, clear_journal, read_journal
from hotset.core.machines.local import Local
from tests.fake_machine import FakeMachine

# losetup over a table of its own, one "DEVICE FILE" a line. While a file "deadly" lies beside it,
# whoever asks for a device gets it and is killed.
LOSETUP = """#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
--find)
    echo "$*" >> asked
    for file; do :; done
    echo "/dev/loop7 $file" >> table
    if [ -e deadly ]; then kill -9 "$PPID"; fi
    echo /dev/loop7 ;;
--list) cat table ;;
--detach) grep -v "^$2 " table > rest; mv rest table ;;
esac
"""
ATTACH = """
import sys
from pathlib import Path
from hotset.block import loop
from hotset.core.machines.local import Local
from hotset.core.machines.cleanup import Cleanup

folder = Path(sys.argv[1])
loop.attach(Local(), folder / "flash.img", Cleanup(folder, Local()))
"""
OTHERS = "/dev/loop1 /var/lib/other.img\n/dev/loop2 /backup/flash.img\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The devices that stand, with two of other people's."""
    program = tmp_path / "losetup"
    program.write_text(LOSETUP)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    made = tmp_path / "table"
    made.write_text(OTHERS)
    return made


def test_a_device_that_is_taken_down(table: Path, tmp_path: Path) -> None:
    cleanup, file = Cleanup(tmp_path, Local()), tmp_path / "flash.img"
    device = loop.attach(Local(), file, cleanup, readonly=True)
    assert device == PurePosixPath("/dev/loop7")
    assert table.read_text() == f"{OTHERS}/dev/loop7 {file}\n"
    words = set((tmp_path / "asked").read_text().split())
    assert words >= {"--direct-io=on", "--read-only"}
    cleanup.undo()
    assert table.read_text() == OTHERS
    assert read_journal(tmp_path) == []


def test_a_file_that_was_renamed_meanwhile(table: Path, tmp_path: Path) -> None:
    cleanup, file = Cleanup(tmp_path, Local()), tmp_path / "disk.building"
    loop.attach(Local(), file, cleanup)
    table.write_text(table.read_text().replace("disk.building", "disk.img"))
    cleanup.undo()
    assert table.read_text() == OTHERS


def test_after_a_restart_of_the_computer_a_number_is_anothers(table: Path, tmp_path: Path) -> None:
    loop.attach(Local(), tmp_path / "flash.img", Cleanup(tmp_path, Local()))
    others = f"{OTHERS}/dev/loop7 /backup/other.img\n"
    table.write_text(others)
    journal = tmp_path / "cleanup.jsonl"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    journal.write_text(journal.read_text().replace(boot, "the one before"))
    clear_journal(tmp_path, Local())
    assert table.read_text() == others


@pytest.mark.parametrize("gone", ["", " (deleted)"])
def test_a_kill_before_the_device_is_known_leaves_none(
    table: Path, tmp_path: Path, gone: str
) -> None:
    (tmp_path / "deadly").touch()
    done = subprocess.run([sys.executable, "-c", ATTACH, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    line = f"/dev/loop7 {tmp_path / 'flash.img'}"
    assert table.read_text() == f"{OTHERS}{line}\n"
    table.write_text(f"{OTHERS}{line}{gone}\n")
    assert clear_journal(tmp_path, Local()) == ["release the loop devices of flash.img"]
    assert table.read_text() == OTHERS


@pytest.mark.parametrize(
    ("found", "there", "words"),
    [("/dev/loop9\n", 1, "no node of a free loop device (/dev/loop9)"), (1, 0, "(none)")],
)
def test_a_container_without_the_node_of_a_free_device_is_told_so_at_once(
    found: str | int, there: int, words: str
) -> None:
    """It waited for 87 seconds, and said "No such file or directory"."""
    with pytest.raises(PrerequisiteMissingError) as refused:
        loop.require(FakeMachine({"losetup --find": found, "test -b": there, "sh -c": ""}))
    assert words in str(refused.value)
    loop.require(FakeMachine({"losetup --find": "/dev/loop9\n", "test -b": "", "sh -c": ""}))
