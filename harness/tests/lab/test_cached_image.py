"""Where the lab's image is built, without building one."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import cast

import pytest

from hotset.core.machines.local import Local
from hotset.lab import image


class BuildRefusedError(Exception):
    """In place of mmdebstrap's work."""


class NoBuild:
    """Runs every program but mmdebstrap."""

    def __init__(self) -> None:
        self.root: Path | None = None

    def run(self, argv: list[str], **options: object) -> object:
        if argv[0] == "mmdebstrap" and "--unshare-helper" not in argv:
            self.root = Path(argv[-1])
            raise BuildRefusedError
        plain = argv[argv.index("--unshare-helper") + 1 :] if "--unshare-helper" in argv else argv
        return Local().run(plain, **options)  # type: ignore[arg-type]


@pytest.fixture
def closed_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in a home folder that only its owner may enter, the owner not being root."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("HOTSET_DEBIAN_MIRROR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return home


def test_a_build_without_root_is_where_its_namespaces_users_may_go(closed_home: Path) -> None:
    machine = NoBuild()
    with pytest.raises(BuildRefusedError):
        image.ensure(cast("Local", machine), print)
    assert machine.root is not None
    assert all(
        folder.stat().st_mode & stat.S_IXOTH
        for folder in machine.root.parents
        if folder != machine.root.parent  # removed again
    )
    assert not machine.root.parent.exists()
    assert list(closed_home.rglob("hotset-image-*")) == []


def test_a_build_elsewhere_arrives_whole_and_leaves_nothing(tmp_path: Path) -> None:
    work, shelf = tmp_path / "work", tmp_path / "shelf"
    work.mkdir()
    shelf.mkdir()
    with (work / "root.ext4").open("wb") as disk:
        disk.truncate(1 << 28)
    (work / "client_key").write_text("key")
    (work / "client_key").chmod(0o600)
    image._publish(Local(), work, shelf / "made")
    assert [one.name for one in shelf.iterdir()] == ["made"]
    assert not work.exists()
    assert (shelf / "made/client_key").stat().st_mode & 0o777 == 0o600
    arrived = (shelf / "made/root.ext4").stat()
    assert arrived.st_size == 1 << 28
    assert arrived.st_blocks * 512 < 1 << 20, "holes stay holes"


def test_debians_keys_are_named_as_ubuntu_would_look_for_its_own() -> None:
    argv = image.bootstrap_argv(Path("/work"), Path("/work/root"), "root")
    assert "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg" in argv
