"""What is present, what is missing, and what installs it; derived from the list of programs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotset.cachelayer import image
from hotset.cachelayer.lab import choose, kernel_has_dm_cache
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import EnvironmentLacksError
from hotset.cachelayer.programs import PROGRAMS
from hotset.cachelayer.storage import flashdev

State = Literal["ok", "missing", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``missing`` stops `hotset demo`; ``note`` says what happens instead."""

    what: str
    state: State
    detail: str


def examine() -> list[Finding]:
    """Everything `hotset demo` needs on this computer."""
    ground = choose("auto")
    findings = [_ground(ground), *_programs(ground), _flashdev(), _fuse(), _privileges(), _image()]
    if ground == "vm":
        findings.append(_acceleration())
    return findings


def _ground(ground: str) -> Finding:
    if ground == "local":
        return Finding("ground", "ok", "this computer's own kernel has dm-cache: used directly")
    why = "its kernel has no dm-cache" if not kernel_has_dm_cache() else "that needs root"
    return Finding("ground", "note", f"a virtual machine; not this computer's kernel, since {why}")


def _programs(ground: str) -> list[Finding]:
    local, findings = Local(), []
    for program in PROGRAMS.values():
        needed = "host" in program.places or ground == "local"
        if not needed or program.name == "flashdev" or "postgres" in program.package:
            continue
        found = local.which(program.name)
        if found:
            findings.append(Finding(program.name, "ok", str(found)))
        else:
            detail = f"needed to {program.purpose}; apt-get install {program.package}"
            findings.append(Finding(program.name, "missing", detail))
    return findings


def _flashdev() -> Finding:
    try:
        return Finding("flashdev", "ok", str(flashdev(Local())))
    except EnvironmentLacksError as error:
        return Finding("flashdev", "missing", str(error))


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
