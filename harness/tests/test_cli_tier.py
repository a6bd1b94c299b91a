"""``hotset tier``: what it prints and how it ends, without a kernel that has tiers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

import pytest
from typer.testing import CliRunner

from hotset.cachelayer import card as cards
from hotset.cachelayer import lifecycle, machines
from hotset.cachelayer.card import Card, Disk
from hotset.cachelayer.flash import Part
from hotset.cachelayer.lifecycle import Standing
from hotset.cachelayer.local import Local
from hotset.cachelayer.tier import Counters, Report, State, TierSpec
from hotset.cachelayer.units import Blocks, Bytes
from hotset.harness import tierview
from hotset.harness.cli import tier
from tests.cli_server import CommandLine

MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n * MIB) for n in (5, 64, 16)))
DISK = Disk("shop", "dm-cache", "oltp", PurePosixPath("/dev/disk/by-id/slow"), SPEC,
            (Part(Bytes(17 * MIB), Bytes(5 * MIB)),),
            (Part(Bytes(22 * MIB), Bytes(64 * MIB)),))  # fmt: skip
CARD = Card("main", PurePosixPath("/dev/disk/by-id/flash"), Bytes(256 * MIB),
            (Part(Bytes(MIB), Bytes(16 * MIB)),), (DISK,))  # fmt: skip
COUNTERS = Counters(90, 10, 30, 10, 5, 1, Blocks(33), Blocks(512), Blocks(1024))


def standing(state: State = "active", counters: Counters | None = COUNTERS) -> Standing:
    notes = () if state == "active" else ("the flash is gone",)
    return Standing(CARD, DISK, Report(state, counters, (("policy", "smq"),), notes), True)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[Standing]:
    """What `status` finds; the test fills it."""
    found: list[Standing] = []

    @contextmanager
    def opened(_: str) -> Iterator[Local]:
        yield Local()

    monkeypatch.setattr(machines, "opened", opened)
    monkeypatch.setattr(cards, "pairs", lambda _: [(one.card, one.disk) for one in found])
    monkeypatch.setattr(lifecycle, "look", lambda *_: found[0])
    return found


def test_status_as_json_csv_and_table(shown: list[Standing]) -> None:
    shown.append(standing())
    run = CliRunner()
    row = json.loads(run.invoke(tier.app, ["status", "--format", "json"]).stdout)["disks"][0]
    assert (row["disk"], row["state"], row["dirty_bytes"]) == ("shop", "active", 33 * 65536)
    assert (row["read_hit_ratio"], row["write_hit_ratio"], row["hit_ratio"]) == (
        0.9,
        0.75,
        120 / 140,
    )
    assert "hits / (hits + misses)" in row["hit_ratio_of"]
    assert row["bypassed"] is None
    text = run.invoke(tier.app, ["status", "--format", "csv"]).stdout
    only = next(csv.DictReader(io.StringIO(text)))
    assert tuple(only) == tierview.COLUMNS
    assert only["used_bytes"] == str(512 * 65536)
    table = run.invoke(tier.app, ["status"]).stdout.splitlines()
    assert table[0] == "shop: active (dm-cache, oltp)"
    assert "  cache       64.0 MiB, 32.0 MiB used, 2.1 MiB dirty" in table
    assert "  reads hit   90.0% (hits / (hits + misses) since the cache was made)" in table


def test_a_failed_tier_ends_with_code_4_after_its_state(shown: list[Standing]) -> None:
    shown.append(standing("failed", None))
    done = CliRunner().invoke(tier.app, ["status"])
    assert done.stdout.splitlines()[:2] == [
        "shop: failed (dm-cache, oltp)",
        "  ! the flash is gone",
    ]
    assert str(done.exception) == "failed: shop"
    row = tierview.status_row(shown[0])
    assert row["used_bytes"] is row["hit_ratio"] is row["read_hits"] is None, "never 0"


CREATE = ("tier", "create", "shop", "--flash", "/dev/null", "--origin", "/dev/zero",
          "--database", "oltp")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((*CREATE, "--cache", "lots"), 2, "--cache"),
        ((*CREATE[:-1], "web", "--cache", "1GiB"), 2, "--database"),
        ((*CREATE, "--cache", "1GiB", "--machine", "db1"), 2, "write local"),
        ((*CREATE, "--cache", "1GiB", "--machine", "vm"), 3, "hotset lab up"),
        ((*CREATE, "--cache", "1GiB"), 2, "/dev/zero: no such block device"),
        (("tier", "status", "shop"), 2, "no disk is accelerated"),
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
