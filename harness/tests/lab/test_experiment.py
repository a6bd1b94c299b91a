"""Whole runs of a small experiment through the command line, on both backends of the lab."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hotset.core.clock import wait_until
from hotset.core.machines.cleanup import read_journal
from hotset.core.machines.local import start_time
from hotset.core.record import SCHEMA_VERSION
from tests.console_browser import Visitor, chromium, served
from tests.support import processes

pytestmark = pytest.mark.lab

HOTSET = Path(sys.executable).with_name("hotset")
TINY = """
name = "tiny"
repeats = 1
[machine]
kind = "image"
[storage]
size = "640MiB"
[flash]
size = "1GiB"
[tier]
cache = "256MiB"
volume = "192MiB"
[tpcc]
warehouses = 1
users = 4
rampup_s = 1
duration_s = 6
[warmup]
probe_s = 4
probe_max_s = 15
samples = 10
[prices]
server = 6000
origin = 2500
flash_per_gb = 1.2
"""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State and archive of these tests; the image and database caches are the user's own."""
    folder = tmp_path_factory.mktemp("hotset")
    (folder / "tiny.toml").write_text(TINY)
    return folder


def environment(home: Path) -> dict[str, str]:
    return os.environ | {"XDG_STATE_HOME": str(home / "state"), "XDG_DATA_HOME": str(home / "data")}


def hotset(home: Path, *words: str, timeout_s: float = 400) -> subprocess.CompletedProcess[str]:
    return processes.run(
        [str(HOTSET), *words], cwd=home, env=environment(home), timeout_s=timeout_s
    )


def run_tiny(home: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    """The experiment of these tests, with its result as JSON."""
    words = [word for setting in settings for word in ("--set", setting)]
    return hotset(home, "experiment", "run", "tiny.toml", "--format", "json", *words)


@pytest.fixture(scope="session")
def loops_made() -> Iterator[dict[str, str]]:
    """The loop devices of databases that came while a test ran, by the first such test.

    They may be another worker's, or of whoever else runs hotset on this computer: these let go of
    theirs in time, which is waited for once, at the end.
    """
    made: dict[str, str] = {}
    yield made
    left = set(made)
    assert wait_until(lambda: not left & loops_of_databases(), 400), {
        loop: made[loop] for loop in left & loops_of_databases()
    }


@pytest.fixture(autouse=True)
def nothing_is_left(
    home: Path, loops_made: dict[str, str], request: pytest.FixtureRequest
) -> Iterator[None]:
    """After every test: no process, no mount, no disk image, no journal."""
    before = loops_of_databases()
    yield
    lab = home / "state/hotset/lab"
    assert read_journal(lab) == []
    assert list(lab.glob("*.img")) == []
    assert str(lab) not in Path("/proc/mounts").read_text()
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    assert str(lab) not in loops
    for loop in loops_of_databases() - before:
        loops_made.setdefault(loop, request.node.name)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and start_time(int(entry.name)):
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            assert str(lab).encode() not in words, words


def loops_of_databases() -> set[str]:
    """The loop devices that show a saved database image, each as the kernel counts what it gives
    the name to."""
    found = set()
    for device in Path("/sys/block").glob("loop*"):
        with suppress(OSError):
            if "/hotset/databases/" in (device / "loop/backing_file").read_text():
                found.add(f"{device.name} {(device / 'diskseq').read_text()}")
    return found


def until(condition: Callable[[], bool], process: subprocess.Popen[str], limit_s: float) -> None:
    came = wait_until(condition, limit_s, 0.2, lambda: process.poll() is not None)
    assert came, f"the run ended too early ({process.poll()}), or takes too long"


def start(home: Path, *words: str) -> tuple[subprocess.Popen[str], Path]:
    log = home / "log.txt"
    process = subprocess.Popen(
        [str(HOTSET), *words],
        env=environment(home),
        cwd=home,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=log.open("w"),
        start_new_session=True,
    )
    return process, log


ARMS = ["baseline", "accelerated", "all-flash"]


@pytest.mark.parametrize(
    ("machine", "tier"),
    [
        ("image", "userspace"),
        pytest.param("uml", "dm-cache", marks=pytest.mark.night),
    ],
)
def test_a_whole_run_and_its_result(home: Path, machine: str, tier: str) -> None:
    done = run_tiny(
        home, f"machine.kind={machine}", "tpcc.duration_s=6", f"arms={json.dumps(ARMS)}"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["schema_version"] == SCHEMA_VERSION
    assert result["state"] == "complete"
    assert (result["machine"]["kind"], result["tier"]["kind"]) == (machine, tier)
    assert result["tier"]["emulated"] == (machine == "image")
    measured = {arm["name"]: arm["repeats"][0] for arm in result["arms"]}
    assert list(measured) == ARMS
    for arm in measured.values():
        assert arm["nopm"] > 0
        assert arm["failed"] == 0
        assert sum(second["tpm"] for second in arm["series"]) > 0
        assert 4 < arm["preparation"]["seconds"] <= 15
        assert arm["preparation"]["read_bytes"] > 0
        assert sum(arm["preparation"]["reads_per_s"]) > 0
        assert arm["rampup_read_bytes"] is not None
    assert measured["baseline"]["hit_ratio"] is None
    assert measured["accelerated"]["hit_ratio"] > 0.95
    assert measured["accelerated"]["counters"]["read_hits"] > 0
    assert any(second["dirty_bytes"] for second in measured["accelerated"]["series"])
    tables = {part["name"]: part for part in measured["accelerated"]["parts"]}
    assert ("stock" in tables) == (machine == "image"), "the engine counts by itself"
    assert all(part["hit_ratio"] > 0.5 for part in tables.values() if part["reads"] > 1000)
    assert measured["baseline"]["parts"] == []
    assert result["command"][:4] == ["hotset", "experiment", "run", "tiny.toml"]
    assert [cost["arm"] for cost in result["costs"] if cost["price"] is not None] == ARMS
    assert result["warmup"]["differing_blocks"] == 0
    assert result["warmup"]["probe_hit_ratio"] > 0.95
    assert result["warmup"]["mb_per_s"] > 0.5 * result["warmup"]["origin_mb_per_s"]
    factor = result["factors"]["tpcc"]
    assert factor["ci_low"] <= factor["ratio"] <= factor["ci_high"]
    codes = {warning["code"] for warning in result["warnings"]}
    assert {"MODELLED_STORAGE", "FEW_REPEATS", "NOT_AUDITED"} <= codes

    run = result["run"]
    page = home / "data/hotset/runs" / run / "report.html"
    assert f"{factor['ratio']:.1f}" in page.read_text()
    shown = hotset(home, "runs", "show", "last", "--format", "json")
    assert json.loads(shown.stdout) == result
    listed = hotset(home, "runs", "list", "--format", "json")
    assert json.loads(listed.stdout)["runs"][0]["run"] == run


@pytest.mark.night
def test_a_cache_too_small_for_the_database_stops_at_the_probe(home: Path) -> None:
    done = run_tiny(
        home, "tier.cache=32MiB", 'arms=["accelerated"]', "warmup.order=heat", "warmup.learn_s=6"
    )
    assert done.returncode == 5, done.stderr
    assert "probe_hit_ratio" in done.stderr
    result = json.loads(hotset(home, "runs", "show", "last", "--format", "json").stdout)
    assert result["state"] == "failed"
    assert result["arms"] == []
    assert result["warmup"]["probe_hit_ratio"] < 0.95
    assert result["warmup"]["order"] == "heat"
    assert [one["state"] for one in result["phases"] if one["name"] == "learn"] == ["done"]
    assert "were accessed" in done.stderr


@pytest.mark.night
def test_an_interrupted_run_goes_on_where_it_stopped(home: Path) -> None:
    words = ("experiment", "run", "tiny.toml", "--set", 'arms=["all-flash", "baseline"]')
    process, log = start(home, *words)
    until(lambda: "baseline, repeat 1" in log.read_text(), process, 240)
    second = hotset(home, *words)
    assert second.returncode == 3, "one lab, one run"
    assert f"pid {process.pid}" in second.stderr
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, log.read_text()
    assert "interrupted" in log.read_text()
    # The refused second run left no record.
    interrupted = json.loads(hotset(home, "runs", "show", "last", "--format", "json").stdout)
    assert interrupted["state"] == "interrupted"

    done = hotset(home, *words, "--resume", interrupted["run"], "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["run"] == interrupted["run"]
    assert [arm["name"] for arm in result["arms"]] == ["all-flash", "baseline"]
    assert "all-flash, repeat" not in done.stderr, "that arm was done already"


@pytest.mark.night
def test_a_machine_that_dies_ends_the_run_without_a_result(home: Path) -> None:
    settings = ("--set", 'arms=["all-flash"]', "--set", "tpcc.duration_s=120")
    process, log = start(home, "experiment", "run", "tiny.toml", *settings)
    until(lambda: "tps" in log.read_text(), process, 240)
    machine = next(
        entry
        for entry in read_journal(home / "state/hotset/lab")
        if entry.get("process") == "image"
    )
    os.kill(machine["pid"], signal.SIGKILL)
    assert process.wait(60) == 4, log.read_text()
    result = json.loads(hotset(home, "runs", "show", "last", "--format", "json").stdout)
    assert (result["state"], result["arms"]) == ("failed", [])


@pytest.mark.night
def test_what_a_killed_run_leaves_is_cleared(home: Path) -> None:
    process, log = start(home, "experiment", "run", "tiny.toml")
    until(lambda: "baseline, repeat 1" in log.read_text(), process, 240)
    until((home / "state/hotset/lab/slow.img").exists, process, 60)
    process.kill()
    process.wait()
    status = json.loads(hotset(home, "lab", "status", "--format", "json").stdout)
    assert status["state"] == "left over"
    assert any(one["alive"] for one in status["processes"])
    cleared = hotset(home, "lab", "down")
    assert cleared.returncode == 0
    assert "ended image" in cleared.stderr


@pytest.mark.night
def test_the_modelled_disk_keeps_its_promise_through_the_whole_chain(home: Path) -> None:
    for _ in range(3):
        done = hotset(home, "disk", "calibrate", "--machine", "image", "--format", "json")
        # Where others take the CPU the disk is late, and hotset says so.
        if "is the computer busy?" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    lines = json.loads(done.stdout)["lines"]
    assert len(lines) == 7
    for line in lines:
        assert abs(line["measured"] / line["asked"] - 1) <= 0.15, line


@pytest.mark.night
def test_the_alternatives_to_a_cache(home: Path) -> None:
    """Arms without a tier, and TPC-H beside TPC-C: every answer the same wherever the data lay."""
    done = run_tiny(
        home,
        'arms=["split-disks","in-memory","flash-volume"]',
        "storage.log_model=hdd-7200",
        "tpch.scale=0.01",
        "tpcc.duration_s=3",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    arms = {arm["name"]: arm["repeats"] for arm in result["arms"]}
    power = {arm["name"]: arm["repeats"] for arm in result["power_arms"]}
    assert list(arms) == list(power) == ["split-disks", "in-memory", "flash-volume"]
    assert all(repeats[0]["nopm"] > 0 for repeats in arms.values())
    answers = {
        name: {query["number"]: query["checksum"] for query in repeats[0]["queries"]}
        for name, repeats in power.items()
    }
    assert len(answers["in-memory"]) == 22
    assert answers["split-disks"] == answers["in-memory"] == answers["flash-volume"]
    # What memory serves waits for no disk.
    seconds = {
        name: sum(query["seconds"] for query in repeats[0]["queries"])
        for name, repeats in power.items()
    }
    assert seconds["in-memory"] < seconds["flash-volume"] / 2


@pytest.mark.night
def test_the_console_runs_it_and_shows_its_report(home: Path, tmp_path: Path) -> None:
    """One arm of the shipped demo, made as small as the others here."""
    small = (
        "arms=['accelerated']",
        "storage.size=640MiB",
        "flash.size=1GiB",
        "tier.cache=256MiB",
        "tier.volume=192MiB",
        "repeats=1",
        "tpcc.warehouses=1",
        "tpcc.users=4",
        "tpcc.rampup_s=1",
        "tpcc.duration_s=4",
        "warmup.probe_s=4",
        "warmup.probe_max_s=12",
        "tpch.scale=0.01",
    )
    where = {name: environment(home)[name] for name in ("XDG_STATE_HOME", "XDG_DATA_HOME")}
    with chromium() as browser, served(tmp_path, "local", where) as console:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        page.goto("/benchmarks")
        form = page.locator("form[action='/benchmarks/experiment']")
        form.locator("[name=file]").select_option("demo")
        form.locator("[name=set]").fill("\n".join(small))
        form.get_by_role("button", name="Run").click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("#tpm canvas")).to_be_visible(timeout=200_000)
        visitor.keep(tmp_path, "experiment")
        expect(page.locator("h1 .state")).to_have_text("done", timeout=200_000)
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Open the report").click()
        expect(opened.value.locator("h1")).to_contain_text("before and after a flash cache")
        visitor.inspect("/runs", "td.figure", tmp_path)
        expect(page.get_by_role("row", name="demo")).to_contain_text("complete")
        visitor.close()
