"""``hotset experiment plan``: every command of an experiment, printed and not run.

The very phases of a run are walked through with a machine that prints what it is told. What a
command would have answered is made up from the experiment file, so figures in later commands (the
extents of the database, mainly) are examples; the commands are the real ones.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import cast

from hotset.cachelayer import chroot, image, loop, vm
from hotset.cachelayer import lab as labs
from hotset.cachelayer.ground import EmulatedGround, KernelGround
from hotset.cachelayer.lab import Lab, MachineKind
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import DEFAULT_TIMEOUT_S, Result, declared
from hotset.cachelayer.storage import Target
from hotset.cachelayer.takedown import Takedown
from hotset.harness.arms import ARMS, Workloads
from hotset.harness.experiment import order
from hotset.harness.progress import Reporter, to_stdout
from hotset.harness.saved import path_for
from hotset.harness.site import SavedDatabase, SavedImage, Site, slow_disk
from hotset.harness.spec import Spec

_LOOP = PurePosixPath("/dev/loop0")
_STDIN_SHOWN = 300
_FILE_SHOWN = 1500


class _Printing:
    """A machine that prints what it would run."""

    def __init__(self, kind: str, answers: dict[str, str]) -> None:
        self.kind = kind
        self._answers = answers
        self._mapped: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,  # noqa: ARG002
        check: bool = True,  # noqa: ARG002
        user: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        to_stdout(f"{self.kind:5} $ {shlex.join(declared(argv, user))}")
        if stdin is not None and "PASSWORD" not in stdin:
            shown = stdin if len(stdin) <= _STDIN_SHOWN else stdin[:_STDIN_SHOWN] + " …"
            to_stdout("\n".join(f"      < {line}" for line in shown.strip().splitlines()))
        name = PurePosixPath(argv[0]).name
        key = next((key for key in self._answers if shlex.join([name, *argv[1:]]).startswith(key)),
                   None)  # fmt: skip
        answer = self._answers[key] if key else self._mapper(argv)
        if on_line is not None:
            for line in answer.splitlines():
                on_line(line)
        return Result(tuple(argv), 0, answer, "", 0.0)

    def _mapper(self, argv: Sequence[str]) -> str:
        """Keeps which device-mapper devices would stand, and names them when asked."""
        match argv:
            case ["dmsetup", "create", name, *_]:
                self._mapped.append(name)
            case ["dmsetup", "remove", *_, name] if name in self._mapped:
                self._mapped.remove(name)
            case ["dmsetup", "ls"]:
                return "".join(f"{name}\t(252:0)\n" for name in self._mapped)
        return ""

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        to_stdout(f"{self.kind:5} $ {shlex.join(argv)}")
        yield iter(())

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        text = source.read_text(errors="replace").strip()
        to_stdout(f"{self.kind:5} > write {target} (mode {mode:o})")
        shown = text if len(text) <= _FILE_SHOWN else text[:_STDIN_SHOWN] + "\n…"
        to_stdout("\n".join(f"      < {line}" for line in shown.splitlines()))

    def get(self, source: PurePosixPath, target: Path) -> None:
        to_stdout(f"{self.kind:5} > read {source} into {target}")

    def port(self, wanted: int) -> int:
        return wanted

    def address(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", port


class _PrintingLocal(Local):
    """This computer, printing instead of doing."""

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__()
        self._machine = _Printing("host", answers)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        check: bool = True,
        user: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        return self._machine.run(
            argv, stdin=stdin, timeout_s=timeout_s, check=check, user=user, on_line=on_line
        )

    def spawn(
        self,
        argv: Sequence[str],
        log: Path,
        env: dict[str, str] | None = None,  # noqa: ARG002
    ) -> subprocess.Popen[bytes]:
        self._machine.run(argv)
        log.write_text("ready (planned)")
        return cast("subprocess.Popen[bytes]", _Planned())


class _Planned:
    """A daemon that was printed and not started, as far as anybody asks."""

    pid = 0

    def poll(self) -> None:
        return None


class _PrintingTakedown(Takedown):
    """Take-down steps that end no process of this computer."""

    def process(self, name: str, pid: int, at_once: bool = False) -> None:  # noqa: ARG002
        self.call(f"end {name}", lambda: to_stdout(f"host  $ # end {name}"))


def plan(spec: Spec) -> None:
    """Print the commands of an experiment in the order in which a run would give them."""
    kind = labs.choose(spec.machine.kind, spec.tier.wanted)
    with tempfile.TemporaryDirectory(prefix="hotset-plan-") as name:
        folder, local = Path(name), _PrintingLocal(_host_answers(spec))
        takedown = _PrintingTakedown(folder, local)
        lab = _lab(spec, kind, folder, takedown, local)
        scale = 1.0 if spec.time_scale == "auto" else spec.time_scale
        want = spec.storage
        storage = slow_disk(lab, want.device, want.model, want.size, scale)
        databases = {
            workload: SavedDatabase(spec.database_bytes, f"base/{number}")
            for number, workload in enumerate(chain.from_iterable(spec.placements), 1)
        }
        saved = SavedImage(folder / "saved.img", databases, "")
        saved.path.touch()
        site = Site(spec, spec.tier.resolved(), lab, storage, saved, "", Reporter(quiet=True))
        _load(spec, kind)
        for repeat, arm in order(spec):
            for workloads in spec.placements:
                to_stdout(f"\n# {arm}, repeat {repeat}: {', '.join(workloads)}")
                with ARMS[arm](site, workloads) as placed:
                    _workloads(spec, workloads, probe=placed.warmed is not None)
                if spec.tpcc.check == "every-arm":
                    to_stdout("tpcc  $ check the twelve consistency conditions")
        to_stdout("\n# the end: stop the machine and what serves its disks, remove the flash file")


def _lab(spec: Spec, kind: MachineKind, folder: Path, takedown: Takedown, local: Local) -> Lab:
    to_stdout("# the lab")
    saved = labs.VM_SAVED if kind == "vm" else _LOOP
    if kind == "image":
        machine = _Printing(kind, _answers(spec))
        local.run(chroot.hold_argv(_built(folder, local), folder))
        emulated = EmulatedGround(local, machine, spec.flash.model, folder)
        return Lab(kind, local, machine, None, emulated, saved, folder, takedown)
    root = os.geteuid() == 0
    portal = labs.vm_portal(folder, root) if kind == "vm" else labs.local_portal()
    target = Target(local, portal, folder)
    if kind == "vm":
        _vm_commands(spec, folder, root, local)
    local.run(target.daemon_argv())
    machine = _Printing(kind, _answers(spec))
    if spec.flash.device is not None:
        flash = PurePosixPath(spec.flash.device)
    elif kind == "vm":
        flash = labs.VM_FLASH
    else:
        flash = loop.attach(local, folder / "flash.img", takedown)
    kernel = KernelGround(local, machine, target, flash, folder,
                          tier_kind=labs.kernel_tier(spec.tier.wanted))  # fmt: skip
    return Lab(kind, local, machine, None, kernel, saved, folder, takedown)


def _built(folder: Path, local: Local) -> image.Image:
    """The image; where there is none yet, the command that makes it is printed."""
    built = image.cached()
    if built is not None:
        return built
    mode = "unshare" if os.geteuid() else "root"
    local.run(image.bootstrap_argv(folder, folder / "root", mode))
    return image.Image(folder)


def _vm_commands(spec: Spec, folder: Path, root: bool, local: Local) -> None:
    built = _built(folder, local)
    disks = (vm.Disk(labs.FLASH, folder / "flash.img"),
             vm.Disk(labs.SAVED, folder / "saved.img", readonly=True))  # fmt: skip
    tap = labs.vm_tap(folder) if root else None
    wanted = vm.VmSpec("tcg", spec.machine.cores, spec.machine.memory, disks, tap)
    local.run(vm.qemu_argv(built, wanted, {22: 20022, 5432: 25432}, folder / "console.log"))
    if root:
        labs.enclose(local, labs.namespace_name(folder), Takedown(folder, local))


def _load(spec: Spec, kind: MachineKind) -> None:
    done = path_for(spec, kind)
    if done.with_suffix(".json").exists():
        to_stdout(f"\n# the saved database image is there: {done}")
    else:
        scale = f" and TPC-H, scale {spec.tpch.scale:g}," if spec.tpch else ""
        to_stdout(
            f"\n# load {spec.tpcc.warehouses} warehouses{scale} onto the saved-image disk: {done}"
        )


def _workloads(spec: Spec, workloads: Workloads, probe: bool) -> None:
    if "tpcc" in workloads:
        if probe:
            _tpcc(spec, f"probe, {spec.warmup.probe_s:g} s")
        _tpcc(spec, f"{spec.tpcc.rampup_s:g} s ramp-up, {spec.tpcc.duration_s:g} s")
    if "tpch" in workloads and spec.tpch is not None:
        to_stdout(f"tpch  $ TPC-H driver: the 22 queries, scale {spec.tpch.scale:g}")


def _tpcc(spec: Spec, what: str) -> None:
    users, warehouses = spec.tpcc.users, spec.tpcc.warehouses
    to_stdout(f"tpcc  $ TPC-C driver: {users} users, {warehouses} warehouses, {what}")


def _host_answers(spec: Spec) -> dict[str, str]:
    """What reading commands of this computer would say."""
    blocks = spec.storage.size // spec.tier.block
    warmed = {"bytes": int(spec.storage.size), "seconds": 1, "blocks": blocks, "skipped": 0}
    return {"losetup --find": str(_LOOP), "flashdev ask": json.dumps(warmed)}


def _answers(spec: Spec) -> dict[str, str]:
    """What reading commands would say, by the beginning of the command."""
    blocks = spec.database_bytes // 4096
    first = 32 * 1024**2 // 4096
    return {
        f"blockdev --getsize64 {labs.VM_FLASH}": str(int(spec.flash.size)),
        "blockdev --getsize64": str(int(spec.storage.size)),
        "ls /usr/lib/postgresql": "17",
        "blockdev --getss": "512",
        "dmsetup info": "dm-3",
        "readlink -f /sys/block/dm-3/bcache/dev": "/sys/devices/virtual/block/bcache0",
        "flashdev copy": '{"bytes": 0, "seconds": 1}',
        "flashdev compare": '{"runs": 0, "differing": 0}',
        "stat --dereference": "8 10",
        "cat /sys/dev/block/8:16/stat": "0 0 0 0 0 0 0 0 0 0 0",
        "pg_ctl --version": "pg_ctl (PostgreSQL) 17",
        "debugfs -R 'show_super_stats": "Block size: 4096",
        "blkid": spec.database.filesystem,
        "dumpe2fs": "Block size: 4096",
        "find": "/run/hotset/origin/cluster/base/1/1\0",
        "filefrag": (
            f"File size of 1 is {blocks * 4096} ({blocks} blocks of 4096 bytes)\n"
            f"   0:        0..{blocks - 1}:  {first}..{first + blocks - 1}:  {blocks}:  last,eof\n"
        ),
    }
