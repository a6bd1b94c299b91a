"""How figures are written on a page: the same words and units as on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from hotset.block import devicemapper
from hotset.disk.cache_device import Card
from hotset.jobs.store import Job
from hotset.reports.model.words import ABSENT, duration, milliseconds, part_of_all, size

from .split import Split

Part = tuple[str, str, int]
"""Of a bar: the class that colours it, words, bytes."""


def rate(value: float | None) -> str:
    """
    >>> rate(12345.6), rate(3.21), rate(0.0)
    ('12,346', '3.2', '0')
    """
    if value is None:
        return ABSENT
    return f"{value:.1f}" if 0 < value < 10 else f"{value:,.0f}"


def megabytes(value: float | None) -> str:
    """
    >>> megabytes(12_345_678.0)
    '12.3 MB/s'
    """
    return ABSENT if value is None else f"{value / 1e6:,.1f} MB/s"


def number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.0f}"


def factor(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3g}×"


def when(value: datetime | str | float) -> str:
    """A time of this computer's clock, to the minute."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    elif isinstance(value, int | float):
        value = datetime.fromtimestamp(value).astimezone()
    return f"{value.astimezone():%Y-%m-%d %H:%M}"


def card_parts(card: Card) -> list[Part]:
    """A card that stands: each disk's cache in the colour of a cache."""
    disks = [
        ("cache", f"cache of {disk.name}", int(devicemapper.total(disk.cache)))
        for disk in card.disks
    ]
    metadata = sum(int(devicemapper.total(disk.metadata)) for disk in card.disks)
    found = [
        *disks,
        ("metadata", "metadata", metadata),
        ("volume", "volume", int(devicemapper.total(card.volume))),
        ("free", "free", int(devicemapper.total(card.free()))),
    ]
    return [part for part in found if part[2]]


def split_parts(split: Split) -> list[Part]:
    """A card as it would be split."""
    words = {"others": "other disks"}
    return [(name, words.get(name, name), int(size)) for name, size in split.parts]


SUBJECTS = {
    "tpcc": "TPC-C",
    "tpch": "TPC-H",
    "sql": "Your own SQL:",
    "warmup": "Warm-up",
    "tier": "Disk",
    "heat": "Hot data:",
    "disk": "Modelled disks:",
}
"""What the pages call the first word of a command."""


def heading(job: Job) -> str:
    """What a job does, in the words of the page it comes from."""
    first, *rest = job.words
    subject = SUBJECTS.get(first, first.capitalize())
    # A card's, the only one of its word.
    subject = "Card" if job.verb == "tier destroy" else subject
    return " ".join([subject, *rest])


FILTERS: dict[str, Callable[..., str]] = {
    "size": size,
    "heading": heading,
    "percent": part_of_all,
    "rate": rate,
    "megabytes": megabytes,
    "number": number,
    "factor": factor,
    "when": when,
    "duration": duration,
    "ms": milliseconds,
}
