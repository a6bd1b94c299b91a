"""The contract of `hotset heat`, `hotset report` and `hotset tier watch` on the command line."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path, PurePosixPath

import pytest
from typer.testing import CliRunner, Result

from hotset import cli
from hotset.core import errors
from hotset.core.machines import names as connect
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.disk.lifecycle import TierRefusedError
from hotset.tier.base import Counters, Counting, Report, TierFailedError, TierSpec
from tests.cli_server import CommandLine

SPEC = TierSpec("writeback", "smq", Bytes(65536), Bytes(1), Bytes(1), Bytes(0))
DISK = Disk("erp", "dm-cache", "oltp", PurePosixPath("/dev/slow"), SPEC, (), ())
FLASH = FlashDevice("main", PurePosixPath("/dev/flash"), Bytes(1), (), (DISK,))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("heat", "start", "--half-life", "soon"), ("--half-life", "soon", "8h")),
        (("heat", "start", "--half-life", "0h"), ("--half-life", "0h")),
        (("heat", "top", "--by", "colour"), ("--by", "colour", "table")),
        (("heat", "map", "--cells", "0"), ("--cells",)),
        (("report", "hit-ratio", "--since", "noon"), ("--since", "noon", "08:00")),
        (("report", "hit-ratio", "--by", "volume", "--since", "2h"), ("--since", "boot")),
        (("report", "metrics", "--output", "/no/such/hotset.prom"), ("--output", "/no/such")),
        (("tier", "watch", "erp", "oltp", "1"), ("erp oltp", "INTERVAL")),
        (("tier", "watch", "0.01"), ("INTERVAL 0.01", "0.1")),
        (("tier", "watch", "1", "2.5"), ("COUNT 2.5", "whole")),
        (("tier", "watch", "1", "0"), ("COUNT 0",)),
        (("tier", "explain"), ("FILE|TABLE",)),
    ],
)
def test_bad_input_is_named(
    hotset: CommandLine, argv: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = hotset(*argv, env={"COLUMNS": "200"})
    assert (done.code, done.out) == (2, "")
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "argv",
    [
        ("heat", "top"),
        ("heat", "start"),
        ("report", "hit-ratio"),
        ("tier", "watch"),
        ("tier", "explain", "stock"),
    ],
)
def test_without_a_tier_it_is_said_how_to_make_one(
    hotset: CommandLine, argv: tuple[str, ...]
) -> None:
    done = hotset(*argv)
    assert (done.code, done.out) == (2, "")
    assert "hotset tier create" in done.err


class FakeTier:
    kind, spec, counting = "dm-cache", SPEC, Counting(32)

    def __init__(self, readings: int) -> None:
        self.left = readings
        self.hits = 0

    def is_active(self) -> bool:
        return True

    def has_ended(self) -> bool:
        return False

    def counters(self) -> Counters:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        self.hits += 10
        return Counters(self.hits, 0, 0, 0, 0, 0, Blocks(0), Blocks(1), Blocks(2))

    def report(self) -> Report:
        return Report("active", self.counters())

    def divisible(self) -> None:
        return None


@pytest.fixture
def on_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(Local()))
    known = flash_devices.Inventory((FLASH,))
    monkeypatch.setattr(flash_devices, "inventory", lambda _: known)


def called(monkeypatch: pytest.MonkeyPatch, readings: int, *argv: str) -> Result:
    tier = FakeTier(readings)
    monkeypatch.setattr(flash_devices.AttachedDisk, "tier", tier)
    return CliRunner().invoke(cli.create(), list(argv))


class DownTier(FakeTier):
    """One whose devices are not there, as whoever asks them finds out."""

    def __init__(self) -> None:
        super().__init__(0)

    def is_active(self) -> bool:
        return False

    def counters(self) -> Counters:
        raise TierFailedError("dmsetup: device not found")


@pytest.mark.usefixtures("on_a_tier")
@pytest.mark.parametrize(
    "argv",
    [
        ("report", "hit-ratio"),
        ("report", "hit-ratio", "--by", "file"),
        ("report", "hit-ratio", "--by", "volume"),
        ("heat", "start"),
        ("heat", "stop"),
        ("heat", "top"),
        ("heat", "map"),
        ("tier", "resident"),
        ("tier", "explain", "/srv/pg"),
        ("tier", "watch"),
        ("whatif", "flash"),
    ],
)
def test_a_disk_that_is_down_is_the_same_refusal_everywhere(
    monkeypatch: pytest.MonkeyPatch, argv: tuple[str, ...]
) -> None:
    """Some ended with code 4 and another program's words, `tier flush` with 2 and what to do."""
    monkeypatch.setattr(flash_devices.AttachedDisk, "tier", DownTier())
    done = CliRunner().invoke(cli.create(), list(argv))
    assert isinstance(done.exception, TierRefusedError)
    assert errors.of_command_line(done.exception).endswith(
        "is not active; to activate it: `hotset tier activate erp`"
    )


@pytest.mark.usefixtures("on_a_tier")
def test_watch_ends_well_at_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    done = called(monkeypatch, 4, "tier", "watch", "0.1")
    lines = done.stdout.splitlines()
    assert (done.exit_code, len(lines)) == (0, 4)
    assert lines[0].split()[:2] == ["time", "reads/s"]
    assert all("100.0 %" in line for line in lines[1:])


@pytest.mark.usefixtures("on_a_tier")
def test_watch_repeats_its_header_and_speaks_json_and_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    from hotset.monitoring import watch

    monkeypatch.setattr(watch, "HEADER_EVERY", 2)
    done = called(monkeypatch, 9, "tier", "watch", "erp", "0.1", "4")
    assert [line.split()[0] == "time" for line in done.stdout.splitlines()] == [
        True,
        False,
        False,
        True,
        False,
        False,
    ]
    done = called(monkeypatch, 9, "tier", "watch", "0.1", "2", "--format", "json")
    assert [json.loads(line)["hit_ratio"] for line in done.stdout.splitlines()] == [1.0, 1.0]
    done = called(monkeypatch, 9, "tier", "watch", "0.1", "2", "--format", "csv")
    lines = done.stdout.splitlines()
    assert (len(lines), lines[0].split(",")[0]) == (3, "at")
    assert len({line.count(",") for line in lines}) == 1


@pytest.mark.usefixtures("on_a_tier")
def test_metrics_are_kept_as_a_time_series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "hotset.prom"
    done = called(monkeypatch, 1, "report", "metrics", "--output", str(file))
    assert (done.exit_code, done.stdout) == (0, ""), done.exception
    assert file.read_text().endswith("# EOF\n")
    tier = FakeTier(9)
    tier.hits = 100
    monkeypatch.setattr(flash_devices.AttachedDisk, "tier", tier)
    done = CliRunner().invoke(
        cli.create(), ["report", "hit-ratio", "--since", "1h", "--format", "json"]
    )
    assert json.loads(done.stdout)["total"]["reads"] == 100, "110 now, 10 when the file was written"
