"""Warm-up: fill the cache with a database before its users come.

Off-line fill of dm-cache: files → extents → blocks in origin order → one sequential copy onto the
cache device → metadata that says so (``cache_restore``) → activate. Nothing may write to the
origin between the copy and the activation, and the origin must not be mounted while it runs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from hotset.cachelayer import extents
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import PREFIX, device_size, mapper_path, remove
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

Method = Literal["offline", "read"]
_GATHER = f"{PREFIX}gather"
_CHUNK = Bytes(4 * 1024**2)
_SLICE_S = 4.0
_RATE_PROBE = Bytes(48 * 1024**2)
# The little-endian level of smq's hottest queue (63 of 0-63), as cache_restore takes it.
_HOTTEST = "PwAAAA=="
_COPY_TIMEOUT_S = 3600.0
_NOWHERE = PurePosixPath("/dev/null")


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


def database_runs(tier: DmCache, mount_point: PurePosixPath) -> list[Run]:
    """The origin's blocks that hold a database's files, found on the read-only mounted origin.

    ``noload``: replaying the journal would write to the origin.
    """
    machine, origin = tier.machine, tier.origin
    machine.run(["mkdir", "-p", str(mount_point)])
    machine.run(["mount", "-o", "ro,noload", str(origin), str(mount_point)])
    try:
        files = extents.files_under(machine, mount_point)
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
    seconds = _copy(tier, runs, tier.cache, origin_rate, on_progress)
    sampled, differing = compare(tier, runs, samples)
    if differing:
        raise WarmupFailedError(
            f"{differing} of {sampled} sampled blocks differ between origin and cache after the"
            " fill: something wrote to the origin; the cache was not activated"
        )
    xml = metadata_xml(runs, tier.spec.block, tier.capacity, tier.spec.policy)
    tier.machine.run(["cache_restore", "--quiet", "-i", "/dev/stdin", "-o", str(tier.metadata)],
                     stdin=xml)  # fmt: skip
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
        seconds += _copy(tier, runs, _NOWHERE, origin_rate, on_progress, device)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def sequential_rate(machine: Machine, device: PurePosixPath) -> float:
    """The origin's sequential read rate in MB/s, measured on its first megabytes."""
    argv = ["dd", f"if={device}", "of=/dev/null", f"bs={int(_CHUNK)}",
            f"count={_RATE_PROBE // _CHUNK}", "iflag=direct"]  # fmt: skip
    return mb_per_s(_RATE_PROBE, dd_seconds(machine.run(argv, timeout_s=600).stderr))


def dd_seconds(text: str) -> float:
    """The seconds that dd itself measured, out of its last line.

    >>> dd_seconds("2+0 records in\\n2+0 records out\\n50331648 bytes copied, 0.5 s, 9 MB/s")
    0.5
    """
    last = text.strip().splitlines()[-1]
    try:
        return float(last.split(" copied, ")[1].split(" s")[0])
    except (IndexError, ValueError):
        raise ValueError(f"dd did not say how long it took: {last!r}") from None


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
    target: PurePosixPath,
    origin_rate: float,
    on_progress: Callable[[Progress], None],
    source: PurePosixPath | None = None,
) -> float:
    """One sequential copy of the runs, in slices of some seconds; returns the seconds it took."""
    machine, total = tier.machine, extents.count(runs).bytes(tier.spec.block)
    machine.run(["dmsetup", "create", _GATHER, "--readonly"],
                stdin=gather_table(runs, tier.spec.block, source or tier.origin))  # fmt: skip
    begun = time.monotonic()
    try:
        step = max(_CHUNK, Bytes(int(origin_rate * 1e6 * _SLICE_S)).align_down(_CHUNK))
        for start, end in pairwise([*range(0, total, step), total]):
            argv = _dd_argv(mapper_path(_GATHER), target, Bytes(start), Bytes(end))
            machine.run(argv, timeout_s=_COPY_TIMEOUT_S)
            on_progress(Progress(Bytes(end), total, time.monotonic() - begun))
    finally:
        remove(machine, (_GATHER,))
    return time.monotonic() - begun


def _dd_argv(source: PurePosixPath, target: PurePosixPath, start: Bytes, end: Bytes) -> list[str]:
    """Copy the bytes from start to end of one device onto the same place of another."""
    argv = ["dd", f"if={source}", f"of={target}", f"bs={int(_CHUNK)}", f"skip={int(start)}",
            f"count={end - start}", "iflag=direct,fullblock,skip_bytes,count_bytes",
            "status=none"]  # fmt: skip
    if target == _NOWHERE:
        return argv
    return [*argv, f"seek={int(start)}", "oflag=direct,seek_bytes", "conv=notrunc"]
