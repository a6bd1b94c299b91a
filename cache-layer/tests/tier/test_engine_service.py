"""What keeps an engine at work: the script's own decisions, with nothing running."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path, PurePosixPath

import pytest

from hotset.tier.engine import service

RESTART_LIMIT_S = 60


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine of a disk called shop has its files; its device is ublk's."""
    monkeypatch.setattr(service, "RUNTIME", PurePosixPath(tmp_path))
    monkeypatch.setattr(service, "DEVICES", PurePosixPath(tmp_path / "dev"))
    folder = tmp_path / "shop"
    (folder / "mount").mkdir(parents=True)
    (folder / "attached").write_text("/dev/ublkb999 77\n")
    return folder


def waits(folder: Path, verb: str, **environment: str) -> bool:
    """Whether the device waits for an engine after the script has done this."""
    # Whatever removes the device succeeds.
    mark = ["sh", "-c", f"echo $0 > {folder}/marked"]
    text = service.script("shop", "ab-cd", PurePosixPath("/srv/shop.img"), ["true", "tier"], mark)
    subprocess.run(
        ["sh", "-c", text, "sh", verb],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
        check=True,
        timeout=300,
    )
    return (folder / "attached").exists()


def ended(folder: Path, seconds: int) -> None:
    (folder / "ended-at").write_text(f"{int(time.time()) - seconds}\n")


def test_a_device_waits_for_the_engine_that_systemd_starts_again(folder: Path) -> None:
    assert waits(folder, "release", SERVICE_RESULT="signal", EXIT_STATUS="KILL")
    # Nobody knows whether it is.
    assert (folder / "marked").read_text() == "ended\n"
    (folder / "marked").unlink()
    # Before that starts.
    assert waits(folder, "release")
    assert not (folder / "marked").exists()


@pytest.mark.parametrize(
    ("result", "status"), [("success", "0"), ("exit-code", "2")], ids=["told to end", "refuses"]
)
def test_no_device_waits_for_an_engine_that_is_not_started_again(
    folder: Path, result: str, status: str
) -> None:
    """One that was killed and then refused left it, and programs waited for ever."""
    ended(folder, 1)
    assert not waits(folder, "release", SERVICE_RESULT=result, EXIT_STATUS=status)
    assert not (folder / "ended-at").exists()
    assert (folder / "marked").read_text() == "ended\n"


def test_no_device_waits_longer_than_an_engine_is_started_again_without_a_question(
    folder: Path,
) -> None:
    ended(folder, RESTART_LIMIT_S - 30)
    assert waits(folder, "release")
    ended(folder, RESTART_LIMIT_S + 1)
    assert not waits(folder, "release")


def test_a_device_of_which_nobody_knows_when_its_engine_ended_is_removed(folder: Path) -> None:
    assert not waits(folder, "release")


def test_a_disk_that_is_taken_down_has_no_device(folder: Path) -> None:
    ended(folder, 1)
    assert not waits(folder, "detach")
