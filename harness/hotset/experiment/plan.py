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
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import cast

from hotset.block import loop
from hotset.block.extents import Run
from hotset.core import words
from hotset.core.machines.base import Command, Result
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.dry_run import Showing
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter, to_stdout
from hotset.lab import image
from hotset.lab import lab as labs
from hotset.lab.backend import KernelBackend, ModelledBackend
from hotset.lab.lab import Lab, MachineKind
from hotset.lab.machines import chroot, uml
from hotset.lab.machines.guest import FLASH, SAVED, Disk
from hotset.lab.slow_disk import Portal, Target
from hotset.reports.model.document import Workload
from hotset.tier.engine.control import PROTOCOL

from . import sequence, timed
from .file.spec import Spec
from .sequence import Turn
from .site import arms
from .site.arms import Placed, Workloads
from .site.base_image import path_for
from .site.context import SavedDatabase, SavedImage, Site, slow_disk
from .timed import Timed

_LOOP = PurePosixPath("/dev/loop0")


class _Printing(Showing):
    """A machine that prints what it would run, and answers from a table."""

    def __init__(self, kind: str, answers: dict[str, str]) -> None:
        super().__init__(kind, self._print)
        self._answers = answers
        self._mapped: list[str] = []

    def _print(self, line: str) -> None:
        mark = ">" if line.startswith(("write ", "read ")) else "$"
        to_stdout(
            f"      {line.strip()}" if line.startswith("  ") else f"{self.kind:5} {mark} {line}"
        )

    def _answer(self, argv: Sequence[str]) -> str:
        command = shlex.join([PurePosixPath(argv[0]).name, *argv[1:]])
        key = next((key for key in self._answers if fnmatchcase(command, f"{key}*")), None)
        return self._answers[key] if key else self._mapper(argv)

    def _mapper(self, argv: Sequence[str]) -> str:
        """Keeps which device-mapper devices would exist, and names them when asked."""
        match argv:
            case ["dmsetup", "create", name, *_]:
                self._mapped.append(name)
            case ["dmsetup", "remove", *_, name] if name in self._mapped:
                self._mapped.remove(name)
            case ["dmsetup", "ls"]:
                return "".join(f"{name}\t(252:0)\n" for name in self._mapped)
        return ""


class PrintingLocal(Local):
    """This computer, printing instead of doing."""

    def __init__(self, answers: dict[str, str]) -> None:
        super().__init__()
        self._machine = _Printing("host", answers)

    def execute(self, command: Command) -> Result:
        return self._machine.execute(command)

    def spawn(
        self,
        argv: Sequence[str],
        log: Path,
        env: dict[str, str] | None = None,  # noqa: ARG002
        pass_fds: Sequence[int] = (),  # noqa: ARG002
    ) -> subprocess.Popen[bytes]:
        self._machine.run(argv)
        log.write_text("ready (planned)")
        return cast("subprocess.Popen[bytes]", _Planned())


class _Planned:
    """A daemon that was printed and not started, as far as anybody asks."""

    pid = 0

    def poll(self) -> None:
        return None


class PrintingCleanup(Cleanup):
    """Take-down steps that end no process of this computer."""

    def process(self, name: str, pid: int, at_once: bool = False) -> None:  # noqa: ARG002
        self.call(f"end {name}", lambda: to_stdout(f"host  $ # end {name}"))


class _Printed:
    """The work of a plan, for :func:`.sequence.walk`: what a run would measure is printed."""

    def is_done(self, spec: Spec, turn: Turn, workload: Workload) -> bool:  # noqa: ARG002
        return False

    def learn(self, site: Site, workloads: Workloads) -> tuple[Run, ...]:
        to_stdout(f"\n# learn which blocks are hot: {', '.join(workloads)}")
        run = timed.find_timed(site.spec)
        with arms.cold(site, workloads):
            for workload in workloads:
                if run is None or workload != run.name:
                    _print_queries(site.spec)
                else:
                    _print_users(run, run.want.most_users, f"{site.spec.warmup.learn_s:g} s")
        return ()

    @contextmanager
    def turn(self, site: Site, turn: Turn) -> Iterator[None]:  # noqa: ARG002
        to_stdout(f"\n# {turn.arm}, repeat {turn.repeat}: {', '.join(turn.workloads)}")
        yield

    def begin(self, site: Site, turn: Turn, placed: Placed) -> None:  # noqa: ARG002
        run, want = timed.find_timed(site.spec), site.spec.warmup
        if run is None or run.name not in turn.workloads:
            _print_queries(site.spec, "probe")
            return
        probe = f"probe, {want.probe_s:g} s"
        if run.by_seconds and want.prepare_max_s > want.probe_s:
            probe += f" or until reads are level, {want.prepare_max_s:g} s at most"
        _print_users(run, run.want.most_users, probe)

    def window(self, site: Site, turn: Turn, placed: Placed, run: Timed, users: int) -> None:  # noqa: ARG002
        _print_users(run, users, _window(run))
        if site.spec.tpcc is not None and site.spec.tpcc.check == "every-arm":
            to_stdout("tpcc  $ check the twelve consistency conditions")

    def find_rate(self, site: Site, turn: Turn, placed: Placed, run: Timed) -> None:  # noqa: ARG002
        limits = " and ".join(run.want.find_rate)
        what = f"{_window(run)}, at rates up to the highest with {limits}"
        _print_users(run, run.want.most_users, what)

    def queries(self, site: Site, turn: Turn, placed: Placed) -> None:  # noqa: ARG002
        _print_queries(site.spec)


def _print_users(run: Timed, users: int, what: str) -> None:
    to_stdout(f"{run.name:5} $ {run.title(users)}, {what}")


def _window(run: Timed) -> str:
    return f"{run.want.rampup_s:g} s ramp-up, {run.want.duration_s:g} s"


def _print_queries(spec: Spec, what: str = "the 22 queries") -> None:
    assert spec.tpch is not None
    to_stdout(f"tpch  $ TPC-H driver: {what}, scale {spec.tpch.scale:g}")


def plan(spec: Spec) -> None:
    """Print the commands of an experiment in the order in which a run would give them."""
    kind = labs.choose(spec.machine.kind, spec.tier_wanted)
    with tempfile.TemporaryDirectory(prefix="hotset-plan-") as name:
        folder, local = Path(name), PrintingLocal({"losetup --find": str(_LOOP)})
        cleanup = PrintingCleanup(folder, local)
        lab = _lab(spec, kind, folder, cleanup, local)
        want = spec.storage
        storage = slow_disk(lab, want.device, want.model, want.size)
        databases = {
            workload: SavedDatabase(spec.database_bytes, f"base/{number}")
            for number, workload in enumerate(chain.from_iterable(spec.placements), 1)
        }
        saved = SavedImage(folder / "saved.img", databases, "")
        saved.path.touch()
        tier = spec.tier.resolve(lab.backend.tier_kind)
        site = Site(spec, tier, lab, storage, saved, "", Reporter(quiet=True))
        _load(spec, kind)
        sequence.walk(site, _Printed())
        to_stdout("\n# the end: stop the machine and what serves its disks, remove the flash file")


def _lab(spec: Spec, kind: MachineKind, folder: Path, cleanup: Cleanup, local: Local) -> Lab:
    to_stdout("# the lab")
    if kind == "image":
        machine = _Printing(kind, _answers(spec))
        local.run(chroot.hold_argv(_build(folder, local), folder))
        modelled = ModelledBackend(local, machine, spec.flash.model, folder)
        return Lab(kind, local, machine, modelled, _LOOP, folder, cleanup)
    portal = _PORTALS[kind](spec, folder, local)
    target = Target(local, portal, folder)
    local.run(target.daemon_argv())
    machine = _Printing(kind, _answers(spec))
    saved = labs.SAVED_DISK
    if spec.flash.device is not None:
        flash = PurePosixPath(spec.flash.device)
    elif kind == "local":
        flash, saved = loop.attach(local, folder / "flash.img", cleanup), _LOOP
    else:
        flash = labs.FLASH_DISK
    kernel = KernelBackend(
        local, machine, target, flash, folder, tier_kind=labs.kernel_tier(spec.tier_wanted)
    )
    return Lab(kind, local, machine, kernel, saved, folder, cleanup)


def _build(folder: Path, local: Local) -> image.Image:
    """The image; where there is none yet, the command that makes it is printed."""
    built = image.find_built()
    if built is not None:
        return built
    mode = "unshare" if os.geteuid() else "root"
    local.run(image.bootstrap_argv(folder, folder / "root", mode))
    return image.Image(folder)


def _disks(folder: Path) -> tuple[Disk, ...]:
    saved = Disk(SAVED, folder / "saved.img", readonly=True)
    return Disk(FLASH, folder / "flash.img"), saved


def _uml(spec: Spec, folder: Path, local: Local) -> Portal:
    """Print what starts User-Mode Linux."""
    built = _build(folder, local)
    kernel = uml.find_fetched()
    if kernel is None:
        to_stdout("# Debian's package of its kernel is fetched from the archive, once")
        kernel = uml.Kernel(folder / "user-mode-linux")
    local.run(uml.network_argv())
    network = uml.Network(uml.enter("PID"), {})
    wanted = uml.UmlSpec(spec.machine.memory, _disks(folder))
    local.run(uml.kernel_argv(built, kernel, wanted, network.enter, folder / "root.cow"))
    return labs.uml_portal(network)


_PORTALS: dict[MachineKind, Callable[[Spec, Path, Local], Portal]] = {
    "local": lambda *_: labs.local_portal(),
    "uml": _uml,
}


def _load(spec: Spec, kind: MachineKind) -> None:
    done = path_for(spec, kind)
    if done.with_suffix(".json").exists():
        to_stdout(f"\n# the saved database image is there: {done}")
    else:
        loaded = words.enumerate_words(
            [
                *([f"{spec.tpcc.warehouses} warehouses"] if spec.tpcc else []),
                *([spec.sql.load.given] if spec.sql else []),
                *([f"TPC-H, scale {spec.tpch.scale:g}"] if spec.tpch else []),
            ]
        )
        to_stdout(f"\n# load {loaded} onto the saved-image disk: {done}")
        for file in spec.sql.load.files if spec.sql else ():
            to_stdout(f"# load {file}")


def _answers(spec: Spec) -> dict[str, str]:
    """Map each reading command, by its beginning, to assumed output; ``*`` is anything."""
    blocks = spec.database_bytes // 4096
    first = 32 * 1024**2 // 4096
    return {
        f"blockdev --getsize64 {labs.FLASH_DISK}": str(int(spec.flash.size)),
        "blockdev --getsize64": str(int(spec.storage.size)),
        "ls /usr/lib/postgresql": "17",
        "blockdev --getss": "512",
        "dmsetup info": "dm-3",
        "readlink -f /sys/block/dm-3/bcache/dev": "/sys/devices/virtual/block/bcache0",
        **_engine_answers(spec),
        "hotset-engine copy": '{"bytes": 0, "seconds": 1}',
        "hotset-engine compare": '{"runs": 0, "differing": 0}',
        "stat --dereference": "8 10",
        "cat /sys/dev/block/8:16/stat": "0 0 0 0 0 0 0 0 0 0 0",
        "pg_ctl --version": "pg_ctl (PostgreSQL) 17",
        "debugfs -R 'show_super_stats": "Block size: 4096",
        "blkid": spec.database.filesystem,
        "lsblk": '{"blockdevices": [{"name": "loop0", "mountpoints": []}]}',
        "dumpe2fs": "Block size: 4096",
        "find": "/run/hotset-experiment/origin/cluster/base/1/1\0",
        "filefrag": (
            f"File size of 1 is {blocks * 4096} ({blocks} blocks of 4096 bytes)\n"
            f"   0:        0..{blocks - 1}:  {first}..{first + blocks - 1}:  {blocks}:  last,eof\n"
        ),
    }


def _engine_answers(spec: Spec) -> dict[str, str]:
    """Return the replies of hotset's own engine, every block warmed up."""
    blocks = spec.storage.size // spec.tier.block
    size: dict[str, object] = {"bytes": int(spec.storage.size), "seconds": 1}
    events = ("read_hits", "read_misses", "write_hits", "write_misses", "promotions", "demotions")
    counts = dict.fromkeys((*events, "dirty", "used", "total", "begun"), 0)
    about: dict[str, object] = {"block_bytes": 1, "policy": "", "mode": "", "state": ""}
    answers: dict[str, dict[str, object]] = {
        "read_origin": size,
        "warm": size | {"blocks": blocks, "skipped": 0},
        "resident": {"runs": [[0, blocks]], "dirty": []},
        "counters": counts | about,
        "flush": {"flushed": 0},
    }
    return {
        f'hotset-engine ask * \'{{"{question}"': json.dumps({"protocol": PROTOCOL, **answer})
        for question, answer in answers.items()
    }
