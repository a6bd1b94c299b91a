"""What is looked at on this computer's real devices and files before a disk is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import devices
from hotset.block.devicemapper import Part
from hotset.block.devices import DeviceRefusedError
from hotset.core.units import Bytes
from hotset.disk import room
from tests.support.marks import needs_root

from ..enclosed import Enclosed, enclosed

pytestmark = [pytest.mark.lab, needs_root]
MIB = 1024**2


@pytest.fixture
def machine() -> Iterator[Enclosed]:
    with enclosed() as there:
        yield there


def file_of(path: Path, mib: int) -> PurePosixPath:
    with path.open("wb") as file:
        file.truncate(mib * MIB)
    return PurePosixPath(path)


def test_a_loop_device_without_its_file_does_not_answer(machine: Enclosed, tmp_path: Path) -> None:
    file = file_of(tmp_path / "disk.img", 1)
    loop = PurePosixPath(machine.run(["losetup", "--find", "--show", str(file)]).stdout.strip())
    try:
        assert devices.answers(machine, loop)
    finally:
        machine.run(["losetup", "--detach", str(loop)])
    assert not devices.answers(machine, loop)
    assert not devices.answers(machine, PurePosixPath("/dev/no-such-device"))


@pytest.mark.parametrize("as_device", [False, True], ids=["a file", "behind a loop"])
def test_room_on_a_file_system_is_reserved_or_refused_with_the_figures(
    machine: Enclosed, tmp_path: Path, as_device: bool
) -> None:
    """A sparse file promises room that its file system may not have when it is written to."""
    small = file_of(tmp_path / "small.img", 64)
    machine.run(["mke2fs", "-q", "-t", "ext4", "-m", "0", str(small)])
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    machine.run(["mount", "-o", "loop", str(small), str(mounted)])
    flash = mounted / "flash.img"
    machine.run(["truncate", "-s", "200M", str(flash)])
    shown = str(flash)
    try:
        if as_device:
            shown = machine.run(["losetup", "--find", "--show", shown]).stdout.strip()

        def reserve(*parts: tuple[int, int]) -> None:
            wanted = [Part(Bytes(start * MIB), Bytes(size * MIB)) for start, size in parts]
            room.reserve(machine, PurePosixPath(shown), wanted, True, print)

        def allocated() -> int:
            said = machine.run(["stat", "--format=%b %B", str(flash)]).stdout
            blocks, size = map(int, said.split())
            return blocks * size

        with pytest.raises(DeviceRefusedError, match=r"of its 200 MiB.* 133 MiB") as refused:
            reserve((0, 1), (4, 4), (60, 128))
        assert refused.value.field == "flash"
        assert allocated() < MIB, "nothing was taken"
        reserve((0, 1), (4, 4), (60, 30))
        assert allocated() >= 35 * MIB
        reserve((0, 1), (4, 4), (60, 30))
        # Somebody else fills the file system: what was reserved is there.
        machine.run(["dd", "if=/dev/zero", f"of={mounted}/full", "bs=1M"], check=False)
        words = ["bs=1M", "count=30", "seek=60", "conv=notrunc,fsync", "status=none"]
        machine.run(["dd", "if=/dev/urandom", f"of={flash}", *words])
    finally:
        if as_device and shown.startswith("/dev/loop"):
            machine.run(["losetup", "--detach", shown], check=False)
        machine.run(["umount", str(mounted)])
