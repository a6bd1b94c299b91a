"""Where the users' time went, arm by arm, and what follows from it, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from statistics import fmean
from typing import get_args

from hotset.core import words
from hotset.core.sql import TimeClass

from ...model.base import ArmName
from ...model.document import RunDocument
from ...model.windows import TimeUse
from .. import answer
from . import device_use

CLASSES: tuple[TimeClass, ...] = get_args(TimeClass)
NAMES: dict[TimeClass, str] = {
    "cpu": "CPU",
    "data_read": "reading data",
    "data_write": "writing data",
    "log": "flushing the log",
    "lock": "locks",
    "client": "network and client",
    "other": "other",
}
STORAGE: tuple[TimeClass, ...] = ("data_read", "data_write", "log")
STORAGE_MATTERS = 0.1
"""Below this share of the users' time, faster storage gains less than a ninth."""
_FEW = 0.5
"""With fewer requests than this share of the sessions that wait, they wait for something else."""
COLUMNS = ("arm", "repeat", *NAMES.values())


def mean(uses: Iterable[TimeUse | None]) -> TimeUse | None:
    """The mean shares; None where nothing was sampled."""
    known = [use for use in uses if use is not None]
    if not known:
        return None
    shares = {name: fmean(getattr(use, name) for use in known) for name in CLASSES}
    return TimeUse(**shares, sessions=fmean(use.sessions for use in known))


def summarize_time(document: RunDocument, arm: ArmName) -> TimeUse | None:
    """Over an arm's repeats."""
    measured = document.arm(arm)
    return mean(repeat.time for repeat in measured.repeats) if measured else None


def largest(use: TimeUse) -> TimeClass:
    """The class with the most."""
    return max(CLASSES, key=lambda name: float(getattr(use, name)))


def most(use: TimeUse) -> str:
    """The class with the most, and its share: ``CPU 71 %``."""
    name = largest(use)
    return f"{NAMES[name]} {words.percent(getattr(use, name), 0)}"


def storage_share(use: TimeUse) -> float:
    """Sum the shares that waited for storage: data read and written, and the log."""
    return fsum(getattr(use, name) for name in STORAGE)


def sentence(document: RunDocument) -> str | None:
    """Before and now, and whether more flash would help; None where it was not sampled."""
    before, after = summarize_time(document, "baseline"), summarize_time(document, "accelerated")
    if before is None or after is None:
        return None
    first = f"Before, {_describe(before)} of the users' time was {_doing(largest(before))}"
    verdict = _verdict(document, after)
    return f"{first}; now {_describe(after)} is {_doing(largest(after))}; {verdict}."


def _describe(use: TimeUse) -> str:
    return words.percent(getattr(use, largest(use)), 0)


def _doing(name: TimeClass) -> str:
    """
    >>> _doing("cpu"), _doing("data_read"), _doing("lock")
    ('CPU', 'waiting for data reads', 'waiting for locks')
    """
    return {
        "cpu": "CPU",
        "data_read": "waiting for data reads",
        "data_write": "waiting for data writes",
        "log": "waiting for the log",
        "lock": "waiting for locks",
        "client": "the network and the client",
        "other": "waiting for something else",
    }[name]


def _verdict(document: RunDocument, after: TimeUse) -> str:
    """Judge what more flash would do, by what storage still takes, and takes on flash alone."""
    share, ceiling = storage_share(after), summarize_time(document, "all-flash")
    if share < STORAGE_MATTERS and after.lock >= STORAGE_MATTERS:
        # Who holds a lock may itself wait for the disk or the log.
        return (
            f"waiting for locks takes {words.percent(after.lock, 0)}, and what those who hold them"
            " wait for was not looked at: whether faster storage would help is not known"
        )
    if share < STORAGE_MATTERS:
        return "more flash would not help"
    if idle := _idle_storage(document, after):
        return f"{idle}: more flash would not help"
    if ceiling is not None and share - storage_share(ceiling) < STORAGE_MATTERS:
        return (
            f"storage still takes {words.percent(share, 0)}, and"
            f" {words.percent(storage_share(ceiling), 0)} on flash alone: more flash would not help"
        )
    most: TimeClass = max(STORAGE, key=lambda name: float(getattr(after, name)))
    remedy = {
        "data_read": "a larger cache can still help",
        "data_write": "faster writes can still help",
        "log": "a faster log can still help",
    }[most]
    return f"storage still takes {words.percent(share, 0)}, so {remedy}"


def _idle_storage(document: RunDocument, after: TimeUse) -> str | None:
    """Describe sessions that seem to wait for storage but wait for a CPU: a session whose read has
    ended is shown as reading until it gets one. The devices show how many do read."""
    arm, devices = (
        document.arm("accelerated"),
        device_use.summarize_devices(document, "accelerated"),
    )
    assert arm is not None
    waiting = storage_share(after) * after.sessions
    # The origin's writes are the cache's own, in the background.
    under_way = sum(
        device.read.queue if device.name == device_use.ORIGIN else device.queue
        for device in devices
    )
    if not (devices and arm.cpu_bound and under_way < waiting * _FEW):
        return None
    return (
        f"the CPU is {words.percent(answer.figures(arm).server_cpu, 0)} busy,"
        f" and for {waiting:.0f} sessions that wait for storage the devices have"
        f" {device_use.few(under_way)} requests under way"
    )


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """Every repeat's shares."""
    return [
        (
            arm.name,
            str(repeat.repeat),
            *(words.percent(getattr(repeat.time, name)) for name in CLASSES),
        )
        for arm in document.arms
        for repeat in arm.repeats
        if repeat.time is not None
    ]


def missing(document: RunDocument) -> list[str]:
    """List what could not be seen, each once."""
    reasons = (repeat.time_missing for arm in document.arms for repeat in arm.repeats)
    return list(dict.fromkeys(text for text in reasons if text))
