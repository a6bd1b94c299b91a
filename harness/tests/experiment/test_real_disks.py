"""Which real disks an experiment may write over, and that nothing is touched if one may not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from hotset.block.devices import DeviceRefusedError
from hotset.core.errors import USAGE, code_of
from hotset.experiment.file.spec import Spec, read
from hotset.experiment.site import real_disks
from tests.experiment.test_spec import GOOD
from tests.fake_machine import Answer, FakeMachine

GIB = 2**30
SLOW, LOG, FLASH = (f"/dev/disk/by-id/{name}" for name in ("ata-HDD_1", "ata-HDD_2", "nvme-F"))
LSBLK = "lsblk --json --bytes --output NAME,TYPE,SIZE,RO,MOUNTPOINTS,VENDOR,MODEL,SERIAL "
NODES = {SLOW: "/dev/sda", LOG: "/dev/sdb", FLASH: "/dev/nvme0n1"}


@pytest.fixture
def spec(tmp_path: Path) -> Spec:
    file = tmp_path / "real.toml"
    file.write_text(GOOD)
    return read(
        file,
        (
            "machine.kind=local",
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
        tree |= {"model": "Disk", "serial": f"S-{node[5:]}"}
        answers.setdefault(f"readlink -f {path}", node)
        answers.setdefault(
            LSBLK + node,
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
    real_disks.take(there, spec, yes=False, say=print)
    assert wiped(there) == list(NODES.values())


def test_an_experiment_without_real_disks_touches_none(spec: Spec) -> None:
    storage = spec.storage.model_copy(update={"device": None, "log_device": None})
    flash = spec.flash.model_copy(update={"device": None})
    there = machine()
    real_disks.take(
        there, spec.model_copy(update={"storage": storage, "flash": flash}), yes=True, say=print
    )
    assert there.commands == []


def test_what_lies_on_a_disk_is_given_up_only_when_told(spec: Spec) -> None:
    there = machine({"wipefs --json /dev/sdb": signed("xfs")})
    with pytest.raises(DeviceRefusedError) as refused:
        real_disks.take(there, spec, yes=False, say=print)
    assert f"{LOG} (Disk, serial S-sdb, 4 GiB) is not empty: xfs on it" in str(refused.value)
    assert refused.value.field == "storage.log_device"
    assert code_of(refused.value) == USAGE
    assert wiped(there) == []
    real_disks.take(there, spec, yes=True, say=print)
    assert wiped(there) == list(NODES.values())


def test_each_disk_is_shown_and_one_that_holds_something_is_asked_for_by_name(spec: Spec) -> None:
    there, said, asked = machine({"wipefs --json /dev/sdb": signed("xfs")}), [], []

    def refuse(*words: str) -> None:
        asked.append(words)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        real_disks.take(there, spec, True, said.append, refuse)
    shown = f"{LOG} (Disk, serial S-sdb, 4 GiB): xfs"
    assert asked == [("ata-HDD_2", shown)]
    assert wiped(there) == []
    real_disks.take(there, spec, True, said.append, lambda *_: None)
    assert f"overwritten: {shown}" in said
    assert f"overwritten: {SLOW} (Disk, serial S-sda, 4 GiB): nothing known" in said
    # Whoever took one meanwhile keeps it: the kernel refuses, unless it is told not to look.
    assert not [line for line in there.commands if "--force" in line]


MOUNTED = {"name": "sda", "type": "disk", "size": 4 * GIB, "mountpoints": ["/srv"]}


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (
            machine(
                {
                    f"{LSBLK}/dev/sda": json.dumps({"blockdevices": [MOUNTED]}),
                }
            ),
            "sda is mounted on /srv",
        ),
        (machine(size=GIB), f"flash.device = {FLASH} has 1 GiB, the experiment needs 2 GiB"),
        (machine({f"readlink -f {LOG}": "/dev/sda"}), "are the same disk: /dev/sda"),
        (machine({f"test -b {FLASH}": 1}), f"{FLASH}: no such block device"),
    ],
)
def test_disks_that_not_even_yes_can_take(spec: Spec, there: FakeMachine, words: str) -> None:
    with pytest.raises(DeviceRefusedError) as refused:
        real_disks.take(there, spec, yes=True, say=print)
    assert words in str(refused.value)
    assert wiped(there) == []
