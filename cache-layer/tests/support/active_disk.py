"""A server whose disk is up, or down: what its commands answer."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.fake_machine import FakeMachine
from tests.support.dm_cache_lines import LINE

MIB = 2**20
UP = "hotset-data\t(252:3)\nhotset-data-meta\t(252:0)\nhotset-data-cache\t(252:1)\n"
FREE = json.dumps({"blockdevices": [{"name": "dm-3", "type": "dm", "mountpoints": []}]})


def server(up: bool = True, **more: str | int | Callable[[], str]) -> FakeMachine:
    return FakeMachine(
        {
            **more,
            "cat /etc/machine-id": "this\n",
            "sh -c 'dd if=/dev/disk/by-id/flash": f"1234567 1{' 0' * 8} 1\n",
            "dmsetup ls": UP if up else "No devices found\n",
            "dmsetup status": LINE,
            "lsblk": FREE,
            "test -e /etc/": 1,
            "test -d /run/systemd": 1,
            "blockdev --getsize64": str(1536 * MIB),
            **more,
        }
    )
