"""The real disks of an experiment: looked at before anything is written to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.block import devices
from hotset.block.devices import Confirm, Device, DeviceRefusedError
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

from ..file.spec import Spec


def take(
    machine: Machine,
    spec: Spec,
    yes: bool,
    say: Callable[[str], None],
    confirm: Confirm | None = None,
) -> None:
    """See that every disk the experiment names may be written over, then clear what lies on it, so
    that nobody finds the old behind the new.

    :param yes: give up what is on them.
    :param say: is told which they are.
    :param confirm: asked before one is overwritten that something lies on.
    :raises InUseError: somebody uses one; none was touched.
    :raises DeviceRefusedError: one is mounted, not empty, too small or misnamed; none was touched.
    """
    by_node: dict[PurePosixPath, tuple[str, Device]] = {}
    for key, path in spec.devices.items():
        device = devices.inspect(machine, PurePosixPath(path))
        devices.check(machine, device, "flash", yes, key)
        needed = _needed_bytes(spec, key)
        if device.size < needed:
            raise DeviceRefusedError(
                f"{key} = {path} has {device.size}, the experiment needs {needed} of it"
            )
        if device.node in by_node:
            raise DeviceRefusedError(
                f"{key} = {path} and {by_node[device.node][0]} are the same disk: {device.node}"
            )
        by_node[device.node] = key, device
    for _, device in by_node.values():
        devices.overwrite(device, say, confirm)
    for node in by_node:
        # Without --force: it claims the device (O_EXCL), so one who took it meanwhile keeps it.
        machine.run(["wipefs", "--all", str(node)])


def _needed_bytes(spec: Spec, key: str) -> Bytes:
    if key == "flash.device":
        return spec.flash.size
    return spec.tier.volume if key == "storage.log_device" else spec.storage.size
