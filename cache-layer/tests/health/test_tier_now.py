"""What the tier, its pins and the devices below it come to, and the way out that is named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import pytest

from hotset.block import devices
from hotset.block.condition import thin_pools, wear
from hotset.block.condition.thin_pools import ThinPool
from hotset.block.condition.wear import Wear
from hotset.core import errors
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import AttachedDisk
from hotset.disk.lifecycle import DiskState
from hotset.health import tier_now
from hotset.health.findings import Ask, Finding
from hotset.tier import pins
from hotset.tier.base import Report
from hotset.tier.base import State as TierState
from hotset.tier.division import Division, Part
from hotset.tier.pins import Preferences, Share
from hotset.warmup import division
from hotset.warmup.division import Kept, Location
from hotset.warmup.plan import Request as Planning
from tests.support.hit_counters import DISK, FLASH, counters

ASK = Ask("local", "erp", "state")
AWAY = Ask("ssh://db1", "erp", "state")
MIB = 1024**2
COUNTED = counters(1)
NOBODY = Planning("local", ())
"""No server that could be asked."""


def seen(state: TierState, metadata: float | None = None, **more: object) -> DiskState:
    told = None if state in ("failed", "inactive") else COUNTED
    report = Report(state, told, (), ("why",), metadata)
    return replace(DiskState(FLASH, DISK, report, True), **more)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The origin is there, and the flash is this machine's."""
    monkeypatch.setattr(devices, "type_of", lambda _, __: "device")
    monkeypatch.setattr(flash_devices, "is_ours", lambda _, __: True)


def told(ask: Ask, how: DiskState) -> Finding:
    (found,) = tier_now.state(ask, how, AttachedDisk(Local(), FLASH, DISK))
    return found


def commands(found: Finding) -> list[str]:
    return [errors.command(one).strip("`") for one in found.remedies]


@pytest.mark.parametrize(
    ("state", "how", "helps"),
    [
        ("active", "ok", []),
        ("inactive", "warning", ["hotset tier activate erp"]),
        ("restarting", "warning", ["hotset tier activate erp"]),
        ("degraded", "critical", ["hotset tier deactivate erp", "hotset tier activate erp"]),
        ("failed", "critical", ["hotset tier activate erp", "hotset tier deactivate erp"]),
    ],
)
def test_a_state_comes_with_its_way_out(state: TierState, how: str, helps: list[str]) -> None:
    found = told(ASK, seen(state))
    assert (found.state, commands(found)) == (how, helps)


def test_an_active_disk_whose_origin_may_be_used_past_it_is_not_known_to_be_right() -> None:
    found = told(ASK, seen("active", doubt="whether it is used past its cache is not known"))
    assert (found.state, found.text) == (
        "unknown",
        "whether it is used past its cache is not known",
    )


def test_a_dead_flash_is_given_up_and_a_detach_is_ended() -> None:
    found = told(ASK, seen("failed", flash_answers=False))
    assert commands(found) == ["hotset tier detach erp --flash-is-dead"]
    found = told(ASK, seen("failed", disk=replace(DISK, phase="detaching")))
    assert commands(found) == ["hotset tier detach erp"]


def test_what_another_machine_owns_is_taken_over_and_what_is_gone_has_no_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(flash_devices, "is_ours", lambda _, __: False)
    assert commands(told(ASK, seen("failed"))) == ["hotset tier import --flash /dev/flash"]
    monkeypatch.setattr(devices, "type_of", lambda _, __: None)
    assert commands(told(ASK, seen("failed"))) == []


def test_a_command_is_for_the_machine_that_was_looked_at() -> None:
    found = told(AWAY, seen("inactive"))
    assert commands(found) == ["hotset tier activate erp --machine ssh://db1"]


@pytest.mark.parametrize(
    ("state", "share", "how"),
    [
        ("active", 0.89, "ok"),
        ("active", 0.9, "critical"),
        ("active", None, "ok"),
        ("failed", None, "unknown"),
    ],
)
def test_metadata_that_nobody_tells_are_not_taken_for_empty(
    state: TierState, share: float | None, how: str
) -> None:
    (found,) = tier_now.metadata(ASK, seen(state, share))
    assert found.state == how


def attached() -> AttachedDisk:
    return AttachedDisk(Local(), FLASH, replace(DISK, kind="userspace"))


@pytest.mark.parametrize(
    ("pool", "how", "says"),
    [
        (ThinPool("p", 0.5, 0.5), "ok", "50 %"),
        (ThinPool("p", 0.95, 0.5), "critical", "extend it"),
        (ThinPool("p", 0.5, 0.9), "critical", "extend its metadata"),
        (ThinPool("p", 0.5, 0.5, "it is read-only"), "critical", "read-only"),
        (ThinPool("p", None, None, "it failed"), "critical", "it failed"),
    ],
)
def test_thin_pools(monkeypatch: pytest.MonkeyPatch, pool: ThinPool, how: str, says: str) -> None:
    monkeypatch.setattr(thin_pools, "measure", lambda _, __: [pool])
    (found,) = tier_now.pools(ASK, attached())
    assert found.state == how
    assert says in found.text


@pytest.mark.parametrize(
    ("used", "failing", "how"),
    [(0.79, "", "ok"), (0.8, "", "warning"), (1.0, "", "critical"), (0.1, "it warns", "critical")],
)
def test_wear(monkeypatch: pytest.MonkeyPatch, used: float, failing: str, how: str) -> None:
    drive = Wear(PurePosixPath("/dev/sda"), used, failing)
    monkeypatch.setattr(wear, "measure", lambda _, __: [drive])
    (found,) = tier_now.flash_wear(ASK, attached())
    assert found.state == how


@dataclass(frozen=True)
class Divided:
    """A cache of 100 blocks of 1 MiB that is divided."""

    def is_active(self) -> bool:
        return True

    def divisible(self) -> Divided:
        return self

    def division(self) -> Division:
        none = Part("", *(Blocks(0),) * 4)
        return Division(Bytes(MIB), Blocks(100), Blocks(90), none, none, (), Blocks(0))


def kept(size: int, cached: int, guaranteed: int | None = None) -> Kept:
    told = None if guaranteed is None else Bytes(guaranteed * MIB)
    return Kept(Bytes(size * MIB), Bytes(cached * MIB), told)


@pytest.mark.parametrize(
    ("wanted", "has", "says"),
    [
        (Preferences(("table:a",)), {"table:a": kept(9, 9)}, []),
        (Preferences(("table:a",)), {"table:a": kept(9, 6)}, ["6 MiB of 9 MiB of table:a"]),
        (Preferences(("table:a",)), {}, ["table:a is not kept"]),
        (Preferences((), ("table:a",)), {"table:a": kept(9, 0)}, []),
        (
            Preferences((), (), (Share("database:b", "30%", "50%"),)),
            {"database:b": kept(80, 10, 30)},
            [],
        ),
        (
            Preferences((), (), (Share("database:b", "30%", "50%"),)),
            {"database:b": kept(80, 10, 20)},
            ["guaranteed 20 MiB of 30 MiB"],
        ),
        (
            Preferences((), (), (Share("database:b", "30%", "50%"),)),
            {"database:b": kept(5, 5, 5)},
            [],
        ),
    ],
    ids=["all", "a part", "not found", "excluded", "shared", "less than promised", "is small"],
)
def test_pins_and_shares_that_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, wanted: Preferences, has: dict[str, Kept], says: list[str]
) -> None:
    monkeypatch.setattr(pins, "read_preferences", lambda _, __: wanted)
    monkeypatch.setattr(division, "measure_kept", lambda _: has)
    monkeypatch.setattr(division, "find_again", lambda *_: {})
    monkeypatch.setattr(AttachedDisk, "tier", property(lambda _: Divided()))
    found = tier_now.preferences(ASK, attached(), NOBODY)
    told = [one for one in found if one.state == "warning"]
    assert len(told) == len(says)
    for one, text in zip(told, says, strict=True):
        assert text in one.text
        assert commands(one) == ["hotset warmup refresh --disk erp"]


def test_a_kind_that_does_not_say_what_it_has_of_a_pin_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pins, "read_preferences", lambda _, __: Preferences(("/a",)))
    gone = {"/a": Location("gone", Bytes(0), Bytes(0), "no such file")}
    monkeypatch.setattr(division, "find_again", lambda *_: gone)
    found, missing = tier_now.preferences(ASK, AttachedDisk(Local(), FLASH, DISK), NOBODY)
    assert found.state == "unknown"
    assert missing.text == "/a: it is gone (no such file)"
    assert commands(missing) == ["hotset warmup unpin /a --disk erp"]
