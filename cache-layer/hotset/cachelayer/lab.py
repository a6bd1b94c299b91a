"""The lab: a machine with a slow disk and a flash disk, raised, looked at and taken down.

Choice of machine, in this order: this computer's own kernel when it has dm-cache and hotset may use
it; else a virtual machine with KVM; else the frozen image on this computer's kernel with hotset's
own cache engine; else a virtual machine with an emulated CPU (TCG). On each the database sees the
same: a slow disk, a tier, plain flash, and the disk with the saved database image.
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

from hotset.cachelayer import chroot, image, loop, vm
from hotset.cachelayer.flashdev import Model
from hotset.cachelayer.ground import EmulatedGround, Ground, KernelGround
from hotset.cachelayer.image import Image
from hotset.cachelayer.local import Local, free_port
from hotset.cachelayer.machine import EnvironmentLacksError, Machine
from hotset.cachelayer.paths import state_dir
from hotset.cachelayer.storage import Portal, Target
from hotset.cachelayer.takedown import (
    BusyError,
    Takedown,
    clear_ledger,
    exclusive,
    read_ledger,
    start_time,
)
from hotset.cachelayer.tier import TierKind
from hotset.cachelayer.units import Bytes

MachineKind = Literal["local", "image", "vm"]
MachineChoice = Literal["auto"] | MachineKind
TierChoice = Literal["auto"] | TierKind
KERNEL_TIERS: tuple[TierKind, ...] = ("dm-cache", "bcache")
FLASH_MODEL = "pcie-flash-2014"
Say = Callable[[str], None]
_NET_HOST, _NET_GUEST, _NET_BITS = "10.77.0.1", "10.77.0.2", 30
_ISCSI_PORT = 3260
_SETTLE_LIMIT_S = 900.0
FLASH, SAVED = "flash", "saved"
VM_FLASH, VM_SAVED = (PurePosixPath(f"/dev/disk/by-id/virtio-{name}") for name in (FLASH, SAVED))
LEFT_UP = "lab up"
"""The purpose in the ledger of a lab that is meant to outlive the command that made it."""


@dataclass(frozen=True, slots=True)
class LabSpec:
    """What the lab is made of. ``saved`` is the file of the saved database image.

    ``flash_device``: a device that the user named, in place of a file (``local`` alone).
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


@dataclass(frozen=True, slots=True)
class Lab:
    """A standing lab: where commands run and what its disks are made of."""

    kind: MachineKind
    local: Local
    machine: Machine
    accel: vm.Accel | None
    ground: Ground
    saved: PurePosixPath | None
    folder: Path
    takedown: Takedown

    def settle(self) -> None:
        """Wait until this computer has written back the files behind the lab's disks, or it would
        do so beside whatever is measured next."""
        self.local.run(["sync", "--file-system", str(self.folder)], timeout_s=_SETTLE_LIMIT_S)

    def close(self) -> None:
        """Drop the connection to the machine and leave everything standing."""
        if isinstance(self.machine, vm.Vm):
            self.machine.close()


@dataclass(frozen=True, slots=True)
class Status:
    """What stands: the ledger's processes, each with whether it is alive."""

    state: Literal["down", "up", "running", "left over"]
    purpose: str
    processes: tuple[tuple[str, int, bool], ...]

    def as_dict(self) -> dict[str, object]:
        rows = [{"name": name, "pid": pid, "alive": alive} for name, pid, alive in self.processes]
        return {"state": self.state, "purpose": self.purpose, "processes": rows}


def lab_folder() -> Path:
    folder = state_dir() / "lab"
    folder.mkdir(exist_ok=True)
    return folder


def kernel_has_dm_cache() -> bool:
    """Whether this computer's kernel has device-mapper's cache target (or a module of it)."""
    release = os.uname().release
    modules = Path("/lib/modules") / release
    built_in = modules / "modules.builtin"
    if built_in.exists() and "dm-cache.ko" in built_in.read_text():
        return True
    loadable = modules / "modules.dep"
    return loadable.exists() and "dm-cache.ko" in loadable.read_text()


def choose(wanted: MachineChoice, tier: TierChoice = "auto") -> MachineKind:
    """The machine to use, for a tier of the given kind.

    :raises EnvironmentLacksError: what is asked for is not possible on this computer.
    :raises ValueError: the machine that is asked for has another kind of tier.
    """
    check(wanted, tier)
    if wanted != "auto":
        lacks = _LACKING[wanted]()
        if lacks is not None:
            raise EnvironmentLacksError(
                f"machine = {wanted!r} is not possible on this computer: {lacks};"
                " machine = 'auto' takes the best there is"
            )
        return wanted
    if tier == "emulated":
        return choose("image")
    if _local_lacks() is None:
        return "local"
    if tier in KERNEL_TIERS or vm.accelerated(Local(), image.cached()) or chroot.lacking():
        return "vm"
    return "image"


def check(wanted: MachineChoice, tier: TierChoice) -> None:
    """:raises ValueError: the machine that is asked for has another kind of tier."""
    has: tuple[TierKind, ...] = ("emulated",) if wanted == "image" else KERNEL_TIERS
    if wanted != "auto" and tier not in ("auto", *has):
        kinds = " or ".join(repr(kind) for kind in has)
        raise ValueError(
            f"machine.kind = {wanted!r} has tier.kind = {kinds}, not {tier!r}: leave one of"
            " them at 'auto'"
        )


def kernel_tier(wanted: TierChoice) -> TierKind:
    """The kind of tier on a machine of the kernel's: dm-cache, unless bcache is asked for."""
    return "bcache" if wanted == "bcache" else "dm-cache"


def _local_lacks() -> str | None:
    if not kernel_has_dm_cache():
        return "its kernel has no dm-cache"
    return "it needs root" if os.geteuid() else None


_LACKING: dict[MachineKind, Callable[[], str | None]] = {
    "local": _local_lacks,
    "image": chroot.lacking,
    "vm": lambda: None,
}


@contextmanager
def standing(spec: LabSpec, purpose: str, say: Say) -> Iterator[Lab]:
    """A lab for the length of a ``with`` block; taken down at its end, whatever happens.

    :raises BusyError: another hotset, or a lab left up on purpose, is in the way.
    """
    folder = lab_folder()
    with exclusive(folder):
        refuse_or_clear(folder, say)
        takedown = Takedown(folder, Local())
        takedown.owner(purpose)
        with takedown.part():
            yield raise_lab(spec, folder, takedown, say)


def raise_lab(spec: LabSpec, folder: Path, takedown: Takedown, say: Say) -> Lab:
    """Build the lab; every part is in ``takedown`` before it stands."""
    local = Local()
    if choose(spec.machine, spec.tier) == "local":
        return _local_lab(spec, folder, takedown, local)
    built = image.ensure(local, say)
    # Once more: only with an image to boot can it be told whether KVM works.
    if choose(spec.machine, spec.tier) == "image":
        return _image_lab(spec, built, folder, takedown, local, say)
    return _vm_lab(spec, built, folder, takedown, local, say)


def refuse_or_clear(folder: Path, say: Say) -> None:
    """A lab that was left up on purpose is refused; what a killed run left is cleared."""
    entries = read_ledger(folder)
    if not entries:
        return
    purpose = next((entry["owner"] for entry in entries if "owner" in entry), "")
    alive = any(start_time(e["pid"]) == e["started"] for e in entries if "process" in e)
    if purpose == LEFT_UP and alive:
        raise BusyError("a lab is up: use it, or take it down first with `hotset lab down`")
    for line in clear_ledger(folder, Local()):
        say(f"cleared what a killed run left: {line}")


def status(folder: Path) -> Status:
    """Read the ledger; nothing is changed."""
    entries = read_ledger(folder)
    owner = next((entry for entry in entries if "owner" in entry), None)
    if owner is None:
        return Status("down", "", ())
    processes = tuple(
        (entry["process"], entry["pid"], start_time(entry["pid"]) == entry["started"])
        for entry in entries
        if "process" in entry
    )
    try:
        with exclusive(folder):
            up = owner["owner"] == LEFT_UP and any(alive for _, _, alive in processes)
            return Status("up" if up else "left over", owner["owner"], processes)
    except BusyError:
        return Status("running", owner["owner"], processes)


def forwarded_ports(folder: Path) -> dict[int, int]:
    """Port of the virtual machine that is up → port of this computer; empty when none is up."""
    file = vm.ports_file(folder)
    alive = any(name == vm.PROCESS and up for name, _, up in status(folder).processes)
    if not alive or not file.exists():
        return {}
    return {int(guest): host for guest, host in json.loads(file.read_text()).items()}


def down(say: Say) -> int:
    """Take down the lab that stands and what killed runs left; returns how many things went.

    :raises BusyError: a run is going on.
    """
    folder = lab_folder()
    with exclusive(folder):
        undone = clear_ledger(folder, Local())
        for file in folder.glob("*.img"):
            file.unlink()
            undone.append(f"removed {file.name}")
    for line in undone:
        say(line)
    return len(undone)


def _image_lab(
    spec: LabSpec, built: Image, folder: Path, takedown: Takedown, local: Local, say: Say
) -> Lab:
    say("entering the image on this computer's own kernel")
    machine = chroot.start(local, built, folder, takedown)
    ground = EmulatedGround(local, machine, spec.flash_model, folder)
    return Lab(
        "image", local, machine, None, ground, _saved(spec, local, takedown), folder, takedown
    )


def _vm_lab(
    spec: LabSpec, built: Image, folder: Path, takedown: Takedown, local: Local, say: Say
) -> Lab:
    accel = vm.best_accel(local, built)
    flash = _sparse(local, folder / "flash.img", spec.flash, takedown)
    disks = [vm.Disk(FLASH, flash)]
    if spec.saved:
        disks.append(vm.Disk(SAVED, spec.saved, spec.saved_readonly))
    root = os.geteuid() == 0
    tap = vm_tap(folder) if root else None
    vm_spec = vm.VmSpec(accel, spec.cores, spec.memory, tuple(disks), tap)
    after = (lambda: enclose(local, namespace_name(folder), takedown)) if root else (lambda: None)
    say(f"booting the virtual machine ({accel.upper()})")
    machine = vm.boot(local, built, vm_spec, folder, takedown, after)
    target = Target(local, vm_portal(folder, root), folder)
    target.start(takedown)
    ground = KernelGround(local, machine, target, VM_FLASH, folder,
                          tier_kind=kernel_tier(spec.tier))  # fmt: skip
    saved = VM_SAVED if spec.saved else None
    return Lab("vm", local, machine, accel, ground, saved, folder, takedown)


def vm_tap(folder: Path) -> tuple[str, str]:
    """The tap device's name and the guest's address on it."""
    return namespace_name(folder), f"{_NET_GUEST}/{_NET_BITS}"


def vm_portal(folder: Path, root: bool) -> Portal:
    """The iSCSI portal for a virtual machine: on its tap device, or through QEMU's user network."""
    if root:
        enter = ("nsenter", f"--net=/run/netns/{namespace_name(folder)}")
        return Portal(_NET_HOST, _NET_HOST, _ISCSI_PORT, enter)
    return Portal("127.0.0.1", vm.USER_NET_HOST, free_port())


def local_portal() -> Portal:
    return Portal("127.0.0.1", "127.0.0.1", free_port())


def _local_lab(spec: LabSpec, folder: Path, takedown: Takedown, local: Local) -> Lab:
    # Where no init system made their device nodes.
    local.run(["modprobe", "-a", "loop", "fuse"])
    target = Target(local, local_portal(), folder)
    target.start(takedown)
    if spec.flash_device is not None:
        named = f"{spec.flash_device}, as fast as it is"
        flash = spec.flash_device
    else:
        named = KernelGround.OWN_DISK
        flash = loop.attach(
            local, _sparse(local, folder / "flash.img", spec.flash, takedown), takedown
        )
    kind = kernel_tier(spec.tier)
    ground = KernelGround(local, local, target, flash, folder, named, kind)
    return Lab("local", local, local, None, ground, _saved(spec, local, takedown), folder, takedown)


def _saved(spec: LabSpec, local: Local, takedown: Takedown) -> PurePosixPath | None:
    if spec.saved is None:
        return None
    return loop.attach(local, spec.saved, takedown, readonly=spec.saved_readonly)


def _sparse(local: Local, file: Path, size: Bytes, takedown: Takedown) -> Path:
    takedown.command(f"remove {file.name}", ["rm", "-f", str(file)])
    local.run(["rm", "-f", str(file)])
    local.run(["truncate", "-s", str(int(size)), str(file)])
    return file


def namespace_name(folder: Path) -> str:
    """One network namespace (and tap device) per state folder; at most 15 characters."""
    return "hotset-" + hashlib.sha256(str(folder).encode()).hexdigest()[:6]


def enclose(local: Local, name: str, takedown: Takedown) -> None:
    """Move the tap device, which QEMU holds by now, into a network namespace of the lab.

    The computer's own addresses and routes stay as they are.
    """
    takedown.command(f"remove network namespace {name}", ["ip", "netns", "del", name])
    local.run(["ip", "netns", "add", name])
    local.run(["ip", "link", "set", name, "netns", name])
    local.run(["ip", "-n", name, "addr", "add", f"{_NET_HOST}/{_NET_BITS}", "dev", name])
    local.run(["ip", "-n", name, "link", "set", name, "mtu", "9000", "up"])
