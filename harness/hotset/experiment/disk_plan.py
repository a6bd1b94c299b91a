"""``hotset experiment plan`` of an experiment on modelled disks: every command, printed and not
run. What hotset reads by itself is said in words."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hotset.bench.disks import arrays, mounted_model, raffle, reread, serving_path
from hotset.block.flashdev import Model
from hotset.core.progress import Reporter, to_stdout
from hotset.core.units import Bytes
from hotset.lab import served_model

from .disk_scenario import phases, ways
from .file.disk_spec import ArraysTable, DiskSpec, RereadTable
from .plan import PrintingCleanup, PrintingLocal

_SIDE = {"iops": 1, "bw_bytes": 4096, "total_ios": 1, "lat_ns": {"mean": 1000.0}}
_ANSWERS = {
    "losetup --find": "/dev/loop0",
    "fio": json.dumps({"jobs": [{"read": _SIDE, "write": _SIDE}]}),
    "hotset-engine ask": json.dumps({"volatile_bytes": 0, "lost_bytes": 0}),
}
_EXAMPLE = Bytes(64 * 1024**2)
"""Example size of a disk whose size is known once its files are written."""


def plan(spec: DiskSpec) -> None:
    """Print the commands of an experiment in the order in which a run would give them."""
    with tempfile.TemporaryDirectory(prefix="hotset-plan-") as name:
        planned = _Planned(PrintingLocal(_ANSWERS), Path(name))
        to_stdout("# what serving a model takes of a small request's time here")
        planned.path(spec)
        if spec.reread is not None:
            to_stdout(f"\n# write ten files of {spec.reread.size}, once for all disks")
            for model, phase in zip(spec.reread.models, phases(spec), strict=True):
                to_stdout(f"\n# {phase}")
                planned.reread(spec.reread, model)
        if spec.arrays is not None:
            for part in arrays.parts(spec.arrays.search):
                to_stdout(f"\n# {part.name}")
                planned.part(spec.arrays, part)


class _Planned:
    def __init__(self, local: PrintingLocal, folder: Path) -> None:
        self._local, self._folder = local, folder
        self._content = folder / "content"
        with self._content.open("wb") as file:
            file.truncate(_EXAMPLE)

    def path(self, spec: DiskSpec) -> None:
        quiet = Reporter(quiet=True)
        serving_path.measure(self._local, ways(spec), quiet, PrintingCleanup)

    def reread(self, want: RereadTable, model: Model) -> None:
        with mounted_model.mount_model(
            self._local, self._folder, self._content, model, cleanup_at=PrintingCleanup
        ):
            tickets = sum(raffle.WEIGHTS.values())
            for number in range(want.passes + 1):
                how = "with" if number == want.passes else "without"
                to_stdout(
                    f"read  $ {reread.name_of(model)}, pass {number + 1}: {tickets} tickets for"
                    f" {len(raffle.WEIGHTS)} files, {how} the page cache"
                )

    def part(self, want: ArraysTable, part: arrays.Part) -> None:
        if part.kind == "search":
            self._search(want, part.array)
            return
        load = want.load
        size = arrays.CUT_SIZE if part.kind == "power cut" else load.size
        with served_model.serve_model(
            self._local, part.array, size, cleanup_at=PrintingCleanup
        ) as served:
            if part.kind == "values":
                list(arrays.cells(self._local, served.file, size, load.seconds, load.repeats))
            elif part.kind == "failure":
                arrays.reads(self._local, served.file, size, load.seconds)
                served_model.fail(self._local, served.socket, arrays.FAILED_MEMBER)
                arrays.reads(self._local, served.file, size, load.seconds)
            else:
                to_stdout("write $ pages, a flush every now and then, until the power fails")
                served_model.power_cut(self._local, served.socket)

    def _search(self, want: ArraysTable, array: str) -> None:
        load = want.load.search
        assert load is not None
        with mounted_model.mount_model(
            self._local,
            self._folder,
            self._content,
            array,
            read_only=False,
            cleanup_at=PrintingCleanup,
        ):
            to_stdout(
                f"find  $ {load.users} users search {load.posts:,} posts for {load.seconds:g} s in"
                f" {load.memory} of memory, {load.posts_per_s} new posts a second"
            )
