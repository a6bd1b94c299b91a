"""The work behind the published arrays: a full-text search over forum posts, whose index takes in
new posts all the time, on each of them; and where on the array its requests go.

The engine has little memory, as one with 27 million posts would have: what it searches comes from
the array again and again.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hotset.block.flashdev import Model
from hotset.core.machines import memory_limit
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.reports.model.disks import DiskArrayHeat, DiskArraySearch, Searched

from . import mounted_model, search_engine

ARRAYS = ("hdd-raid5-2014", "dc500m-raid5", "dc500m-raid6", "dc500m-raid-f1", "dc500m-raid0")
REGION_BYTES = 1024**2
STRIPS = 64
_HOTTEST_SHARE = 0.1
_INDEX = "index"
_MEMORY = Bytes(128 * 1024**2)


@dataclass(frozen=True, slots=True)
class SearchLoad:
    """The load of a search test: posts, users, and posts added per second."""

    posts: int = 500_000
    memory: Bytes = _MEMORY
    seconds: float = 20.0
    users: int = 8
    posts_per_s: int = 200
    seed: int = 1


def require(local: Local) -> None:
    """:raises RootError: not root, whom loop devices and mounts take.
    :raises PrerequisiteMissingError: the engine is missing.
    """
    mounted_model.require(local)
    search_engine.require()


def measure(
    local: Local,
    arrays: Sequence[Model],
    load: SearchLoad,
    path_us: int | None,
    report: Reporter,
) -> Generator[DiskArraySearch]:
    """The same index and the same questions on each array.

    :param path_us: time that serving through a loop device takes here; None: not measured.
    :raises RootError: not root, whom loop devices and mounts take.
    :raises PrerequisiteMissingError: the engine is missing, or memory cannot be limited.
    """
    require(local)
    with tempfile.TemporaryDirectory(prefix="hotset-search-") as name:
        folder = Path(name)
        content, own = folder / "content", folder / "own"
        with report.task(f"indexing {load.posts:,} posts"):
            index_bytes = _build(local, folder, content, load)
        for array in arrays:
            report.say(f"{array}: {load.users} users search {index_bytes} while posts come in")
            # Each array has its own copy: new posts are written.
            local.run(["cp", "--sparse=always", str(content), str(own)], timeout_s=600)
            yield _on(local, folder, own, array, load, index_bytes, path_us)


def _build(local: Local, folder: Path, content: Path, load: SearchLoad) -> Bytes:
    """Index the posts; a disk's content with them. Returns the index's size."""
    source = folder / "source"
    index = source / _INDEX
    index.mkdir(parents=True)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        pool.submit(search_engine.build, index, load.posts, load.seed).result()
    used = Bytes(sum(file.stat().st_size for file in index.iterdir()))
    # Merging makes new segments before it removes the old ones.
    mounted_model.make_content(local, content, source, Bytes(3 * used))
    shutil.rmtree(source)
    return used


def _on(
    local: Local,
    folder: Path,
    content: Path,
    array: Model,
    load: SearchLoad,
    index_bytes: Bytes,
    path_us: int | None,
) -> DiskArraySearch:
    trace = folder / "trace"
    with (
        mounted_model.mount_model(local, folder, content, array, False, trace, path_us) as mounted,
        memory_limit.limit_memory(load.memory) as group,
        ProcessPoolExecutor(
            1,
            multiprocessing.get_context("spawn"),
            initializer=memory_limit.join,
            initargs=(group,),
        ) as pool,
    ):
        figures = pool.submit(
            search_engine.run,
            mounted.files / _INDEX,
            load.seconds,
            load.users,
            load.posts_per_s,
            load.seed,
        ).result()
    searched, size = Searched(**figures), content.stat().st_size
    return DiskArraySearch(
        array=str(array),
        searches_per_s=searched.searches / searched.seconds,
        searched=searched,
        heat=heat_of(trace, size, int(index_bytes)),
    )


def heat_of(trace: Path, size: int, index_bytes: int) -> DiskArrayHeat:
    """Where the requests of a trace went (`SECONDS R|W OFFSET BYTES` a line).

    :param index_bytes: how much of the device the index takes.
    """
    requests, moved = Counter[str](), Counter[str]()
    regions = Counter[int]()
    strips = {"R": [0] * STRIPS, "W": [0] * STRIPS}
    with trace.open(encoding="ascii") as lines:
        for line in lines:
            _, kind, offset, length = line.split()
            requests[kind] += 1
            moved[kind] += int(length)
            regions[int(offset) // REGION_BYTES] += 1
            strips[kind][min(STRIPS - 1, int(offset) * STRIPS // size)] += 1
    hottest = max(1, round(_HOTTEST_SHARE * index_bytes / REGION_BYTES))
    hot = sum(count for _, count in regions.most_common(hottest))
    return DiskArrayHeat(
        reads=requests["R"],
        read_bytes=moved["R"],
        writes=requests["W"],
        written_bytes=moved["W"],
        hottest_share=hot / max(1, requests.total()),
        read_strips=tuple(strips["R"]),
        write_strips=tuple(strips["W"]),
    )
