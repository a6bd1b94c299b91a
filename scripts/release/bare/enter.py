"""Entering a bare system from inside new namespaces: its folder becomes the root."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

NODES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
    "fuse": (10, 229),
    "net/tun": (10, 200),
}
"""Device nodes that everybody may open, as udev sets them up."""
ROOT_NODES = {"loop-control": (10, 237), "kvm": (10, 232)}
LOOPS = 64


def enter(root: Path) -> None:
    """pivot_root rather than chroot: in a chroot nobody may make user namespaces."""
    mount("--bind", str(root), str(root))
    mount("-t", "proc", "proc", str(root / "proc"))
    mount("--rbind", "/sys", str(root / "sys"))
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(root / "run"))
    make_devices(root / "dev")
    old = root / "old-root"
    old.mkdir()
    subprocess.run(["pivot_root", str(root), str(old)], check=True)
    os.chdir("/")
    if ctypes.CDLL(None, use_errno=True).umount2(b"/old-root", 2) != 0:  # MNT_DETACH
        raise OSError(ctypes.get_errno(), "umount2 /old-root")
    Path("/old-root").rmdir()
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"


def make_devices(dev: Path) -> None:
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", str(dev))
    (dev / "net").mkdir()
    loops = {f"loop{number}": (7, number) for number in range(LOOPS)}
    for name, (major, minor) in (NODES | ROOT_NODES | loops).items():
        if not Path("/dev", name).exists() and name not in loops:
            continue
        kind = 0o060000 if name in loops else 0o020000  # block or character device
        os.mknod(dev / name, kind | 0o600, os.makedev(major, minor))
        (dev / name).chmod(0o666 if name in NODES else 0o660)
    for folder, system, how in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620,gid=5"),
        ("shm", "tmpfs", "mode=1777"),
    ):
        (dev / folder).mkdir()
        mount("-t", system, "-o", how, system, str(dev / folder))
    (dev / "ptmx").symlink_to("pts/ptmx")
    (dev / "fd").symlink_to("/proc/self/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (dev / name).symlink_to(f"/proc/self/fd/{number}")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
