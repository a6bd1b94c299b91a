"""Keys of persistent reservations."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from hotset.disk.identity import origin, owner, reservation
from tests.fake_machine import FakeMachine


def test_clones_have_different_keys_where_the_firmware_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ``boot/src/host.rs`` has them."""
    monkeypatch.setattr(owner, "host_id", lambda _: "0123456789abcdef0123456789abcdef")
    for hardware, key in (("", "0x123456789abcdef"), ("8000000000000001ff", "0x8123456789abcdee")):
        monkeypatch.setattr(owner, "hardware_id", lambda _, told=hardware: told)
        assert reservation.key(FakeMachine()) == key


@pytest.mark.parametrize("is_clone", [False, True])
def test_a_path_joins_where_another_of_this_very_host_has_the_key(
    is_clone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clone has the rule, too: the storage lets none of its paths change the key."""
    monkeypatch.setattr(origin, "kind", lambda *_: "mpath")
    monkeypatch.setattr(owner, "host_id", lambda _: "0123456789abcdef0123456789abcdef")
    script = reservation.for_new_path(FakeMachine(), PurePosixPath("/dev/mapper/mpatha"))
    assert script is not None
    assert not {"'", '"', "%"} & set(script), "udev's own"
    for name, wwid in (("sda", "naa.5000"), ("sdb", "naa.6000 x"), ("sdc", "naa.6000 x")):
        file = tmp_path / name / "device/wwid"
        file.parent.mkdir(parents=True)
        file.write_text(f"{wwid}\n")
    registers = 24 if is_clone else 0
    stand_in = f'sg_persist() {{ echo "$*"; case "$*" in *rk=*rk=*) return {registers}; esac; }}; '
    shell = ["sh", "-c", stand_in + script.replace("/sys/block", str(tmp_path)), "x", "/dev/sdc"]
    said = subprocess.run(shell, capture_output=True, text=True, check=False, timeout=60).stdout
    key = "0x123456789abcdef"
    asked = f"--no-inquiry --out --register --param-rk={key} --param-sark={key} /dev/sdb"
    joined = f"--no-inquiry --out --register --param-sark={key} /dev/sdc"
    assert said.splitlines() == ([asked] * 3 if is_clone else [asked, joined])
