"""The lab's virtual machine: QEMU on the frozen image, steered over SSH.

KVM where it really boots a kernel, else TCG (an emulated CPU, many times slower). The control
and SQL connections use QEMU's user network with ports forwarded from the loopback address, so
they need no root; with root, iSCSI gets a tap device of its own in a network namespace.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotset.core.clock import boot_id, wait_until
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local, free_port
from hotset.core.paths import cache_dir, write_whole
from hotset.core.units import Bytes

from ..image import Image
from .guest import PORTS, Disk, Files, Guest, KernelPanicError, wait_until_ready

Accel = Literal["kvm", "tcg"]
PROCESS = "virtual machine"
USER_NET_GUEST = "10.0.2.15"
USER_NET_HOST = "10.0.2.2"
_SILENCE_MAX_S = 90.0
_BOOT_ATTEMPTS = 3
_KVM_PROBE_LIMIT_S = 12.0
_KVM_FIRST_LINE_S = 5.0
"""A kernel that runs prints its first line within the first second; one that hangs prints none."""
# QEMU's own choice is to stop the guest for ever when this computer's disk is full.
_BARE = (
    "qemu-system-x86_64",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
)
_ON_ERROR = ",werror=report"


@dataclass(frozen=True, slots=True)
class VmSpec:
    """A guest to boot. ``tap`` names the tap device for iSCSI, with the guest's address on it."""

    accel: Accel
    cores: int
    memory: Bytes
    disks: tuple[Disk, ...]
    tap: tuple[str, str] | None = None


def qemu_argv(image: Image, spec: VmSpec, ports: dict[int, int], console: Path) -> list[str]:
    """The QEMU call; the root disk is a throw-away snapshot, so the image stays frozen."""
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-:{guest}" for guest, host in ports.items())
    argv = [
        *_BARE,
        *accel_argv(spec.accel),
        "-smp",
        str(spec.cores),
        "-m",
        f"{spec.memory // 1024**2}M",
        "-kernel",
        str(image.kernel),
        "-initrd",
        str(image.initrd),
        "-append",
        _kernel_arguments(spec),
        "-serial",
        f"file:{console}",
        "-device",
        "virtio-rng-pci",
        "-drive",
        # Machines of other kinds have the image open, too, and their locks are not QEMU's; nobody
        # writes to it.
        f"file={image.root_disk},file.locking=off,if=none,id=root,format=raw,snapshot=on",
        "-device",
        f"virtio-blk-pci,drive=root{_ON_ERROR}",
        "-netdev",
        f"user,id=user,restrict=off{forwards}",
        "-device",
        "virtio-net-pci,netdev=user",
    ]
    if spec.tap:
        argv += ["-netdev", f"tap,id=tap,ifname={spec.tap[0]},script=no,downscript=no"]
        argv += ["-device", "virtio-net-pci,netdev=tap,host_mtu=9000"]
    return argv + [word for disk in spec.disks for word in _disk_argv(disk)]


def _kernel_arguments(spec: VmSpec) -> str:
    arguments = (
        "root=/dev/disk/by-label/hotset-root rw console=ttyS0 net.ifnames=0 quiet panic=-1"
        # A throw-away guest that runs nobody else's code; the guards only cost emulated CPU.
        " mitigations=off"
        f" init=/usr/sbin/hotset-init hotset.eth0={USER_NET_GUEST}/24"
    )
    return arguments + (f" hotset.eth1={spec.tap[1]}" if spec.tap else "")


def _disk_argv(disk: Disk) -> list[str]:
    # What is only read may be read by others at once; User-Mode Linux locks it by another kind of
    # lock, which QEMU takes for a writer's.
    only_read = ",readonly=on,file.locking=off"
    mode = only_read if disk.readonly else ",discard=unmap,detect-zeroes=unmap"
    device = f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}"
    return [
        *("-object", f"iothread,id=io-{disk.serial}"),
        *("-drive", f"file={disk.path},if=none,id={disk.serial},format=raw{mode}"),
        *("-device", f"{device},iothread=io-{disk.serial}{_ON_ERROR}"),
    ]


def accel_argv(accel: Accel) -> list[str]:
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    # Not -cpu max: it offers "fast string" instructions, which TCG runs byte by byte; without them
    # the guest copies 8 bytes at a time (reads from the page cache: 3 times faster). With rdrand
    # the kernel has its random numbers early. The CPUs take turns: side by side, one of them may
    # meet a breakpoint of the kernel's own, which patches its code at work (tracing, the first
    # socket of iSCSI), when that is over, and panics.
    return ["-accel", "tcg,thread=single,tb-size=512", "-cpu", "Nehalem,+rdrand"]


def best_accel(local: Local, image: Image) -> Accel:
    """KVM when it boots this image's kernel, else TCG; probed once per boot of this computer.

    /dev/kvm existing is not enough (a nested or filtered KVM starts and then hangs), so a kernel
    is really booted, as far as its first process.
    """
    kvm = Path("/dev/kvm")
    if not os.access(kvm, os.R_OK | os.W_OK):
        return "tcg"
    memory = cache_dir() / f"kvm-{image.key}-{boot_id()}"
    if not memory.exists():
        for old in cache_dir().glob("kvm-*"):
            old.unlink(missing_ok=True)
        # Whole or not there: another hotset may read it or probe at the same time.
        write_whole(memory, "kvm" if _kvm_boots(local, image) else "tcg")
    return "kvm" if memory.read_text() == "kvm" else "tcg"


def has_kvm(local: Local, image: Image | None) -> bool:
    """True if virtual machines have KVM here; without an image to boot, if they may have it."""
    if image is None:
        return os.access("/dev/kvm", os.R_OK | os.W_OK)
    return local.which(_BARE[0]) is not None and best_accel(local, image) == "kvm"


def _kvm_boots(local: Local, image: Image) -> bool:
    with tempfile.TemporaryDirectory(prefix="hotset-kvm-") as folder:
        return _kvm_boots_in(Path(folder), local, image)


def _kvm_boots_in(folder: Path, local: Local, image: Image) -> bool:
    log = folder / "console.log"
    argv = [
        *_BARE,
        *accel_argv("kvm"),
        "-m",
        "512M",
        "-kernel",
        str(image.kernel),
        "-initrd",
        str(image.initrd),
        "-serial",
        "stdio",
        "-append",
        "console=ttyS0 rdinit=/hotset-no-such-init panic=-1",
    ]
    process = local.spawn(argv, log)
    try:
        if wait_until(
            lambda: process.poll() is not None or log.stat().st_size > 0, _KVM_FIRST_LINE_S
        ):
            wait_until(lambda: process.poll() is not None, _KVM_PROBE_LIMIT_S)
        # The kernel came as far as looking for its first process, which is not there.
        return "hotset-no-such-init" in log.read_text(errors="replace").partition("Run ")[2] or (
            "No working init found" in log.read_text(errors="replace")
        )
    finally:
        process.kill()
        process.wait()


def boot(
    local: Local,
    image: Image,
    spec: VmSpec,
    folder: Path,
    cleanup: Cleanup,
    after_start: Callable[[], None] = lambda: None,
) -> Guest:
    """Start QEMU and wait until the guest answers.

    :param folder: for the console's log and the known_hosts file.
    :param after_start: runs once QEMU holds its devices (the tap moves to its namespace then).
    :raises MachineGoneError: QEMU ended or the guest did not come up; its last words are named.
    """
    # An emulated CPU with several threads now and then trips over the kernel's patching of its own
    # code while it boots (a panic, seen about once in 30 boots): that is no state to report.
    mark = cleanup.mark()
    for attempt in range(1, _BOOT_ATTEMPTS + 1):
        try:
            return _boot_once(local, image, spec, folder, cleanup, after_start)
        except KernelPanicError:
            if attempt == _BOOT_ATTEMPTS:
                raise
            cleanup.undo(mark)
    raise AssertionError("unreachable")


def _boot_once(
    local: Local,
    image: Image,
    spec: VmSpec,
    folder: Path,
    cleanup: Cleanup,
    after_start: Callable[[], None],
) -> Guest:
    ports = {port: free_port() for port in PORTS}
    files, log = Files(folder), folder / "qemu.log"
    files.console.write_text("")
    process = local.spawn(qemu_argv(image, spec, ports, files.console), log)
    # Its disks are throw-away or read-only by then: nothing is lost by pulling the plug.
    cleanup.process(PROCESS, process.pid, at_once=True)
    wait_until_ready(files, log, process.poll, _SILENCE_MAX_S, after_start)
    guest = Guest(image, files, "vm", ports, process.pid)
    cleanup.call("close the connection to the virtual machine", guest.close)
    return guest
