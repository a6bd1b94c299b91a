"""``hotset tier``: what it prints and how it ends, without a kernel that has tiers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from typer.testing import CliRunner

from hotset import cli
from hotset.block.devicemapper import Part
from hotset.core.errors import HotsetError
from hotset.core.machines import names as connect
from hotset.core.machines.base import CommandError, CommandTimeoutError, Result
from hotset.core.machines.local import Local
from hotset.core.machines.locks import MachineBusyError
from hotset.core.record import columns_of
from hotset.core.units import Blocks, Bytes
from hotset.disk import flash_devices, lifecycle, places
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice
from hotset.disk.lifecycle import DiskState
from hotset.monitoring import tier_status
from hotset.tier.base import Counters, Report, State, TierFailedError, TierSpec
from tests.cli_server import CommandLine

MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n * MIB) for n in (5, 64, 16)))
DISK = Disk(
    "shop",
    "dm-cache",
    "oltp",
    PurePosixPath("/dev/disk/by-id/slow"),
    SPEC,
    (Part(Bytes(17 * MIB), Bytes(5 * MIB)),),
    (Part(Bytes(22 * MIB), Bytes(64 * MIB)),),
)
FLASH = FlashDevice(
    "main",
    PurePosixPath("/dev/disk/by-id/flash"),
    Bytes(256 * MIB),
    (Part(Bytes(MIB), Bytes(16 * MIB)),),
    (DISK,),
)
COUNTERS = Counters(90, 10, 30, 10, 5, 1, Blocks(33), Blocks(512), Blocks(1024))


def disk_state(state: State = "active", counters: Counters | None = COUNTERS) -> DiskState:
    notes = () if state == "active" else ("the flash is gone",)
    return DiskState(FLASH, DISK, Report(state, counters, (("policy", "smq"),), notes), True)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[DiskState]:
    """What `status` finds; the test fills it."""
    found: list[DiskState] = []

    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(Local()))
    monkeypatch.setattr(
        flash_devices,
        "inventory",
        lambda _: flash_devices.Inventory(tuple(one.flash for one in found)),
    )
    monkeypatch.setattr(lifecycle, "inspect", lambda *_: found[0])
    return found


def test_status_as_json_csv_and_table(shown: list[DiskState]) -> None:
    shown.append(disk_state())
    run, app = CliRunner(), cli.create()
    row = json.loads(run.invoke(app, ["tier", "status", "--format", "json"]).stdout)["disks"][0]
    assert (row["disk"], row["state"], row["dirty_bytes"]) == ("shop", "active", 33 * 65536)
    assert (row["read_hit_ratio"], row["write_hit_ratio"], row["hit_ratio"]) == (
        0.9,
        0.75,
        120 / 140,
    )
    assert "hits / (hits + misses)" in row["hit_ratio_of"]
    assert row["bypassed"] is None
    text = run.invoke(app, ["tier", "status", "--format", "csv"]).stdout
    only = next(csv.DictReader(io.StringIO(text)))
    assert tuple(only) == columns_of(tier_status.DiskStatus)
    assert only["used_bytes"] == str(512 * 65536)
    table = run.invoke(app, ["tier", "status"]).stdout.splitlines()
    assert table[0] == "shop: active (dm-cache, oltp)"
    assert "  cache       64 MiB, 32 MiB used, 2.1 MiB dirty" in table
    assert "  reads hit   90.0 % (hits / (hits + misses) since the cache was made)" in table


def test_a_failed_tier_ends_with_code_4_after_its_state(shown: list[DiskState]) -> None:
    shown.append(disk_state("failed", None))
    done = CliRunner().invoke(cli.create(), ["tier", "status"])
    assert done.stdout.splitlines()[:2] == [
        "shop: failed (dm-cache, oltp)",
        "  ! the flash is gone",
    ]
    assert str(done.exception) == "failed: shop"
    row = tier_status.status_row(shown[0])
    assert row.used_bytes is row.hit_ratio is row.read_hits is None, "never 0"


CREATE = (
    "tier",
    "create",
    "shop",
    "--flash",
    "/dev/null",
    "--origin",
    "/dev/zero",
    "--database",
    "oltp",
)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*CREATE, "--cache", "lots"), 2, "--cache"),
        ((*CREATE[:-1], "web", "--cache", "1GiB"), 2, "--database"),
        ((*CREATE, "--cache", "1GiB", "--machine", "db1"), 2, "write local"),
        ((*CREATE, "--cache", "1GiB", "--machine", "vm"), 3, "hotset lab up"),
        ((*CREATE, "--cache", "1GiB"), 2, "/dev/zero: no such block device"),
        (("tier", "status", "shop"), 2, "disk 'shop' is not accelerated"),
        (("tier", "flush"), 2, "no disk is accelerated"),
    ],
)
def test_wrong_usage_is_one_line(
    hotset: CommandLine, words: tuple[str, ...], code: int, said: str
) -> None:
    done = hotset(*words)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_no_tier_at_all(hotset: CommandLine) -> None:
    done = hotset("tier", "status")
    assert (done.code, done.out) == (0, "no disk is accelerated here\n")
    assert json.loads(hotset("tier", "status", "--format", "json").out)["disks"] == []


@pytest.mark.parametrize(
    "problem",
    [
        CommandError("local", Result(("dmsetup", "create"), 1, "", "device-mapper: failed", 0.1)),
        CommandTimeoutError("local", ("dd",), 20),
        TierFailedError("the metadata are damaged"),
        MachineBusyError("hotset is at work on local already"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_one_bad_disk_keeps_no_other_from_its_users(
    monkeypatch: pytest.MonkeyPatch, problem: HotsetError
) -> None:
    disks = {name: replace(DISK, name=name) for name in ("accounts", "shop", "web")}
    tried: list[str] = []

    @contextmanager
    def found(_: str, name: str, *__: object, **___: object) -> Iterator[AttachedDisk]:
        yield AttachedDisk(Local(), FLASH, disks[name])

    def activate(attached: AttachedDisk, say: Callable[[str], None], **_: bool) -> None:
        disk = attached.disk
        tried.append(disk.name)
        if disk.name == "accounts":
            raise problem
        say(f"{disk.device} is active")

    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(Local()))
    monkeypatch.setattr(places, "disk_as_root", found)
    monkeypatch.setattr(
        flash_devices,
        "list_disks",
        lambda there: [AttachedDisk(there, FLASH, one) for one in disks.values()],
    )
    monkeypatch.setattr(lifecycle, "activate", activate)
    done = CliRunner().invoke(cli.create(), ["tier", "activate"])
    assert tried == ["accounts", "shop", "web"]
    assert str(problem) in done.stderr
    assert str(done.exception) == "not activated: accounts"
    assert isinstance(done.exception, HotsetError)
    assert done.exception.exit_code == 4
