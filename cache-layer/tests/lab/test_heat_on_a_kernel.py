"""Counters per region beside two others: the tier's own, and every event counted one by one."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

import pytest

from hotset.block.extents import Extent
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.hitratio import attribution, histogram, tracepoints
from hotset.hitratio.heat import NOTHING, Tally, difference, total
from hotset.hitratio.tracepoints import NotCountedError, Traced
from hotset.lab import lab as labs
from hotset.lab.lab import Lab
from hotset.tier.bcache.tier import Bcache
from hotset.tier.dmcache.status import parse_dmsetup_status
from tests import lab_tiers
from tests.lab_tiers import DEVICE, MIB, write

pytestmark = pytest.mark.lab

BLOCK = Bytes(64 * 1024)
DISK = Bytes(256 * MIB)
MOUNT = PurePosixPath("/run/heat")
WITNESS = PurePosixPath("/sys/kernel/tracing/instances/witness")
STATISTICS_LIMIT_S = 60
"""bcache adds its statistics up every 13 s (ACCOUNTING_DELAY, drivers/md/bcache/stats.c), by the
clock of a machine that may be emulated and busy."""
POINT = 0.01
"""One percentage point: what the counts may differ by."""


@pytest.fixture
def lab(emulated_lab: Lab) -> Lab:
    """User-Mode Linux has no tracing."""
    return emulated_lab


@pytest.fixture
def origin(lab: Lab) -> PurePosixPath:
    """A fast disk: these tests are about counts, not about time."""
    return lab.backend.slow_disk("nvme-2024", DISK).attach(lab.cleanup)


def load(machine: Machine, file: PurePosixPath, *words: str) -> int:
    """fio on a device or file, past the page cache; returns how many requests it made."""
    argv = [
        "fio",
        "--name=load",
        f"--filename={file}",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=8",
        "--bs=8k",
        "--randrepeat=1",
        "--output-format=json",
        *words,
    ]
    job = json.loads(machine.run(argv, timeout_s=110).stdout)["jobs"][0]
    return int(job["read"]["total_ios"]) + int(job["write"]["total_ios"])


@contextmanager
def witness(machine: Machine, event: str, condition: str) -> Iterator[Callable[[], list[str]]]:
    """Every event as a line of text, in a tracing instance of its own."""
    machine.run(["mkdir", str(WITNESS)])
    try:
        # Recording names of processes patches the scheduler's code, which an emulated CPU may
        # run at that moment: the kernel then stops with "Oops: int3".
        write(machine, WITNESS / "trace_options", "norecord-cmd")
        write(machine, WITNESS / "buffer_size_kb", "16384")
        write(machine, WITNESS / "events" / event / "filter", condition)
        write(machine, WITNESS / "events" / event / "enable", "1")

        def lines() -> list[str]:
            write(machine, WITNESS / "events" / event / "enable", "0")
            text = machine.run(["cat", str(WITNESS / "trace")]).stdout
            kept, written = re.findall(r"entries-in-buffer/entries-written: (\d+)/(\d+)", text)[0]
            assert kept == written, "the witness lost events"
            return [line for line in text.splitlines() if not line.startswith("#")]

        yield lines
    finally:
        machine.run(["rmdir", str(WITNESS)])


@contextmanager
def counting(counters: Traced) -> Iterator[Traced]:
    assert counters.start()
    try:
        yield counters
    finally:
        counters.stop()


def dm_status(machine: Machine) -> Tally:
    """The target's own counters."""
    line = machine.run(["dmsetup", "status", DEVICE.name]).stdout
    now = parse_dmsetup_status(line)
    reads, writes = now.read_hits + now.read_misses, now.write_hits + now.write_misses
    return Tally(
        reads, writes, now.read_hits, now.read_misses, now.write_hits, now.write_misses, None
    )


def remapped(lines: list[str], cache: str) -> Tally:
    """Bios counted one by one; ``cache`` is the cache device as "major,minor"."""
    found = re.findall(r"block_bio_remap: (\d+,\d+) ([RW])", "\n".join(lines))
    assert len(found) == len(lines)
    seen = Counter((letter, device == cache) for device, letter in found)
    hits, misses = seen["R", True], seen["R", False]
    write_hits, write_misses = seen["W", True], seen["W", False]
    return Tally(
        hits + misses, write_hits + write_misses, hits, misses, write_hits, write_misses, None
    )


def agree(*ratios: float | None) -> None:
    known = [ratio for ratio in ratios if ratio is not None]
    assert len(known) == len(ratios)
    assert max(known) - min(known) <= POINT, ratios


def test_dm_cache_counts_agree(lab: Lab, origin: PurePosixPath) -> None:
    """A mixed random load on a disk of which a quarter is cached."""
    machine = lab.machine
    with lab_tiers.dm_cache(machine, labs.FLASH_DISK, origin, range(0, 4096, 4)) as device:
        cache = lab_tiers.number(machine, lab_tiers.CACHE)
        data = lab_tiers.number(machine, lab_tiers.DATA)
        condition = f"old_dev=={data[0] << 20 | data[1]} && nr_sector > 0"
        with (
            counting(tracepoints.dm_cache(machine, "test", device)) as counters,
            witness(machine, "block/block_bio_remap", condition) as lines,
        ):
            assert counters.start() is False, "it counts already"
            options = WITNESS.parent / "hotset-test/trace_options"
            assert "norecord-cmd" in machine.run(["cat", str(options)]).stdout.split()
            own, first = dm_status(machine), counters.read()
            made = load(machine, device, "--rw=randrw", "--rwmixread=70", "--number_ios=3000")
            regions = total(difference(first.tallies, counters.read().tallies).values())
            target = dm_status(machine).minus(own)
            seen = remapped(lines(), f"{cache[0]},{cache[1]}")
        assert regions.requests >= made == 3000
        assert regions.read_hits > 300, "part of it is cached"
        assert regions.read_misses > 1000, "part of it is not"
        assert regions == seen, "no event is lost"
        agree(regions.read_ratio, target.read_ratio, seen.read_ratio)
        agree(regions.write_ratio, target.write_ratio, seen.write_ratio)
        agree(regions.ratio, target.ratio, seen.ratio)


def test_counting_outlives_who_began_it_and_knows_its_device(
    lab: Lab, origin: PurePosixPath
) -> None:
    machine = lab.machine
    with lab_tiers.dm_cache(machine, labs.FLASH_DISK, origin) as device:
        first = tracepoints.dm_cache(machine, "test", device)
        with pytest.raises(NotCountedError, match="is not counted"):
            first.read()
        with counting(first):
            load(machine, device, "--rw=randread", "--number_ios=50")
            another = tracepoints.dm_cache(machine, "test", device)
            one, two = first.read(), another.read()
            assert (one.epoch, one.tallies) == (two.epoch, two.tallies)
            assert total(two.tallies.values()).reads >= 50
            assert another.stop() is True
            assert another.start() is True
            assert another.read().epoch != one.epoch
            assert total(another.read().tallies.values()) == NOTHING
            # Half of it lost, as by an interruption: not read as if it were whole.
            event = WITNESS.parent / "hotset-test/events/block/block_bio_remap/trigger"
            shown = histogram.triggers(machine.run(["cat", str(event)]).stdout)
            machine.run(["tee", "-a", str(event)], stdin=f"!{shown[0]}")
            with pytest.raises(NotCountedError, match="device that is gone"):
                another.read()
            assert another.start() is True
            another.read()
        assert first.stop() is False
    assert "hotset-test" not in machine.run(["ls", str(WITNESS.parent)]).stdout


def test_requests_that_find_no_room_are_told(
    lab: Lab, origin: PurePosixPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = lab.machine
    monkeypatch.setattr(histogram, "size_for", lambda _: 128)
    with (
        lab_tiers.dm_cache(machine, labs.FLASH_DISK, origin) as device,
        counting(tracepoints.dm_cache(machine, "test", device)) as counters,
    ):
        made = load(machine, device, "--rw=randread", "--number_ios=2000")
        reading = counters.read()
        assert reading.dropped > 100
        assert total(reading.tallies.values()).reads + reading.dropped >= made


def once_counted(machine: Machine, tier: Bcache, reads: int) -> Counter[str]:
    """bcache's own statistics, as soon as so many reads are in them."""
    end = time.monotonic() + STATISTICS_LIMIT_S
    while (found := lab_tiers.statistics(machine, tier)).total() < reads:
        assert time.monotonic() < end, f"{found} are not {reads} reads"
        time.sleep(1)
    return found


def test_bcache_counts_agree(lab: Lab, origin: PurePosixPath) -> None:
    machine = lab.machine
    with lab_tiers.bcache(machine, labs.FLASH_DISK, origin) as tier:
        counters = tracepoints.bcache(machine, "test", tier.device, BLOCK)
        load(machine, tier.device, "--rw=randread", "--size=48M", "--number_ios=2000")
        own = once_counted(machine, tier, 2000)
        with (
            counting(counters),
            witness(machine, "bcache/bcache_read", "nr_sector > 0") as lines,
        ):
            made = load(
                machine,
                tier.device,
                "--rw=randrw",
                "--rwmixread=70",
                "--size=160M",
                "--number_ios=3000",
            )
            # Long reads in sequence: past the cache.
            write(machine, tier.sysfs / "sequential_cutoff", "262144")
            load(
                machine,
                tier.device,
                "--rw=read",
                "--offset=180M",
                "--size=8M",
                "--bs=64k",
                "--iodepth=1",
            )
            regions = total(counters.read().tallies.values())
            seen = Counter(re.findall(r"hit (\d) bypass (\d)", "\n".join(lines())))
            gained = once_counted(machine, tier, own.total() + seen.total()) - own
        hits, misses = seen["1", "0"], seen["0", "0"]
        bypassed = seen["1", "1"] + seen["0", "1"]
        assert regions.requests >= made == 3000
        # How many reads bcache has cached depends on how busy the machine is.
        assert regions.read_hits > 100
        assert regions.read_misses > 500
        assert regions.writes > 800
        assert (regions.read_hits, regions.read_misses) == (hits, misses)
        assert (regions.write_hits, regions.bypassed) == (None, bypassed)
        assert bypassed >= 100, "8 MiB in pieces of 64 KiB, from the cut-off on"
        agree(
            regions.read_ratio,
            hits / (hits + misses),
            gained["cache_hits"] / (gained["cache_hits"] + gained["cache_misses"]),
        )
        assert gained["cache_bypass_hits"] + gained["cache_bypass_misses"] == bypassed


@contextmanager
def mounted(machine: Machine, device: PurePosixPath) -> Iterator[None]:
    machine.run(["mkdir", "-p", str(MOUNT)])
    machine.run(["mount", "-o", "noatime", str(device), str(MOUNT)])
    try:
        yield
    finally:
        machine.run(["umount", str(MOUNT)])


def blocks_inside(extents: Iterable[Extent]) -> list[int]:
    """The cache blocks that hold nothing else."""
    found: list[int] = []
    for extent in extents:
        first = -(-extent.start // BLOCK)
        found += range(first, (extent.start + extent.length) // BLOCK)
    return found


def test_ratios_of_files_are_right_and_add_up(lab: Lab, origin: PurePosixPath) -> None:
    """Two files, one cached and one not; a policy that promotes nothing."""
    machine, warm, cold = lab.machine, str(MOUNT / "warm"), str(MOUNT / "cold")
    with lab_tiers.dm_cache(machine, labs.FLASH_DISK, origin, policy="cleaner") as device:
        machine.run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", "nodiscard", str(device)])
        with mounted(machine, device):
            for name in (warm, cold):
                machine.run(
                    [
                        "dd",
                        "if=/dev/zero",
                        f"of={name}",
                        "bs=1M",
                        "count=24",
                        "conv=fsync",
                        "status=none",
                    ]
                )
            lie = {one.name: one.extents for one in attribution.files(machine, device)}
    cached = blocks_inside(lie[warm])
    assert len(cached) > 300
    with lab_tiers.dm_cache(machine, labs.FLASH_DISK, origin, cached, "cleaner") as device:
        data = lab_tiers.number(machine, lab_tiers.DATA)
        cache = ",".join(str(part) for part in lab_tiers.number(machine, lab_tiers.CACHE))
        condition = f"old_dev=={data[0] << 20 | data[1]} && nr_sector > 0"
        with (
            mounted(machine, device),
            counting(tracepoints.dm_cache(machine, "test", device)) as counters,
            witness(machine, "block/block_bio_remap", condition) as lines,
        ):
            load(machine, PurePosixPath(warm), "--rw=randread", "--number_ios=600")
            load(machine, PurePosixPath(cold), "--rw=randread", "--number_ios=400")
            reading, seen = counters.read(), lines()
            rows = dict(
                attribution.split(reading.tallies, reading.grid, attribution.files(machine, device))
            )
    sectors = [int(at) for at in re.findall(r"<- \(\d+,\d+\) (\d+)$", "\n".join(seen), re.M)]
    assert len(sectors) == len(seen)
    for name in (warm, cold):
        own = sum(
            any(part.start <= at * 512 < part.start + part.length for part in lie[name])
            for at in sectors
        )
        assert abs(rows[name].requests - own) <= own * POINT
    # Blocks at its ends may hold something else, too, and so are not cached.
    assert (rows[warm].read_ratio or 0) >= 1 - POINT
    assert rows[warm].reads >= 590
    assert rows[cold].read_ratio == 0
    assert rows[cold].reads >= 390
    whole = total(rows.values())
    assert whole == total(reading.tallies.values()), "the rows add up to the total"
    # The file system's own writes go on between the two readings.
    agree(whole.read_ratio, remapped(seen, cache).read_ratio)
