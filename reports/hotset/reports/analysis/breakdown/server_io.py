"""Counters of the database server itself: reads, writes and log, a second and per transaction."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from hotset.core import words

from ...model.document import RunDocument
from ...model.windows import Repeat, ServerIo
from .. import answer
from .device_use import few

COLUMNS = (
    "arm",
    "reads/s",
    "reads/transaction",
    "mean read ms",
    "writes/s",
    "data syncs/s",
    "log bytes/transaction",
    "log flushes/s",
)
NOTE = (
    "As the database server counted them: pages that its buffers did not hold, pages written by"
    " whichever of its processes, and its log."
)
_COUNTS = ("reads", "read_ms", "writes", "fsyncs", "log_bytes", "log_syncs")


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """Build the rows of `COLUMNS`: each arm's means of the repeats."""
    return [
        (arm.name, *_cells(counted))
        for arm in answer.arms(document)
        if (counted := _of(arm.repeats))
    ]


def missing(document: RunDocument) -> list[str]:
    """List what the server does not count or show, each once."""
    reasons = (repeat.server_io_missing for arm in document.arms for repeat in arm.repeats)
    return list(dict.fromkeys(text for text in reasons if text))


def _of(repeats: tuple[Repeat, ...]) -> list[tuple[ServerIo, float]]:
    """With the transactions of the same time."""
    return [
        (io, repeat.tpm * io.seconds / 60)
        for repeat in repeats
        if (io := repeat.server_io) is not None
    ]


def _cells(counted: list[tuple[ServerIo, float]]) -> Iterator[str]:
    each = {name: _rates(counted, name) for name in _COUNTS}
    a_second = {name: rates and rates[0] for name, rates in each.items()}
    per_one = {name: rates and rates[1] for name, rates in each.items()}
    reads, read_ms = a_second["reads"], a_second["read_ms"]
    yield few(reads)
    yield few(per_one["reads"])
    yield few(read_ms / reads if read_ms is not None and reads else None)
    yield few(a_second["writes"])
    yield few(a_second["fsyncs"])
    yield words.count(per_one["log_bytes"])
    yield few(a_second["log_syncs"])


def _rates(counted: list[tuple[ServerIo, float]], name: str) -> tuple[float, float | None] | None:
    """A second, and per transaction; None where it is not counted."""
    known = [(getattr(io, name), io.seconds, of) for io, of in counted]
    known = [pair for pair in known if pair[0] is not None]
    if not known:
        return None
    per_one = [count / of for count, _, of in known if of > 0]
    return fmean(count / s for count, s, _ in known), fmean(per_one) if per_one else None
