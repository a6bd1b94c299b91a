"""hotset on a computer whose own kernel has dm-cache: run inside the virtual machine as ``local``.

The virtual machine gets a disk with hotset, its libraries for the guest's Python, and flashdev; in
there slow disk, iSCSI, tier and database all stand on one kernel.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from hotset.cachelayer import flashdev
from hotset.cachelayer import lab as labs
from hotset.cachelayer.lab import LabSpec
from hotset.cachelayer.local import Local
from hotset.cachelayer.units import Bytes
from hotset.tpcc import native

pytestmark = pytest.mark.lab

ROOT = Path(__file__).parents[2]
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
duration_s = 8
[warmup]
probe_s = 5
samples = 10
"""


def guest_disk(folder: Path) -> Path:
    """A disk with everything hotset needs inside."""
    content, disk = folder / "content", folder / "disk.img"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    subprocess.run(
        ["uv", "pip", "install", "--quiet", "--python-version", GUEST_PYTHON,
         "--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:",
         "--target", str(content / "site"), *project["dependencies"]],
        check=True, cwd=ROOT,
    )  # fmt: skip
    for part in ("cache-layer", "tpcc", "tpch", "reports", "harness"):
        shutil.copytree(ROOT / part / "hotset", content / "site/hotset", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    # What an installed hotset has: its own version for the record.
    metadata = content / f"site/hotset-{project['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: hotset\nVersion: {project['version']}\n"
    )
    shutil.copy(flashdev.program(Local()), content / "flashdev")
    shutil.copy(native.program(), content / native.PROGRAM)
    (content / "inside.toml").write_text(TINY)
    Local().run(["mke2fs", "-q", "-t", "ext4", "-d", str(content), str(disk), "4g"],
                timeout_s=300)  # fmt: skip
    shutil.rmtree(content)
    return disk


def test_the_tier_on_this_computers_own_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    disk = guest_disk(tmp_path)
    spec = LabSpec("vm", 2, Bytes(3 * 1024**3), Bytes(64 * 1024**2), disk, False)
    hotset = ["env", f"PYTHONPATH={THERE}/site", f"HOTSET_FLASHDEV={THERE}/flashdev",
              f"HOTSET_TPCC_DRIVER={THERE}/{native.PROGRAM}", f"HOME={THERE}",
              "PYTHONDONTWRITEBYTECODE=1", "python3", "-c",
              "from hotset.harness.cli import main; main()"]  # fmt: skip
    with labs.standing(spec, "test", print) as lab:
        machine = lab.machine
        assert lab.saved is not None
        machine.run(["mount", str(lab.saved), str(THERE)])
        words = ["experiment", "run", str(THERE / "inside.toml"), "--format", "json"]
        done = machine.run([*hotset, *words], timeout_s=900, check=False)
        assert done.rc == 0, done.stderr[-3000:]
        left = machine.run(["dmsetup", "ls"]).stdout + machine.run(["losetup", "-a"]).stdout
        assert "hotset" not in left
        assert "flash.img" not in left
        mounts = machine.run(["cat", "/proc/mounts"]).stdout
        assert "/run/hotset" not in mounts
        machine.run(["umount", str(THERE)])
    disk.unlink()
    result = json.loads(done.stdout)
    assert (result["machine"]["kind"], result["machine"]["accel"]) == ("local", None)
    assert result["state"] == "complete"
    accelerated = next(arm for arm in result["arms"] if arm["name"] == "accelerated")
    assert accelerated["repeats"][0]["hit_ratio"] > 0.95
    assert result["warmup"]["differing_blocks"] == 0
