"""Pins, exclusions and shares on hotset's own engine, as a user sets them: a cache of 32 MiB over a
disk of 192 MiB, on this computer's kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hotset.block.extents import Run, count, intersection
from hotset.core.clock import wait_until
from hotset.core.errors import RequestError
from hotset.core.machines import names as connect
from hotset.core.machines.base import Machine
from hotset.core.operation import Context
from hotset.core.units import Blocks, Bytes
from hotset.databases.base import TargetError
from hotset.disk import commands as tier
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle, places
from hotset.disk.create import CreateRequest
from hotset.monitoring.commands import heat
from hotset.tier.base import TierFailedError
from hotset.tier.division import Division
from hotset.tier.engine.tier import Userspace
from hotset.warmup.commands import pins, warmup
from tests.enclosed import enclosed
from tests.support.marks import needs_root

pytestmark = [pytest.mark.lab, needs_root]
MIB = 1024**2
BLOCK = 64 * 1024


@dataclass
class Disk:
    """An accelerated file system; ``said`` is what operations had to say."""

    machine: Machine
    folder: Path
    said: list[str] = field(default_factory=list)

    @property
    def tier(self) -> Userspace:
        tier = flash_devices.find(self.machine, "pg").tier
        assert isinstance(tier, Userspace)
        return tier

    @property
    def division(self) -> Division:
        return self.tier.division()

    @property
    def context(self) -> Context:
        return Context(message=self.said.append)

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script]).stdout.strip()

    def path(self, name: str) -> str:
        return str(self.folder / "mounted" / name)

    def write(self, name: str, mib: int) -> str:
        """Append to a file; returns its checksum."""
        self.sh(f"head -c {mib * MIB} /dev/urandom >> {self.path(name)}; sync -f {self.path(name)}")
        return self.sum(name)

    def sum(self, name: str) -> str:
        return self.sh(f"dd if={self.path(name)} bs=64K iflag=direct status=none | md5sum")

    def read_in_no_order(self, name: str) -> None:
        """Not as a scan, which takes the place of nothing that is wanted."""
        blocks = f"$(($(stat --format=%s {self.path(name)}) / {BLOCK}))"
        read = f"dd if={self.path(name)} of=/dev/null bs={BLOCK} count=1 iflag=direct status=none"
        self.sh(f"for at in $(seq 0 $(({blocks} - 1)) | shuf); do {read} skip=$at; done")

    def misses_of_reading(self, name: str) -> int:
        before = self.tier.counters().read_misses
        self.sum(name)
        return self.tier.counters().read_misses - before

    def cached_of(self, name: str) -> int:
        """Bytes."""
        from hotset.block import extents

        found = extents.of_files(self.machine, [self.path(name)])
        runs = extents.whole_runs(found, Bytes(BLOCK))
        return int(extents.count(extents.intersection(runs, self.tier.resident()))) * BLOCK

    def kill(self) -> None:
        """The engine ends, and is started again by whoever watches over it."""
        disk, folder = self.tier.path, self.folder / "mounted"
        # The loop device of before answers with errors for as long as it is mounted.
        self.sh(f"umount {folder}; kill -9 $(cat /run/hotset/engine/pg/pid)")
        mount = ["mount", str(disk), str(folder)]
        assert wait_until(lambda: self.machine.run(mount, check=False).rc == 0, 60, 0.1)

    def prefer(self, verb: Any, *names: str) -> None:  # noqa: ANN401 - operations have no base
        targets = [self.path(name) for name in names]
        request = pins.Fetch if verb is pins.pin_targets else pins.Prefer
        verb(request(targets=targets, disk="pg"), self.context)

    def misses_at(self, offset: int, length: int) -> int:
        """Of reading a part of the disk, past the page cache."""
        before = self.tier.counters().read_misses
        self.sh(
            f"dd if={self.tier.path} of=/dev/null bs=64K iflag=direct,skip_bytes,count_bytes"
            f" skip={offset} count={length} status=none"
        )
        return self.tier.counters().read_misses - before

    def cached_at(self, first: int, blocks: int) -> int:
        """Blocks of a part of the disk."""
        part = [Run(Blocks(first), Blocks(blocks))]
        return int(count(intersection(part, self.tier.resident())))

    def share(self, name: str, guarantee: str, limit: str) -> None:
        target = self.path(name)
        wanted = pins.ShareRequest(disk="pg", target=target, guarantee=guarantee, limit=limit)
        pins.share_target(wanted, self.context)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    for name, size in (("flash", 128), ("origin", 192)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size * MIB)
    with enclosed() as machine:
        monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(machine))
        there = Disk(machine, tmp_path)
        flash, origin = (PurePosixPath(tmp_path / name) for name in ("flash", "origin"))
        machine.run(["mke2fs", "-q", "-F", "-t", "ext4", str(origin)])
        wanted = CreateRequest("pg", flash, origin, "userspace", "oltp", Bytes(32 * MIB), Bytes(0))
        try:
            creation.create(machine, wanted, False, print)
            (tmp_path / "mounted").mkdir()
            there.sh(f"mount {there.tier.path} {tmp_path / 'mounted'}")
            yield there
        finally:
            machine.run(["umount", "-l", str(tmp_path / "mounted")], check=False)
            for flash in flash_devices.inventory(machine).flash_devices:
                lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, print)


def test_what_is_pinned_is_cached_as_it_grows_and_after_the_engine_was_killed(disk: Disk) -> None:
    disk.write("orders", 6)
    disk.write("archive", 100)
    disk.prefer(pins.pin_targets, "orders")
    said = f"MiB of {disk.path('orders')} pinned, "
    (line,) = (line for line in disk.said if said in line)
    assert line.partition(" of ")[0] == line.partition("pinned, ")[2].partition(" of ")[0]
    pinned = disk.division.pinned
    assert pinned.resident == pinned.blocks >= 6 * MIB // BLOCK
    for _ in range(2):
        disk.sum("archive")
    assert disk.misses_of_reading("orders") == 0
    whole = disk.write("orders", 3)
    pins.refresh(pins.Refresh(disk="pg"), disk.context)
    assert disk.division.pinned.blocks > pinned.blocks
    disk.sum("archive")
    assert disk.misses_of_reading("orders") == 0
    found = pins.list_preferences(places.DiskAndServer(disk="pg"), disk.context)
    (row,) = found.csv().splitlines()[1:]
    assert row.startswith(f"{disk.path('orders')},pinned,")
    assert "pinned 9." in " ".join(map(" ".join, disk.tier.report().tunables))
    # Killed, it knows at once what is pinned.
    disk.kill()
    disk.sum("archive")
    assert disk.misses_of_reading("orders") == 0
    assert disk.sum("orders") == whole
    disk.prefer(pins.unpin_targets, "orders")
    assert disk.said[-1] == f"{disk.path('orders')} is no longer pinned"
    assert disk.division.pinned.blocks == 0


def test_what_is_excluded_is_written_back_and_does_not_come_back(disk: Disk) -> None:
    whole = disk.write("archive", 12)
    assert disk.cached_of("archive") > 0
    disk.prefer(pins.exclude_targets, "archive")
    assert disk.said[-1].endswith(f"of {disk.path('archive')} excluded, 0 B of it cached now")
    assert disk.cached_of("archive") == 0
    assert disk.sum("archive") == whole
    assert disk.misses_of_reading("archive") > 0
    assert disk.cached_of("archive") == 0


@pytest.mark.night
def test_a_scan_takes_nothing_from_anothers_share(disk: Disk) -> None:
    disk.write("shop", 10)
    disk.write("log", 100)
    disk.share("shop", "40%", "100%")
    disk.share("log", "0%", "30%")
    for _ in range(3):
        disk.sum("shop")
    for _ in range(2):
        disk.sum("log")
    assert (
        f"{disk.path('log')} shared: guaranteed 0% of the cache, limited to 30%," in disk.said[-1]
    )
    shop, log = disk.division.shares
    assert shop.resident >= 10 * MIB // BLOCK
    assert log.resident <= log.most == int(disk.division.total * 0.3)
    assert disk.misses_of_reading("shop") == 0
    disk.share("log", "0%", "10%")
    assert disk.division.shares[1].resident <= disk.division.total // 10


@pytest.mark.night
@pytest.mark.parametrize("order", [("db", "db/stock"), ("db/stock", "db")])
def test_a_table_keeps_its_guarantee_inside_its_database_whichever_was_said_first(
    disk: Disk, order: tuple[str, str]
) -> None:
    """Once the database that was said first had all the table's blocks: the guarantee was void, and
    said second it was kept while the database went over its limit."""
    disk.sh(f"mkdir {disk.path('db')}")
    disk.write("db/stock", 6)
    disk.write("db/log", 40)
    disk.write("other", 60)
    limits = {"db": ("0%", "50%"), "db/stock": ("25%", "100%")}
    for name in order:
        disk.share(name, *limits[name])
    for _ in range(3):
        disk.sum("db/stock")
    for scan in ("db/log", "other", "db/log"):
        disk.sum(scan)
    assert disk.misses_of_reading("db/stock") == 0
    shares = {one.name: one for one in disk.division.shares}
    database, table = shares[disk.path("db")], shares[disk.path("db/stock")]
    assert database.resident <= database.most == disk.division.total // 2
    # A part of it, not beside it.
    assert database.resident >= table.resident >= 6 * MIB // BLOCK
    said = pins.list_preferences(places.DiskAndServer(disk="pg"), disk.context)
    quarter = int(disk.division.total * 0.25) * BLOCK
    known = {one.target: one.guaranteed_bytes for one in said.preferences}
    assert [known[name] for name in shares] == [quarter, quarter]
    # Guaranteed for both, and not twice: of the other half three quarters are to be had.
    disk.share("other", "70%", "100%")


@pytest.mark.night
def test_a_limit_below_what_is_pinned_inside_is_refused(disk: Disk) -> None:
    disk.sh(f"mkdir {disk.path('db')}")
    disk.write("db/stock", 6)
    disk.prefer(pins.pin_targets, "db/stock")
    with pytest.raises(RequestError, match=r"MiB pinned and guaranteed inside .*db do not fit: it"):
        disk.share("db", "0%", "10%")
    disk.share("db", "0%", "25%")
    disk.write("db/log", 40)
    disk.sum("db/log")
    (database,) = disk.division.shares
    assert database.resident <= database.most
    assert disk.misses_of_reading("db/stock") == 0
    disk.prefer(pins.exclude_targets, "db")
    assert any("which wins: they are not cached" in line for line in disk.said)


@pytest.mark.night
def test_a_warm_up_takes_the_place_of_all_but_what_is_pinned(disk: Disk) -> None:
    whole = disk.write("reports", 20)
    disk.write("stock", 4)
    disk.prefer(pins.pin_targets, "stock")
    disk.write("orders", 22)
    for _ in range(3):
        disk.read_in_no_order("orders")
    assert disk.cached_of("reports") < 10 * MIB
    done = warmup.run(warmup.Run(targets=[disk.path("reports")], disk="pg"), disk.context)
    assert done.cached_share == 1.0
    assert disk.misses_of_reading("stock") == disk.misses_of_reading("reports") == 0
    assert disk.sum("reports") == whole


@pytest.mark.night
def test_counting_that_never_ends_is_not_said_to_have_ended(disk: Disk) -> None:
    """`heat stop` once said "was not counted" of an engine that goes on counting."""
    heat.start(heat.Start(disk="pg"), disk.context)
    assert disk.said[-1].startswith("disk pg: was being counted already, and goes on, in ")
    heat.stop(places.OneDisk(disk="pg"), disk.context)
    still = "disk pg: still counted, as hotset's own engine always counts: nothing changed"
    assert disk.said[-1] == still


@pytest.mark.night
def test_what_cannot_be_is_refused_and_changes_nothing(disk: Disk) -> None:
    disk.write("orders", 6)
    disk.write("archive", 60)
    disk.prefer(pins.pin_targets, "orders")
    with pytest.raises(RequestError, match=r"6[\d.]+ MiB pinned .* of a cache of 32 MiB"):
        disk.prefer(pins.pin_targets, "archive")
    with pytest.raises(RequestError, match="guaranteed do not fit"):
        disk.share("archive", "90%", "100%")
    with pytest.raises(RequestError, match="more than the limit"):
        disk.share("archive", "20%", "10%")
    with pytest.raises(TargetError, match="No such file"):
        disk.prefer(pins.pin_targets, "nothing")
    found = pins.list_preferences(places.DiskAndServer(disk="pg"), disk.context)
    assert [one.target for one in found.preferences] == [disk.path("orders")]
    # One that has gone meanwhile does not stand in the way of others.
    disk.sh(f"rm {disk.path('orders')}")
    pins.refresh(pins.Refresh(disk="pg"), disk.context)
    assert "left as it was looked up last" in disk.said[-1]


@pytest.mark.night
def test_a_part_of_the_disk_is_pinned_or_excluded(disk: Disk) -> None:
    """Also while no file system is on the disk that anybody could name a file of."""
    disk.sh(f"umount {disk.folder}/mounted; wipefs -qa {disk.tier.path}")
    scanned = 128 * MIB
    # It begins and ends in the middle of a block, which is pinned as a whole.
    pinned = f"region:{100 * MIB + 1}+{4 * MIB}"
    pins.pin_targets(pins.Fetch(targets=[pinned], disk="pg"), disk.context)
    assert disk.division.pinned.resident == disk.division.pinned.blocks == 4 * MIB // BLOCK + 1
    for _ in range(2):
        disk.misses_at(0, scanned)
    assert disk.misses_at(100 * MIB, 4 * MIB) == 0
    # Of what is excluded, a block that holds something else as well stays cacheable.
    excluded = f"region:{BLOCK // 2}+{8 * MIB}"
    pins.exclude_targets(pins.Prefer(targets=[excluded], disk="pg"), disk.context)
    whole = 8 * MIB // BLOCK - 1
    for _ in range(2):
        assert disk.misses_at(0, 9 * MIB) >= whole
        assert disk.cached_at(1, whole) == 0
    found = pins.list_preferences(places.DiskAndServer(disk="pg"), disk.context).csv()
    assert [row.split(",")[:2] for row in found.splitlines()[1:]] == [
        [pinned, "pinned"],
        [excluded, "excluded"],
    ]
    with pytest.raises(TargetError, match=r"beyond the end of"):
        pins.pin_targets(pins.Fetch(targets=["region:190MiB+3MiB"], disk="pg"), disk.context)
    with pytest.raises(TargetError, match=r"no file system of kind ext4 or xfs"):
        disk.prefer(pins.pin_targets, "orders")


@pytest.mark.night
def test_a_cache_does_not_become_too_small_for_what_is_pinned(disk: Disk) -> None:
    whole = disk.write("orders", 20)
    disk.prefer(pins.pin_targets, "orders")
    with pytest.raises(TierFailedError, match="pinned"):
        tier.resize(tier.Resize(disk="pg", cache="16MiB"), disk.context)
    # It goes on as it was, also when systemd or its own shell has to start it again.
    assert f"--cache {32 * MIB} " in disk.sh("cat /etc/hotset/engine/pg.sh")
    disk.kill()
    assert disk.division.total == 32 * MIB // BLOCK
    assert disk.misses_of_reading("orders") == 0
    assert disk.sum("orders") == whole
    tier.resize(tier.Resize(disk="pg", cache="24MiB"), disk.context)
    assert disk.division.total == 24 * MIB // BLOCK
    assert disk.misses_of_reading("orders") == 0
