"""What keeps a modelled disk from being served is said before it is served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotset.cachelayer.block import flashdev
from hotset.cachelayer.hosts.base import PrerequisiteMissingError
from hotset.cachelayer.hosts.cleanup import Cleanup
from hotset.cachelayer.hosts.local import Local


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
