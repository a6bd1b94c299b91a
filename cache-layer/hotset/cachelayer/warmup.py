"""Warm-up: fill the cache with a database before its users come.

Off-line fill of dm-cache: files → extents → blocks in origin order → one sequential copy onto the
cache device → metadata that says so (``cache_restore``) → activate. Nothing may write to the
origin between the copy and the activation, and the origin must not be mounted while it runs.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from hotset.cachelayer import extents, storage
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import PREFIX, device_size, mapper_path, remove
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

Method = Literal["offline", "read"]
_GATHER = f"{PREFIX}gather"
_RATE_PROBE = Bytes(48 * 1024**2)
# The little-endian level of smq's hottest queue (63 of 0-63), as cache_restore takes it.
_HOTTEST = "PwAAAA=="
_XML = PurePosixPath("/run/hotset/cache.xml")


class WarmupFailedError(Exception):
    """The fill cannot be trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a warm-up is."""

    done: Bytes
    total: Bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Warmup:
    """What a warm-up did. ``seconds`` are those of the copy; ``total_seconds`` count extents,
    metadata and activation as well; ``origin_mb_per_s`` was measured just before the copy."""

    method: Method
    bytes: Bytes
    seconds: float
    total_seconds: float
    origin_mb_per_s: float
    sampled_blocks: int
    differing_blocks: int

    @property
    def mb_per_s(self) -> float:
        return mb_per_s(self.bytes, self.seconds)


def database_runs(tier: DmCache, mount_point: PurePosixPath, folder: str) -> list[Run]:
    """The origin's blocks that hold the files of a folder, found on the read-only mounted origin.

    ``noload``: replaying the journal would write to the origin.
    """
    machine, origin = tier.machine, tier.origin
    machine.run(["mkdir", "-p", str(mount_point)])
    machine.run(["mount", "-o", "ro,noload", str(origin), str(mount_point)])
    try:
        files = extents.files_under(machine, mount_point / folder)
        found = extents.of_files(machine, files) + extents.of_file_system(machine, origin)
    finally:
        machine.run(["umount", str(mount_point)])
    size = device_size(machine, origin)
    return extents.fit(extents.to_runs(found, tier.spec.block, size), tier.capacity)


def fill_offline(
    tier: DmCache, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
) -> Warmup:
    """Copy the runs onto the cache device, write the metadata and activate the tier.

    :raises WarmupFailedError: a sampled block differs between origin and cache.
    """
    begun = time.monotonic()
    origin_rate = sequential_rate(tier.machine, tier.origin)
    total = extents.count(runs).bytes(tier.spec.block)
    seconds = _copy(tier, runs, tier.origin, tier.cache, on_progress)
    sampled, differing = compare(tier, runs, samples)
    if differing:
        raise WarmupFailedError(
            f"{differing} of {sampled} sampled blocks differ between origin and cache after the"
            " fill: something wrote to the origin; the cache was not activated"
        )
    xml = metadata_xml(runs, tier.spec.block, tier.capacity, tier.spec.policy)
    _restore_metadata(tier, xml)
    tier.create()
    spent = time.monotonic() - begun
    return Warmup("offline", total, seconds, spent, origin_rate, sampled, differing)


def fill_by_reading(
    tier: DmCache, runs: Sequence[Run], passes: int, on_progress: Callable[[Progress], None]
) -> Warmup:
    """Read the runs through the active tier, ``passes`` times, and let the policy promote them."""
    begun = time.monotonic()
    origin_rate = sequential_rate(tier.machine, tier.origin)
    device = tier.create()
    total = Bytes(extents.count(runs).bytes(tier.spec.block) * passes)
    seconds = 0.0
    for _ in range(passes):
        seconds += _copy(tier, runs, device, None, on_progress)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def sequential_rate(machine: Machine, device: PurePosixPath) -> float:
    """The origin's sequential read rate in MB/s, measured on its first megabytes."""
    size = min(_RATE_PROBE, device_size(machine, device))
    read = storage.copy(machine, ["--from", str(device), "--bytes", str(int(size))])
    return mb_per_s(Bytes(size), read)


def _restore_metadata(tier: DmCache, xml: str) -> None:
    # A file, not standard input: cache_restore wants to know its size.
    tier.machine.run(["mkdir", "-p", str(_XML.parent)])
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
        file.write(xml)
        file.flush()
        tier.machine.put(Path(file.name), _XML)
    tier.machine.run(["cache_restore", "--quiet", "-i", str(_XML), "-o", str(tier.metadata)])
    tier.machine.run(["rm", "-f", str(_XML)])


def gather_table(runs: Sequence[Run], block: Bytes, device: PurePosixPath) -> str:
    """A linear device that strings the runs together, so that one sequential copy fetches all."""
    sectors = int(block.sectors)
    lines, at = [], 0
    for run in runs:
        length = run.count * sectors
        lines.append(f"{at} {length} linear {device} {run.start * sectors}")
        at += length
    return "\n".join(lines) + "\n"


def origin_blocks(runs: Sequence[Run]) -> Iterator[int]:
    """The origin's block for cache block 0, 1, 2, …: the fill lays them down in this order."""
    for run in runs:
        yield from range(run.start, run.start + run.count)


def metadata_xml(runs: Sequence[Run], block: Bytes, capacity: Blocks, policy: str) -> str:
    """What ``cache_restore`` takes (thin-provisioning-tools): every block clean and hottest."""
    blocks = list(enumerate(origin_blocks(runs)))
    head = (
        f'<superblock uuid="" block_size="{int(block.sectors)}" nr_cache_blocks="{int(capacity)}"'
        f' policy="{policy}" hint_width="4">'
    )
    mappings = (
        f'<mapping cache_block="{at}" origin_block="{origin}" dirty="false"/>'
        for at, origin in blocks
    )
    hints = (f'<hint cache_block="{at}" data="{_HOTTEST}"/>' for at, _ in blocks)
    lines = (head, "<mappings>", *mappings, "</mappings>", "<hints>", *hints, "</hints>",
             "</superblock>")  # fmt: skip
    return "\n".join(lines) + "\n"


def compare(tier: DmCache, runs: Sequence[Run], samples: int) -> tuple[int, int]:
    """Compare sampled blocks of origin and cache; returns how many were sampled and differ."""
    pairs = list(enumerate(origin_blocks(runs)))
    block = int(tier.spec.block)
    # Seeded, so that a run can be repeated; the ends are always looked at.
    chosen = random.Random(len(pairs)).sample(pairs, min(samples, len(pairs)))
    chosen = sorted({*chosen, pairs[0], pairs[-1]}) if pairs else []
    for device in (tier.cache, tier.origin):
        tier.machine.run(["blockdev", "--flushbufs", str(device)])
    differing = 0
    for cache_block, origin_block in chosen:
        skip = f"--ignore-initial={cache_block * block}:{origin_block * block}"
        argv = ["cmp", "--quiet", f"--bytes={block}", skip, str(tier.cache), str(tier.origin)]
        differing += tier.machine.run(argv, check=False).rc != 0
    return len(chosen), differing


def _copy(
    tier: DmCache,
    runs: Sequence[Run],
    source: PurePosixPath,
    target: PurePosixPath | None,
    on_progress: Callable[[Progress], None],
) -> float:
    """One sequential copy of the runs of a device; returns the seconds it took.

    :param target: where to, laid one behind the other; None only reads them.
    """
    machine, total = tier.machine, extents.count(runs).bytes(tier.spec.block)
    table = gather_table(runs, tier.spec.block, source)
    machine.run(["dmsetup", "create", _GATHER, "--readonly"], stdin=table)
    begun = time.monotonic()

    def on_bytes(done: Bytes) -> None:
        on_progress(Progress(done, total, time.monotonic() - begun))

    try:
        words = ["--from", str(mapper_path(_GATHER))]
        return storage.copy(machine, [*words, "--to", str(target)] if target else words, on_bytes)
    finally:
        remove(machine, (_GATHER,))
