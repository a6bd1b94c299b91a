"""Site: everything an arm needs to place a database and run on it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.block.extents import Run
from hotset.block.flashdev import Model
from hotset.core.machines.base import CommandError, Machine
from hotset.core.machines.cleanup import Cleanup
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.databases.postgres.server import Place, PostgresServer
from hotset.lab.lab import Lab
from hotset.lab.slow_disk import RealDisk, SlowDisk
from hotset.reports.model.document import Workload
from hotset.tier.base import TierSpec

from ..file.spec import Spec

FOLDER = PurePosixPath("/run/hotset-experiment")
"""Not in /run/hotset, which is root's alone: a database server has a user of its own."""
PLACE = Place(FOLDER / "data", FOLDER / "volume")
VOLUME_IN_DATA = "volume"
"""Where log and temporary space lie on the data's own disk, when there is no flash volume."""

_BUSY_LIMIT_S = 20.0
_BUSY_POLL_S = 0.1


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
        """Sum the sizes of these workloads' databases."""
        return Bytes(sum(self.databases[workload].size for workload in workloads))


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
    def cleanup(self) -> Cleanup:
        return self.lab.cleanup

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
    name: str = "slow",
) -> SlowDisk:
    """The real disk that was named, or a modelled one."""
    if device is not None:
        return RealDisk(lab.machine, PurePosixPath(device))
    assert model is not None
    return lab.backend.slow_disk(model, size, name)


def mount(
    machine: Machine, cleanup: Cleanup, source: PurePosixPath, at: PurePosixPath, *options: str
) -> None:
    """Mount a device (or, with ``--bind``, a folder) and see that it is unmounted again."""
    machine.run(["mkdir", "-p", str(at)])
    machine.run(["mount", *options, str(source), str(at)])
    cleanup.call(f"unmount {at}", lambda: unmount(machine, at))


def unmount(machine: Machine, at: PurePosixPath) -> None:
    """Unmount what a server that has just stopped had open.

    `pg_ctl stop` waits for the server's pid file to go, not for its process: that ends a moment
    later, on a slow or busy machine a second later.

    :raises CommandError: somebody else uses it, or it cannot be written back.
    """
    deadline = time.monotonic() + _BUSY_LIMIT_S
    while (done := machine.run(["umount", str(at)], check=False, timeout_s=600)).rc:
        if "busy" not in done.stderr or time.monotonic() > deadline:
            raise CommandError(machine.kind, done)
        time.sleep(_BUSY_POLL_S)


def volume_on_data(machine: Machine, cleanup: Cleanup) -> None:
    """Log and temporary space on the data's own disk, under the volume's path."""
    folder = PLACE.data / VOLUME_IN_DATA
    machine.run(["mkdir", "-p", str(folder)])
    mount(machine, cleanup, folder, PLACE.volume, "--bind")
