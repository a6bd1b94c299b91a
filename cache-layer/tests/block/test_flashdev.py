"""What keeps a modelled disk from being served is said before it is served."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from hotset.block import flashdev, programs
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local


def test_a_user_could_not_unmount_without_a_table_of_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(flashdev, "_MTAB", tmp_path / "mtab")
    local, mount = Local(), tmp_path / "mount"
    with pytest.raises(PrerequisiteMissingError, match="ln -s /proc/self/mounts"):
        flashdev.serve(
            local, ["serve"], mount, tmp_path / "log", Cleanup(tmp_path, local), "slow disk"
        )
    assert not (tmp_path / "log").exists(), "nothing was started"


def test_the_engine_maps_no_library_that_an_upgrade_replaces() -> None:
    """Whose users are restarted by then; `make build` links it statically."""
    elf = programs.find_engine().read_bytes()
    (at,), (size, count) = struct.unpack_from("<Q", elf, 32), struct.unpack_from("<HH", elf, 54)
    kinds = {struct.unpack_from("<I", elf, at + size * number)[0] for number in range(count)}
    pt_load, pt_interp = 1, 3
    assert pt_load in kinds
    assert pt_interp not in kinds, "a dynamic loader would map libraries"


def test_a_servers_program_holds_no_model_of_a_device() -> None:
    """The built-in models are in the lab's program, and in no other."""
    model = b"nas-2014"
    assert model in flashdev.program(Local()).read_bytes()
    assert model not in programs.find_engine().read_bytes()
