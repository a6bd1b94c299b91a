"""What keeps an engine at work: the script's own decisions, with nothing running."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path, PurePosixPath

import pytest

from hotset.block.devicemapper import Place, Slice
from hotset.core.units import Bytes
from hotset.tier import devices
from hotset.tier.base import TierSpec
from tests.fake_machine import FakeMachine

RESTART_LIMIT_S = 60
MIB = 2**20
SPEC = TierSpec("writeback", "hotset", Bytes(65536), Bytes(MIB), Bytes(MIB), Bytes(0))


def script(disk: str, folder: Path) -> str:
    """As the program writes it, for a disk whose files lie in a folder."""
    flash, origin = PurePosixPath("/srv/flash"), PurePosixPath("/srv/shop.img")
    place = Place(disk, flash, origin, (), (), Slice("volume", ()))
    tier = devices.Devices(FakeMachine(), "userspace", SPEC, place, "ab-cd")
    described = tier.describe(facts={"origin_size": 0, "sector_size": 512, "active": []})
    described |= {"engine_program": "true", "own_program": "true"}
    text = devices.rehearse("script", described, FakeMachine())
    mark = f"sh -c 'echo $0 > {folder}/marked'"
    return (
        text.replace("true mark --flash /srv/flash shop", mark)
        .replace("/run/hotset/engine/", f"{folder.parent}/")
        .replace("/dev/hotset", f"{folder.parent}/dev")
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the engine of a disk called shop has its files; its device is ublk's."""
    folder = tmp_path / "shop"
    (folder / "mount").mkdir(parents=True)
    (folder / "attached").write_text("/dev/ublkb999 77\n")
    return folder


def waits(folder: Path, verb: str, **environment: str) -> bool:
    """Whether the device waits for an engine after the script has done this."""
    # Whatever removes the device succeeds.
    subprocess.run(
        ["sh", "-c", script("shop", folder), "sh", verb],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
        check=True,
        timeout=300,
    )
    return (folder / "attached").exists()


def ended(folder: Path, seconds: int) -> None:
    now = int(Path("/proc/uptime").read_text().partition(".")[0])
    (folder / "ended-at").write_text(f"{now - seconds}\n")


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


@pytest.mark.parametrize("step_s", [-3600, 3600])
def test_a_clock_that_is_set_ends_no_wait_and_begins_none(
    folder: Path, tmp_path: Path, step_s: int
) -> None:
    (clock := tmp_path / "date").write_text(f"#!/bin/sh\necho {int(time.time()) + step_s}\n")
    clock.chmod(0o755)
    path = f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin"
    killed = {"SERVICE_RESULT": "signal", "EXIT_STATUS": "KILL"}
    assert waits(folder, "release", **killed)
    assert waits(folder, "release", PATH=path), "it has only just ended"


def test_a_device_of_which_nobody_knows_when_its_engine_ended_is_removed(folder: Path) -> None:
    assert not waits(folder, "release")


def test_a_disk_that_is_taken_down_has_no_device(folder: Path) -> None:
    ended(folder, 1)
    assert not waits(folder, "detach")


def test_what_udev_cannot_be_told_is_attached_all_the_same(folder: Path, tmp_path: Path) -> None:
    """A container may have systemd without udev."""
    text = script("shop", folder).replace("/run/systemd/system", str(tmp_path))
    functions = text.replace('\n"$1"\n', "\ntell_systemd /dev/loop7\n")
    told = subprocess.run(["/bin/sh", "-c", functions], env={"PATH": str(tmp_path)}, check=False)
    assert told.returncode == 0


def test_a_disk_is_down_once_whoever_watched_over_its_engine_is_gone(
    folder: Path, tmp_path: Path
) -> None:
    """It had been given two seconds, and then took away what the next activation had made."""
    text = script("shop", folder).replace("/run/systemd/system", str(tmp_path / "none"))
    done = folder / "done"
    tidies_up = f"echo begun; sleep 2; touch {done}"
    argv = ["flock", str(folder / "watching"), "sh", "-c", tidies_up]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "begun\n"
        subprocess.run(["sh", "-c", text, "sh", "stop"], check=True, timeout=300)
        assert done.exists()
