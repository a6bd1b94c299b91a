"""Tables that were written again or dropped since a warm-up was planned, or since they were pinned:
on the tests' own PostgreSQL and the file system that it lies on, before a cache that is a list."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import filesystem
from hotset.block.extents import Run, difference, union
from hotset.core import environment, errors
from hotset.core.errors import HotsetError
from hotset.core.machines.local import Local
from hotset.core.operation import Context
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.databases.base import TargetGoneError
from hotset.databases.postgres.product import PostgresDatabase
from hotset.disk import places
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice
from hotset.health import tier_now
from hotset.health.findings import Ask, Finding
from hotset.tier import pins
from hotset.tier.base import TierSpec, Warmup
from hotset.tier.division import Division, Owners, Part
from hotset.tier.filling import Filling
from hotset.tier.pins import Preferences, Share
from hotset.warmup import division, plan_store, text
from hotset.warmup import plan as planning
from hotset.warmup.commands import pins as operations
from hotset.warmup.commands import warmup
from hotset.warmup.plan import Request, _Maker
from hotset.warmup.targets import OWN, MountedView, PlanTarget
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = pytest.mark.database
MIB = 2**20
BLOCK = Bytes(65536)
SPEC = TierSpec("writeback", "hotset", BLOCK, Bytes(0), Bytes(256 * MIB), Bytes(0))
DISK = Disk("pg", "userspace", "oltp", PurePosixPath("/dev/origin"), SPEC, (), ())
ORDERS, LINES, STILL = "table:orders", "table:lines", "table:still"
SCHEMA = """
CREATE TABLE {0} (id int, words text);
INSERT INTO {0} SELECT i, repeat(md5(i::text), 20) FROM generate_series(1, 6000) AS i;
"""


@dataclass
class Cache:
    """One that keeps to pins, and takes at once what it is given."""

    kind: str = "userspace"
    spec: TierSpec = SPEC
    capacity: Blocks = field(default_factory=lambda: SPEC.cache.blocks(BLOCK))
    cached: list[Run] = field(default_factory=list)
    kept: Owners = field(default_factory=Owners)

    def is_active(self) -> bool:
        return True

    def has_ended(self) -> bool:
        return False

    def may_be_filled(self) -> bool:
        return True

    def resident(self) -> list[Run]:
        return self.cached

    def divisible(self) -> Cache:
        return self

    def owners(self) -> Owners:
        return self.kept

    def divide(self, owners: Owners, on_left: object = None) -> None:
        del on_left
        self.kept = owners

    def division(self) -> Division:
        none = Part("", *(Blocks(0),) * 4)
        return Division(BLOCK, self.capacity, self.capacity, none, none, (), Blocks(0))

    def fill(self, filling: Filling) -> Warmup:
        self.cached = union(self.cached, filling.runs)
        return Warmup("insert", Bytes(0), 1.0, 1.0, 1.0, 0, 0)


class View(MountedView):
    """Of the file system that the tests lie on, whose own blocks are not looked for."""

    def own(self) -> PlanTarget:
        return PlanTarget(OWN, 0, ([],), is_asked=False)


@dataclass
class Accelerated:
    """A disk with the tests' server on it; ``said`` is what operations had to say."""

    database: PostgresDatabase
    cache: Cache
    attached: AttachedDisk
    said: list[str] = field(default_factory=list)

    @property
    def context(self) -> Context:
        return Context(message=self.said.append, report=Reporter(quiet=True))

    @property
    def dsn(self) -> str:
        where = self.database
        return f"host={where.host} port={where.port} user={where.user} dbname={where.dbname}"

    def sql(self, *statements: str) -> None:
        with closing(self.database.session()) as session:
            for statement in (*statements, "CHECKPOINT"):
                session.script(statement)

    def write_anew(self) -> None:
        """The orders, as VACUUM FULL does; on the disk before the old file's place is free, which
        the file system would give it otherwise."""
        with closing(self.database.session()) as session:
            session.script("BEGIN; CLUSTER orders USING orders_by_id")
            Local().run(["sync"])
            session.script("COMMIT")
        self.sql()

    def server(self, dsn: str | None) -> Request:
        return Request("local", (), dsn=dsn, password=PASSWORD)

    def prefer(self, wanted: Preferences) -> None:
        report = Reporter(quiet=True)
        division.divide(self.attached, wanted, self.server(self.dsn), wanted.targets, report)
        pins.save(self.attached.machine, "pg", wanted)
        division.fetch(self.attached, report)

    def listed(self, dsn: str | None) -> text.Preferences:
        request = operations.Preferred(disk="pg", dsn=dsn)
        return operations.list_preferences(request, self.context)

    def health(self, dsn: str | None) -> list[Finding]:
        ask = Ask("local", "pg", "pins and shares")
        return tier_now.preferences(ask, self.attached, self.server(dsn))

    def warmed(self, **request: object) -> text.WarmupResult:
        return warmup.run(warmup.Run.model_validate(request), self.context)

    def missing(self, target: str) -> Sequence[Run]:
        """Of where it lies now."""
        with planning.looking_up(
            self.attached, Request("local", (target,), dsn=self.dsn, password=PASSWORD), []
        ) as maker:
            return difference(maker.runs(division.parse(target)), self.cache.cached)


@pytest.fixture
def disk(
    cluster: Cluster, empty: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Accelerated:
    number = cluster.root.stat().st_dev
    if Local().run(["filefrag", str(cluster.root / "data/PG_VERSION")], check=False).rc:
        pytest.skip("the tests' folder lies on a file system that tells no places of files")
    here = f"{os.major(number)}:{os.minor(number)}"
    monkeypatch.setattr(filesystem, "device_number", lambda *_: here)
    folder, device = PurePosixPath(cluster.root), PurePosixPath("/dev/origin")
    view = View(Local(), device, folder, "ext4", BLOCK, Bytes(2**60))
    flash = FlashDevice("main", PurePosixPath("/dev/flash"), Bytes(2**30), (), (DISK,))
    found = Accelerated(empty, Cache(), AttachedDisk(Local(), flash, DISK))

    @contextmanager
    def looking_up(_: object, request: Request, notes: list[str]) -> Iterator[_Maker]:
        with planning._server(request) as server:
            yield _Maker("local", DISK, view, server, notes)

    @contextmanager
    def disk_of(*_: object) -> Iterator[AttachedDisk]:
        yield found.attached

    monkeypatch.setattr(planning, "looking_up", looking_up)
    monkeypatch.setattr(places, "disk_of", disk_of)
    monkeypatch.setattr(AttachedDisk, "tier", found.cache)
    monkeypatch.setattr(pins, "FOLDER", PurePosixPath(tmp_path))
    monkeypatch.setattr(environment, "password", lambda: PASSWORD)
    found.sql(*(SCHEMA.format(name) for name in ("orders", "lines", "still")))
    found.sql("CREATE INDEX orders_by_id ON orders (id)")
    return found


def test_a_resumed_plan_warms_its_tables_where_they_lie_now(disk: Accelerated) -> None:
    """It said "cached now 100 %" of blocks that were nobody's any more."""
    disk.warmed(targets=[ORDERS], dsn=disk.dsn)
    assert not disk.missing(ORDERS)
    disk.write_anew()
    assert disk.missing(ORDERS)
    done = disk.warmed(resume="last")
    assert not disk.missing(ORDERS)
    assert (done.cached_share, done.not_known) == (1, "")
    assert any("is of other blocks than at" in line for line in disk.said)
    disk.said.clear()
    disk.warmed(resume="last")
    assert not any("other blocks" in line for line in disk.said)


def test_a_resumed_plan_leaves_out_what_is_gone(disk: Accelerated) -> None:
    disk.warmed(targets=[ORDERS, LINES], dsn=disk.dsn)
    disk.sql("DROP TABLE lines")
    assert disk.warmed(resume="last").cached_share == 1
    assert any("left out, as it is gone: table:lines" in line for line in disk.said)
    disk.sql("DROP TABLE orders")
    with pytest.raises(TargetGoneError, match="no such table"):
        disk.warmed(resume="last")


def test_of_a_plan_that_nobody_looks_up_again_it_is_not_known_where_its_tables_lie(
    disk: Accelerated,
) -> None:
    """Off line the server is down: what was planned is cached, and no more is said than that."""
    disk.warmed(targets=[ORDERS], dsn=disk.dsn)
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = f"host=127.0.0.1 port={nobody.getsockname()[1]} user=tester dbname=shop"
        done = disk.warmed(resume="last", dsn=away)
    assert "cannot connect" in done.not_known
    assert "where it lies now is not known" in done.to_text()
    assert "cached of what was planned" in done.figures()
    (note,) = (line for line in disk.said if "is not known" in line)
    assert "table:orders" in note
    plan = plan_store.find("last")
    assert not plan.looked_up


def test_pins_of_what_moved_or_is_gone_are_told(disk: Accelerated) -> None:
    """After VACUUM FULL and DROP both were listed as cached, and in order."""
    disk.prefer(Preferences((ORDERS, LINES), (), (Share(STILL, "10%", "50%"),)))
    assert {one.lies for one in disk.listed(disk.dsn).preferences} == {"where it was"}
    assert [one.state for one in disk.health(disk.dsn)] == ["ok"]
    disk.write_anew()
    disk.sql("DROP TABLE lines")
    found = disk.listed(disk.dsn)
    orders, lines, still = found.preferences
    assert (orders.lies, lines.lies, still.lies) == ("elsewhere", "gone", "where it was")
    assert lines.unused_bytes == lines.bytes
    assert orders.unused_bytes
    assert orders.unused_bytes > 0.9 * (orders.bytes or 0)
    shown = found.to_text()
    assert f"table:lines: it is gone, and {lines.bytes} are still kept for it" in shown
    refresh = f"`hotset warmup refresh --disk pg --dsn '{disk.dsn}'`"
    assert [line.rpartition(": ")[2] for line in disk.said] == [
        refresh,
        "`hotset warmup unpin table:lines --disk pg`",
    ]
    by_text = {one.text.partition(":  ")[0][:12]: one for one in disk.health(disk.dsn)}
    assert [one.state for one in by_text.values()] == ["warning", "warning"]
    assert [errors.command(one.remedies[0]) for one in by_text.values()] == [
        refresh,
        "`hotset warmup unpin table:lines --disk pg`",
    ]


def test_where_a_pinned_table_lies_is_not_known_without_its_server(disk: Accelerated) -> None:
    disk.prefer(Preferences((ORDERS,), (LINES,)))
    assert {one.lies for one in disk.listed(None).preferences} == {"not known"}
    (found,) = disk.health(None)
    assert found.state == "unknown"
    assert "where table:orders, table:lines lies now" in found.text


def test_a_server_that_has_nothing_on_the_disk_does_not_know_what_is_gone(
    disk: Accelerated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tier health --dsn` asks it about all disks of the machine."""
    disk.prefer(Preferences((ORDERS, LINES)))
    disk.sql("DROP TABLE lines")
    monkeypatch.setattr(filesystem, "device_number", lambda *_: "0:0")
    assert {one.lies for one in disk.listed(disk.dsn).preferences} == {"not known"}


def test_of_a_database_what_lies_on_the_disk_is_planned_and_the_rest_told(
    cluster: Cluster, disk: Accelerated
) -> None:
    """One tablespace on another disk had all of it refused."""
    elsewhere = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        cluster.hand_over(elsewhere)
        with closing(disk.database.session()) as session:
            session.script(f"CREATE TABLESPACE elsewhere LOCATION '{elsewhere}'")
        disk.sql("ALTER TABLE lines SET TABLESPACE elsewhere")
        for target, rows in ((f"database:{disk.database.dbname}", 1), (ORDERS, 0)):
            request = {"targets": [target], "dsn": disk.dsn, "origin_rate": "100MB/s"}
            found = warmup.plan(warmup.Plan.model_validate(request), disk.context)
            assert found.targets[0].bytes > 4 * MIB
            told = [note for note in found.notes if str(elsewhere) in note]
            assert len(told) == rows
            assert all("MiB of it lie on other file systems" in note for note in told)
        with pytest.raises(TargetGoneError, match="but on another file system"):
            disk.warmed(targets=[LINES], dsn=disk.dsn)
    finally:
        disk.sql("DROP TABLE lines", "DROP TABLESPACE elsewhere")
        shutil.rmtree(elsewhere)


def test_a_pinned_file_is_looked_for_without_any_server(disk: Accelerated, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(MIB))
    disk.prefer(Preferences((str(file),)))
    assert [one.lies for one in disk.listed(None).preferences] == ["where it was"]
    file.unlink()
    assert [one.lies for one in disk.listed(None).preferences] == ["gone"]
    with pytest.raises(HotsetError, match="No such file"):
        disk.prefer(Preferences((str(file), str(file) + "2")))
