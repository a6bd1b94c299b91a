"""``hotset experiment plan``: the commands of a run in their order, and none of them run."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotset.block import programs
from hotset.core.machines.programs import PROGRAMS
from hotset.core.paths import repository_file
from hotset.experiment import plan as experiment_plan
from hotset.experiment import sequence
from hotset.experiment.file.spec import read
from hotset.experiment.sequence import Turn, order
from hotset.lab.machines import chroot
from hotset.reports.model.base import ArmName
from tests.cli_server import XDG, CommandLine, plain_environment

DEMO = str(repository_file("experiments/demo.toml"))
PROBE = "TPC-C, 16 users, 8 warehouses, probe, 4 s or until reads are level, 24 s at most"
STUB = '#!/bin/sh\necho "${0##*/}" >> "$HOTSET_TEST_STARTED"\n'


@dataclass(frozen=True)
class Planned:
    """A plan's output, the programs that it really started, and the files it left."""

    text: str
    error: str
    code: int
    started: set[str]
    left: list[Path]

    def arm(self, name: str, repeat: int) -> str:
        _, found, rest = self.text.partition(f"\n# {name}, repeat {repeat}: tpcc, tpch\n")
        assert found, f"{name}, repeat {repeat} is not planned"
        return rest.partition("\n# ")[0]


@pytest.fixture(scope="module")
def planned(cli_server: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """The demonstration planned for User-Mode Linux."""
    return plan(cli_server, tmp_path_factory.mktemp("plan"), "uml")


@pytest.fixture(scope="module")
def userspace(
    cli_server: subprocess.Popen[str], tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    """The demonstration planned for the cache in user space."""
    if chroot.lacking():
        pytest.skip(f"not planned where it cannot run: {chroot.lacking()}")
    return plan(cli_server, tmp_path_factory.mktemp("userspace"), "image")


def plan(cli_server: subprocess.Popen[str], root: Path, machine: str) -> Planned:
    """The demonstration planned with a tell-tale in place of every program."""
    stubs, started, temporary = root / "bin", root / "started", root / "tmp"
    for folder in (stubs, temporary):
        folder.mkdir()
    for name in PROGRAMS:
        (stubs / name).write_text(STUB)
        (stubs / name).chmod(0o755)
    # It is asked what it would run, and runs nothing.
    (stubs / programs.BOOT).unlink()
    (stubs / programs.BOOT).symlink_to(programs.find_boot())
    started.touch()
    own = {name: str(root / "xdg" / name) for name in XDG}
    hotset = CommandLine(
        cli_server,
        root,
        {
            **plain_environment(),
            **own,
            "PATH": f"{stubs}:/usr/bin:/bin",
            "TMPDIR": str(temporary),
            "HOTSET_TEST_STARTED": str(started),
            "HOTSET_FLASHDEV": str(stubs / "flashdev"),
        },
    )
    done = hotset(
        "experiment", "plan", DEMO, "--set", f"machine.kind={machine}", "--set", "tier.block=128KiB"
    )
    left = [path for top in (root / "xdg", temporary) for path in top.rglob("*") if path.is_file()]
    return Planned(done.out, done.err, done.code, set(started.read_text().split()), left)


def in_order(text: str, *parts: str) -> None:
    at = 0
    for part in parts:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} is missing, or stands too early"
        at = found + len(part)


def test_a_curve_is_planned_in_the_order_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    site: Any = SimpleNamespace(spec=read(Path(DEMO), ("tpcc.users=[1, 16]",)))
    placed: Any = SimpleNamespace(warmed=True)
    turn = Turn("accelerated", 2, ("tpcc",))
    sequence.on_arm(site, turn, placed, experiment_plan._Printed())
    assert [line.split(",")[1].split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "16",
        "16",
        "1",
    ], "the probe, then the users backwards in every second repeat"


def test_learning_is_planned_once_before_the_first_arm_that_takes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = ("warmup.order=heat", "tier.cache=256MiB", "machine.kind=uml")
    experiment_plan.plan(read(Path(DEMO), changes))
    steps = [line[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    for workload in ("tpcc", "tpch"):
        learned = f"learn which blocks are hot: {workload}"
        assert steps.count(learned) == 1
        assert steps[steps.index(learned) + 1] == f"accelerated, repeat 1: {workload}"


def test_policies_are_arms_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    if chroot.lacking():
        pytest.skip(f"not planned where it cannot run: {chroot.lacking()}")
    arms = 'arms=["baseline", "smq", "arc"]'
    experiment_plan.plan(read(Path(DEMO), (arms, "tier.policy=lru", "repeats=1")))
    said = capsys.readouterr().out
    turns = [part.partition(", ")[0] for part in said.split("\n# ")[1:] if ", repeat" in part]
    assert turns == ["baseline", "smq", "arc"]
    for policy in ("smq", "arc"):
        arm = said.partition(f"\n# {policy}, repeat 1")[2].partition("\n# ")[0]
        assert f"--policy {policy}" in arm
    assert "--policy lru" not in said, "the arms name theirs"


def test_the_output_is_data(planned: Planned) -> None:
    assert (planned.code, planned.error) == (0, "")
    assert planned.text.startswith("# the lab\n")


def test_every_arm_of_every_repeat_in_the_order_of_the_run(planned: Planned) -> None:
    wanted = order(read(Path(DEMO)))
    in_order(planned.text, *(f"\n# {arm}, repeat {repeat}: tpcc, tpch\n" for repeat, arm in wanted))


def test_the_lab_comes_first(planned: Planned) -> None:
    in_order(planned.text, "mmdebstrap ", "unshare ", "tgtd ", "# baseline, repeat 1")


def test_the_accelerated_arm(planned: Planned) -> None:
    for repeat in (1, 2):
        in_order(
            planned.arm("accelerated", repeat),
            "iscsiadm -m node",
            "--login",
            "dmsetup create hotset-data-meta --uuid HOTSET-private-hotset-data-meta\n",
            "< 0 10240 linear /dev/disk/by-id/lab-flash 1572864\n",
            "dmsetup create hotset-data-cache --uuid HOTSET-private-hotset-data-cache\n",
            "< 0 3407872 linear /dev/disk/by-id/lab-flash 1583104\n",
            "dmsetup create hotset-volume --uuid HOTSET-hotset-volume\n",
            "< 0 1572864 linear /dev/disk/by-id/lab-flash 0\n",
            "mount -o ro,noload ",
            "filefrag -v",
            "umount /run/hotset-experiment/origin",
            "--to /dev/mapper/hotset-data-cache --exclusive --runs /run/hotset/scratch/machine/",
            "hotset-engine compare",
            '<superblock uuid="" block_size="256" nr_cache_blocks="13312" policy="smq"',
            "/cache.xml -o /dev/mapper/hotset-data-meta",
            "dmsetup create hotset-data --uuid HOTSET-hotset-data\n",
            "cache /dev/mapper/hotset-data-meta /dev/mapper/hotset-data-cache /dev/disk/by-path/",
            " 256 2 metadata2 writeback smq 2 migration_threshold 2048\n",
            "mount -o noatime /dev/mapper/hotset-data /run/hotset-experiment/data",
            "mke2fs -q -F -t ext4",
            "mount -o noatime /dev/mapper/hotset-volume /run/hotset-experiment/volume",
            "cp -a /run/hotset-experiment/data/volume/. /run/hotset-experiment/volume",
            "pg_ctl -D /run/hotset-experiment/data/cluster",
            " start\n",
            PROBE,
            "TPC-C, 16 users, 8 warehouses, 3 s ramp-up, 12 s",
            "TPC-H driver: the 22 queries, scale 0.04",
            "pg_ctl -D /run/hotset-experiment/data/cluster -m immediate",
            "umount /run/hotset-experiment/volume",
            "umount /run/hotset-experiment/data",
            "--logout",
        )


def test_the_baseline_has_no_flash(planned: Planned) -> None:
    arm = planned.arm("baseline", 1)
    in_order(
        arm,
        "cp --sparse=always",
        "flashdev serve --model nas-2014",
        "--login",
        "mount -o noatime /dev/disk/by-path/",
        "mount --bind /run/hotset-experiment/data/volume",
        " start\n",
        "TPC-C, ",
        " stop\n",
        "umount",
        "--logout",
    )
    assert "dmsetup" not in arm
    assert "lab-flash" not in arm


def test_every_arm_is_prepared_by_the_same_load(planned: Planned) -> None:
    for arm in ("baseline", "accelerated", "all-flash"):
        in_order(planned.arm(arm, 1), " start\n", PROBE, "TPC-C, 16 users, 8 warehouses, 3 s ramp")
        assert planned.arm(arm, 1).count(", probe, ") == 1


@pytest.mark.parametrize("arm", ["baseline", "accelerated"])
def test_the_queries_alone_are_prepared_for_by_two_of_them(
    arm: ArmName, capsys: pytest.CaptureFixture[str]
) -> None:
    site: Any = SimpleNamespace(spec=read(Path(DEMO)))
    placed: Any = SimpleNamespace(warmed=None)
    sequence.on_arm(site, Turn(arm, 1, ("tpch",)), placed, experiment_plan._Printed())
    assert capsys.readouterr().out.splitlines() == [
        "tpch  $ TPC-H driver: probe, scale 0.04",
        "tpch  $ TPC-H driver: the 22 queries, scale 0.04",
    ]


def test_the_all_flash_arm_has_no_slow_disk(planned: Planned) -> None:
    arm = planned.arm("all-flash", 1)
    in_order(
        arm,
        "dmsetup create hotset-flat --uuid HOTSET-hotset-flat\n",
        "< 0 3407872 linear /dev/disk/by-id/lab-flash",
        "dmsetup create hotset-volume --uuid HOTSET-hotset-volume\n",
        "/dev/mapper/hotset-flat",
        "mount -o noatime /dev/mapper/hotset-flat /run/hotset-experiment/data",
        "mount -o noatime /dev/mapper/hotset-volume",
        " start\n",
        "TPC-C, ",
    )
    assert "iscsiadm" not in arm
    assert "cache /dev/mapper" not in arm


def test_the_accelerated_arm_on_the_userspace_tier(userspace: Planned) -> None:
    assert (userspace.code, userspace.error) == (0, "")
    in_order(userspace.text, "unshare --mount --pid", "# baseline, repeat 1", "flashdev serve")
    in_order(
        userspace.arm("accelerated", 1),
        "cp --sparse=always",
        "flashdev tier --origin-model nas-2014",
        "--flash-model pcie-flash-2014",
        "--policy hotset --mode writeback",
        "--discard",
        "losetup --find --show --direct-io=on",
        "image $ mount -o ro,noload /dev/loop0",
        "umount /run/hotset-experiment/origin",
        '{"read_origin": ',
        '{"warm": {"runs": [[0, ',
        "image $ mount -o noatime /dev/loop0 /run/hotset-experiment/data",
        "pg_ctl -D /run/hotset-experiment/data/cluster",
    )
    for arm in ("baseline", "accelerated", "all-flash"):
        assert "dmsetup" not in userspace.arm(arm, 1)
        assert "iscsi" not in userspace.arm(arm, 1)
    assert userspace.left == []
    # Whether root may mount is tried, in a namespace that ends with the attempt.
    assert userspace.started - {"sync", "unshare"} == set()


def test_no_password_is_shown(planned: Planned) -> None:
    assert "PASSWORD" not in planned.text
    assert "ALTER ROLE" not in planned.text


def test_nothing_is_left_behind(planned: Planned) -> None:
    assert planned.left == []


def test_no_program_of_the_plan_is_started(planned: Planned) -> None:
    # Whether this user may have namespaces is tried, in one that ends with the attempt.
    assert planned.started - {"sync", "unshare"} == set()


def test_a_plan_can_be_read(planned: Planned) -> None:
    """Of three repeats of three arms, a hundred lines an arm and repeat and as many for the lab."""
    assert len(planned.text.splitlines()) < 1100
