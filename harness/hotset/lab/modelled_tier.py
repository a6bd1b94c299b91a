"""hotset's own cache engine between two device models, both in the engine's process: an
experiment's tier where the kernel has none.

The engine serves two files, the accelerated disk and the flash volume, with the timing of a slow
disk model behind a flash model; loop devices show them to the machine. It ends with the experiment
and keeps nothing, so it needs neither a flash device's label nor a service.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hotset.block import flashdev, loop
from hotset.block.flashdev import Model
from hotset.core.machines.base import Machine
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.tier.base import TierFailedError, TierSpec
from hotset.tier.engine import control as engine
from hotset.tier.engine.base import EngineTier
from hotset.tier.engine.control import Serving

from .slow_disk import ModelledStorage

CONTROL = "tier.sock"


class ModelledTier(EngineTier):
    """A tier whose engine runs on this computer, for as long as it is needed."""

    def __init__(
        self,
        local: Local,
        machine: Machine,
        spec: TierSpec,
        storage: ModelledStorage,
        flash: Path,
        flash_model: Model,
        folder: Path,
        cleanup: Cleanup,
    ) -> None:
        """:param flash: the file that stands for the flash device.

        :param folder: the lab's; the machine sees it under the same path.
        """
        self.machine = machine
        self.spec = spec
        self.control = PurePosixPath(folder / CONTROL)
        self._local = local
        self._storage = storage
        self._flash = flash
        self._flash_model = flash_model
        self._folder = folder
        self._cleanup = cleanup
        self._mark = cleanup.mark()
        self._devices: tuple[PurePosixPath, PurePosixPath] | None = None

    def prepare(self) -> PurePosixPath:
        """An empty cache; the accelerated disk itself shows the origin's files."""
        return self._start("--discard")

    def create(self) -> PurePosixPath:
        return self._devices[0] if self._devices else self._start()

    @property
    def path(self) -> PurePosixPath:
        assert self._devices is not None, "the tier was not created"
        return self._devices[0]

    @property
    def origin(self) -> PurePosixPath:
        return PurePosixPath(self._storage.backing)

    @property
    def volume(self) -> PurePosixPath:
        assert self._devices is not None, "the tier was not created"
        return self._devices[1]

    def _start(self, *more: str) -> PurePosixPath:
        mount, log = self._folder / "tier", self._folder / "tier.log"
        flashdev.serve(self._local, [*self.argv(), *more], mount, log, self._cleanup, "tier")
        data = loop.attach(self._local, mount / "data", self._cleanup)
        volume = loop.attach(self._local, mount / "volume", self._cleanup)
        self._devices = data, volume
        return data

    def argv(self) -> list[str]:
        """The serving command, its mount left out."""
        spec = self.spec
        sizes = {
            "metadata": spec.metadata,
            "cache": spec.cache,
            "volume": spec.volume,
            "block": spec.block,
        }
        flash_model = flashdev.model_argument(self._flash_model, self._folder, "flash")
        return [
            "tier",
            *self._storage.model_words("--origin-model"),
            "--origin",
            str(self._storage.lay_out(self._cleanup)),
            "--flash",
            str(self._flash),
            "--flash-model",
            flash_model,
            *(word for name, size in sizes.items() for word in (f"--{name}", str(int(size)))),
            "--policy",
            spec.policy,
            "--mode",
            spec.mode,
            "--control",
            str(self.control),
            "--volatile",
        ]

    def discard(self) -> None:
        self._devices = None
        self._cleanup.undo(self._mark)


def serving(machine: Machine, folder: Path) -> Serving | None:
    """The engine whose control socket lies in a folder; None where none answers."""
    if not (folder / CONTROL).exists():
        return None
    try:
        return engine.serving(machine, PurePosixPath(folder / CONTROL))
    except TierFailedError:
        return None


def identity(folder: Path) -> str:
    """Identify the tier whose control socket lies in a folder: each has a socket of its own. Empty
    where there is none."""
    try:
        return f"lab:{(folder / CONTROL).stat().st_mtime_ns}"
    except FileNotFoundError:
        return ""
