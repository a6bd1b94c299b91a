"""What the modelled tier asks of its engine, and how it reads the answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.lab.modelled_tier import ModelledTier
from hotset.lab.slow_disk import LoopDevice, ModelledStorage
from hotset.tier.base import Counters, TierFailedError, TierSpec
from tests.fake_machine import FakeMachine

MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n * MIB) for n in (5, 64, 16)))
STATUS: dict[str, Any] = {
    "protocol": 1,
    "begun": 11.5,
    "read_hits": 1,
    "read_misses": 2,
    "write_hits": 3,
    "write_misses": 4,
    "promotions": 5,
    "demotions": 6,
    "write_backs": 7,
    "dirty": 8,
    "used": 9,
    "total": 10,
    "block_bytes": 65536,
    "policy": "smq",
    "mode": "writeback",
    "state": "serving",
}


@pytest.fixture
def tier(tmp_path: Path) -> ModelledTier:
    local = Local()
    origin = ModelledStorage(local, LoopDevice(local), "nas-2014", Bytes(256 * MIB), tmp_path)
    cleanup = Cleanup(tmp_path, local)
    return ModelledTier(
        local,
        FakeMachine(),
        SPEC,
        origin,
        tmp_path / "flash.img",
        "pcie-flash-2014",
        tmp_path,
        cleanup,
    )


def test_the_engine_is_told_everything(tier: ModelledTier, tmp_path: Path) -> None:
    argv = tier.argv()
    options = dict(zip(argv[1:-1:2], argv[2::2], strict=False))
    assert argv[0] == "tier"
    assert options == {
        "--origin-model": "nas-2014",
        "--origin": str(tmp_path / "slow.img"),
        "--flash": str(tmp_path / "flash.img"),
        "--flash-model": "pcie-flash-2014",
        "--metadata": str(5 * MIB),
        "--cache": str(64 * MIB),
        "--volume": str(16 * MIB),
        "--block": "65536",
        "--policy": "smq",
        "--mode": "writeback",
        "--control": str(tmp_path / "tier.sock"),
    }
    assert argv[-1] == "--volatile"
    assert (tmp_path / "slow.img").stat().st_size == 256 * MIB


def test_counters_are_the_same_record_as_the_kernels(tier: ModelledTier) -> None:
    assert tier.parse(json.dumps(STATUS)) == Counters(
        1, 2, 3, 4, 5, 6, dirty=Blocks(8), used=Blocks(9), total=Blocks(10), begun=11.5
    )


@pytest.mark.parametrize(
    "line", ['{"error": "the flash is gone", "protocol": 1}', "Fail", "Fail\n"]
)
def test_a_failure_can_never_be_read_as_zeros(tier: ModelledTier, line: str) -> None:
    with pytest.raises(TierFailedError):
        tier.parse(line)


def test_the_counters_are_asked_for_on_the_machine(
    tier: ModelledTier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hotset-engine").touch()
    monkeypatch.setenv("HOTSET_FLASHDEV", str(tmp_path / "flashdev"))
    machine = tier.machine
    assert isinstance(machine, FakeMachine)
    machine.answers["hotset-engine ask"] = json.dumps(STATUS)
    assert tier.counters().used == 9
    asked = '{"counters": {}}'
    assert machine.calls[-1].argv[1:] == ("ask", str(tmp_path / "tier.sock"), asked)
