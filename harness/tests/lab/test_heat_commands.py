"""Hit ratio, heat and explanations through the command line, on both of the kernel's tiers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

from hotset import cli
from hotset.block import devicemapper
from hotset.core.machines import names as connect
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.disk.sizing import KernelKind
from hotset.lab import lab as labs
from hotset.lab.lab import Lab
from hotset.tier import pins
from hotset.warmup.targets import parse
from tests.console_browser import Visitor, chromium, served

pytestmark = pytest.mark.lab

MIB = 1024**2
FLASH, ORIGIN = "heat-flash", "heat-origin"
MOUNT = "/run/heat"


@dataclass(frozen=True)
class Bench:
    """The command line and the machine that it works on."""

    machine: Machine
    state: str
    """Where the lab is found."""

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=200).stdout.strip()

    def hotset(self, *argv: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli.create(), list(argv))
        assert done.exit_code == code, (done.output, done.exception)
        return done.stdout

    def json(self, *argv: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.hotset(*argv, "--format", "json"))
        assert found["schema_version"] == 1
        return found

    def load(self, file: str, rw: str, requests: int) -> None:
        self.sh(
            f"fio --name=load --filename={MOUNT}/{file} --rw={rw} --bs=8k --direct=1"
            f" --ioengine=libaio --iodepth=8 --number_ios={requests} --output-format=terse"
            " > /dev/null"
        )


@pytest.fixture
def machine_with_both(emulated_lab: Lab) -> Iterator[Machine]:
    machine = emulated_lab.machine
    for name, start, mib in ((FLASH, 0, 256), (ORIGIN, 260, 256)):
        table = f"0 {mib * 2048} linear {labs.FLASH_DISK} {start * 2048}"
        devicemapper.make(machine, name, table)
    machine.run(["udevadm", "settle"])
    yield machine
    for name in (FLASH, ORIGIN):
        machine.run(["dmsetup", "remove", "--retry", name])


@pytest.fixture(params=["dm-cache", "bcache"])
def bench(
    machine_with_both: Machine,
    emulated_lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Bench]:
    """A disk called erp with a file system, `warm` and `cold` on it."""
    kind: KernelKind = request.param
    machine = machine_with_both
    bench = Bench(machine, str(emulated_lab.folder.parents[1]))

    monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(machine))
    devices = [PurePosixPath(f"/dev/disk/by-id/dm-name-{name}") for name in (FLASH, ORIGIN)]
    wanted = CreateRequest("erp", *devices, kind, "oltp", Bytes(96 * MIB), Bytes(16 * MIB))
    creation.create(machine, wanted, True, print)
    try:
        bench.sh(
            f"mke2fs -q -F -t ext4 -E nodiscard /dev/mapper/hotset-erp; mkdir -p {MOUNT};"
            f" mount -o noatime /dev/mapper/hotset-erp {MOUNT};"
            f" for name in warm cold; do dd if=/dev/urandom of={MOUNT}/$name bs=1M count=16"
            " conv=fsync status=none; done"
        )
        yield bench
    finally:
        bench.hotset("heat", "stop")
        bench.sh(f"umount {MOUNT}")
        lifecycle.destroy(
            machine, flash_devices.find_flash(machine, "erp"), True, lambda _: lambda _: None, print
        )


@pytest.mark.parametrize("bench", ["dm-cache"], indirect=True)  # bcache takes as long again
def test_the_console_counts_shows_where_it_is_hot_and_pins(bench: Bench, tmp_path: Path) -> None:
    with chromium() as browser, served(tmp_path, "vm", {"XDG_STATE_HOME": bench.state}) as console:
        visitor = Visitor(browser, console)
        page = visitor.log_in()

        def press(name: str) -> None:
            page.get_by_role("button", name=name, exact=True).click()
            page.wait_for_url("**/jobs/*")
            expect(page.locator("h1 .state")).to_have_text("done")

        visitor.inspect("/heat", "#heat .empty", tmp_path)
        press("Start counting erp")
        bench.load("warm", "randread", 600)
        bench.load("cold", "randread", 30)
        visitor.inspect("/heat", "svg.heat", tmp_path)
        first = page.locator("#heat tbody tr").first
        expect(first.locator("th")).to_have_text(f"{MOUNT}/warm")
        expect(page.get_by_text("The kernel's caches keep no pins")).to_be_visible()
        for verb, kept in (("Pin", (f"{MOUNT}/warm",)), ("Unpin", ())):
            press(f"{verb} {MOUNT}/warm")
            assert pins.read_preferences(bench.machine, "erp").pinned == kept
            page.goto("/heat")
        # A region of the disk is pinned as well.
        page.get_by_label("For each").select_option("extent")
        page.get_by_role("button", name="Show", exact=True).click()
        button = page.locator("#heat tbody tr").first.get_by_role("button", name="Pin region:")
        expect(button).to_be_visible()
        button.click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("h1 .state")).to_have_text("done")
        (region,) = pins.read_preferences(bench.machine, "erp").pinned
        pins.forget(bench.machine, "erp")
        assert parse(region).kind == "region"
        # What was counted is shown after the end of it as well.
        page.goto("/heat")
        press("Stop counting erp")
        visitor.inspect("/heat", "svg.heat", tmp_path)
        visitor.close()


def test_what_the_verbs_say(bench: Bench) -> None:
    assert bench.hotset("heat", "top", code=1) == "", "nothing counts yet, and nothing was kept"
    bench.hotset("heat", "start")
    bench.load("warm", "randread", 600)
    bench.load("cold", "randread", 30)
    report = bench.json("report", "hit-ratio", "--by", "file")
    rows = {row["name"].rpartition("/")[2]: row for row in report["rows"]}
    assert rows["warm"]["reads"] >= 590
    assert 28 <= rows["cold"]["reads"] <= 60
    for column in ("reads", "writes"):
        assert sum(row[column] for row in report["rows"]) == report["total"][column]
    assert "read hits + read misses" in report["denominator"]

    top = bench.json("heat", "top", "--count", "1")["rows"]
    assert [row["name"] for row in top] == [f"{MOUNT}/warm"]
    assert top[0]["heat"] == pytest.approx(rows["warm"]["reads"], rel=0.05)
    assert 0 <= top[0]["resident"] <= 1
    cells = bench.json("heat", "map", "--cells", "16")["cells"]
    assert sum(cell["bytes"] for cell in cells) == 256 * MIB
    assert sum(cell["heat"] for cell in cells) >= 630 * 0.9

    bench.hotset("warmup", "exclude", f"{MOUNT}/cold")
    said = bench.json("tier", "explain", "cold")
    assert said["preference"] == "excluded"
    assert said["dirty"] is None or 0 <= said["dirty"] <= said["resident"]
    assert (said["name"], said["bytes"]) == (f"{MOUNT}/cold", 16 * MIB)
    assert said["resident"] is not None
    assert said["next"]
    warm = bench.json("tier", "explain", f"{MOUNT}/warm")
    assert warm["times_average"] > said["times_average"]

    whole = bench.json("report", "hit-ratio")
    assert whole["total"]["used_bytes"] > 0
    lines = bench.hotset("report", "metrics").splitlines()
    assert lines[-1] == "# EOF"
    assert any(line.startswith('hotset_cache_used_bytes{disk="erp"') for line in lines)
    watched = bench.hotset("tier", "watch", "erp", "0.2", "2").splitlines()
    assert len(watched) == 3, "a head and two lines"
    assert bench.hotset("tier", "explain", "none", code=1) == ""
