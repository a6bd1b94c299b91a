"""The lab's virtual machine: QEMU on the frozen image, steered over SSH.

KVM where it really boots a kernel, else TCG (an emulated CPU, many times slower). The control
and SQL connections use QEMU's user network with ports forwarded from the loopback address, so
they need no root; with root, iSCSI gets a tap device of its own in a network namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotset.cachelayer.image import Image
from hotset.cachelayer.local import Local, free_port
from hotset.cachelayer.machine import CommandError, MachineGoneError
from hotset.cachelayer.paths import cache_dir
from hotset.cachelayer.remote import Account, Remote
from hotset.cachelayer.takedown import Takedown, start_time
from hotset.cachelayer.units import Bytes

Accel = Literal["kvm", "tcg"]
PROCESS = "virtual machine"
SSH_PORT = 22
POSTGRES_PORT = 5432
USER_NET_GUEST = "10.0.2.15"
USER_NET_HOST = "10.0.2.2"
_BOOT_LIMIT_S = 90.0
_BOOT_ATTEMPTS = 3
_KVM_PROBE_LIMIT_S = 12.0
_LAST_WORDS_S = 2.0
# QEMU's own choice is to stop the guest for ever when this computer's disk is full.
_ON_ERROR = ",werror=report"


class KernelPanicError(MachineGoneError):
    """The guest's kernel gave up while booting."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A file of this computer that the guest sees as /dev/disk/by-id/virtio-SERIAL."""

    serial: str
    path: Path
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class VmSpec:
    """What to boot. ``tap`` names the tap device for iSCSI, with the guest's address on it."""

    accel: Accel
    cores: int
    memory: Bytes
    disks: tuple[Disk, ...]
    tap: tuple[str, str] | None = None


class Vm(Remote):
    """A running virtual machine."""

    def __init__(self, account: Account, ports: dict[int, int], pid: int, accel: Accel) -> None:
        self.accel = accel
        self.pid = pid
        self._ports = ports
        super().__init__(account, "vm", self._forwarded)

    def power_cut(self) -> None:
        """Pull the plug: SIGKILL to QEMU is an honest power cut for everything inside."""
        started = start_time(self.pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        while started is not None and start_time(self.pid) == started:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.02)

    def _forwarded(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", self._ports[port]


def known_hosts(folder: Path) -> Path:
    """The host key of the virtual machine in this lab folder."""
    return folder / "known_hosts"


def ports_file(folder: Path) -> Path:
    """Which port of this computer leads to which of the virtual machine's, as JSON."""
    return folder / "ports.json"


def qemu_argv(image: Image, spec: VmSpec, ports: dict[int, int], console: Path) -> list[str]:
    """The QEMU call; the root disk is a throw-away snapshot, so the image stays frozen."""
    append = (
        "root=/dev/disk/by-label/hotset-root rw console=ttyS0 net.ifnames=0 quiet panic=-1"
        # A throw-away guest that runs nobody else's code; the guards only cost emulated CPU.
        " mitigations=off"
        f" init=/usr/sbin/hotset-init hotset.eth0={USER_NET_GUEST}/24"
    )
    if spec.tap:
        append += f" hotset.eth1={spec.tap[1]}"
    forwards = "".join(f",hostfwd=tcp:127.0.0.1:{host}-:{guest}" for guest, host in ports.items())
    argv = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        *accel_argv(spec.accel), "-smp", str(spec.cores), "-m", f"{spec.memory // 1024**2}M",
        "-kernel", str(image.kernel), "-initrd", str(image.initrd), "-append", append,
        "-serial", f"file:{console}", "-device", "virtio-rng-pci",
        "-drive", f"file={image.root_disk},if=none,id=root,format=raw,snapshot=on",
        "-device", f"virtio-blk-pci,drive=root{_ON_ERROR}",
        "-netdev", f"user,id=user,restrict=off{forwards}", "-device", "virtio-net-pci,netdev=user",
    ]  # fmt: skip
    if spec.tap:
        argv += ["-netdev", f"tap,id=tap,ifname={spec.tap[0]},script=no,downscript=no"]
        argv += ["-device", "virtio-net-pci,netdev=tap,host_mtu=9000"]
    for disk in spec.disks:
        mode = ",readonly=on" if disk.readonly else ",discard=unmap,detect-zeroes=unmap"
        argv += ["-object", f"iothread,id=io-{disk.serial}"]
        argv += ["-drive", f"file={disk.path},if=none,id={disk.serial},format=raw{mode}"]
        device = f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}"
        argv += ["-device", f"{device},iothread=io-{disk.serial}{_ON_ERROR}"]
    return argv


def accel_argv(accel: Accel) -> list[str]:
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    # Not -cpu max: it offers "fast string" instructions, which TCG runs byte by byte; without them
    # the guest copies 8 bytes at a time (reads from the page cache: 3 times faster). With rdrand
    # the kernel has its random numbers early and does not patch itself while all CPUs run.
    return ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "Nehalem,+rdrand"]


def best_accel(local: Local, image: Image) -> Accel:
    """KVM when it boots this image's kernel, else TCG; probed once per boot of this computer.

    /dev/kvm existing is not enough (a nested or filtered KVM starts and then hangs), so a kernel
    is really booted, as far as its first process.
    """
    kvm = Path("/dev/kvm")
    if not os.access(kvm, os.R_OK | os.W_OK):
        return "tcg"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memory = cache_dir() / f"kvm-{image.key}-{boot}"
    if not memory.exists():
        for old in cache_dir().glob("kvm-*"):
            old.unlink()
        memory.write_text("kvm" if _kvm_boots(local, image) else "tcg")
    return "kvm" if memory.read_text() == "kvm" else "tcg"


def accelerated(local: Local, image: Image | None) -> bool:
    """Whether virtual machines have KVM here; as long as there is no image to boot, whether
    there may be one."""
    if image is None:
        return os.access("/dev/kvm", os.R_OK | os.W_OK)
    return best_accel(local, image) == "kvm"


def _kvm_boots(local: Local, image: Image) -> bool:
    log = cache_dir() / "kvm-probe.log"
    argv = [
        "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        *accel_argv("kvm"), "-m", "512M", "-kernel", str(image.kernel),
        "-initrd", str(image.initrd), "-serial", "stdio",
        "-append", "console=ttyS0 rdinit=/hotset-no-such-init panic=-1",
    ]  # fmt: skip
    process = local.spawn(argv, log)
    deadline = time.monotonic() + _KVM_PROBE_LIMIT_S
    try:
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        # The kernel came as far as looking for its first process, which is not there.
        return "hotset-no-such-init" in log.read_text(errors="replace").partition("Run ")[2] or (
            "No working init found" in log.read_text(errors="replace")
        )
    finally:
        process.kill()
        process.wait()
        log.unlink()


def boot(
    local: Local,
    image: Image,
    spec: VmSpec,
    folder: Path,
    takedown: Takedown,
    after_start: Callable[[], None] = lambda: None,
) -> Vm:
    """Start QEMU and wait until the guest answers.

    :param folder: for the console's log and the known_hosts file.
    :param after_start: runs once QEMU holds its devices (the tap moves to its namespace then).
    :raises MachineGoneError: QEMU ended or the guest did not come up; its last words are named.
    """
    # An emulated CPU with several threads now and then trips over the kernel's patching of its own
    # code while it boots (a panic, seen about once in 30 boots): that is no state to report.
    mark = takedown.mark()
    for attempt in range(1, _BOOT_ATTEMPTS + 1):
        try:
            return _boot_once(local, image, spec, folder, takedown, after_start)
        except KernelPanicError:
            if attempt == _BOOT_ATTEMPTS:
                raise
            takedown.undo(mark)
    raise AssertionError("unreachable")


def _boot_once(
    local: Local,
    image: Image,
    spec: VmSpec,
    folder: Path,
    takedown: Takedown,
    after_start: Callable[[], None],
) -> Vm:
    ports = {SSH_PORT: free_port(), POSTGRES_PORT: free_port()}
    console, log = folder / "console.log", folder / "qemu.log"
    console.write_text("")
    process = local.spawn(qemu_argv(image, spec, ports, console), log)
    # Its disks are throw-away or read-only by then: nothing is lost by pulling the plug.
    takedown.process(PROCESS, process.pid, at_once=True)
    _wait_for(lambda: b"hotset-ready" in console.read_bytes(), process.poll, console, log,
              after_start)  # fmt: skip
    known_hosts(folder).write_text(f"[127.0.0.1]:{ports[SSH_PORT]} {image.host_key}\n")
    ports_file(folder).write_text(json.dumps(ports))
    account = Account("127.0.0.1", ports[SSH_PORT], "root", image.client_key, known_hosts(folder))
    vm = Vm(account, ports, process.pid, spec.accel)
    takedown.call("close the connection to the virtual machine", vm.close)
    return vm


def _ends_within(limit_s: float, ended: Callable[[], int | None]) -> bool:
    deadline = time.monotonic() + limit_s
    while ended() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return ended() is not None


def _wait_for(
    ready: Callable[[], bool],
    ended: Callable[[], int | None],
    console: Path,
    log: Path,
    after_start: Callable[[], None],
) -> None:
    deadline = time.monotonic() + _BOOT_LIMIT_S
    while not console.stat().st_size and ended() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    if ended() is None:
        try:
            after_start()
        except CommandError:
            # The tap goes away with a guest that panicked in its first moments: then the loop
            # below says so.
            if not _ends_within(_LAST_WORDS_S, ended):
                raise
    while not ready():
        if ended() is not None or time.monotonic() > deadline:
            words = (log.read_text(errors="replace") + console.read_text(errors="replace"))[-1500:]
            kind = KernelPanicError if "Kernel panic" in words else MachineGoneError
            raise kind(f"the virtual machine did not come up; its last words:\n{words}")
        time.sleep(0.1)
