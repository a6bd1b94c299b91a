"""What is present, what is missing, and what installs it; derived from the list of programs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotset.cachelayer import chroot, flashdev, image
from hotset.cachelayer.lab import MachineKind, choose, kernel_has_dm_cache
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import EnvironmentLacksError
from hotset.cachelayer.programs import PROGRAMS, Place
from hotset.harness.hammerdb import release
from hotset.tpcc import native

_PLACES: dict[MachineKind, frozenset[Place]] = {
    "local": frozenset(("host", "iscsi", "target")),
    "image": frozenset(("host",)),
    "vm": frozenset(("host", "vm", "iscsi")),
}
"""Whose programs a machine of this kind needs on this computer."""

State = Literal["ok", "missing", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``missing`` stops `hotset demo`; ``note`` says what happens instead."""

    what: str
    state: State
    detail: str


def examine() -> list[Finding]:
    """Everything `hotset demo` needs on this computer, and what else hotset could use."""
    ground = choose("auto")
    return [_ground(ground), *_needs(ground), _hammerdb()]


def require(ground: MachineKind) -> None:
    """See that a lab on a machine of this kind can be raised, before anything is made.

    :raises EnvironmentLacksError: something is missing; names all of it and what installs it.
    """
    missing = [one for one in _needs(ground) if one.state == "missing"]
    if missing:
        lines = "".join(f"\n  {one.what}: {one.detail}" for one in missing)
        raise EnvironmentLacksError(f"this computer lacks what a run needs:{lines}")


def _needs(ground: MachineKind) -> list[Finding]:
    findings = [*_programs(ground), _flashdev(), _users(), _fuse(), _image()]
    if ground == "vm":
        findings += [_privileges(), _acceleration()]
    return findings


def _ground(ground: MachineKind) -> Finding:
    if ground == "local":
        return Finding("ground", "ok", "this computer's own kernel has dm-cache: used directly")
    why = (
        "this computer's kernel has no dm-cache"
        if not kernel_has_dm_cache()
        else ("this computer's own dm-cache needs root")
    )
    if ground == "image":
        what = "hotset's own cache engine at native speed; machine 'vm' has the real dm-cache"
        return Finding("ground", "note", f"emulated tier: {why} and there is no KVM: {what}")
    lacks = chroot.lacking()
    instead = f"; the emulated tier at native speed is not possible: {lacks}" if lacks else ""
    return Finding("ground", "note", f"a virtual machine with dm-cache: {why}{instead}")


def _programs(ground: MachineKind) -> list[Finding]:
    local, findings = Local(), []
    spare = {"ssh", "fio"}  # for other verbs than `hotset demo`
    if ground == "local" or image.cached() is not None:
        spare.add("mmdebstrap")
    for program in PROGRAMS.values():
        if (
            _PLACES[ground].isdisjoint(program.places)
            or program.name == "flashdev"
            or "postgres" in program.package
        ):
            continue
        found = local.which(program.name)
        if found:
            findings.append(Finding(program.name, "ok", str(found)))
        else:
            detail = f"needed to {program.purpose}; apt-get install {program.package}"
            state: State = "note" if program.name in spare else "missing"
            findings.append(Finding(program.name, state, detail))
    return findings


def _flashdev() -> Finding:
    try:
        return Finding("flashdev", "ok", str(flashdev.program(Local())))
    except EnvironmentLacksError as error:
        return Finding("flashdev", "missing", str(error))


def _users() -> Finding:
    try:
        return Finding(native.PROGRAM, "ok", str(native.program()))
    except native.DriverMissing as error:
        return Finding(native.PROGRAM, "missing", str(error))


def _fuse() -> Finding:
    if os.access("/dev/fuse", os.R_OK | os.W_OK):
        return Finding("/dev/fuse", "ok", "modelled disks can be mounted")
    remedy = "modprobe fuse (in a container: --device /dev/fuse --cap-add SYS_ADMIN)"
    return Finding("/dev/fuse", "missing", f"needed for the modelled disk; {remedy}")


def _privileges() -> Finding:
    if os.geteuid():
        return Finding("root", "note", "not root: iSCSI runs over QEMU's user network, slower")
    if Path("/dev/net/tun").exists():
        return Finding("root", "ok", "iSCSI gets a tap device in a network namespace of its own")
    return Finding("/dev/net/tun", "missing", "needed for the lab's network; modprobe tun")


def _image() -> Finding:
    built = image.cached()
    if built:
        return Finding("lab image", "ok", str(built.folder))
    return Finding("lab image", "note", "not built yet; the first run builds it (1-2 minutes)")


def _acceleration() -> Finding:
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Finding("/dev/kvm", "note", "there; used if a probe boots a kernel with it")
    return Finding("/dev/kvm", "note", "not usable: the guest's CPU is emulated, many times slower")


def _hammerdb() -> Finding:
    """Optional: another driver of TPC-C and TPC-H, from the user's own release."""
    try:
        found = release.find()
        able = release.examine(found)
    except EnvironmentLacksError as error:
        return Finding("HammerDB", "note", f"optional, for --driver hammerdb; {error}")
    reach = " and ".join(able.databases) or "no database of hotset's"
    lacks = "".join(f"; {one}" for one in able.lacks)
    state: State = "ok" if able.databases else "note"
    return Finding(
        "HammerDB", state, f"optional; {able.version} in {found.home}, for {reach}{lacks}"
    )
