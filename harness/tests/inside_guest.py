"""hotset within the lab's machine, where it is ``local``: a disk with hotset, its libraries for the
guest's Python, and its programs."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import flashdev, programs
from hotset.core.machines.base import Machine, Result
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab.lab import Lab, LabSpec
from hotset.tpcc.native import PROGRAM, program
from tests.own_lab import own_lab

ROOT = Path(__file__).parents[2]
GUEST_PYTHON = "3.13"
EXTRAS = ("bench", "report", "console")
THERE = PurePosixPath("/mnt")


def guest_disk(folder: Path, files: Mapping[str, str], size: str = "4g") -> Path:
    """A disk with everything hotset needs inside, and these files."""
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
            *(line for extra in EXTRAS for line in project["optional-dependencies"][extra]),
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
    shutil.copy(flashdev.program(Local()), content / "flashdev")
    shutil.copy(programs.find_engine(), content / programs.ENGINE)
    shutil.copy(programs.find_boot(), content / programs.BOOT)
    shutil.copy(program(), content / PROGRAM)
    for name, text in files.items():
        (content / name).write_text(text)
    Local().run(["mke2fs", "-q", "-t", "ext4", "-d", str(content), str(disk), size], timeout_s=300)
    shutil.rmtree(content)
    return disk


@contextmanager
def lab_with_hotset(
    factory: pytest.TempPathFactory, memory: Bytes, flash: Bytes, files: Mapping[str, str]
) -> Iterator[Lab]:
    """A lab whose machine can run hotset itself."""
    disk = guest_disk(factory.mktemp("inside"), files)
    with own_lab(factory, LabSpec("uml", 2, memory, flash, disk, False)) as lab:
        assert lab.saved is not None
        lab.machine.run(["mount", str(lab.saved), str(THERE)])
        # What systemd does on a computer (its static device nodes).
        lab.machine.run(["modprobe", "--all", "fuse", "loop"])
        yield lab
        lab.machine.run(["umount", str(THERE)])
    disk.unlink()


def hotset(machine: Machine, *words: str, timeout_s: float = 900, **variables: str) -> Result:
    """A command of hotset's there; its exit code is the caller's to look at."""
    environment = {
        "PYTHONPATH": f"{THERE}/site",
        "HOTSET_FLASHDEV": f"{THERE}/flashdev",
        "HOTSET_TPCC_DRIVER": f"{THERE}/{PROGRAM}",
        "HOME": str(THERE),
        **variables,
    }
    argv = ["env", *(f"{name}={value}" for name, value in environment.items())]
    argv += ["python3", "-c", "from hotset.cli import main; main()", *words]
    return machine.run(argv, timeout_s=timeout_s, check=False)


def slow_disk(machine: Machine, name: str, mib: int) -> PurePosixPath:
    """A disk that udev gives a name by its id, as it does to hardware; returns that name."""
    file = str(THERE / f"{name}.img")
    machine.run(["truncate", "-s", f"{mib}M", file])
    loop = machine.run(["losetup", "--find", "--show", "--direct-io=on", file]).stdout.strip()
    machine.run(["dmsetup", "create", name], stdin=f"0 {mib * 2048} linear {loop} 0")
    machine.run(["udevadm", "settle"])
    return PurePosixPath(f"/dev/disk/by-id/dm-name-{name}")


def remove_slow_disk(machine: Machine, name: str) -> None:
    machine.run(["dmsetup", "remove", name])
    listed = machine.run(["losetup", "-j", str(THERE / f"{name}.img")]).stdout
    machine.run(["losetup", "--detach", listed.partition(":")[0]])
