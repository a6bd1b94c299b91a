"""What a machine needs for a tier, looked at before anything is written: also what only a boot, a
repair or a detach will ask for."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from itertools import groupby

from hotset.block import devicemapper
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.programs import PROGRAMS, lacking_argv
from hotset.tier.base import TierKind
from hotset.tier.engine import tier as userspace

# What the kernel's part asks for itself (dmsetup, modprobe) tells of its own lack.
_PROGRAMS: dict[TierKind, tuple[str, ...]] = {
    "dm-cache": ("cache_check", "cache_dump", "cache_repair", "cache_restore", "flock"),
    "bcache": ("bcache-super-show", "make-bcache", "flock"),
    "userspace": ("losetup", "mount", "umount", "findmnt", "flock", "setsid"),
}


def require(machine: Machine, kind: TierKind) -> None:
    """:raises PrerequisiteMissingError: the machine cannot have a tier of that kind; names all that
    is missing and what installs it."""
    lacks = list(lacking(machine, kind))
    if lacks:
        remedies = () if kind == "userspace" else (devicemapper.IN_USER_SPACE,)
        raise PrerequisiteMissingError(
            f"{machine.kind} lacks what a cache of kind {kind} needs: {'; '.join(lacks)}", *remedies
        )


def lacking(machine: Machine, kind: TierKind) -> Iterator[str]:
    """What a tier of that kind lacks there. The kernel's modules are loaded, by root."""
    missing = machine.run(lacking_argv(_PROGRAMS[kind])).stdout.split()
    for package, names in groupby(missing, lambda name: PROGRAMS[name].package):
        yield f"{', '.join(names)} (apt-get install {package})"
    for look in _KERNEL[kind]:
        try:
            look(machine)
        except PrerequisiteMissingError as error:
            yield str(error)
            return


def _load(*modules: str) -> Callable[[Machine], None]:
    return lambda machine: devicemapper.load(machine, *modules)


def _runs_the_engine(machine: Machine) -> None:
    there, here = machine.run(["uname", "-m"]).stdout.strip(), platform.machine()
    if there != here:
        raise PrerequisiteMissingError(
            f"its processor is {there}, and the engine was built here for {here}: run hotset there"
        )


_KERNEL: dict[TierKind, tuple[Callable[[Machine], None], ...]] = {
    "dm-cache": (devicemapper.require, _load("dm-cache", "dm-cache-smq")),
    "bcache": (devicemapper.require, _load("bcache")),
    "userspace": (userspace.require, _runs_the_engine),
}
