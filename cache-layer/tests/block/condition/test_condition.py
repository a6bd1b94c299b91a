"""What drives and pools say of themselves, in the words of smartctl, nvme, the kernel and lsblk; a
device that says nothing is not taken for a fresh one."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from hotset.block.condition import drives, thin_pools, wear
from hotset.block.condition.drives import NotKnownError
from hotset.block.condition.thin_pools import ThinPool
from hotset.core.machines.base import Command, PrerequisiteMissingError, Result
from tests.fake_machine import FakeMachine

FLASH = PurePosixPath("/dev/nvme0n1p3")


def tree(name: str, type_: str, *children: dict[str, Any]) -> dict[str, Any]:
    below = {"children": list(children)} if children else {}
    folder = "/dev/mapper" if type_ == "lvm" else "/dev"
    return {"name": name, "path": f"{folder}/{name}", "type": type_, **below}


NVME = tree("nvme0n1p3", "part", tree("nvme0n1", "disk"))
MIRROR = tree(
    "md0",
    "raid1",
    tree("sda2", "part", tree("sda", "disk")),
    tree("sdb2", "part", tree("sdb", "disk")),
)
THIN = tree("vg-lun", "lvm", tree("vg-pool-tpool", "lvm", tree("sdc", "disk")))


class Without(FakeMachine):
    """A machine on which some programs are not installed."""

    lacking: tuple[str, ...] = ()

    def execute(self, command: Command) -> Result:
        if command.argv[0] in self.lacking:
            raise PrerequisiteMissingError(f"{command.argv[0]} is not installed")
        return super().execute(command)


def machine(
    found: dict[str, Any] = NVME, lacking: tuple[str, ...] = (), **answers: object
) -> Without:
    usual = {
        "test -f": 1,
        "readlink": "/dev/node\n",
        "lsblk": json.dumps({"blockdevices": [found]}),
        "cat": 1,
    }
    # The first that fits is the answer.
    given = answers | {name: answer for name, answer in usual.items() if name not in answers}
    there = Without(given)  # type: ignore[arg-type]
    there.lacking = lacking
    return there


def smart(**found: object) -> str:
    return json.dumps({"json_format_version": [1, 0], **found})


def log(used: int, warning: int = 0) -> dict[str, object]:
    """NVMe's health log as smartctl 7.3 prints it."""
    return {
        "nvme_smart_health_information_log": {
            "critical_warning": warning,
            "temperature": 36,
            "available_spare": 100,
            "available_spare_threshold": 10,
            "percentage_used": used,
        }
    }


@pytest.mark.parametrize(
    ("printed", "used"),
    [
        (smart(**log(7)), 0.07),
        (smart(**log(0)), 0.0),
        (smart(endurance_used={"current_percent": 41}, **log(7)), 0.41),
        (smart(scsi_percentage_used_endurance_indicator=3), 0.03),
        (
            smart(
                ata_device_statistics={
                    "pages": [
                        {"number": 1, "table": []},
                        {
                            "number": 7,
                            "table": [
                                {
                                    "offset": 8,
                                    "name": "Percentage Used Endurance Indicator",
                                    "value": 83,
                                    "flags": {"valid": True},
                                }
                            ],
                        },
                    ]
                }
            ),
            0.83,
        ),
    ],
)
def test_each_bus_tells_its_wear(printed: str, used: float) -> None:
    (found,) = wear.measure(machine(smartctl=printed), FLASH)
    assert (found.drive, found.used, found.failing) == (PurePosixPath("/dev/nvme0n1"), used, "")


def test_a_drive_that_warns_is_heard() -> None:
    (found,) = wear.measure(machine(smartctl=smart(**log(12, 4))), FLASH)
    assert found.failing == "it warns: its reliability is degraded"
    (found,) = wear.measure(
        machine(smartctl=smart(smart_status={"passed": False}, **log(1))), FLASH
    )
    assert "says that it fails" in found.failing


def test_both_drives_of_a_mirror_are_asked() -> None:
    there = machine(
        MIRROR,
        **{
            "smartctl --json --xall /dev/sda": smart(scsi_percentage_used_endurance_indicator=1),
            "smartctl --json --xall /dev/sdb": smart(scsi_percentage_used_endurance_indicator=99),
        },
    )
    assert [one.used for one in wear.measure(there, FLASH)] == [0.01, 0.99]


def test_nvme_and_the_kernel_are_asked_where_smartctl_is_not_there() -> None:
    printed = json.dumps({"critical_warning": 0, "percent_used": 5})
    (found,) = wear.measure(machine(nvme=printed, lacking=("smartctl",)), FLASH)
    assert found.used == 0.05
    flash = tree("mmcblk0", "disk")
    there = machine(
        flash, lacking=("smartctl", "nvme"), **{"cat /sys/class/block/mmcblk0": "0x03 0x0b\n"}
    )
    (found,) = wear.measure(there, FLASH)
    assert found.used == 1.1


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (machine(smartctl=smart(smartctl={"exit_status": 2})), "does not tell how worn"),
        (machine(smartctl="no JSON"), "does not tell how worn"),
        (machine(lacking=("smartctl", "nvme")), "smartctl is not installed"),
        (machine(tree("loop0", "loop"), smartctl=smart(**log(1))), "is no drive"),
        (machine(lsblk="lsblk: not a block device"), "is not known"),
        (machine(**{"test -f": 0}), "is a file"),
        (machine(tree("mmcblk0", "disk"), **{"cat /sys": "0x00 0x00"}, smartctl="{}"), "not tell"),
    ],
    ids=["no log", "no answer", "no program", "a loop device", "no lsblk", "a file", "undefined"],
)
def test_a_device_that_says_nothing_is_not_taken_for_a_fresh_one(
    there: FakeMachine, says: str
) -> None:
    with pytest.raises(NotKnownError, match=says):
        wear.measure(there, FLASH)


POOL = "vg-pool-tpool: 0 204800 thin-pool 1 {meta}/100 {data}/1000 - {mode} no_discard_passdown"
OTHER = POOL.replace("vg-pool", "other").format(meta=99, data=999, mode="rw")


def pools(line: str) -> list[ThinPool]:
    return thin_pools.measure(
        machine(THIN, **{"dmsetup status": f"{OTHER}\n{line} queue_if_no_space - 1024\n"}), (FLASH,)
    )


def test_only_the_pools_below_a_device_are_told() -> None:
    (found,) = pools(POOL.format(meta=20, data=870, mode="rw"))
    assert (found.name, found.data, found.metadata) == ("vg-pool-tpool", 0.87, 0.2)
    assert not found.trouble
    # A kernel without a device mapper has no pools below what is none of its devices.
    assert thin_pools.measure(machine(NVME, **{"dmsetup status": 1}), (FLASH,)) == []


@pytest.mark.parametrize(
    ("mode", "trouble"),
    [("ro", "it is read-only"), ("out_of_data_space", "it has no room left"), ("rw", "")],
)
def test_a_pool_says_what_is_wrong_with_it(mode: str, trouble: str) -> None:
    (found,) = pools(POOL.format(meta=20, data=1000, mode=mode))
    assert found.trouble == trouble


def test_a_pool_that_failed_has_no_figures() -> None:
    found = thin_pools.parse("vg-pool-tpool: 0 204800 thin-pool Fail")
    assert (found.data, found.metadata, found.trouble) == (None, None, "it failed")


def test_what_is_no_status_of_a_pool_is_not_known() -> None:
    with pytest.raises(NotKnownError, match="not the status of a thin pool"):
        thin_pools.parse("vg-pool-tpool: 0 204800 linear 8:0 0")
    with pytest.raises(NotKnownError, match="are not known"):
        thin_pools.measure(machine(THIN, **{"dmsetup status": 1}), (FLASH,))


def test_what_a_device_lies_on_is_told_to_its_end() -> None:
    found = drives.below(machine(MIRROR), FLASH)
    assert [one.name for one in found if one.is_last] == ["sda", "sdb"]
