"""Flash devices, disks and block devices of the machine, for the pages; nothing is changed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from hotset.block import devices
from hotset.block.devices import Device
from hotset.core.errors import PrerequisiteError, code_of
from hotset.core.machines import names as connect
from hotset.core.machines.base import Machine
from hotset.disk import flash_devices, lifecycle, prerequisites
from hotset.disk.flash_devices import FlashDevice
from hotset.monitoring import tier_status
from hotset.monitoring.tier_status import DiskStatus
from hotset.tier import kinds
from hotset.tier.base import TierKind

T = TypeVar("T")


class BackendError(PrerequisiteError):
    """The machine cannot be looked at; the message says why."""


@dataclass(frozen=True, slots=True)
class Backend:
    """The flash devices that are set up on a machine, and its block devices."""

    flash_devices: tuple[FlashDevice, ...]
    devices: tuple[Device, ...]

    def flash_on(self, path: str) -> FlashDevice | None:
        """The flash device that this device is, if it is set up as one."""
        device = self.device(path)
        names = {path} if device is None else {path, *map(str, (device.node, *device.by_id))}
        return next((flash for flash in self.flash_devices if str(flash.path) in names), None)

    def device(self, path: str) -> Device | None:
        """A device by any of its names."""
        return next(
            (
                device
                for device in self.devices
                if path in map(str, (device.path, device.node, *device.by_id))
            ),
            None,
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """The kinds of tier, with what a machine lacks for each; empty: nothing."""

    lacks: Mapping[TierKind, str]

    @property
    def choices(self) -> list[tuple[TierKind, str]]:
        """Each with what is to be read of it."""
        return [
            (kind, f"{kind}: this machine lacks {lack}" if lack else kind)
            for kind, lack in self.lacks.items()
        ]

    @property
    def first(self) -> TierKind | None:
        """The first that the machine can have; None: none."""
        return next((kind for kind, lack in self.lacks.items() if not lack), None)


async def backend(machine: str) -> Backend:
    """:raises BackendError: as the message says."""
    return await _on_machine(
        machine,
        lambda machine: Backend(
            tuple(flash_devices.list_all(machine)), tuple(devices.every(machine))
        ),
    )


async def offer(machine: str) -> Offer:
    """Check which kinds of cache the machine supports. Raises BackendError."""
    return await _on_machine(
        machine,
        lambda machine: Offer(
            {kind: "; ".join(prerequisites.lacking(machine, kind)) for kind in kinds.names()}
        ),
    )


async def flash_devices_of(machine: str) -> list[FlashDevice]:
    """The machine's flash devices. Raises BackendError."""
    return await _on_machine(machine, flash_devices.list_all)


async def disk_names(machine: str) -> list[str]:
    """The machine's accelerated disks. Raises BackendError."""
    return [disk.name for flash in await flash_devices_of(machine) for disk in flash.disks]


async def disks(machine: str) -> list[DiskStatus]:
    """The accelerated disks as ``hotset tier status`` has them. Raises BackendError."""
    states = await _on_machine(
        machine,
        lambda machine: lifecycle.inspect_each(
            flash_devices.list_disks(machine), lifecycle.inspect
        ),
    )
    return [tier_status.status_row(state) for state in states]


async def _on_machine(machine: str, inspect: Callable[[Machine], T]) -> T:
    def inspect_with() -> T:
        with connect.open_machine(machine) as opened:
            return inspect(opened)

    try:
        return await run_in_threadpool(inspect_with)
    except Exception as error:
        if code_of(error) is None:
            raise
        raise BackendError(str(error)) from None
