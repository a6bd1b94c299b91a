"""hotset on a computer whose own kernel has dm-cache: run inside the virtual machine as ``local``.

The virtual machine gets a disk with hotset, its libraries for the guest's Python, and flashdev; in
there slow disk, iSCSI, tier and database all stand on one kernel.
"""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from hotset.cachelayer.block import flashdev
from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.base import Machine, Result
from hotset.cachelayer.hosts.local import Local
from hotset.cachelayer.testbed.lab import LabSpec
from hotset.reports.model.document import RunDocument
from hotset.tpcc import native
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[3]
GUEST_PYTHON = "3.13"
THERE = PurePosixPath("/mnt")
TINY = """
name = "inside"
repeats = 1
time_scale = 1
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


def guest_disk(folder: Path) -> Path:
    """A disk with everything hotset needs inside."""
    content, disk = folder / "content", folder / "disk.img"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    subprocess.run(
        [
            "uv",
            "pip",
            "install",
            "--quiet",
            "--python-version",
            GUEST_PYTHON,
            "--python-platform",
            "x86_64-manylinux_2_28",
            "--only-binary",
            ":all:",
            "--target",
            str(content / "site"),
            *project["dependencies"],
        ],
        check=True,
        cwd=ROOT,
    )
    for part in ("cache-layer", "tpcc", "tpch", "reports", "harness"):
        shutil.copytree(
            ROOT / part / "hotset",
            content / "site/hotset",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    # What an installed hotset has: its own version for the record.
    metadata = content / f"site/hotset-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: hotset\nVersion: {project['version']}\n"
    )
    shutil.copy(flashdev.program(Local()), content / "flashdev")
    shutil.copy(native.program(), content / native.PROGRAM)
    (content / "inside.toml").write_text(TINY)
    Local().run(["mke2fs", "-q", "-t", "ext4", "-d", str(content), str(disk), "4g"], timeout_s=300)
    shutil.rmtree(content)
    return disk


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
        words = [
            f"PYTHONPATH={THERE}/site",
            f"HOTSET_FLASHDEV={THERE}/flashdev",
            f"HOTSET_TPCC_DRIVER={THERE}/{native.PROGRAM}",
            f"HOME={THERE}",
            "python3",
            "-c",
            "from hotset.harness.cli import main; main()",
            "experiment",
            "run",
            str(THERE / "inside.toml"),
            "--format",
            "json",
            *(word for one in more for word in ("--set", one)),
            *(["--yes"] if yes else []),
        ]
        return self.machine.run(["env", *words], timeout_s=900, check=False)


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    folder = tmp_path_factory.mktemp("inside")
    disk = guest_disk(folder)
    spec = LabSpec("uml", 2, Bytes(3 * 1024**3), Bytes(640 * 1024**2), disk, False)
    with own_lab(tmp_path_factory, spec) as lab:
        assert lab.saved is not None
        lab.machine.run(["mount", str(lab.saved), str(THERE)])
        # What systemd does on a computer (its static device nodes).
        lab.machine.run(["modprobe", "--all", "fuse", "loop"])
        yield Inside(lab.machine)
        lab.machine.run(["umount", str(THERE)])
    disk.unlink()


def test_the_tier_on_this_computers_own_kernel(inside: Inside) -> None:
    result = inside.run()
    assert result.machine is not None
    assert (result.machine.kind, result.machine.accel) == ("local", None)
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
    assert "200.0 MiB) is not empty: ext2 on it" in refused.stderr
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
        inside.machine.run(["dmsetup", "remove", name])
        inside.machine.run(["losetup", "--detach", loop_of(inside.machine, name)])


def hit_ratio(result: RunDocument) -> float:
    accelerated = result.arm("accelerated")
    assert accelerated is not None
    assert result.warmup is not None
    assert result.warmup.differing_blocks == 0
    return accelerated.repeats[0].hit_ratio or 0


def slow_disk(machine: Machine, name: str, mib: int) -> None:
    """A disk that udev gives a name by its id, as it does to hardware."""
    file = str(THERE / f"{name}.img")
    machine.run(["truncate", "-s", f"{mib}M", file])
    loop = machine.run(["losetup", "--find", "--show", "--direct-io=on", file]).stdout.strip()
    machine.run(["dmsetup", "create", name], stdin=f"0 {mib * 2048} linear {loop} 0")
    machine.run(["udevadm", "settle"])


def loop_of(machine: Machine, name: str) -> str:
    return machine.run(["losetup", "-j", str(THERE / f"{name}.img")]).stdout.partition(":")[0]
