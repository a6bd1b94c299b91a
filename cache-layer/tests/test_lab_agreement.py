"""Our smq against the kernel's: one timed trace of TPC-C on the real dm-cache and on our engine."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hotset.cachelayer import flashdev
from hotset.cachelayer import lab as labs
from hotset.cachelayer.dmcache import DmCache, metadata_bytes
from hotset.cachelayer.flash import mapper_path
from hotset.cachelayer.ground import VOLUME, alone
from hotset.cachelayer.lab import LabSpec, MachineKind
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import Hits, Tier, TierSpec, hits_between
from hotset.cachelayer.units import Bytes

pytestmark = pytest.mark.lab

MIB = 2**20
DISK = Bytes(1024 * MIB)
BLOCK = Bytes(64 * 1024)
TRACE = Path(__file__).parent / "data/tpcc-3-warehouses.trace.gz"
THERE = PurePosixPath("/run/hotset/trace")
SECONDS = 25
"""Of the trace's 40: the ratios have settled by then."""
WITHIN = 0.03


def spec(cache_mib: int, volume: Bytes) -> TierSpec:
    cache = Bytes(cache_mib * MIB)
    return TierSpec("writeback", "smq", BLOCK, metadata_bytes(cache, BLOCK), cache, volume)


def replay(machine: Machine, tier: Tier, device: Path | PurePosixPath, trace: str) -> Hits:
    """Hits and misses of a replay; it counts only if the device kept up with the trace."""
    before = tier.counters()
    argv = [flashdev.on(machine), "replay", "--overwrite", str(device), "--trace", trace]
    result: dict[str, Any] = json.loads(machine.run(argv, timeout_s=300).stdout)
    print(result)
    assert result["late_ms_mean"] < 200, "the device did not keep up"
    return hits_between(before, tier.counters(), tier.counter_bits)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace"
    lines = gzip.decompress(TRACE.read_bytes()).splitlines(keepends=True)
    file.write_bytes(b"".join(line for line in lines if float(line.split()[0]) < SECONDS))
    return file


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def lab_spec(machine: MachineKind) -> LabSpec:
    return LabSpec(machine, 2, Bytes(1024 * MIB), Bytes(1400 * MIB))


def on_dm_cache(trace: Path, cache_mib: int) -> Hits:
    """On the kernel's, in the virtual machine; the origin is a slice of its fast disk."""
    with labs.standing(lab_spec("vm"), "test", print) as lab, lab.takedown.part():
        slices = spec(cache_mib, DISK)
        tier = DmCache(
            lab.machine, slices, alone(lab.machine, slices, labs.VM_FLASH, mapper_path(VOLUME))
        )
        lab.takedown.call("remove the tier", tier.discard)
        tier.prepare()
        device = tier.create()
        lab.machine.run(["mkdir", "-p", str(THERE.parent)])
        lab.machine.put(trace, THERE)
        return replay(lab.machine, tier, device, str(THERE))


def on_ours(trace: Path, cache_mib: int) -> Hits:
    """On our engine, on this computer; the origin is as fast as flash."""
    with labs.standing(lab_spec("image"), "test", print) as lab, lab.takedown.part():
        origin = lab.ground.slow_disk("pcie-flash-2014", DISK, 1)
        tier = lab.ground.tier(spec(cache_mib, Bytes(MIB)), origin, lab.takedown)
        tier.prepare()
        return replay(Local(), tier, lab.folder / "tier/data", str(trace))


@pytest.mark.skipif(os.geteuid() != 0, reason="our engine needs root for its loop devices")
@pytest.mark.parametrize("cache_mib", [96])
def test_hit_ratios_agree_with_the_real_dm_cache(trace: Path, cache_mib: int) -> None:
    kernel, ours = on_dm_cache(trace, cache_mib), on_ours(trace, cache_mib)
    print(f"dm-cache {kernel.ratio:.3f} {kernel}\nours     {ours.ratio:.3f} {ours}")
    assert kernel.ratio is not None
    assert ours.ratio is not None
    assert 0.05 < kernel.ratio < 0.95, "a ratio that any cache would have shows nothing"
    for name in ("ratio", "read_ratio", "write_ratio"):
        assert abs(getattr(kernel, name) - getattr(ours, name)) <= WITHIN, name
