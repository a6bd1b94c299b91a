"""What a user of the computer who is not root comes at of what hotset makes: nothing. To read is to
see a database; to open a lock is to keep everybody waiting for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines import locks
from hotset.core.machines.base import Result
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.tier import pins
from hotset.tier.pins import Preferences
from tests.support.marks import needs_root

from ..enclosed import Enclosed, enclosed

pytestmark = [pytest.mark.lab, needs_root]
_BOOT = Path(__file__).parents[2] / "crates/target/release/hotset-boot"
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
SECRET = b"the database's"
# Anybody may know that hotset is there, and what systemd and udev are told.
_PUBLIC = (".service", ".timer", ".rules", ".conf")


@pytest.fixture(params=["", "boot", "older"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Enclosed]:
    """This computer with a disk `shop`, on files. Its /run/hotset was made by who came first: the
    command, the boot's program, or an older version, which let others in."""
    tmp_path.chmod(0o755)
    (private := tmp_path / "private").mkdir(0o700)
    (tmp_path / "flash").write_bytes(b"")
    (private / "origin").write_bytes(SECRET)
    os.truncate(tmp_path / "flash", 128 << 20)
    os.truncate(private / "origin", 64 << 20)
    (private / "origin").chmod(0o644)
    flash, origin = PurePosixPath(tmp_path / "flash"), PurePosixPath(private / "origin")
    wanted = CreateRequest("shop", flash, origin, "userspace", "oltp", Bytes(32 << 20), Bytes(0))
    with enclosed() as there:
        run = "umount /run/hotset && mount -t tmpfs -o mode=755 none /run && mkdir /run/lock"
        there.run(["sh", "-c", f"chmod 755 /etc/hotset && {run}"])
        if request.param == "boot":
            there.run(["sh", "-c", f"umask 022; {_BOOT} boot"])
        elif request.param:
            there.run(["sh", "-c", "umask 022; mkdir -p /run/hotset/engine/shop"])
        try:
            with locks.held(there, "tier create") as held:
                creation.create(held, wanted, False, print)
            pins.save(there, "shop", Preferences(("region:0+1MiB",), (), ()))
            yield there
        finally:
            for flash in flash_devices.inventory(there).flash_devices:
                lifecycle.destroy(there, flash, True, lambda _: lambda _: None, print)


def as_nobody(machine: Enclosed, *argv: str) -> Result:
    return machine.run([*_NOBODY, "--", *argv], check=False)


def test_nobody_else_comes_at_what_hotset_makes(machine: Enclosed) -> None:
    look = r"find /run /etc /var/lib -path '*/hotset*' ! -type l \( -readable -o -writable \)"
    seen = as_nobody(machine, "sh", "-c", f"{look} 2> /dev/null; :").stdout.splitlines()
    assert set(seen) - {"/etc/hotset"} == {one for one in seen if one.endswith(_PUBLIC)}
    assert as_nobody(machine, "ls", "/dev/hotset").stdout.split() == ["shop"]


def test_nobody_else_can_keep_a_verb_waiting(machine: Enclosed) -> None:
    with locks.held(machine, "tier flush", "shop", "shared") as held:
        held.run(["test", "-e", "/"])
    files = machine.run(["find", "/run/hotset", "-type", "f"]).stdout.split()
    assert {"/run/hotset/machine.lock", "/run/hotset/machine.running"} <= set(files)
    assert "/run/hotset/disk-shop.running" in files
    for file in files:
        assert as_nobody(machine, "flock", "--nonblock", "--shared", file, "true").rc, file
    # Nor by a descriptor that a folder's rights would not keep from them.
    modes = machine.run(["stat", "-c", "%a %n", *(f for f in files if "running" in f)]).stdout
    assert {line.split()[0] for line in modes.splitlines()} == {"600"}


def test_nobody_else_reads_a_database_through_the_engines_mount(
    machine: Enclosed, tmp_path: Path
) -> None:
    """Not even where the folders above it let them come to it."""
    (shown := tmp_path / "shown").mkdir()
    machine.run(["mount", "--bind", "/run/hotset/engine/shop/mount", str(shown)])
    try:
        read = ["head", "-c", str(len(SECRET)), str(shown / "data")]
        assert machine.run(read).stdout == SECRET.decode()
        assert as_nobody(machine, *read).rc
        assert machine.run(["stat", "-c", "%a", str(shown / "data")]).stdout == "600\n"
    finally:
        machine.run(["umount", str(shown)])
    device = machine.run(["head", "-c", str(len(SECRET)), "/dev/hotset/shop"])
    assert device.stdout == SECRET.decode()
