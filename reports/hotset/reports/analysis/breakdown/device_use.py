"""Load of each device, arm by arm, and of the server's CPU."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from hotset.core import words

from ...model.base import ArmName
from ...model.document import RunDocument
from ...model.windows import DeviceUse, DirectionUse, Repeat
from .. import answer

ORIGIN = "origin"
LINE_COLUMNS = ("busy", "queue", "", "/s", "MB/s", "mean ms", "p99 ms")
COLUMNS = ("arm", "device", *LINE_COLUMNS)
NOTE = (
    "Busy: the share of the time with at least one request under way; queue: how many there were on"
    " average. 99th percentiles are counted where hotset's own engine serves the device; the"
    " kernel's counters have none (n/a). Behind a write-back cache the origin's writes are the"
    " cache's own: they may keep it busy without anybody waiting for it."
)


def summarize_devices(document: RunDocument, arm: ArmName) -> list[DeviceUse]:
    """Each device of an arm, means of its repeats."""
    measured = document.arm(arm)
    repeats = measured.repeats if measured else ()
    names = dict.fromkeys(device.name for repeat in repeats for device in repeat.devices)
    return [_mean_of(name, repeats) for name in names]


def by_arm(document: RunDocument) -> dict[ArmName, list[DeviceUse]]:
    """Return the device use of the arms whose devices were counted."""
    each = {arm.name: summarize_devices(document, arm.name) for arm in answer.arms(document)}
    return {name: devices for name, devices in each.items() if devices}


def _mean_of(name: str, repeats: Sequence[Repeat]) -> DeviceUse:
    every = [device for repeat in repeats for device in repeat.devices if device.name == name]
    return DeviceUse(
        name=name,
        counted_by=every[0].counted_by,
        read=_mean([use.read for use in every]),
        write=_mean([use.write for use in every]),
        utilisation=fmean(use.utilisation for use in every),
    )


def _mean(every: Sequence[DirectionUse]) -> DirectionUse:
    iops, queue = (
        fmean(direction.iops for direction in every),
        fmean(direction.queue for direction in every),
    )
    p99 = [direction.latency_ms_p99 for direction in every if direction.latency_ms_p99 is not None]
    return DirectionUse(
        iops=iops,
        mb_per_s=fmean(direction.mb_per_s for direction in every),
        # Little's law: each repeat weighs by its requests.
        latency_ms_mean=queue / iops * 1000 if iops else None,
        latency_ms_p99=fmean(p99) if p99 else None,
        queue=queue,
    )


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """Build the rows of `COLUMNS`: every arm's devices, means of the repeats; two lines each."""
    rows = list[tuple[str, ...]]()
    for arm, devices in by_arm(document).items():
        for device in devices:
            reads, writes = lines(device)
            rows += [(arm, device.name, *reads), ("", "", *writes)]
    return rows


def lines(device: DeviceUse) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Build a device's two rows of `LINE_COLUMNS`: reads, and writes below them."""
    busy, queue = words.percent(device.utilisation, 0), few(device.queue)
    has_p99 = device.counted_by == "engine"
    return (
        (busy, queue, "reads", *_direction(device.read, has_p99)),
        ("", "", "writes", *_direction(device.write, has_p99)),
    )


def _direction(use: DirectionUse, has_p99: bool) -> tuple[str, ...]:
    p99 = few(use.latency_ms_p99) if has_p99 else "n/a"
    return few(use.iops), few(use.mb_per_s), few(use.latency_ms_mean), p99


def few(number: float | None) -> str:
    """Two or three digits: what counts differs by orders of magnitude.

    >>> few(0.0431), few(4.26), few(81.2), few(1381.4), few(0.0018), few(0.0), few(None)
    ('0.043', '4.3', '81', '1,381', '0.002', '0', '–')
    """
    if number is None:
        return words.ABSENT
    if number >= 10 or number < 0.0005:
        return f"{number:,.0f}"
    return f"{number:.2g}" if number >= 0.01 else f"{number:.1g}"


def cpu_line(document: RunDocument) -> str:
    """The server's CPU of each arm, in a line; shares of all cores' time."""
    each = [
        f"{answer.prefix(arm.name, '')}{user} user, {system} system, {stolen} stolen"
        for arm in answer.arms(document)
        for user, system, stolen in [
            [
                words.percent(answer.mean_of(getattr(repeat, name) for repeat in arm.repeats), 0)
                for name in ("server_user", "server_system", "server_steal")
            ]
        ]
    ]
    return f"Server CPU: {'; '.join(each)}."


def sentence(document: RunDocument) -> str | None:
    """How busy the origin was before, and how busy what took its place is; None where it was not
    counted."""
    before = next(
        (device for device in summarize_devices(document, "baseline") if device.name == ORIGIN),
        None,
    )
    after = summarize_devices(document, "accelerated")
    if before is None or not after:
        return None
    now = [f"the {device.name} {words.percent(device.utilisation, 0)}" for device in after]
    return (
        f"Before, the origin was busy {words.percent(before.utilisation, 0)} of the time, with"
        f" {few(before.queue)} requests under way; now {words.enumerate_words(now)}."
    )
