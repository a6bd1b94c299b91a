"""On which accelerated disk a measured database lies: by all its parts."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

from hotset.bench.kept import tier
from hotset.core.machines.local import Local

SHOP = SimpleNamespace(disk=SimpleNamespace(name="shop"), tier=SimpleNamespace(is_active=bool))


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PurePosixPath]:
    """A database with a part on an accelerated disk, and one elsewhere."""
    SHOP.tier.is_active = lambda: True
    found = SimpleNamespace(list_disks=lambda _: [SHOP], problems=())
    monkeypatch.setattr(tier.flash_devices, "inventory", lambda _: found)
    monkeypatch.setattr(tier, "_number", lambda _: "7:1")
    below = {"fast": {"7:1"}, "plain": {"8:1"}, "overlay": None}
    monkeypatch.setattr(tier, "_devices_below", lambda _, folder: below[folder.name])
    for name in below:
        (tmp_path / name).mkdir()
    return [PurePosixPath(tmp_path / name) for name in below]


def test_a_database_with_parts_on_and_off_the_disk_is_not_called_unaccelerated(
    parts: list[PurePosixPath],
) -> None:
    """Its default tablespace alone was looked at: an accelerated run passed for one without."""
    fast, plain, overlay = parts
    assert tier._place(Local(), [fast]).disk is SHOP
    assert tier._place(Local(), [plain]) == tier.Place()
    for folders in ([plain, fast], [fast, plain]):
        found = tier._place(Local(), folders)
        assert found.disk is None
        assert f"{fast} on shop" in found.unknown
        assert f"{plain} on none" in found.unknown
    assert tier._place(Local(), [fast, overlay]).unknown.startswith("the devices below")
    gone = tier._place(Local(), [fast, fast / "gone"])
    assert "are not on that machine" in gone.unknown


def test_what_only_another_process_sees_is_on_no_known_device() -> None:
    """A container's data directory: its path, followed here, leads to another disk."""
    assert tier._devices_below(Local(), PurePosixPath("/proc/self/cwd")) is None
