"""The search workload: posts, the engine, where the requests go, and all of it on an array."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from hotset.bench.disks import search, search_engine
from hotset.bench.disks.posts import Forum
from hotset.bench.disks.search import SearchLoad
from hotset.bench.disks.search_engine import EmptyIndexError
from hotset.core.machines import memory_limit
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.reports.model.disks import Searched
from tests.support.marks import needs_root

pytestmark = pytest.mark.night

MIB = 1024**2


def test_posts_and_searches_are_the_same_for_a_seed() -> None:
    first, second, other = (Forum(seed) for seed in (1, 1, 2))
    posts = list(first.posts(200))
    assert posts == list(second.posts(200))
    assert posts != list(other.posts(200))
    assert first.search() == second.search()
    words = [len(post.body.split()) for post in posts]
    assert min(words) >= 5
    assert 50 < sum(words) / len(words) < 120
    assert {len(first.search()) for _ in range(50)} == {1, 2, 3}


def test_the_most_used_words_are_those_of_a_language() -> None:
    words = " ".join(post.body for post in Forum(1).posts(1000)).split()
    most = max(set(words), key=words.count)
    assert 0.05 < words.count(most) / len(words) < 0.15


def test_the_engine_finds_posts_while_it_takes_in_others(tmp_path: Path) -> None:
    search_engine.build(tmp_path, 3000, 1)
    found = Searched(**search_engine.run(tmp_path, 2.0, 2, 100, 1))
    assert found.searches > 20
    assert found.posts > 0
    assert found.commits >= 1
    assert found.added == found.commits * 100
    assert 0 < found.p50_ms <= found.p99_ms
    again = search_engine.run(tmp_path, 1.0, 1, 100, 1)
    assert again["added"] >= 100


def test_a_search_over_an_empty_index_is_refused(tmp_path: Path) -> None:
    """It came to a hundred thousand searches a second that found nothing."""
    search_engine.build(tmp_path, 0, 1)
    with pytest.raises(EmptyIndexError, match=r"has no posts.*give 1,000 posts or more") as refused:
        search_engine.run(tmp_path, 0.5, 1, 0, 1)
    assert refused.value.field == "posts"
    with ProcessPoolExecutor(1) as pool, pytest.raises(EmptyIndexError) as passed_on:
        pool.submit(search_engine.run, tmp_path, 0.5, 1, 0, 1).result()
    assert (str(passed_on.value), passed_on.value.field) == (str(refused.value), "posts")


def test_heat_is_where_the_requests_went(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    lines = ["0.1 R 0 4096"] * 6 + [f"0.2 R {63 * MIB} 8192"] * 3 + [f"0.3 W {32 * MIB} 512"]
    trace.write_text("\n".join(lines))
    heat = search.heat_of(trace, 64 * MIB, 10 * MIB)
    assert (heat.reads, heat.read_bytes) == (9, 6 * 4096 + 3 * 8192)
    assert (heat.writes, heat.written_bytes) == (1, 512)
    assert heat.hottest_share == pytest.approx(0.6)
    assert (heat.read_strips[0], heat.read_strips[63], heat.write_strips[32]) == (6, 3, 1)


@needs_root
def test_the_same_searches_run_on_each_array() -> None:
    try:
        with memory_limit.limit_memory(Bytes(64 * MIB)):
            pass
    except PrerequisiteMissingError as error:
        pytest.skip(str(error))
    arrays = ("hdd-raid5-2014", "dc500m-raid5")
    load = SearchLoad(posts=20_000, memory=Bytes(160 * MIB), seconds=3, users=2, posts_per_s=50)
    for one in search.measure(Local(), arrays, load, 80, Reporter(quiet=True)):
        assert one.searched.searches > 0
        assert one.searched.added > 0
        # All that is searched is read from the array at least once, and what is added written.
        assert one.heat.read_bytes > 2 * MIB
        assert one.heat.written_bytes > 0
        assert sum(one.heat.read_strips) == one.heat.reads
        assert 0 < one.heat.hottest_share <= 1
