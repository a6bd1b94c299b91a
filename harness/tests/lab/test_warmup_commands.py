"""Warm-ups on real tiers with a file system: planned, refused, resumed, saved, restored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import devices
from hotset.block.extents import Run, count, difference, intersection
from hotset.block.programs import InUseError
from hotset.core.machines.base import Machine
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.databases.base import TargetError
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import AttachedDisk, Disk
from hotset.lab.lab import Lab, LabSpec
from hotset.tier import pins
from hotset.tier.base import TierKind, hits_between
from hotset.tier.bcache.tier import Bcache
from hotset.tier.filling import Way
from hotset.tier.pins import Preferences
from hotset.warmup import plan as planning
from hotset.warmup import plan_store
from hotset.warmup.plan import Planned, Request
from hotset.warmup.plan_store import SavedPlan
from tests.own_lab import quick_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
MOUNT = PurePosixPath("/srv/pg")
FLASH = PurePosixPath("/dev/disk/by-id/lab-flash")


@dataclass(frozen=True)
class Backend:
    """A lab with a slow disk that holds a file system with four files of 12 MiB."""

    lab: Lab
    origin: PurePosixPath

    @property
    def machine(self) -> Machine:
        return self.lab.machine


@dataclass(frozen=True)
class Accelerated:
    """A disk of it, accelerated."""

    attached: AttachedDisk

    @property
    def machine(self) -> Machine:
        return self.attached.machine

    @property
    def disk(self) -> Disk:
        return self.attached.disk

    def mount(self) -> None:
        self.machine.run(["mount", str(self.disk.device), str(MOUNT)])

    def umount(self) -> None:
        self.machine.run(["umount", str(MOUNT)], check=False)

    def plan(self, *targets: str, **more: tuple[str, ...]) -> Planned:
        request = Request("uml", targets, mount_point=MOUNT, **more)  # type: ignore[arg-type]
        return planning.plan_with_estimate(self.attached, request, 100.0)

    def job(self, planned: Planned, method: Way = "auto", share: float = 1.0) -> SavedPlan:
        job = SavedPlan(
            "one",
            "",
            "uml",
            self.disk.name,
            str(self.disk.origin),
            (),
            planned.plan.block,
            tuple(planned.plan.runs),
            method,
            20,
            share,
            None,
            Bytes(0),
        )
        plan_store.save(job)
        return job

    def perform(self, job: SavedPlan) -> Bytes:
        report = Reporter(quiet=True)
        return plan_store.perform(self.attached, job, report).bytes

    def misses(self, wanted: list[Run]) -> int:
        """Read runs past the page cache."""
        tier = self.attached.tier
        start = tier.counters()
        for run in wanted:
            words = [f"bs={int(tier.spec.block)}", f"skip={run.start}", f"count={run.count}"]
            self.machine.run(
                [
                    "dd",
                    f"if={self.disk.device}",
                    "of=/dev/null",
                    "iflag=direct",
                    "status=none",
                    *words,
                ]
            )
        return hits_between(start, tier.counters(), tier.counting).read_misses or 0


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    spec = LabSpec("uml", 2, Bytes(1024 * MIB), Bytes(192 * MIB))
    with quick_lab(tmp_path_factory, spec) as lab:
        yield ground_on(lab)


@pytest.fixture
def ground_with_debugfs(emulated_lab: Lab) -> Backend:
    """User-Mode Linux does not show what bcache holds."""
    return ground_on(emulated_lab)


def ground_on(lab: Lab) -> Backend:
    machine = lab.machine
    slow = lab.backend.slow_disk("nvme-2024", Bytes(256 * MIB)).attach(lab.cleanup)
    machine.run(["mke2fs", "-q", "-t", "ext4", "-J", "size=4", str(slow)])
    machine.run(["mkdir", "-p", f"{MOUNT}"])
    machine.run(["mount", str(slow), str(MOUNT)])
    machine.run(["mkdir", f"{MOUNT}/base"])
    for name in "abcd":
        machine.run(
            [
                "dd",
                "if=/dev/urandom",
                f"of={MOUNT}/base/{name}",
                "bs=1M",
                "count=12",
                "status=none",
            ]
        )
    machine.run(["umount", str(MOUNT)])
    return Backend(lab, devices.inspect(machine, slow).by_id[0])


def accelerated(backend: Backend, kind: TierKind, cache: int) -> Accelerated:
    wanted = CreateRequest(
        "pg", FLASH, backend.origin, kind, "oltp", Bytes(cache), None, None, None
    )  # type: ignore[arg-type]
    creation.create(backend.machine, wanted, True, print)
    return Accelerated(flash_devices.find(backend.machine, "pg"))


def destroy(tier: Accelerated) -> None:
    for flash in flash_devices.list_all(tier.machine):
        lifecycle.destroy(tier.machine, flash, True, lambda _: lambda _: None, print)


@pytest.fixture
def tier(backend: Backend) -> Iterator[Accelerated]:
    """On dm-cache, with room for three of the files."""
    found = accelerated(backend, "dm-cache", 40 * MIB)
    yield found
    found.umount()
    destroy(found)
    backend.machine.run(["rm", "-rf", str(pins.FOLDER)])


def test_the_order_is_the_priority_and_what_is_pinned_comes_first(tier: Accelerated) -> None:
    pins.save(tier.machine, "pg", Preferences((f"{MOUNT}/base/d",), (f"{MOUNT}/base/a",)))
    planned = tier.plan(f"{MOUNT}/base/c", f"{MOUNT}/base")
    pinned, c, rest, _ = planned.plan.rows
    # A file of 192 blocks may begin and end within one.
    assert (pinned.name, pinned.pinned) == (f"{MOUNT}/base/d", True)
    assert 192 <= pinned.taken <= 194
    assert 190 <= c.taken <= 194
    assert c.left_out == 0
    assert 188 <= rest.blocks <= 194, "only b: a is excluded, c and d are taken"
    assert count(planned.plan.runs) <= planned.plan.capacity
    (once, *_) = tier.plan(f"{MOUNT}/base/b", pin=(f"{MOUNT}/base/a",)).plan.rows[1:]
    assert (once.name, once.pinned) == (f"{MOUNT}/base/a", True)
    assert once.taken > 0, "pinned for once beats excluded for good"


REFUSED = {
    "/srv/pg/base/none": "No such file",
    "/etc/passwd": r"is not on /dev/mapper/hotset-pg \(mounted on /srv/pg\)",
    "/dev/null": "is a character special file",
    "heat": "nothing was counted",
    "snapshot:/no/such": "no such file on this computer",
    "table:x": "name the server",
}


@pytest.mark.night
def test_targets_that_cannot_be_are_named(tier: Accelerated) -> None:
    for target, words in REFUSED.items():
        with pytest.raises(TargetError, match=words):
            tier.plan(target)


def test_a_job_refused_while_mounted_is_kept_and_done_when_idle(tier: Accelerated) -> None:
    tier.mount()
    job = tier.job(tier.plan(f"{MOUNT}/base/b"), "offline")
    with pytest.raises(InUseError, match=f"mounted on {MOUNT}") as refused:
        tier.perform(job)
    assert {"resume": "one"} in [one.parameters for one in refused.value.remedies]
    assert plan_store.find("one").state == "planned"
    tier.umount()
    assert tier.perform(plan_store.find("last")) >= 12 * MIB
    assert plan_store.find("one").state == "done"
    assert tier.misses(list(job.runs)) == 0
    assert tier.perform(job) == 0


def test_a_restart_is_never_cold(tier: Accelerated, backend: Backend, tmp_path: Path) -> None:
    """Saved, the tier destroyed and made again, restored: what was cached is, but for a file that
    is gone."""
    tier.perform(tier.job(tier.plan(f"{MOUNT}/base/b", f"{MOUNT}/base/c")))
    tier.mount()
    taken = planning.take_snapshot(tier.attached)
    # A neighbour may have a part of their first or last block.
    assert {"b", "c"} <= {PurePosixPath(file.name).name for file in taken.files}
    saved = tmp_path / "saved"
    saved.write_text(taken.render())
    tier.umount()
    before = tier.attached.tier.resident()
    destroy(tier)

    again = accelerated(backend, "dm-cache", 40 * MIB)
    again.mount()
    b = again.plan(f"{MOUNT}/base/b").plan
    tier.machine.run(["rm", f"{MOUNT}/base/c"])
    again.umount()
    planned = again.plan(f"snapshot:{saved}")
    assert planned.notes == [
        f"{MOUNT}/base/c was deleted since the snapshot: its blocks are skipped"
    ]
    fetched = again.perform(again.job(planned))
    # The kernel may go on with promotions of the mount and the removal meanwhile.
    assert planned.plan.bytes / 2 < fetched <= planned.plan.bytes, "what was missing"
    assert planned.plan.bytes < count(before) * planned.plan.block, "no more than the set"
    now = again.attached.tier.resident()
    assert not difference(intersection(b.runs, before), now)
    assert again.misses(intersection(planned.plan.runs, before)) == 0

    # Another disk has another identity.
    other = saved.read_text().replace(taken.identity.uuid, "0" * 36)
    saved.write_text(other)
    with pytest.raises(TargetError, match="the snapshot is of disk pg with file system 0000"):
        again.plan(f"snapshot:{saved}")
    again.mount()
    again.machine.run(["cp", f"{MOUNT}/base/b", f"{MOUNT}/base/c"])
    again.umount()


def test_on_line_the_policy_takes_it_while_the_database_is_up(tier: Accelerated) -> None:
    tier.mount()
    job = tier.job(tier.plan(f"{MOUNT}/base/b"), "auto", share=0.75)
    gained = tier.perform(job)
    assert gained >= 0.7 * 12 * MIB
    left = count(plan_store.missing(tier.attached, job.runs))
    # Three quarters were cached at one moment; the policy goes on exchanging blocks afterwards, and
    # on a busy computer a good many before they are counted here.
    assert left <= 0.5 * count(job.runs)


def test_bcache_is_warm_after_its_passes(ground_with_debugfs: Backend) -> None:
    backend = ground_with_debugfs
    found = accelerated(backend, "bcache", 96 * MIB)
    try:
        planned = found.plan(f"{MOUNT}/base/a", f"{MOUNT}/base/b")
        job = found.job(planned)
        assert found.perform(job) == planned.plan.bytes >= 24 * MIB
        assert isinstance(found.attached.tier, Bcache)
        left = count(plan_store.missing(found.attached, job.runs))
        # bcache inserts what it has free buckets for at that moment; a small cache has few.
        assert left <= 0.1 * count(job.runs)
    finally:
        found.umount()
        destroy(found)
