"""Two who work on one flash device at once: by ``local`` and by ``ssh://localhost``, two timers,
the command line and the console. Whatever way they come, they meet the lock on the machine.

hotset is within the lab's machine, as on a server; the console is on this computer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath

import httpx
import pytest

from hotset.api import tokens
from hotset.core.machines import locks
from hotset.core.machines.base import Machine, Result, put_text
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.lab import image
from hotset.lab import lab as labs
from tests.console_browser import served
from tests.inside_guest import hotset, lab_with_hotset, remove_slow_disk, slow_disk

# One worker makes the machine, with hotset inside, for all of them.
pytestmark = [pytest.mark.lab, pytest.mark.night, pytest.mark.xdist_group("side_by_side")]

MIB = 1024**2
LOCAL, SSH = "local", "ssh://root@localhost"
DISKS = ("one", "two")
BUSY = "hotset is at work on"
KEY, KNOWN_HOSTS = PurePosixPath("/run/key"), PurePosixPath("/run/known_hosts")
BY_SSH = {"HOTSET_SSH_KEY": str(KEY), "HOTSET_KNOWN_HOSTS": str(KNOWN_HOSTS)}
ROUNDS = 2
LIMIT_S = 240


@dataclass(frozen=True)
class Server:
    """A server with hotset; ``state``: where the console finds it."""

    machine: Machine
    state: str

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=LIMIT_S).stdout.strip()

    def hotset(self, *words: str) -> Result:
        """A command of hotset's on the server itself, tried again for as long as another is at
        work."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            done = hotset(self.machine, *words, **BY_SSH)
            if BUSY not in done.stderr or time.monotonic() > deadline:
                assert done.rc == 0, f"{words}: {done.stderr[-2000:]}"
                return done

    def device(self, disk: str) -> PurePosixPath:
        return flash_devices.find(self.machine, disk).disk.device

    def soil(self, disk: str) -> str:
        """Write something new behind the file system; returns what of the disk is a checksum."""
        self.sh(
            f"dd if=/dev/urandom of={self.device(disk)} bs=1M seek=64 count=16 oflag=direct"
            " status=none"
        )
        return self.sum_of(self.device(disk))

    def sum_of(self, device: PurePosixPath) -> str:
        return self.sh(f"dd if={device} bs=1M iflag=direct status=none | md5sum")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    sizes = Bytes(2 * 1024 * MIB), Bytes(512 * MIB)
    with lab_with_hotset(tmp_path_factory, *sizes, {}) as lab:
        machine, built = lab.machine, image.find_built()
        assert built is not None
        put_text(machine, built.client_key.read_text(), KEY, 0o600)
        put_text(machine, f"localhost {built.host_key}\n", KNOWN_HOSTS)
        for name in DISKS:
            disk = slow_disk(machine, name, 96)
            machine.run(["mke2fs", "-q", "-F", "-t", "ext4", str(disk), "48M"])
        server = Server(machine, os.environ["XDG_STATE_HOME"])
        for name in DISKS:
            server.sh(
                f"mkdir -p /srv/{name}; mount {origin_of(name)} /srv/{name}; cd /srv/{name};"
                f" dd if=/dev/urandom of=data bs=1M count=16 status=none; cd /; umount /srv/{name}"
            )
        yield server
        for name in DISKS:
            remove_slow_disk(machine, name)


@pytest.fixture(autouse=True)
def no_flash(server: Server) -> Iterator[None]:
    yield
    if flash_devices.list_all(server.machine):
        server.hotset("tier", "destroy", "main", "--yes")


def create(disk: str) -> list[str]:
    devices = ["--flash", str(labs.FLASH_DISK), "--origin", str(origin_of(disk))]
    sizes = ["--cache", "128MiB", "--volume", "16MiB", "--database", "oltp"]
    return ["tier", "create", disk, *devices, *sizes, "--yes"]


def origin_of(disk: str) -> PurePosixPath:
    return PurePosixPath(f"/dev/disk/by-id/dm-name-{disk}")


def at_once(*work: Callable[[], object]) -> None:
    """All begin together; whatever fails there fails here."""
    with ThreadPoolExecutor(len(work)) as pool:
        for begun in [pool.submit(one) for one in work]:
            begun.result()


def no_part_has_two_owners(machine: Machine) -> None:
    (flash,) = flash_devices.list_all(machine)
    assert {disk.name for disk in flash.disks} == set(DISKS)
    parts = [*flash.volume, *(one for disk in flash.disks for one in disk.metadata + disk.cache)]
    ordered = sorted(parts, key=lambda part: part.start)
    for before, after in pairwise(ordered):
        assert before.end <= after.start, flash
    assert len({disk.record for disk in flash.disks}) == len(DISKS)


@pytest.mark.parametrize("way", [LOCAL, SSH])
def test_a_lock_that_was_taken_by_another_way_holds(server: Server, way: str) -> None:
    server.hotset(*create("one"), "--machine", way)
    for operation, disk in (("tier flush one", "one"), ("tier create third", None)):
        with locks.held(server.machine, operation, disk):
            refused = hotset(server.machine, "tier", "flush", "one", "--machine", way, **BY_SSH)
        assert refused.rc != 0
        assert f"{BUSY} {way.partition(':')[0]} already: `hotset {operation}`" in refused.stderr
    server.hotset("tier", "flush", "one", "--machine", way)


def test_both_ways_at_once_on_one_flash(server: Server) -> None:
    """Created, written to, warmed up by two timers, taken down, given back: each time two at once,
    one by either way."""
    for turn in range(ROUNDS):
        ways = (LOCAL, SSH) if turn % 2 else (SSH, LOCAL)

        def both(command: Callable[[str], list[str]], ways: tuple[str, str] = ways) -> None:
            words = [
                [*command(disk), "--machine", way] for disk, way in zip(DISKS, ways, strict=True)
            ]
            at_once(*(lambda one=one: server.hotset(*one) for one in words))

        both(create)
        no_part_has_two_owners(server.machine)
        written = {disk: server.soil(disk) for disk in DISKS}
        both(warm_up)
        both(lambda disk: ["tier", "deactivate", disk])
        both(lambda disk: ["tier", "activate", disk])
        assert {disk: server.sum_of(server.device(disk)) for disk in DISKS} == written
        both(lambda disk: ["tier", "detach", disk])
        assert {disk: server.sum_of(origin_of(disk)) for disk in DISKS} == written
        assert [flash.disks for flash in flash_devices.list_all(server.machine)] in ([], [()])
        assert locks.holders(server.machine) == []


def warm_up(disk: str) -> list[str]:
    """What a timer's unit runs."""
    where = ["--disk", disk, "--mount-point", f"/srv/{disk}", "--method", "offline"]
    return ["warmup", "run", f"/srv/{disk}/data", *where]


def test_two_timers_of_one_disk_take_turns(server: Server) -> None:
    server.hotset(*create("one"))
    written = server.soil("one")
    for _ in range(ROUNDS):
        words = [[*warm_up("one"), "--machine", way] for way in (LOCAL, SSH)]
        at_once(*(lambda one=one: server.hotset(*one) for one in words))
        assert server.sum_of(server.device("one")) == written
    server.hotset("tier", "detach", "one")
    assert server.sum_of(origin_of("one")) == written


def test_command_line_and_console_at_once_on_one_flash(server: Server, tmp_path: Path) -> None:
    token = tokens.create("test", Right.ADMIN)
    with (
        served(tmp_path, "uml", {"XDG_STATE_HOME": server.state}) as console,
        httpx.Client(
            base_url=f"{console.url}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            # The server closes what is idle, which may be at the moment of a request.
            limits=httpx.Limits(max_keepalive_connections=0),
        ) as client,
    ):
        for _ in range(ROUNDS):
            at_once(
                lambda: server.hotset(*create("one")),
                lambda: through(client, "tier/create", asked_for("two")),
            )
            no_part_has_two_owners(server.machine)
            written = {disk: server.soil(disk) for disk in DISKS}
            at_once(
                lambda: server.hotset("tier", "flush", "two"),
                lambda: through(client, "tier/flush", {"disk": "two"}),
            )
            at_once(
                lambda: server.hotset("tier", "detach", "two"),
                lambda: through(client, "tier/detach", {"disk": "one"}),
            )
            assert {disk: server.sum_of(origin_of(disk)) for disk in DISKS} == written


def asked_for(disk: str) -> dict[str, object]:
    return {
        "disk": disk,
        "flash": str(labs.FLASH_DISK),
        "origin": str(origin_of(disk)),
        "cache": "128MiB",
        "volume": "16MiB",
        "database": "oltp",
        "yes": True,
    }


def through(client: httpx.Client, path: str, asked: dict[str, object]) -> None:
    """A job of the console's, begun again for as long as another is at work."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        begun = client.post(f"/{path}", json={**asked, "machine": "uml"})
        assert begun.status_code == 202, begun.text
        job = client.get(f"/jobs/{begun.json()['id']}").json()
        while job["state"] in ("queued", "running"):
            time.sleep(0.2)
            job = client.get(f"/jobs/{job['id']}").json()
        if BUSY not in str(job) or time.monotonic() > deadline:
            assert job["state"] == "done", job
            return
