"""A server with an empty flash disk and a slow one, before and after its first disk is created."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk.create import CreateRequest
from tests.support.flash_devices import Keeping

MIB, GIB = 2**20, 2**30
FLASH, ORIGIN = (PurePosixPath(f"/dev/disk/by-id/virtio-{name}") for name in ("flash", "slow"))
WANTED = CreateRequest("oltp", FLASH, ORIGIN, "dm-cache", "oltp", Bytes(100 * MIB), Bytes(64 * MIB))


def server(**more: Any) -> Keeping:  # noqa: ANN401
    """A server with an empty flash disk of 1 GiB and a slow one with a file system."""
    there = Keeping()

    def lsblk() -> str:
        name = "vdb" if "vdb" in there.calls[-1].line else "sda"
        size = GIB if name == "vdb" else 2 * GIB
        return json.dumps(
            {
                "blockdevices": [
                    {
                        "name": name,
                        "type": "disk",
                        "size": size,
                        "mountpoints": [],
                        "vendor": "ACME    ",
                        "model": "SSD 9",
                        "serial": f"S-{name}",
                    }
                ]
            }
        )

    there.answers = {
        "id -u": "0\n",
        "cat /etc/machine-id": "this\n",
        "test -e": 1,
        "test -d /run/systemd": 1,
        "readlink -f /dev/disk/by-id/virtio-flash": "/dev/vdb\n",
        "readlink -f /dev/disk/by-id/virtio-slow": "/dev/sda\n",
        "lsblk": lsblk,
        "find -L": "/dev/disk/by-id/x\n",
        "wipefs --json /dev/sda": '{"signatures": [{"type": "ext4"}]}',
        "wipefs --json /dev/vdb": "",
        "dmsetup ls": "No devices found\n",
        "blockdev --getsize64 /dev/disk/by-id/virtio-slow": str(2 * GIB),
        "blockdev --getss": "512\n",
        **more,
    }
    return there


def with_flash(**more: Any) -> Keeping:  # noqa: ANN401
    """The same after a first disk was created."""
    first = server()
    creation.create(first, WANTED, False, lambda _: None)
    there = server(**more)
    there.files, there.sectors = first.files, first.sectors
    return there
