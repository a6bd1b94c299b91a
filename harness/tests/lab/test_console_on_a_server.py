"""The console on a real kernel tier: the flash split, a warm-up planned and run, and watched.

And the command line on a terminal, before it overwrites a disk.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import httpx
import pytest
from playwright.sync_api import Page, expect

from hotset.block import devices
from hotset.block.devices import Device
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.lab.lab import Lab, LabSpec
from hotset.operations import remote
from hotset.tier import pins
from tests.console_browser import PHONE, Served, Visitor, chromium, faults, served
from tests.own_lab import own_lab
from tests.pseudo_terminal import HOTSET, Terminal

pytestmark = [pytest.mark.lab, pytest.mark.night]

MIB = 2**20
MOUNT = "/srv/pg"
TURNED_DOWN = 1
PARTITION = r"""
{ head -c 446 /dev/zero; printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\0\2\0'; head -c 48 /dev/zero
  printf '\125\252'; } > "$1"
blockdev --rereadpt "$1"
"""
"""Of 64 MiB, at 1 MiB, in a table of MS-DOS."""
WATCHERS, WATCHED_S = 50, 8


@dataclass(frozen=True)
class Backend:
    """A lab with a slow disk that holds a file system; ``state``: where the lab is found."""

    lab: Lab
    origin: PurePosixPath
    state: str

    @property
    def machine(self) -> Machine:
        return self.lab.machine


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    with own_lab(tmp_path_factory, LabSpec("uml", 2, Bytes(1024 * MIB), Bytes(192 * MIB))) as lab:
        machine = lab.machine
        slow = lab.backend.slow_disk("nvme-2024", Bytes(128 * MIB)).attach(lab.cleanup)
        machine.run(["mke2fs", "-q", "-t", "ext4", "-J", "size=4", str(slow)])
        machine.run(["mkdir", "-p", MOUNT])
        machine.run(["mount", str(slow), MOUNT])
        machine.run(
            ["dd", "if=/dev/urandom", f"of={MOUNT}/data", "bs=1M", "count=16", "status=none"]
        )
        machine.run(["umount", MOUNT])
        origin = devices.inspect(machine, slow).by_id[0]
        yield Backend(lab, origin, os.environ["XDG_STATE_HOME"])


@pytest.fixture
def console(backend: Backend, tmp_path: Path) -> Iterator[Served]:
    settings = remote.settings_file()
    settings.parent.mkdir(parents=True)
    settings.write_text(f'folders = ["{MOUNT}"]\n')
    with served(tmp_path, "uml", {"XDG_STATE_HOME": backend.state}) as found:
        yield found


def test_from_the_split_to_the_end_of_the_flash_device(
    backend: Backend, console: Served, tmp_path: Path
) -> None:
    machine = backend.machine
    with chromium() as browser:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        split(visitor, backend, tmp_path)
        (flash,) = flash_devices.list_all(machine)
        assert str(flash.path) == "/dev/disk/by-id/lab-flash"
        (disk,) = flash.disks
        assert (disk.name, disk.origin, disk.database) == ("pg", backend.origin, "oltp")
        assert disk.spec.mode == "writethrough", "as was asked for, not as the kind picks"
        share = disk.spec.cache / (disk.spec.cache + flash.volume_slice.size)
        assert 0.69 < share < 0.71, "as the slider stood"
        warm_up(visitor, tmp_path)

        # What it cached is hit, and the overview says so while it happens.
        visitor.inspect("/", "section.disk .answer", tmp_path)
        machine.run(["mount", str(disk.device), MOUNT])
        for _ in range(4):
            machine.run(
                ["dd", f"if={MOUNT}/data", "of=/dev/null", "bs=64k", "iflag=direct", "status=none"]
            )
        ratio = page.locator(".answer", has_text="in the last minute").locator("strong")
        expect(ratio).to_have_text("100 %")
        expect(page.locator("#charts canvas").first).to_be_visible()
        visitor.keep(tmp_path, "overview-under-load")
        hot_data(visitor, tmp_path)
        phone = Visitor(browser, console, viewport=PHONE, color_scheme="dark")
        phone.log_in()
        for path in ("/", "/disks"):
            phone.inspect(path, "section.disk", tmp_path)
        phone.close()
        cookies = {one["name"]: one["value"] for one in page.context.cookies()}
        page.goto("/runs")  # no longer a watcher
        assert cost_of_watchers(console, cookies) < 0.05
        machine.run(["umount", MOUNT])
        remembered(visitor, machine)
        to_the_end(visitor, machine, tmp_path)
        visitor.close()


def hot_data(visitor: Visitor, folder: Path) -> None:
    """User-Mode Linux counts no regions: said as what it is, not as an alarm, and why when tried.
    What is shown where the kernel counts is in test_heat_commands.py."""
    page = visitor.inspect("/heat", "#heat .empty", folder)
    expect(page.get_by_role("heading", name="Nothing is counted on pg yet")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Start counting pg").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("h1 .state")).to_have_text("failed")
    expect(page.locator("main")).to_contain_text("User-Mode Linux's has not")


@pytest.fixture
def used_disk(backend: Backend) -> Iterator[Device]:
    """A SCSI disk of the kernel's own with a partition that holds a file system."""
    machine = backend.machine
    machine.run(["modprobe", "scsi_debug", "dev_size_mb=112"])
    machine.run(["udevadm", "settle"])
    listed = ["lsblk", "--nodeps", "--noheadings", "--paths", "--output", "NAME,MODEL"]
    lines = machine.run(listed).stdout.splitlines()
    (node,) = (line.split()[0] for line in lines if "scsi_debug" in line)
    machine.run(["sh", "-c", PARTITION, "sh", node])
    machine.run(["udevadm", "settle"])
    machine.run(["mke2fs", "-q", "-t", "ext4", f"{node}1"])
    found = devices.inspect(machine, PurePosixPath(node))
    yield devices.inspect(machine, found.by_id[0])
    machine.run(["udevadm", "settle"])
    machine.run(["modprobe", "-r", "scsi_debug"])


def test_on_a_terminal_a_flash_of_another_server_is_taken_over_only_by_its_name(
    backend: Backend, used_disk: Device
) -> None:
    """Its server is gone: this one gets another name and forgets all that it knew."""
    machine, name = backend.machine, used_disk.path.name
    environment = {**os.environ, "XDG_STATE_HOME": backend.state, "TERM": "dumb"}

    def on_terminal(*words: str) -> Terminal:
        argv = [str(HOTSET), "tier", *words, "--machine", "uml"]
        return Terminal(argv, environment, columns=300)

    def asked(terminal: Terminal, typed: str) -> int:
        terminal.until_written(f"type {name} to go on: ")
        terminal.press(f"{typed}\n")
        return terminal.ended()

    origin = str(backend.origin)
    sizes = ("--cache", "64MiB", "--volume", "16MiB", "--database", "oltp", "--yes")
    create = ("create", "shop", "--flash", str(used_disk.path), "--origin", origin, *sizes)
    assert asked(on_terminal(*create), name) == 0
    assert on_terminal("deactivate", "shop").ended() == 0
    machine.run(["dmsetup", "remove", "--retry", "hotset-volume"])
    machine.run(["rm", "-r", "/etc/hotset"])
    machine.replace("the other server\n", PurePosixPath("/etc/hotset/host-id"))
    take_over = ("import", "--flash", str(used_disk.path))
    refused = on_terminal(*take_over)
    assert refused.ended() == 2
    assert (
        f"{used_disk.path} belongs to hotset-lab by its label; used by two servers"
        in refused.written
    )
    assert "to go on" not in refused.written
    label = flash_devices.read_flash(machine, used_disk.path)
    turned_down = on_terminal(*take_over, "--take-over")
    assert asked(turned_down, "shop") == TURNED_DOWN
    shown = f"{used_disk.path} (Linux scsi_debug, serial {used_disk.serial}, 112 MiB)"
    whose = f"it is flash device main of hotset-lab, disks: shop over {origin}"
    assert f"to be overwritten: the owner of {shown}: {whose}" in turned_down.written
    assert flash_devices.list_all(machine) == []
    assert flash_devices.read_flash(machine, used_disk.path) == label
    taken = on_terminal(*take_over, "--take-over")
    assert asked(taken, name) == 0
    assert "taken over from hotset-lab: never connect it there again" in taken.written
    again = on_terminal(*take_over, "--take-over")
    assert again.ended() == 0
    assert "to go on" not in again.written, "it is this server's own by now"
    assert asked(on_terminal("destroy", "shop", "--yes"), name) == 0
    machine.run(["rm", "-r", "/etc/hotset"])


def test_on_a_terminal_a_disk_is_shown_and_asked_for_by_name_before_it_is_overwritten(
    backend: Backend, used_disk: Device
) -> None:
    machine, name = backend.machine, used_disk.path.name

    def on_terminal(*words: str) -> Terminal:
        environment = {**os.environ, "XDG_STATE_HOME": backend.state, "TERM": "dumb"}
        argv = [str(HOTSET), "tier", *words, "--machine", "uml"]
        return Terminal(argv, environment, columns=300)

    def create(*words: str) -> Terminal:
        disks = ("--flash", str(used_disk.path), "--origin", str(backend.origin))
        sizes = ("--cache", "64MiB", "--volume", "16MiB", "--database", "oltp")
        return on_terminal("create", "shop", *disks, *sizes, *words)

    shown = f"{used_disk.path} (Linux scsi_debug, serial {used_disk.serial}, 112 MiB)"
    assert used_disk.serial
    refused = create()
    assert refused.ended() == 2
    assert f"{shown} is not empty: dos on it" in refused.written
    rehearsed = create("--yes", "--dry-run")
    assert rehearsed.ended() == 0
    assert "to go on" not in rehearsed.written, "nothing is overwritten"

    def asked(terminal: Terminal, typed: str) -> int:
        terminal.until_written(f"type {name} to go on: ")
        assert f"to be overwritten: {shown}: " in terminal.written
        terminal.press(f"{typed}\n")
        return terminal.ended()

    assert asked(create("--yes"), "lab-flash") == TURNED_DOWN
    assert devices.inspect(machine, used_disk.path) == used_disk
    assert flash_devices.list_all(machine) == []
    made = create("--yes")
    assert asked(made, name) == 0
    assert f"overwritten: {shown}: dos, partition {used_disk.parts[0]}" in made.written
    assert [flash.path for flash in flash_devices.list_all(machine)] == [used_disk.path]
    assert asked(on_terminal("destroy", "shop", "--yes"), "shop") == TURNED_DOWN
    assert flash_devices.list_all(machine) != []
    assert asked(on_terminal("destroy", "shop", "--yes"), name) == 0
    assert flash_devices.list_all(machine) == []


def split(visitor: Visitor, backend: Backend, folder: Path) -> None:
    """By the slider, reviewed, and only with the device's name."""
    page = visitor.inspect("/flash", "#f-flash", folder)
    page.select_option("#f-flash", "/dev/disk/by-id/lab-flash")
    page.select_option("#f-origin", str(backend.origin))
    page.fill("#f-disk", "pg")
    slider = page.locator("#f-cache_percent")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    expect(page.get_by_text("70 % cache")).to_be_visible()
    expect(page.locator("#split")).to_contain_text("mode writeback (for oltp)")
    page.select_option("#f-mode", "writethrough")
    expect(page.locator("#split")).to_contain_text("mode writethrough (asked for)")
    visitor.keep(folder, "split")
    page.get_by_role("button", name="Review").click()
    expect(page.locator("pre")).to_contain_text("hotset tier create")
    assert faults(page) == []
    visitor.keep(folder, "review")
    page.get_by_label("Type the flash device's name").fill("lab-flas")
    page.get_by_role("button", name="Set up the cache").click()
    expect(page.get_by_role("alert")).to_contain_text("nothing was done")
    assert flash_devices.list_all(backend.machine) == []
    page.get_by_label("Type the flash device's name").fill("lab-flash")
    page.get_by_role("button", name="Set up the cache").click()
    expect(page.locator("h1 .state")).to_have_text("done")


def warm_up(visitor: Visitor, folder: Path) -> None:
    page = visitor.inspect("/warmup", "#f-targets", folder)
    page.fill("#f-targets", f"{MOUNT}/data")
    page.get_by_text("Database, mount point").click()
    page.fill("#f-mount_point", MOUNT)
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#plan")).to_contain_text("to fetch")
    expect(page.get_by_role("row", name="data 16.")).to_be_visible()
    visitor.keep(folder, "plan")
    page.get_by_text("Pinned, excluded and shared").click()
    expect(page.get_by_text("Nothing is pinned, excluded or shared.")).to_be_visible()
    page.get_by_text("Schedules", exact=True).click()
    expect(page.get_by_text("No schedules on this machine.")).to_be_visible()
    page.get_by_role("button", name="Start warm-up", exact=True).click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("h1 .state")).to_have_text("done")
    expect(page.locator("dl.figures")).to_contain_text("100 %")
    visitor.keep(folder, "warmed")


def remembered(visitor: Visitor, machine: Machine) -> None:
    """A pin, and a schedule that is shown only."""
    page = visitor.page
    page.goto("/warmup")
    page.get_by_text("Pinned, excluded and shared").click()
    page.fill("#f-p-targets", f"{MOUNT}/data")
    page.get_by_role("button", name="Save").click()
    done(page)
    assert pins.read_preferences(machine, "pg").pinned == (f"{MOUNT}/data",)
    # A program is the command line's to name; the console takes hotset where it is installed.
    machine.run(["ln", "-sf", "/usr/bin/true", "/usr/local/bin/hotset"])
    page.goto("/warmup")
    page.get_by_text("Schedules", exact=True).click()
    for field, text in {
        "at": "Mon..Fri 07:00",
        "targets": f"{MOUNT}/data",
    }.items():
        page.fill(f"#f-s-{field}", text)
    page.check("#f-s-dry_run")
    page.get_by_role("button", name="Schedule", exact=True).click()
    done(page)
    expect(page.locator("pre")).to_contain_text("OnCalendar=Mon..Fri 07:00")
    expect(page.locator("pre")).to_contain_text(f"warmup run {MOUNT}/data --disk pg")


def to_the_end(visitor: Visitor, machine: Machine, folder: Path) -> None:
    """What the Disks page offers, and at last what the Flash page does."""
    page = visitor.page
    act(page, "/disks/pg/flush")
    act(page, "/disks/pg/deactivate")
    visitor.inspect("/disks", "section.disk .state.inactive", folder)
    act(page, "/disks/pg/activate")
    act(page, "/disks/pg/resize", cache="64MiB")
    assert flash_devices.list_disks(machine)[0].disk.spec.cache == 64 * MIB
    act(page, "/disks/pg/detach", typed="pg")
    visitor.inspect("/flash", "a[href='/flash/main/destroy']", folder)
    page.get_by_role("link", name="Destroy main").click()
    expect(page.locator("h1")).to_have_text("Destroy the flash device: main?")
    act(page, "/flash/main/destroy", typed="main")
    assert flash_devices.list_all(machine) == []


def act(page: Page, path: str, **fields: str) -> None:
    page.goto(path)
    for field, text in fields.items():
        page.fill(f"#f-{field}", text)
    page.locator("main form button").click()
    done(page)


def done(page: Page) -> None:
    page.wait_for_url("**/jobs/*")
    expect(page.locator("h1 .state")).to_have_text("done")


def cost_of_watchers(console: Served, cookies: dict[str, str]) -> float:
    """The share of one core that the console takes while so many watch."""

    async def one(client: httpx.AsyncClient, wanted: int = WATCHED_S // 2) -> None:
        samples = 0
        async with client.stream("GET", "/overview/live") as answer:
            async for line in answer.aiter_lines():
                samples += line == "event: sample"
                if samples == wanted:
                    return

    async def all_of_them() -> float:
        limits = httpx.Limits(max_connections=WATCHERS)
        async with httpx.AsyncClient(
            base_url=console.url, cookies=cookies, limits=limits, timeout=30
        ) as client:
            await one(client, 1)  # who comes first has the machine's connection made
            before, begun = cpu_s(console.pid), time.monotonic()
            await asyncio.gather(*(one(client) for _ in range(WATCHERS)))
            return (cpu_s(console.pid) - before) / (time.monotonic() - begun)

    # Elsewhere: this thread has the browser's loop.
    with ThreadPoolExecutor(1) as elsewhere:
        share = elsewhere.submit(asyncio.run, all_of_them()).result()
    print(f"{WATCHERS} watchers: {share:.1%} of one core")
    return share


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process and its children have had (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
