"""Prerequisites, present or missing, and what installs them; derived from the list of programs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hotset.block import flashdev, programs
from hotset.core.errors import PrerequisiteError
from hotset.core.machines import fit
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.machines.local import Local, lacks_device
from hotset.core.machines.programs import PROGRAMS, Place
from hotset.core.record import Versioned
from hotset.databases.postgres import pgbench
from hotset.databases.sqlserver import odbc
from hotset.databases.sqlserver.freetds import is_freetds
from hotset.disk import flash_devices, prerequisites
from hotset.hammerdb import release
from hotset.tier import kinds
from hotset.tpcc import native as users
from hotset.tpcc.record import DriverMissing

from . import image
from .lab import MachineKind, choose, kernel_has_dm_cache
from .machines import chroot, uml

if TYPE_CHECKING:
    from rich.console import Console

_PLACES: dict[MachineKind, frozenset[Place]] = {
    "local": frozenset(("host", "iscsi", "target")),
    "image": frozenset(("host",)),
    "uml": frozenset(("host", "uml", "iscsi")),
    "vm": frozenset(("host", "vm", "iscsi")),
}
"""Whose programs a machine of this kind needs on this computer."""

_WITHOUT_ROOT = (
    "not root: accelerated disks of this computer are for root (sudo hotset tier …). The lab,"
    " experiments, TPC-C and TPC-H on a database, and what-if work"
)
State = Literal["ok", "missing", "note"]
_BUILT: dict[str, Callable[[], Path]] = {
    flashdev.NAME: lambda: flashdev.program(Local()),
    programs.ENGINE: programs.find_engine,
    programs.BOOT: programs.find_boot,
}
"""Programs that no package has, and where they are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``missing`` stops `hotset demo`; ``note`` says what happens instead."""

    what: str
    state: State
    detail: str


_STYLES = {"ok": "green", "missing": "bold red", "note": "yellow"}


@dataclass(frozen=True)
class Findings(Versioned):
    """All that was looked at."""

    csv_rows = "findings"

    findings: tuple[Finding, ...]

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, pad_edge=False)
        for _ in range(3):
            table.add_column(overflow="fold")
        for finding in self.findings:
            state = Text(finding.state, style=_STYLES[finding.state])
            table.add_row(state, finding.what, Text(finding.detail))
        console.print(table)

    def failure(self) -> Exception | None:
        missing = [finding.what for finding in self.findings if finding.state == "missing"]
        return PrerequisiteError(f"missing: {', '.join(missing)}") if missing else None


def examine() -> list[Finding]:
    """Everything `hotset demo` needs on this computer, and what else hotset could use."""
    backend = choose("auto")
    who = [Finding("root", "note", _WITHOUT_ROOT)] if os.geteuid() else []
    return [_backend(backend), *who, *_needs(backend), *_kernel_tiers(backend), *examine_called()]


def examine_server(machine: Machine) -> list[Finding]:
    """Which kinds of cache a machine can have; what one of its disks lacks is missing."""
    try:
        flash_devices.need_root(machine)
    except PrerequisiteMissingError as error:
        return [Finding("root", "missing", str(error))]
    programs = _programs_of(machine)
    if programs.state == "missing":
        return [programs]
    known = flash_devices.inventory(machine)
    used = {disk.kind for flash in known.flash_devices for disk in flash.disks}
    unread = [Finding("flash device", "missing", problem) for problem in known.problems]
    findings = []
    for kind in kinds.names():
        lacks = "; ".join(prerequisites.lacking(machine, kind))
        state: State = "ok" if not lacks else "missing" if kind in used else "note"
        has = "in use" if kind in used else "possible"
        findings.append(Finding(kind, state, lacks or has))
    if not any(finding.state == "ok" for finding in findings):
        findings = [replace(finding, state="missing") for finding in findings]
    return [programs, *unread, *findings]


def _programs_of(machine: Machine) -> Finding:
    """Check that there are programs for it, before one is copied there."""
    what = "hotset's programs"
    try:
        program = fit.choose(machine, programs.find_engine())
    except PrerequisiteMissingError as error:
        return Finding(what, "missing", str(error))
    return Finding(what, "ok", f"for Linux on {fit.architecture_of(program)}, as this machine is")


def require(backend: MachineKind) -> None:
    """See that a lab on a machine of this kind can be raised, before anything is made.

    :raises PrerequisiteMissingError: something is missing; names all of it and what installs it.
    """
    missing = [need for need in _needs(backend) if need.state == "missing"]
    if missing:
        lines = "".join(f"\n  {need.what}: {need.detail}" for need in missing)
        raise PrerequisiteMissingError(
            f"prerequisites of a run are missing on this computer:{lines}"
        )


def _needs(backend: MachineKind) -> list[Finding]:
    findings = [*_programs(backend), *_check_built(), _users(), _fuse(), _image()]
    if backend == "vm":
        findings += [_network(), _acceleration()]
    if backend == "uml":
        findings.append(_uml_kernel("missing"))
    return findings


def _kernel_tiers(backend: MachineKind) -> list[Finding]:
    """Where the kernel's own dm-cache and bcache run, if that is another machine."""
    if backend != "image":
        return []
    where = "User-Mode Linux, a real kernel as a process, at this computer's CPU speed"
    real = Finding("dm-cache and bcache", "note", f"on machine 'uml': {where}")
    return [real, _uml_kernel("note")]


def _uml_kernel(without: State) -> Finding:
    """:param without: what it is where it does not run."""
    lacks, kernel = uml.lacking(), uml.find_fetched()
    if lacks is not None:
        return Finding("User-Mode Linux", without, f"it does not run here: {lacks}")
    if kernel is None:
        fetched = "its kernel is fetched from Debian's archive by the first run (36 MB)"
        return Finding("User-Mode Linux", "note", fetched)
    tried = "it boots here" if image.find_built() else "not tried yet, there is no image"
    return Finding("User-Mode Linux", "ok", f"Debian's package {kernel.version}; {tried}")


def _backend(backend: MachineKind) -> Finding:
    if backend == "local":
        return Finding(
            "environment", "ok", "this computer's own kernel has dm-cache: used directly"
        )
    why = (
        "this computer's kernel has no dm-cache"
        if not kernel_has_dm_cache()
        else ("this computer's own dm-cache needs root")
    )
    if backend == "image":
        what = "a cache in user space, at this computer's CPU speed"
        return Finding("environment", "note", f"{what}: {why}")
    what = "User-Mode Linux with dm-cache, at this computer's CPU speed"
    lacks = chroot.lacking()
    instead = f"; a cache in user space is not possible: {lacks}" if lacks else ""
    return Finding("environment", "note", f"{what}: {why}{instead}")


def _programs(backend: MachineKind) -> list[Finding]:
    local, findings = Local(), []
    # For other verbs than `hotset demo`.
    spare = {"ssh", "fio", "smartctl", "nvme"}
    if backend == "local" or image.find_built() is not None:
        spare.add("mmdebstrap")
    for program in PROGRAMS.values():
        if (
            _PLACES[backend].isdisjoint(program.places)
            or program.name in _BUILT
            or program.package.startswith("postgresql")
        ):
            continue
        path = local.which(program.name)
        if path:
            findings.append(Finding(program.name, "ok", str(path)))
        else:
            detail = f"needed to {program.purpose}; apt-get install {program.package}"
            state: State = "note" if program.name in spare else "missing"
            findings.append(Finding(program.name, state, detail))
    return findings


def _check_built() -> list[Finding]:
    findings = []
    for name, find in _BUILT.items():
        try:
            findings.append(Finding(name, "ok", str(find())))
        except PrerequisiteMissingError as error:
            findings.append(Finding(name, "missing", str(error)))
    return findings


def _users() -> Finding:
    try:
        return Finding(users.PROGRAM, "ok", str(users.program()))
    except DriverMissing as error:
        return Finding(users.PROGRAM, "missing", str(error))


def _fuse() -> Finding:
    lacking = lacks_device("/dev/fuse", "fuse")
    if lacking is None:
        return Finding("/dev/fuse", "ok", "modelled disks can be mounted")
    if not Path("/dev/fuse").exists():
        lacking += " (in a container: docker run --device /dev/fuse --cap-add SYS_ADMIN)"
    return Finding("/dev/fuse", "missing", f"needed for the modelled disk; {lacking}")


def _network() -> Finding:
    if os.geteuid():
        return Finding("lab's network", "note", "not root: iSCSI runs over QEMU's own, slower")
    if Path("/dev/net/tun").exists():
        return Finding(
            "lab's network", "ok", "iSCSI gets a tap device in its own network namespace"
        )
    return Finding("/dev/net/tun", "missing", "needed for the lab's network; modprobe tun")


def _image() -> Finding:
    built = image.find_built()
    if built:
        return Finding("lab image", "ok", str(built.folder))
    return Finding("lab image", "note", "not built yet; the first run builds it (1-2 minutes)")


def _acceleration() -> Finding:
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Finding("/dev/kvm", "note", "present; used if a probe boots a kernel with it")
    if Path("/dev/kvm").exists():
        return Finding(
            "/dev/kvm",
            "note",
            "may not be opened by this user, so the guest's CPU is emulated, many times slower:"
            " have root run usermod -aG kvm USER, and log in again",
        )
    return Finding("/dev/kvm", "note", "not usable: the guest's CPU is emulated, many times slower")


def examine_called() -> list[Finding]:
    """Look for the programs that benchmarks call and no package of hotset's brings."""
    return [_pgbench(), _hammerdb(), _sql_server()]


def _sql_server() -> Finding:
    """Describe how this computer reaches a SQL Server, and what the driver checks."""
    what = "SQL Server"
    try:
        name = odbc.driver(None)
    except PrerequisiteMissingError as error:
        return Finding(what, "note", str(error))
    strict = "" if is_freetds(name) else "; also encrypt=strict"
    checks = "checks the server's certificate by what this system trusts, unless trust=yes"
    return Finding(what, "ok", f"ODBC driver {Path(name).name}: {checks}{strict}")


def _pgbench() -> Finding:
    """Runs scripts of one's own on PostgreSQL."""
    what = "for SQL of your own on PostgreSQL"
    try:
        installed = pgbench.find()
    except PrerequisiteMissingError as error:
        return Finding(pgbench.PROGRAM, "note", f"{what}; {error}")
    return Finding(pgbench.PROGRAM, "ok", f"{what}: {installed.program}, {installed.version}")


def _hammerdb() -> Finding:
    """Optional: another driver of TPC-C and TPC-H, from the user's own release."""
    try:
        installed = release.find()
        able = release.examine(installed)
    except PrerequisiteMissingError as error:
        return Finding("HammerDB", "note", f"optional, for --driver hammerdb; {error}")
    reach = " and ".join(able.databases) or "no database of hotset's"
    lacks = "".join(f"; {lack}" for lack in able.lacks)
    state: State = "ok" if able.databases else "note"
    return Finding(
        "HammerDB", state, f"optional; {able.version} in {installed.home}, for {reach}{lacks}"
    )
