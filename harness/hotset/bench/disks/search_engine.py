"""A full-text engine (tantivy) over forum posts: builds an index, and searches while it indexes."""

from __future__ import annotations

import statistics
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotset.core import extras
from hotset.core.errors import RequestError
from hotset.core.extras import Extra

from .posts import Forum, Post

if TYPE_CHECKING:
    import tantivy

_BATCH = 20_000
_COMMIT_EVERY_S = 1.0
_HEAP_BYTES = 16_000_000
"""Heap of the writer: when it is full, its content becomes a segment."""
_FOUND = 10
"""Posts that a search shows."""


class EmptyIndexError(RequestError):
    """An index without posts: whatever is measured on it says nothing."""


def require() -> None:
    """:raises ExtraMissingError: the engine is not installed."""
    extras.require(Extra.SEARCH)


def build(folder: Path, posts: int, seed: int) -> None:
    """An index of so many posts."""
    import tantivy

    index = tantivy.Index(_schema(), path=str(folder))
    writer = index.writer(heap_size=4 * _HEAP_BYTES, num_threads=1)
    forum = Forum(seed)
    for begin in range(0, posts, _BATCH):
        for post in forum.posts(min(_BATCH, posts - begin)):
            writer.add_document(_document(post))
        writer.commit()
    writer.wait_merging_threads()


def run(folder: Path, seconds: float, users: int, posts_per_s: int, seed: int) -> dict[str, Any]:
    """Search as so many users, each one question after the other, while new posts come in and are
    committed once a second. Returns the fields of `reports.model.disks.Searched`: this process has
    little memory, and loads no more than it needs.

    :raises EmptyIndexError: there is nothing to be found.
    """
    import tantivy

    index = tantivy.Index.open(str(folder))
    if index.searcher().num_docs == 0:
        raise EmptyIndexError(
            f"the index in {folder} has no posts, so no search finds any: give 1,000 posts or more",
            field="posts",
        )
    ends = time.monotonic() + seconds
    latencies: list[list[float]] = [[] for _ in range(users)]
    hits = [0] * users
    errors: list[BaseException] = []

    def search(user: int) -> None:
        forum = Forum(seed + 1 + user)
        try:
            while time.monotonic() < ends:
                words = forum.search()
                begun = time.perf_counter()
                hits[user] += _search(index, words)
                latencies[user].append((time.perf_counter() - begun) * 1e3)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=search, args=(user,)) for user in range(users)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    added, commits = _index(index, ends, posts_per_s, Forum(seed))
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    if errors:
        raise errors[0]
    return {
        "seconds": took,
        "posts": sum(hits),
        "added": added,
        **_figures([latency for user in latencies for latency in user], commits),
    }


def _figures(latencies: list[float], commits: list[float]) -> dict[str, float]:
    every = sorted(latencies)
    p50, p99 = (every[int(share * (len(every) - 1))] for share in (0.5, 0.99))
    commit_ms = statistics.median(commits) if commits else 0.0
    return {
        "searches": len(every),
        "p50_ms": p50,
        "p99_ms": p99,
        "commits": len(commits),
        "commit_ms": commit_ms,
    }


def _search(index: tantivy.Index, words: list[str]) -> int:
    """How many posts it shows."""
    query = index.parse_query(" ".join(words), ["title", "body"], conjunction_by_default=True)
    searcher = index.searcher()
    hits = searcher.search(query, _FOUND).hits
    return sum(bool(searcher.doc(address)["title"]) for _, address in hits)


def _index(
    index: tantivy.Index, ends: float, posts_per_s: int, forum: Forum
) -> tuple[int, list[float]]:
    """New posts until then; how many, and the milliseconds of each commit."""
    writer = index.writer(heap_size=_HEAP_BYTES, num_threads=1)
    added, commits, due = 0, list[float](), time.monotonic()
    while due < ends:
        for post in forum.posts(int(posts_per_s * _COMMIT_EVERY_S)):
            writer.add_document(_document(post))
            added += 1
        begun = time.perf_counter()
        writer.commit()
        commits.append((time.perf_counter() - begun) * 1e3)
        index.reload()
        # One that took longer than its time is followed by the next at once.
        due = max(due + _COMMIT_EVERY_S, time.monotonic())
        time.sleep(max(0.0, min(due, ends) - time.monotonic()))
    writer.wait_merging_threads()
    return added, commits


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("title", stored=True)
    builder.add_text_field("body", stored=True)
    return builder.build()


def _document(post: Post) -> tantivy.Document:
    import tantivy

    return tantivy.Document(title=post.title, body=post.body)
