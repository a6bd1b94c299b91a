"""The device models that come with hotset, and what they promise."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from hotset.block import flashdev
from hotset.core.machines.local import Local
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import print_table

if TYPE_CHECKING:
    from rich.console import Console

_SIZE = Bytes(4 * 1024**3)


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model: 8 KiB random reads by queue depth, 1 MiB requests one at a time."""

    name: str
    title: str
    iops_qd1: float
    latency_ms_qd1: float
    iops_qd32: float
    read_mb_per_s: float
    write_mb_per_s: float


@dataclass(frozen=True)
class DiskModels(Versioned):
    """The models of the library."""

    csv_rows = "models"

    models: tuple[ModelLine, ...]

    def show(self, console: Console) -> None:
        title = (
            "expected: 8 KiB random reads, 1 MiB sequential one at a time; caches empty (simulated)"
        )
        columns = ["model", "what it is", "IOPS QD1", "ms QD1", "IOPS QD32"]
        columns += ["read MB/s", "write MB/s"]
        print_table(console, title, columns, [astuple(model) for model in self.models])


def library(local: Local, size: Bytes = _SIZE) -> list[ModelLine]:
    """Each model of the library with its expected figures on a file of ``size``, simulated in
    virtual time by the very device that is served."""
    return [_line(local, name, size) for name in flashdev.library(local)]


def _line(local: Local, name: str, size: Bytes) -> ModelLine:
    model = flashdev.library_model(local, name)
    promise = flashdev.read_promise(local, name, ["--size", str(int(size))])
    points = {point["queue_depth"]: point for point in promise["random_read_8k"]}
    return ModelLine(
        name,
        model["title"],
        points[1]["iops"],
        points[1]["latency_ms_mean"],
        points[32]["iops"],
        promise["sequential_read_mb_per_s"],
        promise["sequential_write_mb_per_s"],
    )
