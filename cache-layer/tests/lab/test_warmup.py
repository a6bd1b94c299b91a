"""Warm-up jobs on the kernel's own dm-cache: filled while it stands, broken off, resumed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from hotset.block import extents, programs
from hotset.block.extents import Run, difference
from hotset.block.programs import InUseError
from hotset.block.transfer import Progress
from hotset.core.machines.base import CommandError
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.lab import lab as labs
from hotset.lab.backend import alone
from hotset.lab.lab import Lab, LabSpec
from hotset.tier.base import TierSpec, WarmupFailedError, hits_between
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache import offline
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup.fill import fill
from tests.own_lab import own_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
BLOCK = Bytes(64 * 1024)
CACHE = Bytes(64 * MIB)
DISK = Bytes(256 * MIB)
MOUNT = PurePosixPath("/run/hotset/data")
SPEC = TierSpec("writeback", "smq", BLOCK, metadata_bytes(CACHE, BLOCK), CACHE, Bytes(16 * MIB))


@dataclass(frozen=True)
class Backend:
    """A lab with a tier over a slow disk whose every block is another."""

    lab: Lab
    tier: DmCache

    def dd(self, *words: str) -> None:
        self.lab.machine.run(["dd", "bs=64k", "status=none", *words])

    def read(self, run: Run) -> None:
        """Through the tier, past the page cache."""
        self.dd(
            f"if={self.tier.path}",
            "of=/dev/null",
            f"skip={run.start}",
            f"count={run.count}",
            "iflag=direct",
        )


def runs(*pairs: tuple[int, int]) -> list[Run]:
    return [Run(Blocks(start), Blocks(count)) for start, count in pairs]


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    image = tmp_path_factory.mktemp("image") / "disk.img"
    Local().run(["mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=0", str(image), "48m"])
    with image.open("r+b") as file:
        # A small file system, and data behind it: blocks 1024 to 3071.
        file.seek(64 * MIB)
        file.write(os.urandom(128 * MIB))
    spec = LabSpec("uml", 2, Bytes(1024 * MIB), Bytes(128 * MIB))
    with own_lab(tmp_path_factory, spec) as lab:
        storage = lab.backend.slow_disk("nvme-2024", DISK)
        storage.restore(image, lab.cleanup)
        origin = storage.attach(lab.cleanup)
        tier = DmCache(lab.machine, SPEC, alone(lab.machine, SPEC, labs.FLASH_DISK, origin))
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        tier.create()
        yield Backend(lab, tier)


def every_read_hits(backend: Backend, wanted: list[Run]) -> bool:
    start = backend.tier.counters()
    for run in wanted:
        backend.read(run)
    hits = hits_between(start, backend.tier.counters(), backend.tier.counting)
    return hits.read_misses == 0 and hits.read_hits >= extents.count(wanted)


def test_a_standing_tier_is_filled_and_keeps_what_it_held(backend: Backend) -> None:
    tier = backend.tier
    # Whole blocks written while slots are free are taken in at once, and are dirty.
    backend.dd("if=/dev/urandom", f"of={tier.path}", "seek=2000", "count=40", "oflag=direct")
    assert tier.status().dirty >= 40
    held = tier.resident()
    wanted = runs((1100, 300), (1700, 200), (1990, 20))
    done = fill(tier, wanted, 20, lambda _: None)
    assert extents.count(difference(wanted, tier.resident())) == 0
    assert extents.count(difference(held, tier.resident())) == 0, "there was room for both"
    assert done.bytes < extents.count(wanted).bytes(BLOCK), "what was there is not copied again"
    assert every_read_hits(backend, wanted)
    assert tier.status().dirty == 0
    again = fill(tier, wanted, 20, lambda _: None)
    assert again.bytes == 0


def test_what_is_cached_gives_way_only_as_far_as_it_must(backend: Backend) -> None:
    tier = backend.tier
    fill(tier, runs((1100, 300), (1700, 200)), 20, lambda _: None)
    held = tier.resident()
    wanted = runs((1100, 100), (2100, 900))
    fill(tier, wanted, 20, lambda _: None)
    now = tier.resident()
    assert extents.count(difference(wanted, now)) == 0
    # What the policy has given up since then, for what udev and others read, is not the fill's.
    since = tier.counters()
    filled = extents.count(now) + since.demotions - since.promotions
    assert filled >= tier.capacity * 0.99, "no more was given up than was needed"
    assert extents.count(extents.intersection(held, now)) + since.demotions > 100
    assert every_read_hits(backend, wanted)


def test_a_fill_that_is_cut_off_goes_on_where_it_stopped(backend: Backend) -> None:
    tier = backend.tier
    wanted = runs((1024, 960))
    seen: list[Progress] = []

    def stop_in_the_middle(progress: Progress) -> None:
        seen.append(progress)
        if progress.done > 8 * MIB:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fill(tier, wanted, 20, stop_in_the_middle, rate=Bytes(8 * MIB))
    assert tier.is_active(), "the database can go on with what is there"
    first = extents.count(extents.intersection(wanted, tier.resident()))
    assert every_read_hits(backend, extents.intersection(wanted, tier.resident()))
    done = fill(tier, wanted, 20, lambda _: None)
    assert done.bytes == (960 - first) * BLOCK
    # All but the block that was under way.
    assert (first + 1) * BLOCK > seen[-1].done > 8 * MIB
    assert every_read_hits(backend, wanted)


def test_a_tier_in_use_is_refused(backend: Backend) -> None:
    machine, tier = backend.lab.machine, backend.tier
    machine.run(["mkdir", "-p", str(MOUNT)])
    machine.run(["mount", str(tier.path), str(MOUNT)])
    try:
        with pytest.raises(InUseError, match=f"needs it idle: .* mounted on {MOUNT}: unmount it"):
            fill(tier, runs((10, 10)), 5, lambda _: None)
    finally:
        machine.run(["umount", str(MOUNT)])
    assert tier.is_active()


def test_an_origin_that_changes_meanwhile_is_noticed(backend: Backend) -> None:
    tier = backend.tier
    # Whatever tests came before: little room is left for what is about to be copied.
    fill(tier, runs((1024, 960)), 5, lambda _: None)
    seek = ("seek=1050", "count=1", "oflag=direct")
    seen: list[Progress] = []

    def write_past_the_tier(progress: Progress) -> None:
        if not seen:
            backend.dd("if=/dev/urandom", f"of={tier.origin}", *seek)
        seen.append(progress)

    with pytest.raises(WarmupFailedError, match=r" was written to while it") as refused:
        fill(tier, runs((2200, 500)), 5, write_past_the_tier, rate=Bytes(16 * MIB))
    assert "is active again" in str(refused.value.__notes__)
    assert extents.count(tier.resident()) == 0, "block 1050 was cached and is stale now"


def test_a_link_that_is_lost_costs_nothing_that_was_copied(backend: Backend) -> None:
    machine, tier = backend.lab.machine, backend.tier
    wanted = runs((1024, 960))
    fill(tier, runs((2100, 900)), 5, lambda _: None)  # little of what is wanted is there
    before = extents.count(extents.intersection(wanted, tier.resident()))
    disk = PurePosixPath(machine.run(["readlink", "-f", str(tier.origin)]).stdout.strip()).name
    state = f"/sys/block/{disk}/device/state"
    seen: list[Progress] = []

    def cut_in_the_middle(progress: Progress) -> None:
        if progress.done > 8 * MIB and not seen:
            seen.append(progress)
            machine.run(["tee", state], stdin="offline\n")

    with pytest.raises(CommandError, match="reading"):
        fill(tier, wanted, 20, cut_in_the_middle, rate=Bytes(8 * MIB))
    machine.run(["tee", state], stdin="running\n")
    done = fill(tier, wanted, 20, lambda _: None)
    assert 0 < done.bytes <= (960 - before) * BLOCK - 8 * MIB
    assert every_read_hits(backend, wanted)


def test_after_a_crash_of_hotset_what_was_written_down_counts_unless_the_origin_moved(
    backend: Backend,
) -> None:
    tier = backend.tier
    wanted = runs((1024, 200))
    fill(tier, wanted, 5, lambda _: None)
    offline._take_down(tier, tier.slots(), None)  # and then hotset is killed
    done = fill(tier, wanted, 5, lambda _: None)
    assert done.bytes == 0
    offline._take_down(tier, tier.slots(), None)
    backend.dd("if=/dev/urandom", f"of={tier.origin}", "seek=1050", "count=1", "oflag=direct")
    done = fill(tier, wanted, 5, lambda _: None)
    assert done.bytes == 200 * BLOCK
    assert programs.count_writes(backend.lab.machine, tier.origin)
