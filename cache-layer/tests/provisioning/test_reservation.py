"""Keys of persistent reservations."""

from __future__ import annotations

import pytest

from hotset.cachelayer.provisioning.identity import owner, reservation
from tests.fake_machine import FakeMachine


def test_clones_have_different_keys_where_the_firmware_tells_them_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As ``boot/src/host.rs`` has them."""
    monkeypatch.setattr(owner, "host_id", lambda _: "0123456789abcdef0123456789abcdef")
    for hardware, key in (("", "0x123456789abcdef"), ("8000000000000001ff", "0x8123456789abcdee")):
        monkeypatch.setattr(owner, "hardware_id", lambda _, told=hardware: told)
        assert reservation.key(FakeMachine()) == key
