"""What is looked at on this computer's real devices and files before a disk is made of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.cachelayer.block import devices

from ..enclosed import Enclosed, enclosed

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(
        os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and /dev/fuse"
    ),
]
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
