"""How figures are written on a page: the same words and units as on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from hotset.block import devicemapper
from hotset.core import errors
from hotset.core.errors import Remedy
from hotset.core.words import ABSENT, duration, milliseconds, part_of_all, size
from hotset.disk.flash_devices import FlashDevice
from hotset.operations.jobs import store as jobs
from hotset.operations.jobs.store import Job

from .split import Split

Part = tuple[str, str, int]
"""Segment of a bar: the class that colours it, its text, its bytes."""


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


def flash_parts(flash: FlashDevice) -> list[Part]:
    """A flash device that is set up: each disk's cache in the colour of a cache."""
    disks = [
        ("cache", f"cache of {disk.name}", int(devicemapper.total(disk.cache)))
        for disk in flash.disks
    ]
    metadata = sum(int(devicemapper.total(disk.metadata)) for disk in flash.disks)
    parts = [
        *disks,
        ("metadata", "metadata", metadata),
        ("volume", "volume", int(devicemapper.total(flash.volume))),
        ("free", "free", int(devicemapper.total(flash.free()))),
    ]
    return [part for part in parts if part[2]]


def split_parts(split: Split) -> list[Part]:
    """A flash device as it would be split."""
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
"""Names that the pages use for the first word of a command."""


def heading(job: Job) -> str:
    """Describe what a job does, in the words of the page it comes from."""
    first, *rest = job.words
    subject = SUBJECTS.get(first, first.capitalize())
    # The only one of its word that is not of a disk.
    subject = "Flash device:" if job.verb == "tier destroy" else subject
    return " ".join([subject, *rest])


IN_FORMS = {
    "yes": "tick that you agree to it",
    "flush": 'tick "Write dirty data back first if necessary"',
    "flash_is_dead": 'tick "The flash is dead"',
    "password": "fill in its password",
}
"""Form instructions for parameters; the others exist on the command line alone."""


def tell_error(message: str, field: str | None, remedies: Iterable[Remedy]) -> str:
    """Format an error for a page, with its remedies.

    >>> tell_error("it is loaded", "dsn", [Remedy("load it again", parameters={"replace": True})])
    'dsn: it is loaded; to load it again: on the command line add --replace'
    >>> tell_error("33 are dirty", None, [Remedy("lose them", parameters={"yes": True})])
    '33 are dirty; to lose them: tick that you agree to it'
    >>> tell_error("33 are dirty", None, [Remedy("flush", "tier flush", {"disk": "shop"})])
    '33 are dirty; to flush: `hotset tier flush shop`'
    """
    text = "; ".join((message, *(f"to {remedy.purpose}: {_word(remedy)}" for remedy in remedies)))
    return text if field is None or text.startswith(f"{field}:") else f"{field}: {text}"


def _word(remedy: Remedy) -> str:
    if remedy.operation is None and set(remedy.parameters) <= set(IN_FORMS):
        return " and ".join(IN_FORMS[name] for name in remedy.parameters)
    text = errors.command(remedy)
    return text if text.startswith("`") else f"on the command line {text}"


def failure(job: Job) -> str:
    """Why a job failed, in a page's words; empty: it did not, or hotset did not foresee it."""
    problem = jobs.problem(job)
    if problem is None:
        return ""
    remedies = [Remedy(**remedy) for remedy in problem["remedies"]]
    return tell_error(problem["message"], problem["field"], remedies)


def latest(job: Job) -> str:
    """Its progress, its result, or why it failed, in one line."""
    return failure(job) or job.latest


FILTERS: dict[str, Callable[..., str]] = {
    "size": size,
    "heading": heading,
    "latest": latest,
    "percent": part_of_all,
    "rate": rate,
    "megabytes": megabytes,
    "number": number,
    "factor": factor,
    "when": when,
    "duration": duration,
    "ms": milliseconds,
}
