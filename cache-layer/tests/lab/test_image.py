"""The machine `image`: the frozen userland on this computer's own kernel."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import loop
from hotset.core.machines.base import (
    CommandError,
    MachineGoneError,
    PrerequisiteMissingError,
    put_text,
)
from hotset.core.machines.cleanup import Cleanup, clear_journal, read_journal
from hotset.core.machines.local import Local
from hotset.lab import image
from hotset.lab.machines import chroot
from hotset.lab.machines.chroot import Chroot

pytestmark = pytest.mark.lab

SENT = PurePosixPath("/run/sent")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The lab's folder; nothing of it is mounted, looped or run from when the test is over."""
    if chroot.lacking():
        pytest.skip(f"the image cannot be entered: {chroot.lacking()}")
    yield tmp_path
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert str(tmp_path) not in Local().run(["losetup", "--list"]).stdout
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert str(tmp_path).encode() not in entry.read_bytes(), entry
        except (FileNotFoundError, ProcessLookupError):
            continue


@pytest.fixture
def machine(folder: Path) -> Iterator[Chroot]:
    cleanup = Cleanup(folder, Local())
    with cleanup.part():
        yield chroot.start(Local(), image.ensure(Local(), print), folder, cleanup)


def test_the_userland_is_the_images_and_the_kernel_this_computers(machine: Chroot) -> None:
    assert "trixie" in machine.run(["cat", "/etc/os-release"]).stdout
    assert machine.run(["uname", "-r"]).stdout.strip() == os.uname().release
    assert machine.run(["ls", "/computer"]).stdout == "", "nothing of this computer's root"
    assert machine.run(["sh", "-c", "echo $$ $HOME"]).stdout.split()[1] == "/root"


def test_the_server_has_no_cluster_until_one_is_made(machine: Chroot) -> None:
    kept = machine.run(["find", "/var/lib/postgresql", "/etc/postgresql", "-mindepth", "1"])
    assert kept.stdout == ""
    assert machine.run(["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"]).stdout != ""


def test_commands_and_files_travel(machine: Chroot, tmp_path: Path) -> None:
    assert machine.run(["cat"], stdin="a 'b' $HOME\n").stdout == "a 'b' $HOME\n"
    put_text(machine, "text", SENT, 0o600)
    assert machine.run(["ls", "-l", str(SENT)]).stdout.startswith("-rw------- 1 root")
    machine.get(SENT, tmp_path / "back")
    assert (tmp_path / "back").read_text() == "text"
    assert not Path(SENT).exists(), "written to the image, not to this computer"
    assert machine.run(["sh", "-c", "id -un"], user="postgres").stdout == "postgres\n"
    with pytest.raises(CommandError, match=r"image: .*no such"):
        machine.run(["ls", "/no such"])
    seen: list[str] = []
    machine.run(["sh", "-c", "echo 1; echo 2"], on_line=seen.append)
    assert seen == ["1", "2"]


def test_a_program_that_the_image_lacks(machine: Chroot) -> None:
    machine.run(["rm", "/usr/sbin/tgtadm"])
    with pytest.raises(PrerequisiteMissingError, match="tgtadm is not installed on the image"):
        machine.run(["tgtadm", "--version"])


def test_a_service_gets_a_port_that_is_free(machine: Chroot) -> None:
    assert machine.port(5432) == machine.port(5432) != machine.port(22)


def test_mounts_stay_inside(machine: Chroot, folder: Path) -> None:
    disk = folder / "disk.img"
    Local().run(["truncate", "-s", "64M", str(disk)])
    cleanup = Cleanup(folder, Local())
    with cleanup.part():
        device = loop.attach(Local(), disk, cleanup)
        machine.run(["mke2fs", "-q", "-t", "ext4", str(device)])
        machine.run(["mount", str(device), "/mnt"])
        assert f"{device} /mnt ext4" in machine.run(["cat", "/proc/mounts"]).stdout
        assert f"{device} " not in Path("/proc/mounts").read_text()
        machine.run(["umount", "/mnt"])


def test_a_number_that_is_anothers_by_now_is_left_to_it(folder: Path) -> None:
    local, files = Local(), [folder / name for name in ("first.img", "second.img")]
    for file in files:
        local.run(["truncate", "-s", "1M", str(file)])
    device = loop.attach(local, files[0], Cleanup(folder, local))
    local.run(["losetup", "--detach", str(device)])
    local.run(["losetup", str(device), str(files[1])])
    try:
        clear_journal(folder, local)
        shown = local.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"]).stdout
        assert str(files[1]) in shown.split()
    finally:
        local.run(["losetup", "--detach", str(device)])


def test_a_killed_image_is_noticed_and_leaves_nothing(folder: Path) -> None:
    cleanup, local = Cleanup(folder, Local()), Local()
    machine = chroot.start(local, image.ensure(local, print), folder, cleanup)
    disk = folder / "disk.img"
    local.run(["truncate", "-s", "64M", str(disk)])
    device = loop.attach(local, disk, cleanup)
    machine.run(["mke2fs", "-q", "-t", "ext4", str(device)])
    machine.run(["mount", str(device), "/mnt"])
    with machine.stream(["sh", "-c", "echo up; sleep 1000"]) as lines:
        assert next(lines) == "up"
        holder = next(entry["pid"] for entry in read_journal(folder) if "process" in entry)
        os.kill(holder, signal.SIGKILL)
        assert next(lines, None) is None, "what ran inside ends with it"
    os.waitpid(holder, 0)
    with pytest.raises(MachineGoneError, match="somebody killed it"):
        machine.run(["ls"])
    # As the next run does that finds the journal.
    assert "release the loop devices of disk.img" in clear_journal(folder, local)
