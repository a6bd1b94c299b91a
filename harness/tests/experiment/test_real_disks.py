"""Which real disks an experiment may write over, and that nothing is touched if one may not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from hotset.cachelayer.block.devices import DeviceRefusedError
from hotset.harness.errors import USAGE, code_of
from hotset.harness.experiment.file.spec import Spec, read
from hotset.harness.experiment.site import real_disks
from tests.experiment.test_spec import GOOD
from tests.fake_machine import Answer, FakeMachine

GIB = 2**30
SLOW, LOG, FLASH = (f"/dev/disk/by-id/{name}" for name in ("ata-HDD_1", "ata-HDD_2", "nvme-F"))
NODES = {SLOW: "/dev/sda", LOG: "/dev/sdb", FLASH: "/dev/nvme0n1"}


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    file = tmp_path / "real.toml"
    file.write_text(GOOD)
    return read(
        file,
        (
            "machine.kind=local",
            "time_scale=1",
            f"storage.device={SLOW}",
            f"storage.log_device={LOG}",
            f"flash.device={FLASH}",
        ),
    )


def machine(more: Mapping[str, Answer] | None = None, size: int = 4 * GIB) -> FakeMachine:
    """Three empty disks; ``more`` answers first."""
    answers: dict[str, Answer] = dict(more or {})
    for path, node in NODES.items():
        tree = {"name": node[5:], "type": "disk", "size": size, "mountpoints": [None]}
        answers.setdefault(f"readlink -f {path}", node)
        answers.setdefault(
            f"lsblk --json --bytes --output NAME,TYPE,SIZE,MOUNTPOINTS {node}",
            json.dumps({"blockdevices": [tree]}),
        )
        answers.setdefault(f"wipefs --json {node}", "")
    return FakeMachine(answers)


def signed(kind: str) -> str:
    return json.dumps({"signatures": [{"device": "x", "type": kind}]})


def wiped(there: FakeMachine) -> list[str]:
    return [line.split()[-1] for line in there.commands if line.startswith("wipefs --all")]


def test_empty_disks_are_taken(spec: Spec) -> None:
    there = machine()
    real_disks.take(there, spec, yes=False)
    assert wiped(there) == list(NODES.values())


def test_an_experiment_without_real_disks_touches_none(spec: Spec) -> None:
    storage = spec.storage.model_copy(update={"device": None, "log_device": None})
    flash = spec.flash.model_copy(update={"device": None})
    there = machine()
    real_disks.take(there, spec.model_copy(update={"storage": storage, "flash": flash}), yes=True)
    assert there.commands == []


def test_what_lies_on_a_disk_is_given_up_only_when_told(spec: Spec) -> None:
    there = machine({"wipefs --json /dev/sdb": signed("xfs")})
    with pytest.raises(DeviceRefusedError) as refused:
        real_disks.take(there, spec, yes=False)
    assert f"{LOG} is not empty: xfs on it" in str(refused.value)
    assert refused.value.field == "storage.log_device"
    assert code_of(refused.value) == USAGE
    assert wiped(there) == []
    real_disks.take(there, spec, yes=True)
    assert wiped(there) == list(NODES.values())


MOUNTED = {"name": "sda", "type": "disk", "size": 4 * GIB, "mountpoints": ["/srv"]}


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            machine(
                {
                    "lsblk --json --bytes --output NAME,TYPE,SIZE,MOUNTPOINTS /dev/sda": json.dumps(
                        {"blockdevices": [MOUNTED]}
                    )
                }
            ),
            "sda is mounted on /srv",
        ),
        (machine(size=GIB), f"flash.device = {FLASH} has 1.0 GiB, the experiment needs 2.0 GiB"),
        (machine({f"readlink -f {LOG}": "/dev/sda"}), "are the same disk: /dev/sda"),
        (machine({f"test -b {FLASH}": 1}), f"{FLASH}: no such block device"),
    ],
)
def test_disks_that_not_even_yes_can_take(spec: Spec, there: FakeMachine, words: str) -> None:
    with pytest.raises(DeviceRefusedError) as refused:
        real_disks.take(there, spec, yes=True)
    assert words in str(refused.value)
    assert wiped(there) == []
