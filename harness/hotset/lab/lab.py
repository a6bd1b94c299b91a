"""The lab: a machine with a slow disk and a flash disk, raised, looked at and taken down.

Choice of machine for a tier of the kernel's, in this order: this computer's own kernel when it has
dm-cache and hotset may use it; User-Mode Linux. Where any tier will do, the frozen image on this
computer's kernel with hotset's own cache engine comes before the latter. On each the database sees
the same: a slow disk, a tier, plain flash, and the disk with the saved database image.

A virtual machine is for what needs a kernel that User-Mode Linux cannot be: ftrace, ublk. Where
User-Mode Linux does not run, `lab up` takes one as well.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hotset.block import loop
from hotset.block.flashdev import Model
from hotset.core import environment
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.cleanup import (
    BusyError,
    Cleanup,
    clear_journal,
    exclusive,
    read_journal,
)
from hotset.core.machines.local import Local, free_port, start_time
from hotset.core.paths import state_dir
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import TierKind

from . import image
from .backend import Backend, KernelBackend, ModelledBackend
from .image import Image
from .machines import chroot, qemu, uml
from .machines.guest import FLASH, SAVED, Disk, Files, Guest, disk_path
from .slow_disk import Portal, Target

_AtHostSpeed = Literal["local", "image", "uml"]
MachineKind = _AtHostSpeed | Literal["vm"]
ExperimentMachine = Literal["auto"] | _AtHostSpeed
MachineChoice = Literal["auto"] | MachineKind
TierChoice = Literal["auto"] | TierKind
KERNEL_TIERS = tuple(kind.name for kind in kinds.KINDS if kind.in_kernel)
FLASH_MODEL = "pcie-flash-2014"
Say = Callable[[str], None]
_NET_HOST, _NET_GUEST, _NET_BITS = "10.77.0.1", "10.77.0.2", 30
_ISCSI_PORT = 3260
_SETTLE_LIMIT_S = 900.0
FLASH_DISK, SAVED_DISK = disk_path(FLASH), disk_path(SAVED)
"""Where a guest has the lab's flash disk and the disk with the saved database image."""

LEFT_UP = "lab up"
"""The purpose in the journal of a lab that is meant to outlive the command that made it."""


@dataclass(frozen=True, slots=True)
class LabSpec:
    """The configuration of the lab. ``saved`` is the file of the saved database image.

    ``flash_device``: a device that the user named, in place of a file (``local`` alone).
    ``guest``: a machine with a kernel of its own, also where this computer's would do.
    """

    machine: MachineChoice
    cores: int
    memory: Bytes
    flash: Bytes
    saved: Path | None = None
    saved_readonly: bool = True
    tier: TierChoice = "auto"
    flash_model: Model = FLASH_MODEL
    flash_device: PurePosixPath | None = None
    guest: bool = False

    def kind(self) -> MachineKind:
        """The machine to use.

        :raises PrerequisiteError: what is asked for is not possible on this computer.
        :raises ValueError: the machine that is asked for has another kind of tier.
        """
        return guest_kind(self.machine) if self.guest else choose(self.machine, self.tier)


@dataclass(frozen=True, slots=True)
class Lab:
    """A standing lab: where commands run and what its disks are made of.

    ``package``: the package and version of the kernel, where it is neither this computer's own nor
    the image's.
    """

    kind: MachineKind
    local: Local
    machine: Machine
    backend: Backend
    saved: PurePosixPath | None
    folder: Path
    cleanup: Cleanup
    package: str | None = None

    def settle(self) -> None:
        """Wait until this computer has written back the files behind the lab's disks, or it would
        do so beside whatever is measured next."""
        self.local.run(["sync", "--file-system", str(self.folder)], timeout_s=_SETTLE_LIMIT_S)

    def close(self) -> None:
        """Drop the connection to the machine and leave everything standing."""
        if isinstance(self.machine, Guest):
            self.machine.close()


@dataclass(frozen=True, slots=True)
class LabProcess:
    """A process that the journal names."""

    name: str
    pid: int
    alive: bool


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the lab: what is running, and who started it."""

    state: Literal["down", "up", "running", "left over"]
    purpose: str
    processes: tuple[LabProcess, ...]


def lab_folder() -> Path:
    folder = state_dir() / "lab"
    folder.mkdir(exist_ok=True)
    return folder


def kernel_has_dm_cache() -> bool:
    """True if this computer's kernel has device-mapper's cache target (or a module of it)."""
    release = os.uname().release
    modules = Path("/lib/modules") / release
    built_in = modules / "modules.builtin"
    if built_in.exists() and "dm-cache.ko" in built_in.read_text():
        return True
    loadable = modules / "modules.dep"
    return loadable.exists() and "dm-cache.ko" in loadable.read_text()


def require_host() -> None:
    """:raises PrerequisiteError: this is a container."""
    environment.require_host("the lab's kernel, disks and FUSE")


def choose(wanted: MachineChoice, tier: TierChoice = "auto") -> MachineKind:
    """The machine to use, for a tier of the given kind.

    :raises PrerequisiteMissingError: what is asked for is not possible on this computer.
    :raises ValueError: the machine that is asked for has another kind of tier.
    """
    require_host()
    check(wanted, tier)
    if wanted != "auto":
        lacks = _LACKING[wanted]()
        if lacks is not None:
            raise _impossible(wanted, lacks)
        return wanted
    if tier not in ("auto", *KERNEL_TIERS):
        return choose("image", tier)
    if _local_lacks() is None:
        return "local"
    return "image" if tier == "auto" and chroot.lacking() is None else "uml"


def _impossible(wanted: MachineKind, why: str) -> PrerequisiteMissingError:
    return PrerequisiteMissingError(
        f"machine = {wanted!r} is not possible on this computer: {why};"
        " machine = 'auto' takes the best there is"
    )


def guest_kind(wanted: MachineChoice) -> MachineKind:
    """The machine for a lab with a kernel of its own.

    :raises PrerequisiteMissingError: what is asked for is not possible on this computer.
    """
    if wanted != "auto":
        return choose(wanted)
    if qemu.has_kvm(Local(), image.find_built()) or uml.lacking() is not None:
        return "vm"
    return "uml"


def check(wanted: MachineChoice, tier: TierChoice) -> None:
    """:raises ValueError: the machine that is asked for has another kind of tier."""
    has = (ModelledBackend.tier_kind,) if wanted == "image" else KERNEL_TIERS
    if wanted != "auto" and tier not in ("auto", *has):
        kinds = " or ".join(repr(kind) for kind in has)
        raise ValueError(
            f"machine.kind = {wanted!r} has tier.kind = {kinds}, not {tier!r}: leave one of"
            " them at 'auto'"
        )


def kernel_tier(wanted: TierChoice) -> TierKind:
    """The kind of tier on a machine of the kernel's: dm-cache, unless another is asked for.

    :raises ValueError: one that is no kernel's.
    """
    check("local", wanted)
    return "dm-cache" if wanted == "auto" else wanted


def _local_lacks() -> str | None:
    if not kernel_has_dm_cache():
        return "its kernel has no dm-cache"
    return "it needs root" if os.geteuid() else None


_LACKING: dict[MachineKind, Callable[[], str | None]] = {
    "local": _local_lacks,
    "image": chroot.lacking,
    "uml": uml.lacking,
    "vm": lambda: None,
}


@contextmanager
def running(spec: LabSpec, purpose: str, say: Say) -> Iterator[Lab]:
    """A lab for the length of a ``with`` block; taken down at its end, whatever happens.

    :raises BusyError: another hotset, or a lab left up on purpose, is in the way.
    """
    folder = lab_folder()
    with exclusive(folder):
        refuse_or_clear(folder, say)
        cleanup = Cleanup(folder, Local())
        cleanup.owner(purpose)
        with cleanup.part():
            yield raise_lab(spec, folder, cleanup, say)


def raise_lab(spec: LabSpec, folder: Path, cleanup: Cleanup, say: Say) -> Lab:
    """Build the lab; every part is in ``cleanup`` before it exists."""
    local = Local()
    if spec.kind() == "local":
        return _local_lab(spec, folder, cleanup, local)
    built = image.ensure(local, say)
    # Once more: only with an image to boot can it be told whether a kernel boots.
    kind = spec.kind()
    if kind == "image":
        return _image_lab(spec, built, folder, cleanup, local, say)
    if kind == "uml":
        kernel = _uml_kernel(spec, local, built, say)
        if kernel is not None:
            return _uml_lab(spec, built, kernel, folder, cleanup, local, say)
    return _vm_lab(spec, built, folder, cleanup, local, say)


def refuse_or_clear(folder: Path, say: Say) -> None:
    """A lab that was left up on purpose is refused; what a killed run left is cleared."""
    entries = read_journal(folder)
    if not entries:
        return
    purpose = next((entry["owner"] for entry in entries if "owner" in entry), "")
    alive = any(start_time(e["pid"]) == e["started"] for e in entries if "process" in e)
    if purpose == LEFT_UP and alive:
        raise BusyError(
            "a lab is up: use it, or take it down first", Remedy("take it down", "lab down")
        )
    for line in clear_journal(folder, Local()):
        say(f"cleared what a killed run left: {line}")


def status(folder: Path) -> Status:
    """Read the journal; nothing is changed."""
    entries = read_journal(folder)
    owner = next((entry for entry in entries if "owner" in entry), None)
    if owner is None:
        return Status("down", "", ())
    processes = tuple(
        LabProcess(entry["process"], entry["pid"], start_time(entry["pid"]) == entry["started"])
        for entry in entries
        if "process" in entry
    )
    try:
        with exclusive(folder):
            up = owner["owner"] == LEFT_UP and any(process.alive for process in processes)
            return Status("up" if up else "left over", owner["owner"], processes)
    except BusyError:
        return Status("running", owner["owner"], processes)


def up(folder: Path) -> MachineKind | None:
    """The machine of the lab that is up in a folder, which may be this computer itself."""
    is_local = status(folder).state == "up"
    return guest_up(folder) or ("local" if is_local else None)


def guest_up(folder: Path) -> MachineKind | None:
    """The kind of guest that is up in a lab's folder."""
    names = {process.name for process in status(folder).processes if process.alive}
    if uml.PROCESS in names:
        return "uml"
    return "vm" if qemu.PROCESS in names else None


def list_forwarded_ports(folder: Path) -> dict[int, int]:
    """Port of the guest that is up → port of this computer; empty when none is up."""
    file = Files(folder).ports
    if guest_up(folder) is None or not file.exists():
        return {}
    return {int(guest): host for guest, host in json.loads(file.read_text()).items()}


def down(say: Say) -> int:
    """Take down the lab that is up and what killed runs left; returns how many things went.

    :raises BusyError: a run is going on.
    """
    folder = lab_folder()
    with exclusive(folder):
        undone = clear_journal(folder, Local())
        for file in folder.glob("*.img"):
            file.unlink()
            undone.append(f"removed {file.name}")
    for line in undone:
        say(line)
    return len(undone)


def _image_lab(
    spec: LabSpec, built: Image, folder: Path, cleanup: Cleanup, local: Local, say: Say
) -> Lab:
    say("entering the image on this computer's own kernel")
    machine = chroot.start(local, built, folder, cleanup)
    backend = ModelledBackend(local, machine, spec.flash_model, folder)
    return Lab("image", local, machine, backend, _find_saved(spec, local, cleanup), folder, cleanup)


def _vm_lab(
    spec: LabSpec, built: Image, folder: Path, cleanup: Cleanup, local: Local, say: Say
) -> Lab:
    accel = qemu.best_accel(local, built)
    root = os.geteuid() == 0
    tap = vm_tap(folder) if root else None
    disks = _guest_disks(spec, local, folder, cleanup)
    vm_spec = qemu.VmSpec(accel, spec.cores, spec.memory, disks, tap)
    after = (lambda: enclose(local, namespace_name(folder), cleanup)) if root else (lambda: None)
    say(f"booting the virtual machine ({accel.upper()})")
    machine = qemu.boot(local, built, vm_spec, folder, cleanup, after)
    portal = vm_portal(folder, root)
    return _guest_lab(spec, "vm", local, machine, portal, folder, cleanup)


def _uml_kernel(spec: LabSpec, local: Local, built: Image, say: Say) -> uml.Kernel | None:
    """The kernel to boot; None where it cannot be had or does not boot here, and another will do.

    :raises PrerequisiteMissingError: so it is, and no other machine will do.
    """
    try:
        kernel = uml.ensure(local, built, say)
        failure = uml.probe(local, built, kernel)
    except PrerequisiteMissingError as error:
        failure = str(error)
    if failure is None:
        return kernel
    if spec.machine == "uml":
        raise _impossible("uml", failure)
    if not spec.guest:
        raise PrerequisiteMissingError(
            f"User-Mode Linux does not run on this computer, and nothing else does: {failure}"
        )
    say(f"User-Mode Linux is not possible here, a virtual machine is taken: {failure}")
    return None


def _uml_lab(
    spec: LabSpec,
    built: Image,
    kernel: uml.Kernel,
    folder: Path,
    cleanup: Cleanup,
    local: Local,
    say: Say,
) -> Lab:
    network = uml.open_network(local, folder, cleanup)
    disks = _guest_disks(spec, local, folder, cleanup)
    package = f"user-mode-linux {kernel.version}"
    say(f"booting User-Mode Linux ({package}, one CPU)")
    wanted = uml.UmlSpec(spec.memory, disks)
    machine = uml.boot(local, built, kernel, wanted, network, folder, cleanup)
    portal = uml_portal(network)
    return _guest_lab(spec, "uml", local, machine, portal, folder, cleanup, package=package)


def _guest_disks(spec: LabSpec, local: Local, folder: Path, cleanup: Cleanup) -> tuple[Disk, ...]:
    flash = Disk(FLASH, _sparse(local, folder / "flash.img", spec.flash, cleanup))
    if spec.saved is None:
        return (flash,)
    return flash, Disk(SAVED, spec.saved, spec.saved_readonly)


def _guest_lab(
    spec: LabSpec,
    kind: MachineKind,
    local: Local,
    machine: Guest,
    portal: Portal,
    folder: Path,
    cleanup: Cleanup,
    package: str | None = None,
) -> Lab:
    target = Target(local, portal, folder)
    target.start(cleanup)
    tier = kernel_tier(spec.tier)
    backend = KernelBackend(local, machine, target, FLASH_DISK, folder, tier_kind=tier)
    saved = SAVED_DISK if spec.saved else None
    return Lab(kind, local, machine, backend, saved, folder, cleanup, package)


def uml_portal(network: uml.Network) -> Portal:
    """The iSCSI portal for User-Mode Linux: on the lab's end of its network."""
    return Portal(uml.HOST_ADDRESS, uml.HOST_ADDRESS, _ISCSI_PORT, network.enter)


def vm_tap(folder: Path) -> tuple[str, str]:
    """The tap device's name and the guest's address on it."""
    return namespace_name(folder), f"{_NET_GUEST}/{_NET_BITS}"


def vm_portal(folder: Path, root: bool) -> Portal:
    """The iSCSI portal for a virtual machine: on its tap device, or through QEMU's user network."""
    if root:
        enter = ("nsenter", f"--net=/run/netns/{namespace_name(folder)}")
        return Portal(_NET_HOST, _NET_HOST, _ISCSI_PORT, enter)
    return Portal("127.0.0.1", qemu.USER_NET_HOST, free_port())


def local_portal() -> Portal:
    return Portal("127.0.0.1", "127.0.0.1", free_port())


def _local_lab(spec: LabSpec, folder: Path, cleanup: Cleanup, local: Local) -> Lab:
    # Where no init system made their device nodes.
    local.run(["modprobe", "-a", "loop", "fuse"])
    target = Target(local, local_portal(), folder)
    target.start(cleanup)
    if spec.flash_device is not None:
        named = f"{spec.flash_device}, as fast as it is"
        flash = spec.flash_device
    else:
        named = KernelBackend.OWN_DISK
        flash = loop.attach(
            local, _sparse(local, folder / "flash.img", spec.flash, cleanup), cleanup
        )
    kind = kernel_tier(spec.tier)
    backend = KernelBackend(local, local, target, flash, folder, named, kind)
    return Lab("local", local, local, backend, _find_saved(spec, local, cleanup), folder, cleanup)


def _find_saved(spec: LabSpec, local: Local, cleanup: Cleanup) -> PurePosixPath | None:
    if spec.saved is None:
        return None
    return loop.attach(local, spec.saved, cleanup, readonly=spec.saved_readonly)


def _sparse(local: Local, file: Path, size: Bytes, cleanup: Cleanup) -> Path:
    cleanup.command(f"remove {file.name}", ["rm", "-f", str(file)])
    local.run(["rm", "-f", str(file)])
    local.run(["truncate", "-s", str(int(size)), str(file)])
    return file


def namespace_name(folder: Path) -> str:
    """One network namespace (and tap device) per state folder; at most 15 characters."""
    return "hotset-" + hashlib.sha256(str(folder).encode()).hexdigest()[:6]


def enclose(local: Local, name: str, cleanup: Cleanup) -> None:
    """Move the tap device, which QEMU holds by now, into a network namespace of the lab.

    The computer's own addresses and routes stay as they are.
    """
    cleanup.command(f"remove network namespace {name}", ["ip", "netns", "del", name])
    local.run(["ip", "netns", "add", name])
    local.run(["ip", "link", "set", name, "netns", name])
    local.run(["ip", "-n", name, "addr", "add", f"{_NET_HOST}/{_NET_BITS}", "dev", name])
    local.run(["ip", "-n", name, "link", "set", name, "mtu", "9000", "up"])
