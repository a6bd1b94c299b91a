"""Warm-up jobs on real tiers with a file system: planned, refused, resumed, saved, restored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from hotset.cachelayer import card as cards
from hotset.cachelayer import creation, devices, lifecycle, preferences
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.card import Card, Disk
from hotset.cachelayer.creation import Wanted
from hotset.cachelayer.extents import Run, count, difference, intersection
from hotset.cachelayer.idle import InUseError
from hotset.cachelayer.lab import Lab, LabSpec
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.preferences import Preferences
from hotset.cachelayer.targets import TargetError
from hotset.cachelayer.tier import TierKind, hits_between
from hotset.cachelayer.units import Bytes
from hotset.harness.progress import Reporter
from hotset.harness.warmups import jobs, planning
from hotset.harness.warmups.jobs import Job, Method
from hotset.harness.warmups.planning import Planned, Request
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
MOUNT = PurePosixPath("/srv/pg")
FLASH = PurePosixPath("/dev/disk/by-id/virtio-flash")


@dataclass(frozen=True)
class Ground:
    """A lab with a slow disk that holds a file system with four files of 12 MiB."""

    lab: Lab
    origin: PurePosixPath

    @property
    def machine(self) -> Machine:
        return self.lab.machine


@dataclass(frozen=True)
class Accelerated:
    """A disk of it, accelerated."""

    machine: Machine
    card: Card
    disk: Disk

    def mount(self) -> None:
        self.machine.run(["mount", str(self.disk.device), str(MOUNT)])

    def umount(self) -> None:
        self.machine.run(["umount", str(MOUNT)], check=False)

    def plan(self, *targets: str, **more: tuple[str, ...]) -> Planned:
        request = Request("vm", targets, mount_point=MOUNT, **more)  # type: ignore[arg-type]
        return planning.planned(self.machine, self.card, self.disk, request, 100.0)

    def job(self, planned: Planned, method: Method = "auto", share: float = 1.0) -> Job:
        job = Job("one", "", "vm", self.disk.name, str(self.disk.origin), (), planned.plan.block,
                  tuple(planned.plan.runs), method, 20, share, None)  # fmt: skip
        jobs.save(job)
        return job

    def perform(self, job: Job) -> Bytes:
        report = Reporter(quiet=True)
        return jobs.perform(self.machine, self.card, self.disk, job, report).bytes

    def misses(self, wanted: list[Run]) -> int:
        """Read runs past the page cache."""
        tier = cards.built(self.machine, self.card, self.disk)
        start = tier.counters()
        for run in wanted:
            words = [f"bs={int(tier.spec.block)}", f"skip={run.start}", f"count={run.count}"]
            self.machine.run(["dd", f"if={self.disk.device}", "of=/dev/null", "iflag=direct",
                              "status=none", *words])  # fmt: skip
        return hits_between(start, tier.counters(), tier.counter_bits).read_misses or 0


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    spec = LabSpec("vm", 2, Bytes(1024 * MIB), Bytes(192 * MIB))
    with own_lab(tmp_path_factory, spec) as lab:
        machine = lab.machine
        slow = lab.ground.slow_disk("nas-2014", Bytes(256 * MIB), 0.1).attach(lab.takedown)
        machine.run(["mke2fs", "-q", "-t", "ext4", "-J", "size=4", str(slow)])
        machine.run(["mkdir", "-p", f"{MOUNT}"])
        machine.run(["mount", str(slow), str(MOUNT)])
        machine.run(["mkdir", f"{MOUNT}/base"])
        for name in "abcd":
            machine.run(["dd", "if=/dev/urandom", f"of={MOUNT}/base/{name}", "bs=1M",
                         "count=12", "status=none"])  # fmt: skip
        machine.run(["umount", str(MOUNT)])
        yield Ground(lab, devices.look(machine, slow).by_id[0])


def accelerated(ground: Ground, kind: TierKind, cache: int) -> Accelerated:
    wanted = Wanted("pg", FLASH, ground.origin, kind, "oltp", Bytes(cache), None, None, None)  # type: ignore[arg-type]
    creation.create(ground.machine, wanted, True, print)
    return Accelerated(ground.machine, *cards.find(ground.machine, "pg"))


def destroy(tier: Accelerated) -> None:
    for card in cards.standing(tier.machine):
        lifecycle.destroy(tier.machine, card, True, lambda _: lambda _: None, print)


@pytest.fixture
def tier(ground: Ground) -> Iterator[Accelerated]:
    """On dm-cache, with room for three of the files."""
    found = accelerated(ground, "dm-cache", 40 * MIB)
    yield found
    found.umount()
    destroy(found)
    ground.machine.run(["rm", "-rf", str(preferences.FOLDER)])


def test_the_order_is_the_priority_and_what_is_pinned_comes_first(tier: Accelerated) -> None:
    preferences.save(tier.machine, "pg", Preferences((f"{MOUNT}/base/d",), (f"{MOUNT}/base/a",)))
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
    "/etc/passwd": r"does not lie on /dev/mapper/hotset-pg \(mounted on /srv/pg\)",
    "/dev/null": "is a character special file",
    "heat": "nothing was counted",
    "snapshot:/no/such": "no such file on this computer",
    "table:x": "give --dsn",
}


def test_targets_that_cannot_be_are_named(tier: Accelerated) -> None:
    for target, words in REFUSED.items():
        with pytest.raises(TargetError, match=f"TARGET.*{words}"):
            tier.plan(target)


def test_a_job_refused_while_mounted_is_kept_and_done_when_idle(tier: Accelerated) -> None:
    tier.mount()
    job = tier.job(tier.plan(f"{MOUNT}/base/b"), "offline")
    with pytest.raises(InUseError, match=f"mounted on {MOUNT}") as refused:
        tier.perform(job)
    assert "--resume one" in refused.value.__notes__[0]
    assert jobs.find("one").state == "planned"
    tier.umount()
    assert tier.perform(jobs.find("last")) >= 12 * MIB
    assert jobs.find("one").state == "done"
    assert tier.misses(list(job.runs)) == 0
    assert tier.perform(job) == 0


def test_a_restart_is_never_cold(tier: Accelerated, ground: Ground, tmp_path: Path) -> None:
    """Saved, the tier destroyed and made anew, restored: what was cached is, but for a file that
    is gone."""
    tier.perform(tier.job(tier.plan(f"{MOUNT}/base/b", f"{MOUNT}/base/c")))
    tier.mount()
    taken = planning.take_snapshot(tier.machine, tier.card, tier.disk)
    # A neighbour may have a part of their first or last block.
    assert {"b", "c"} <= {PurePosixPath(file.name).name for file in taken.files}
    saved = tmp_path / "saved"
    saved.write_text(taken.render())
    tier.umount()
    before = cards.built(tier.machine, tier.card, tier.disk).resident()
    destroy(tier)

    again = accelerated(ground, "dm-cache", 40 * MIB)
    again.mount()
    b = again.plan(f"{MOUNT}/base/b").plan
    tier.machine.run(["rm", f"{MOUNT}/base/c"])
    again.umount()
    planned = again.plan(f"snapshot:{saved}")
    assert planned.notes == [
        f"{MOUNT}/base/c was deleted since the snapshot: its blocks are skipped"
    ]
    fetched = again.perform(again.job(planned))
    assert fetched == planned.plan.bytes < count(before) * planned.plan.block, (
        "no more than the set"
    )
    now = cards.built(again.machine, again.card, again.disk).resident()
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
    left = count(jobs.missing(tier.machine, tier.card, tier.disk, job.runs))
    assert left <= 0.25 * count(job.runs)


def test_bcache_is_warm_after_its_passes(ground: Ground) -> None:
    found = accelerated(ground, "bcache", 96 * MIB)
    try:
        planned = found.plan(f"{MOUNT}/base/a", f"{MOUNT}/base/b")
        job = found.job(planned)
        assert found.perform(job) == planned.plan.bytes >= 24 * MIB
        assert isinstance(cards.built(found.machine, found.card, found.disk), Bcache)
        left = count(jobs.missing(found.machine, found.card, found.disk, job.runs))
        # bcache inserts what it has free buckets for at that moment; a small cache has few.
        assert left <= 0.1 * count(job.runs)
    finally:
        found.umount()
        destroy(found)
