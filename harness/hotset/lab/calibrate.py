"""A modelled disk measured through the whole chain, against what its model promises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from hotset.block import flashdev
from hotset.block.flashdev import Model
from hotset.core.errors import ThresholdError
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import deviation, percent

if TYPE_CHECKING:
    from rich.console import Console

_FIO_S = 6
TOLERANCE = 0.15


@dataclass(frozen=True, slots=True)
class CalibratedLine:
    """One line of a disk calibration: asked of the model, measured through the whole chain.

    ``asked`` and ``measured`` are in ``unit``.
    """

    what: str
    unit: Literal["IOPS", "ms", "MB/s"]
    asked: float
    measured: float

    @property
    def off(self) -> float:
        """Deviation of the measured from the asked figure, as a share of the asked."""
        return self.measured / self.asked - 1


@dataclass(frozen=True)
class DiskCalibration(Versioned):
    """Requested and measured values of a modelled disk."""

    csv_rows = "lines"

    model: str
    lines: tuple[CalibratedLine, ...]

    def show(self, console: Console) -> None:
        from rich.table import Table

        table = Table(title=f"modelled disk {self.model}", box=None, title_justify="left")
        table.add_column("")
        for name in ("asked", "measured", "unit", "off"):
            table.add_column(name, justify="right")
        for line in self.lines:
            digits = 1 if line.measured < 1000 else 0
            table.add_row(
                line.what,
                f"{line.asked:.{digits}f}",
                f"{line.measured:.{digits}f}",
                line.unit,
                deviation(line.off),
            )
        console.print(table)

    def failure(self) -> Exception | None:
        worst = max(self.lines, key=lambda line: abs(line.off))
        if abs(worst.off) <= TOLERANCE:
            return None
        return ThresholdError(
            f"{worst.what}: {worst.measured:.1f} {worst.unit} measured is"
            f" {deviation(worst.off, 0)} off the {worst.asked:.1f} requested (allowed:"
            f" {percent(TOLERANCE, 0)}); is the computer busy?"
        )


def disk(
    machine: Machine,
    device: PurePosixPath,
    model: Model,
    size: Bytes,
    report: Reporter,
) -> list[CalibratedLine]:
    """fio against the slow disk as the machine sees it, beside what the model promises."""
    asked = flashdev.read_promise(Local(), model, ["--size", str(int(size))])
    lines = []
    with report.task("fio on the slow disk"):
        for promise in asked["random_read_8k"]:
            depth = promise["queue_depth"]
            job = _fio(machine, device, size, "randread", "8k", depth)["read"]
            what = f"8 KiB random read, queue depth {depth}"
            lines.append(CalibratedLine(what, "IOPS", promise["iops"], job["iops"]))
            report.figure(f"{what}: {job['iops']:.0f} IOPS")
            if depth == 1:
                latency = job["lat_ns"]["mean"] / 1e6
                lines.append(CalibratedLine(what, "ms", promise["latency_ms_mean"], latency))
        for direction in ("read", "write"):
            job = _fio(machine, device, size, direction, "1M", 4)[direction]
            rate = job["bw_bytes"] / 1e6
            promise = asked[f"sequential_{direction}_mb_per_s"]
            lines.append(CalibratedLine(f"1 MiB sequential {direction}", "MB/s", promise, rate))
            report.figure(f"sequential {direction}: {rate:.1f} MB/s")
    return lines


def _fio(
    machine: Machine,
    device: PurePosixPath,
    size: Bytes,
    pattern: str,
    block: str,
    depth: int,
) -> dict[str, Any]:
    """One fio job; long enough that some hundred requests are served."""
    # A colon separates file names for fio; unescaped, it would make plain files of the parts.
    file = str(device).replace(":", "\\:")
    argv = [
        "fio",
        "--name=hotset",
        f"--filename={file}",
        "--allow_file_create=0",
        f"--rw={pattern}",
        f"--bs={block}",
        f"--iodepth={depth}",
        "--ioengine=libaio",
        "--direct=1",
        f"--size={int(size)}",
        "--time_based",
        f"--runtime={_FIO_S}",
        "--ramp_time=1",
        "--randrepeat=1",
        "--norandommap",
        "--output-format=json",
    ]
    text = machine.run(argv, timeout_s=_FIO_S + 90).stdout
    # fio may print notes before its JSON.
    loaded: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    return loaded
