"""What somebody who is not root is told about disks that are accelerated, and about devices that
are not theirs: one line, the remedy in it, never a disk in use that looks like a failed one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines.local import lacks_device
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from tests import cli_server
from tests.enclosed import Enclosed, enclosed
from tests.support.marks import needs_root

pytestmark = [pytest.mark.lab, needs_root]
MIB = 1024**2
ENTRY = Path(sys.executable).with_name("hotset")
# Python and hotset may lie where only root comes: this user may read all, and is not root.
_CAPABILITY = "dac_read_search"
AS_USER = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *(f"--inh-caps=-all,+{_CAPABILITY}", f"--ambient-caps=-all,+{_CAPABILITY}"),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enclosed]:
    """This computer with a disk `pg` that root accelerates, on files."""
    folder = tmp_path_factory.mktemp("disks")
    for name in ("flash", "origin"):
        with (folder / name).open("wb") as file:
            file.truncate(128 * MIB)
    with enclosed() as there:
        flash, origin = (PurePosixPath(folder / name) for name in ("flash", "origin"))
        wanted = CreateRequest("pg", flash, origin, "userspace", "oltp", Bytes(32 * MIB), Bytes(0))
        try:
            creation.create(there, wanted, False, print)
            yield there
        finally:
            for flash in flash_devices.inventory(there).flash_devices:
                lifecycle.destroy(there, flash, True, lambda _: lambda _: None, print)


@pytest.fixture
def users(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has no home, but folders of hotset's."""
    tmp_path.chmod(0o777)
    folders = {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("STATE", "DATA", "CACHE", "CONFIG")}
    return {"HOME": "/nonexistent", "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **folders}


COMMANDS = (
    "tier health",
    "tier status",
    "tier scan",
    "tier resident",
    "tier explain /srv/a",
    "tier watch 1 1",
    "report hit-ratio",
    "report metrics",
    "heat start",
    "heat top",
    "warmup list",
    "warmup plan /srv/a",
    "warmup pin /srv/a",
    "tier flush",
    "tier set --mode writethrough",
    "tier destroy pg --yes",
)


def test_a_disk_of_roots_is_refused_with_one_line_and_the_remedy(
    machine: Enclosed, tmp_path: Path, users: dict[str, str]
) -> None:
    argv = [*machine.enter, *AS_USER, sys.executable, cli_server.__file__]
    with subprocess.Popen(argv, stdin=-1, stdout=-1, text=True, env=users) as server:
        hotset = cli_server.CommandLine(server, tmp_path, users)
        for command in COMMANDS:
            done = hotset(*command.split())
            assert (done.code, done.out) == (3, ""), command
            (line,) = done.err.splitlines()
            assert line.startswith("hotset: only root can inspect and change accelerated disks")
            assert "use sudo, or ssh as root" in line
            assert "What needs no root: the lab" in line
        server.communicate()


def test_without_a_flash_device_nothing_is_said_of_root() -> None:
    done = subprocess.run(
        [*AS_USER, str(ENTRY), "tier", "status"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "no disk is accelerated here\n")


def test_doctor_says_what_works_without_root(machine: Enclosed, users: dict[str, str]) -> None:
    argv = [*machine.enter, *AS_USER, str(ENTRY), "doctor"]
    said = subprocess.run(argv, capture_output=True, text=True, env=users, check=False).stdout
    text = " ".join(said.split())
    assert "not root: accelerated disks of this computer are for root (sudo hotset tier" in text
    assert "TPC-C and TPC-H on a database, and what-if work" in text


def test_a_root_that_may_not_mount_is_told_what_its_container_lacks(tmp_path: Path) -> None:
    argv = ["setpriv", "--bounding-set=-sys_admin", "--", str(ENTRY), "lab", "up"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [*argv, "--machine", "local"], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    (line,) = done.stderr.splitlines()
    assert "a lab on this computer is not possible: root may not mount anything" in line
    assert "--cap-add SYS_ADMIN" in line


def test_a_device_that_is_there_and_not_this_users_is_not_called_missing(tmp_path: Path) -> None:
    node = tmp_path / "fuse"
    node.touch(mode=0o600)
    tmp_path.chmod(0o755)
    script = "import sys; from hotset.core.machines.local import lacks_device as l;"
    argv = [*AS_USER, sys.executable, "-c", f"{script} print(l(sys.argv[1], 'fuse'))", str(node)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert said == (
        f"{node} may not be opened by this user: run hotset as root, or have root allow it"
        f" (chmod 0666 {node})\n"
    )
    # A character device that the kernel has no driver for is none that works.
    node.unlink()
    os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(63, 63))
    assert lacks_device(str(node), "fuse") == f"{node} is missing: modprobe fuse"
    node.unlink()
    assert lacks_device(str(node), "fuse") == f"{node} is missing: modprobe fuse"


def test_the_only_disk_is_not_taken_down_unnamed_and_what_to_type_is_said(
    machine: Enclosed,
) -> None:
    for words in ("destroy --yes", "detach --flash-is-dead", "deactivate", "repair"):
        verb, *options = words.split()
        argv = [*machine.enter, str(ENTRY), "tier", verb, *options]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (2, ""), words
        (line,) = done.stderr.splitlines()
        what, name = ("flash_name", "main") if verb == "destroy" else ("disk", "pg")
        assert line.startswith(f"hotset: tier {verb} needs the name of the {what}: {name}; ")
        assert line.endswith(f"`{' '.join(['hotset tier', verb, name, *options])}`")
    assert lifecycle.active(flash_devices.find(machine, "pg")), "it is up as before"
