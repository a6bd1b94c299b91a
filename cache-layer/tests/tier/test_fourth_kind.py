"""A kind of tier that hotset does not have, added as one would be: a file and a line of the table.
What it has no word of its own for is nobody else's: not one of the other kinds is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest

from hotset.block.devicemapper import Place
from hotset.block.extents import Run, count, merge, of_runs, union
from hotset.block.transfer import Progress
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle, prerequisites, sizing
from hotset.disk import settings as retune
from hotset.disk.flash_devices import FlashError
from hotset.experiment import table_hits
from hotset.hitratio import region_counters
from hotset.hitratio.tracepoints import NotCountedError
from hotset.monitoring import explain, tier_status, top
from hotset.tier import kinds
from hotset.tier.base import Counters, Counting, Report, TierKind, TierSpec, Warmup
from hotset.tier.choice import Choice, ChoiceError, Sizes, Wanted, block_of
from hotset.tier.disk_tier import Contents, DiskTier, OnFlush, Resized
from hotset.tier.filling import Filling
from hotset.tier.kind import Kind, any_size
from hotset.tier.regions import NoRegions
from hotset.warmup import plan as database_blocks
from hotset.warmup import plan_store
from hotset.warmup.plan_store import SavedPlan
from tests.support.flash_devices import Keeping
from tests.support.new_disk import FLASH, GIB, MIB, ORIGIN, WANTED, server

DRAM: TierKind = "dram"  # type: ignore[assignment]


class Dram(DiskTier):
    """Caches in memory, and writes through: what the kernel has of it is the class's own."""

    kind = DRAM
    counting = Counting(48)
    standing: dict[str, list[Run]] = {}  # noqa: RUF012 - every tier of a disk sees it
    asked: list[Filling] = []  # noqa: RUF012

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath("/dev/mapper") / f"hotset-{self.place.name}"

    def prepare(self) -> PurePosixPath:
        return self.origin

    def create(self) -> PurePosixPath:
        self.standing.setdefault(self.place.name, [])
        return self.path

    def activate(self, on_usable: Callable[[], None] = lambda: None) -> None:
        on_usable()
        self.create()

    def is_active(self) -> bool:
        return self.place.name in self.standing

    def report(self) -> Report:
        return Report("active", self.counters()) if self.is_active() else Report("inactive", None)

    def fill(self, wanted: Filling) -> Warmup:
        self.asked.append(wanted)
        self.standing[self.place.name] = union(self.resident(), wanted.runs)
        size = count(wanted.runs).bytes(self.spec.block)
        wanted.on_progress(Progress(size, size, 1.0))
        return Warmup("insert", size, 1.0, 1.0, 100.0, 0, 0)

    def status_argv(self) -> list[str]:
        return ["cat", "/sys/dram"]

    def parse(self, line: str) -> Counters:
        hits, misses = map(int, line.split())
        used = count(self.resident())
        return Counters(hits, misses, None, None, None, None, Blocks(0), used, self.capacity)

    def devices(self) -> dict[str, PurePosixPath]:
        return {}

    @property
    def regions(self) -> NoRegions:
        return NoRegions("dram does not tell where requests go")

    def counters(self) -> Counters:
        return self.parse("30 10")

    def resident(self) -> list[Run]:
        return self.standing[self.place.name]

    def by_level(self) -> dict[int, list[Run]]:
        return {0: self.resident()}

    def contents(self) -> Contents:
        return Contents(merge(of_runs(self.resident(), self.spec.block)), [])

    def flush(
        self,
        progress: OnFlush = lambda _: None,
        *,
        final: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> int:
        del progress, final, warn
        return 0

    def settle(self) -> str | None:
        return None

    def retune(self) -> None:
        raise AssertionError("there is nothing to set")

    def may_be_dirty(self) -> bool:
        return False

    def empty(self) -> str:
        self.standing.pop(self.place.name, None)
        return "gone"

    def discard(self) -> None:
        self.empty()

    def follow_origin(self) -> Bytes:
        return Bytes(0)

    def resize(self, after: Resized, progress: OnFlush, warn: Callable[[str], None]) -> str | None:
        del after, progress, warn
        return "what is cached"


def choose(wanted: Wanted) -> Choice:
    size, why = block_of(wanted, any_size, Bytes(MIB))
    spec = TierSpec("writethrough", "fifo", size, Bytes(MIB), wanted.cache, wanted.volume)
    return Choice(spec, (why, "policy fifo: it has no other"))


def spec(sizes: Sizes) -> TierSpec:
    return sizes.in_blocks("fifo")


def only_fifo(policy: str) -> None:
    raise ValueError(f"dram has no {policy}")


def has_memory(machine: Machine) -> None:
    if machine.run(["cat", "/sys/dram"]).stdout.strip() == "none":
        raise PrerequisiteMissingError("the machine has no memory to spare")


def tier(machine: Machine, wanted: TierSpec, place: Place, identity: str) -> DiskTier:
    assert identity, "a disk has a UUID"
    return Dram(machine, wanted, place)


KIND = Kind(
    name=DRAM,
    in_kernel=True,
    made_by="mapper",
    takes_files=False,
    keeps_sectors=False,
    programs=("flock",),
    looks=(has_memory,),
    tier=tier,
    choose=choose,
    spec=spec,
    check_policy=only_fifo,
    divides=False,
    pauses=False,
    is_told_to_count=False,
    cache_min=Bytes(8 * MIB),
    counting=Dram.counting,
    counted_by="module",
    counted_since="since the module was loaded",
    what_next=lambda spec, full, resident: [f"{spec.policy}, {full}, {resident:.0%}"],
)


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The one line."""
    monkeypatch.setattr(kinds, "KINDS", [*kinds.KINDS, KIND])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Dram.standing.clear()
    Dram.asked.clear()
    yield
    Dram.standing.clear()


def created(**more: Any) -> tuple[Keeping, list[str]]:  # noqa: ANN401
    there, said = server(**{"blockdev --getss": "512\n", **more}), list[str]()
    creation.create(there, replace(WANTED, kind=DRAM), False, said.append)
    return there, said


def test_it_is_planned_and_created() -> None:
    there, said = created()
    assert "policy fifo: it has no other" in said
    assert said[0].startswith("mode writeback (for oltp)"), "said before the kind is asked"
    found = flash_devices.find(there, "oltp")
    flash, disk = found.flash, found.disk
    assert (disk.kind, disk.spec.policy, flash.devices) == ("dram", "fifo", "mapper")
    assert disk.device == PurePosixPath("/dev/mapper/hotset-oltp")
    assert json.loads(there.file())["disks"][0]["kind"] == "dram"
    assert Dram.standing == {"oltp": []}


def test_what_it_cannot_have_is_refused_in_its_own_name() -> None:
    with pytest.raises(ChoiceError, match="dram has no choice of policies"):
        sizing.choose(DRAM, "oltp", Bytes(GIB), Bytes(0), Bytes(GIB), None, None, "lru")
    with pytest.raises(PrerequisiteMissingError, match="dram needs: the machine has no memory"):
        created(**{"cat /sys/dram": "none\n"})
    lacks = prerequisites.lacking(server(**{"cat /sys/dram": "none\n"}), DRAM)
    assert list(lacks) == ["the machine has no memory to spare"]
    there, _ = created()
    another = replace(WANTED, disk="second", kind="userspace", origin=PurePosixPath("/dev/sdc"))
    there.answers["readlink -f /dev/sdc"] = "/dev/sdc\n"
    with pytest.raises(FlashError, match="has caches of the kernel's"):
        creation.create(there, another, False, lambda _: None)


def test_a_kind_that_is_in_no_table_is_named() -> None:
    there, _ = created()
    kinds.KINDS.pop()
    with pytest.raises(FlashError, match=r"kind: Input should be .*'userspace', not 'dram'"):
        flash_devices.parse(there.file())


def test_an_experiment_measures_it_without_the_tables_that_nobody_counts() -> None:
    """It is not told to count, and has no regions all the same."""
    tier = flash_devices.find(created()[0], "oltp").tier
    placed: Any = SimpleNamespace(tier=tier)
    assert table_hits.begin(placed) is None


def test_its_status_says_whose_word_it_is() -> None:
    there, _ = created()
    row = tier_status.status_row(lifecycle.inspect(flash_devices.find(there, "oltp")))
    assert (row.kind, row.read_hits, row.write_hits) == ("dram", 30, None)
    assert row.hit_ratio_of == "hits / (hits + misses) since the module was loaded"
    assert any(line.split()[:2] == ["module", "says"] for line in tier_status.status_lines([row]))
    (seen,) = top.inspect(there)
    assert (seen.kind, kinds.kind_of_name(seen.kind).counting) == ("dram", Counting(48))


def test_a_plan_is_carried_out_in_its_own_way() -> None:
    there, _ = created()
    found = flash_devices.find(there, "oltp")
    disk = found.disk
    capacity = disk.spec.cache.blocks(disk.spec.block)
    assert database_blocks.fill_limit(DRAM, capacity) == capacity
    assert database_blocks.growth_limit(DRAM, Blocks(100), Blocks(101)) == 75
    runs = (Run(Blocks(3), Blocks(5)),)
    words = ("p", "now", "local", "oltp", str(disk.origin), ("heat",), disk.spec.block, runs)
    how = {"method": "online", "samples": 4, "share": 0.9, "rate": Bytes(MIB)}
    plan = SavedPlan(*words, **how, left_out=Bytes(0))
    done = plan_store.perform(found, plan, Reporter(quiet=True))
    assert done.bytes == 5 * disk.spec.block
    (asked,) = Dram.asked
    assert (asked.way, asked.samples, asked.share, asked.rate) == ("online", 4, 0.9, MIB)
    assert plan_store.missing(found, [Run(Blocks(0), Blocks(4))]) == [Run(Blocks(0), Blocks(3))]


def test_what_nobody_counts_is_said_and_not_taken_for_another_kind_s() -> None:
    there, _ = created()
    found = flash_devices.find(there, "oltp").tier
    assert found.parse_devices("30 10") == {}
    assert found.divisible() is None
    before = list(there.commands)
    counters = region_counters.find_counters(found, "oltp")
    for ask in (counters.start, counters.read):
        with pytest.raises(NotCountedError, match="dram does not tell where requests go"):
            ask()
    assert there.commands == before, "the kernel is told nothing"


def test_a_policy_that_it_has_not_is_refused_with_a_way_out() -> None:
    there, _ = created()
    found = flash_devices.find(there, "oltp")
    with pytest.raises(FlashError, match="dram has no policy 'lru': give fifo") as refused:
        retune.retune(found, "lru", None, lambda _: None, lambda _: None)
    assert refused.value.remedies[0].parameters == {"kind": "userspace"}


def test_what_it_does_next_is_in_its_own_words() -> None:
    there, _ = created()
    found = flash_devices.find(there, "oltp")
    disk = found.disk
    words = explain.describe_outlook(DRAM, disk.spec, found.tier.counters(), resident=0.5)
    assert words[-1] == "fifo, False, 50%"


@pytest.mark.parametrize("name", kinds.names())
def test_what_a_kind_says_before_is_what_its_disks_do(name: TierKind) -> None:
    """Some is asked of both, where there is no disk yet and where there is one."""
    kind = kinds.kind_of_name(name)
    disk = replace(flash_devices.find(created()[0], "oltp").disk, kind=name)
    flash = flash_devices.FlashDevice("main", FLASH, Bytes(GIB), (), (disk,), devices=kind.made_by)
    tier = flash_devices.AttachedDisk(server(), flash, disk).tier
    assert tier.kind == name
    assert tier.path == kind.device(disk.name) == disk.device
    assert tier.origin == ORIGIN
    assert (tier.counting, tier.cache_min) == (kind.counting, kind.cache_min)
    assert (tier.divisible() is not None) == kind.divides
