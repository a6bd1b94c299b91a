"""Warm-up: fill the cache with a database before its users come.

Files → extents → blocks in origin order → the tier's own fastest way to take them in
(:meth:`Tier.warm`), or, for comparison, reading them through the tier until its policy takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from hotset.cachelayer import extents, filesystem, flashdev
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import device_size
from hotset.cachelayer.machine import Machine, put_lines
from hotset.cachelayer.tier import Progress, Tier, Warmup
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

if TYPE_CHECKING:
    from hotset.cachelayer.dmcache import DmCache
    from hotset.cachelayer.slots import Piece

Method = Literal["fill", "read"]
READ_MAX = Bytes(1024**2)
"""The largest read that every tier keeps: bcache keeps no miss that comes as one request of more
(it asks for one bio of as many pages, ``cached_dev_cache_miss`` in drivers/md/bcache/request.c),
which the kernel's large pages make of larger reads."""
_RUNS = PurePosixPath("/run/hotset/runs")
_RATE_PROBE = Bytes(48 * 1024**2)


def database_runs(
    tier: Tier,
    look: PurePosixPath,
    mount_point: PurePosixPath,
    folder: str,
    first: Sequence[str] = (),
    hottest: Iterable[Run] = (),
) -> list[Run]:
    """The origin's blocks that hold the files of a folder, as far as the cache has room; what is
    left of it takes free space, so that the files' growth hits as well.

    :param look: what :meth:`Tier.prepare` returned.
    :param first: folders in it whose files come before the others.
    :param hottest: blocks that come before all files, in that order.
    """
    machine, block = tier.machine, tier.spec.block
    capacity = tier.spec.cache.blocks(block)
    machine.run(["mkdir", "-p", str(mount_point)])
    kind = filesystem.kind_of(machine, look)
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(look), str(mount_point)])
    try:
        base = mount_point / folder
        size = device_size(machine, look)
        whole = [Run(Blocks(0), size.blocks(block))]
        kept = extents.intersection(extents.union(extents.first(hottest, capacity)), whole)
        for one in (*(base / name for name in first), base):
            found = extents.of_files(machine, extents.files_under(machine, one))
            if one == base:
                found += filesystem.own_extents(machine, look, kind)
            kept = extents.joined(kept, extents.to_runs(found, block, size), capacity)
        free = filesystem.free_extents(machine, look, kind)
    finally:
        machine.run(["umount", str(mount_point)])
    return extents.with_room(kept, free, block, growth_limit(capacity, size.blocks(block)))


def growth_limit(capacity: Blocks, origin: Blocks) -> Blocks:
    """How full of files and free space a cache may be made.

    A full smq gives up blocks at every miss until a quarter is free (``queue_demotion``), and
    those could be the files'. Only where the whole origin fits can nothing miss.
    """
    return capacity if origin <= capacity else Blocks(capacity * 3 // 4)


def by_reading(
    tier: Tier,
    runs: Sequence[Run],
    passes: int,
    on_progress: Callable[[Progress], None],
) -> Warmup:
    """Read the runs through the tier, ``passes`` times, and let the policy promote them."""
    begun = time.monotonic()
    machine, block = tier.machine, tier.spec.block
    device = tier.create()
    total = Bytes(extents.count(runs).bytes(block) * passes)
    origin_rate = sequential_rate(machine, device)
    progress = progress_of(total, on_progress)
    seconds, one_pass = 0.0, extents.count(runs).bytes(block)
    for number in range(passes):

        def on_bytes(done: Bytes, before: int = number * one_pass) -> None:
            progress(Bytes(before + done))

        seconds += read_runs(machine, runs, block, device, on_bytes)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def read_runs(
    machine: Machine,
    runs: Iterable[Run],
    block: Bytes,
    device: PurePosixPath,
    on_bytes: Callable[[Bytes], None],
    rate: Bytes | None = None,
    piece: Bytes = READ_MAX,
) -> float:
    """Read the runs of a device once, at most so many bytes a second; returns the seconds.

    :param piece: no read larger than this.
    """
    lines = (f"{run.start * block} {run.count * block}\n" for run in runs)
    words = ["--from", str(device), "--piece", str(int(piece))]
    return _copied(machine, words, lines, on_bytes, rate)


def copy_pieces(
    tier: DmCache,
    pieces: Iterable[Piece],
    rate: Bytes | None,
    on_bytes: Callable[[Bytes], None],
) -> float:
    """Copy pieces of the origin to their slots of the cache; returns the seconds.

    Both devices are claimed: nobody can mount the origin or activate the tier meanwhile.
    """
    block = tier.spec.block
    lines = (
        f"{piece.run.start * block} {piece.run.count * block} {piece.slot * block}\n"
        for piece in pieces
    )
    words = ["--from", str(tier.origin), "--to", str(tier.cache), "--exclusive"]
    return _copied(tier.machine, words, lines, on_bytes, rate)


def _copied(
    machine: Machine,
    words: list[str],
    lines: Iterable[str],
    on_bytes: Callable[[Bytes], None],
    rate: Bytes | None,
) -> float:
    machine.run(["mkdir", "-p", str(_RUNS.parent)])
    put_lines(machine, lines, _RUNS)
    limit = [] if rate is None else ["--rate", str(int(rate))]
    return flashdev.copy(machine, [*words, "--runs", str(_RUNS), *limit], on_bytes)


def progress_of(total: Bytes, on_progress: Callable[[Progress], None]) -> Callable[[Bytes], None]:
    """Turns bytes done into progress, with the seconds since now."""
    begun = time.monotonic()
    return lambda done: on_progress(Progress(done, total, time.monotonic() - begun))


def sequential_rate(machine: Machine, device: PurePosixPath) -> float:
    """The sequential read rate in MB/s, measured on a device's first megabytes."""
    size = min(_RATE_PROBE, device_size(machine, device))
    read = flashdev.copy(machine, ["--from", str(device), "--bytes", str(int(size))])
    return mb_per_s(Bytes(size), read)
