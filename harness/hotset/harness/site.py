"""Site: everything an arm needs to place a database and run on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.cachelayer.extents import Run
from hotset.cachelayer.flashdev import Model
from hotset.cachelayer.lab import Lab
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.storage import RealDisk, SlowDisk
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.tier import TierSpec
from hotset.cachelayer.units import Bytes
from hotset.harness.engines.postgres_server import Place, PostgresServer
from hotset.harness.progress import Reporter
from hotset.harness.spec import Spec
from hotset.reports.document import Workload

PLACE = Place(PurePosixPath("/run/hotset/data"), PurePosixPath("/run/hotset/volume"))
VOLUME_IN_DATA = "volume"
"""Where log and temporary space lie on the data's own disk, when there is no flash volume."""


@dataclass(frozen=True, slots=True)
class SavedDatabase:
    """One workload's database: its size, and its folder in the cluster."""

    size: Bytes
    folder: str


@dataclass(frozen=True, slots=True)
class SavedImage:
    """Loaded databases of a cleanly stopped server on a disk image. Each bears its workload's
    name."""

    path: Path
    databases: dict[Workload, SavedDatabase]
    version: str

    def size(self, workloads: Iterable[Workload]) -> Bytes:
        """What the databases of these workloads take."""
        return Bytes(sum(self.databases[one].size for one in workloads))


@dataclass(frozen=True, slots=True)
class Site:
    """The standing lab with an experiment on it."""

    spec: Spec
    tier: TierSpec
    lab: Lab
    storage: SlowDisk
    saved: SavedImage
    password: str
    report: Reporter
    hottest: tuple[Run, ...] = ()
    """Blocks that a warm-up takes first."""

    @property
    def machine(self) -> Machine:
        return self.lab.machine

    @property
    def takedown(self) -> Takedown:
        return self.lab.takedown

    def buffers(self, workloads: Iterable[Workload]) -> Bytes:
        """The server's buffers while these workloads are run."""
        return Bytes(int(self.saved.size(workloads) * self.spec.database.buffers_fraction))

    def server(self) -> PostgresServer:
        return PostgresServer(self.machine, PLACE, self.password)


def slow_disk(
    lab: Lab,
    device: str | None,
    model: Model | None,
    size: Bytes,
    time_scale: float,
    name: str = "slow",
) -> SlowDisk:
    """The real disk that was named, or a modelled one."""
    if device is not None:
        return RealDisk(lab.machine, PurePosixPath(device))
    assert model is not None
    return lab.ground.slow_disk(model, size, time_scale, name)


def mount(
    machine: Machine, takedown: Takedown, source: PurePosixPath, at: PurePosixPath, *options: str
) -> None:
    """Mount a device (or, with ``--bind``, a folder) and see that it is unmounted again."""
    machine.run(["mkdir", "-p", str(at)])
    machine.run(["mount", *options, str(source), str(at)])
    takedown.call(f"unmount {at}", lambda: machine.run(["umount", str(at)], timeout_s=600))


def volume_on_data(machine: Machine, takedown: Takedown) -> None:
    """Log and temporary space on the data's own disk, under the volume's path."""
    folder = PLACE.data / VOLUME_IN_DATA
    machine.run(["mkdir", "-p", str(folder)])
    mount(machine, takedown, folder, PLACE.volume, "--bind")
