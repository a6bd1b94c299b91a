"""hotset on a computer whose own kernel has dm-cache: run inside the virtual machine as ``local``.

In there slow disk, iSCSI, tier and database all stand on one kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hotset.core.machines.base import Machine, Result
from hotset.core.units import Bytes
from hotset.reports.model.document import RunDocument
from tests.inside_guest import THERE, hotset, lab_with_hotset, remove_slow_disk, slow_disk

# One worker makes the machine, with hotset inside, for all of them.
pytestmark = [pytest.mark.lab, pytest.mark.night, pytest.mark.xdist_group("on_local")]

TINY = """
name = "inside"
repeats = 1
arms = ["accelerated"]
[storage]
size = "640MiB"
[flash]
size = "640MiB"
[tier]
cache = "256MiB"
volume = "192MiB"
[tpcc]
warehouses = 1
users = 4
rampup_s = 1
duration_s = 4
[warmup]
probe_s = 3
probe_max_s = 10
samples = 10
"""


REAL = (
    "arms=['baseline', 'accelerated']",
    "storage.device=/dev/disk/by-id/dm-name-slow",
    "storage.log_device=/dev/disk/by-id/dm-name-log",
    "flash.device=/dev/disk/by-id/lab-flash",
    "machine.kind=local",
    "tpcc.duration_s=4",
)
"""Disks of the guest by their ids, as hardware has them."""


@dataclass(frozen=True)
class Inside:
    """hotset in the guest."""

    machine: Machine

    def run(self, *more: str, yes: bool = False) -> RunDocument:
        """The tiny experiment; nothing of it stands afterwards."""
        done = self.hotset(*more, yes=yes)
        assert done.rc == 0, done.stderr[-3000:]
        left = self.machine.run(["dmsetup", "ls"]).stdout
        left += self.machine.run(["losetup", "-a"]).stdout
        assert "hotset" not in left
        assert "flash.img" not in left
        assert "/run/hotset" not in self.machine.run(["cat", "/proc/mounts"]).stdout
        return RunDocument.model_validate_json(done.stdout)

    def hotset(self, *more: str, yes: bool = False) -> Result:
        settings = [word for one in more for word in ("--set", one)]
        words = ["experiment", "run", str(THERE / "inside.toml"), "--format", "json", *settings]
        return hotset(self.machine, *words, *(["--yes"] if yes else []))


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    sizes = Bytes(3 * 1024**3), Bytes(640 * 1024**2)
    with lab_with_hotset(tmp_path_factory, *sizes, {"inside.toml": TINY}) as lab:
        yield Inside(lab.machine)


def test_the_tier_on_this_computers_own_kernel(inside: Inside) -> None:
    result = inside.run()
    assert result.machine is not None
    assert result.machine.kind == "local"
    assert result.state == "complete"
    assert hit_ratio(result) > 0.95
    assert result.storage is not None
    assert result.storage.kind == "modelled"


def test_real_disks_by_their_names(inside: Inside) -> None:
    slow_disk(inside.machine, "slow", 700)
    slow_disk(inside.machine, "log", 200)
    inside.machine.run(["mke2fs", "-q", "-L", "precious", "/dev/mapper/log"])
    refused = inside.hotset(*REAL)
    assert refused.rc == 2
    assert "storage.log_device: /dev/disk/by-id/dm-name-log (" in refused.stderr
    assert "200 MiB) is not empty: ext2 on it" in refused.stderr
    label = ["blkid", "--probe", "--match-tag", "LABEL", "--output", "value", "/dev/mapper/log"]
    assert inside.machine.run(label).stdout.strip() == "precious"
    result = inside.run(*REAL, yes=True)
    assert result.state == "complete"
    assert hit_ratio(result) > 0.95
    assert result.storage is not None
    assert (result.storage.kind, result.storage.name) == ("device", "/dev/disk/by-id/dm-name-slow")
    assert result.tier is not None
    assert result.tier.flash == "/dev/disk/by-id/lab-flash, as fast as it is"
    baseline = result.arm("baseline")
    assert baseline is not None
    assert baseline.repeats[0].nopm > 0
    for name in ("slow", "log"):
        remove_slow_disk(inside.machine, name)


def hit_ratio(result: RunDocument) -> float:
    accelerated = result.arm("accelerated")
    assert accelerated is not None
    assert result.warmup is not None
    assert result.warmup.differing_blocks == 0
    return accelerated.repeats[0].hit_ratio or 0
