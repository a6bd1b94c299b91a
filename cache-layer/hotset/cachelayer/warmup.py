"""Warm-up: fill the cache with a database before its users come.

Files → extents → blocks in origin order → the tier's own fastest way to take them in
(:meth:`Tier.warm`), or, for comparison, reading them through the tier until its policy takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath
from typing import Literal

from hotset.cachelayer import extents, filesystem, flashdev
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import device_size
from hotset.cachelayer.machine import Machine, put_text
from hotset.cachelayer.tier import Progress, Tier, Warmup
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

Method = Literal["fill", "read"]
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
    tier: Tier, runs: Sequence[Run], passes: int, on_progress: Callable[[Progress], None]
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

        seconds += copy_runs(machine, runs, block, device, None, on_bytes)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def copy_runs(
    machine: Machine,
    runs: Sequence[Run],
    block: Bytes,
    source: PurePosixPath,
    target: PurePosixPath | None,
    on_bytes: Callable[[Bytes], None],
) -> float:
    """One sequential copy of the runs of a device; returns its seconds.

    :param target: where to, laid one behind the other; None only reads them.
    """
    lines = (f"{run.start * block} {run.count * block}\n" for run in runs)
    machine.run(["mkdir", "-p", str(_RUNS.parent)])
    put_text(machine, "".join(lines), _RUNS)
    words = ["--from", str(source), "--runs", str(_RUNS)]
    if target is not None:
        words += ["--to", str(target)]
    return flashdev.copy(machine, words, on_bytes)


def progress_of(total: Bytes, on_progress: Callable[[Progress], None]) -> Callable[[Bytes], None]:
    """Turns bytes done into progress, with the seconds since now."""
    begun = time.monotonic()
    return lambda done: on_progress(Progress(done, total, time.monotonic() - begun))


def sequential_rate(machine: Machine, device: PurePosixPath) -> float:
    """The sequential read rate in MB/s, measured on a device's first megabytes."""
    size = min(_RATE_PROBE, device_size(machine, device))
    read = flashdev.copy(machine, ["--from", str(device), "--bytes", str(int(size))])
    return mb_per_s(Bytes(size), read)
