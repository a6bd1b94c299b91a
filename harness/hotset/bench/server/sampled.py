"""The database's server while a benchmark runs against it: its CPU, and what goes through the
devices below its accelerated disks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, Protocol

from hotset.block.io_counters import KernelDevice, Readings, Source
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.hitratio.sampler import Sampler, Window
from hotset.reports.model import windows
from hotset.tier.disk_tier import DiskTier


@dataclass(frozen=True, slots=True)
class ServerUse:
    """Over the window of a run, and second by second."""

    window: Window
    seconds: tuple[Window | None, ...]


class Watch(Protocol):
    """Source of the server's activity over a run's window; None where it is not watched."""

    def __call__(self, start: float, end: float, *, around: bool = False) -> ServerUse | None:
        """
        :param start: in seconds since 1970, as ``end``.
        :param around: it has rest around it, and may be over within a second.
        """


@dataclass(frozen=True, slots=True)
class TierDevices:
    """The devices of a disk whose tier counts what goes through them."""

    tier: DiskTier
    prefix: str

    @property
    def command(self) -> str:
        return shlex.join(self.tier.status_argv())

    def parse(self, line: str) -> Readings:
        return {
            f"{self.prefix}{name}": counters
            for name, counters in self.tier.parse_devices(line).items()
        }


@contextmanager
def watch_server(
    machine: Machine | None, say: Callable[[str], None], tier: DiskTier | None = None
) -> Iterator[Watch]:
    """A server, sampled each second for the length of a ``with`` block.

    :param machine: None: no server is watched.
    :param tier: of the disk that the database lies on, whose hits are counted.
    :param say: told why a window was not seen; a run that was measured is a result all the same.
    """
    if machine is None:
        yield lambda start, end, around=False: None  # noqa: ARG005
        return

    def use(start: float, end: float, *, around: bool = False) -> ServerUse | None:
        try:
            each = sampler.each_second(start, math.ceil(end - start))
            over = sampler.around if around else sampler.window
            return ServerUse(over(start, end), tuple(each))
        except (HotsetError, RuntimeError, ValueError) as error:
            say(f"the server was not sampled: {error}")
            return None

    with Sampler(machine, tier, sources(machine, tier)) as sampler:
        yield use


def sources(machine: Machine, watched: DiskTier | None = None) -> list[Source]:
    """The devices of all its accelerated disks; of several disks, each with its disk's name.

    :param watched: whose own line tells of its devices already.
    """
    disks = flash_devices.list_disks(machine)
    sources: list[Source] = []
    for disk in disks:
        prefix = f"{disk.disk.name} " if len(disks) > 1 else ""
        tier = disk.tier
        if not tier.is_active():
            continue
        devices = tier.devices()
        if not devices and not (watched and watched.path == tier.path):
            sources.append(TierDevices(tier, prefix))
        for name, device in devices.items():
            sources.append(KernelDevice.find(machine, f"{prefix}{name}", device))
    return sources


def add_use(repeat: windows.Repeat, use: ServerUse, block: Bytes) -> windows.Repeat:
    """A window with what the server did over it, and second by second.

    :param block: of the cache.
    """
    # The last second may have begun without being seen.
    each = zip_longest(repeat.series, use.seconds[: len(repeat.series)])
    series = tuple(
        second if window is None else second.model_copy(update=second_fields(window, block))
        for second, window in each
    )
    return repeat.model_copy(update={**window_fields(use.window), "series": series})


def window_fields(window: Window) -> dict[str, Any]:
    """The fields of `windows.Window` that a sampled one has."""
    hits = window.hits
    return {
        "hit_ratio": hits.ratio if hits else None,
        "read_hit_ratio": hits.read_ratio if hits else None,
        "write_hit_ratio": hits.write_ratio if hits else None,
        "server_cpu": window.cpu,
        "server_user": window.user,
        "server_system": window.system,
        "server_iowait": window.iowait,
        "server_steal": window.steal,
        "counters": _counters(window),
        "devices": _devices(window),
    }


def second_fields(window: Window, block: Bytes) -> dict[str, Any]:
    """Return the fields of :func:`window_fields` for a `windows.Second`."""
    counters = window.last.counters
    return {
        "hit_ratio": window.hits.ratio if window.hits else None,
        "server_cpu": window.cpu,
        "dirty_bytes": int(counters.dirty.bytes(block)) if counters else None,
        "devices": _devices(window),
    }


def _devices(window: Window) -> tuple[windows.DeviceUse, ...]:
    return tuple(windows.DeviceUse.model_validate(asdict(device)) for device in window.devices)


def _counters(window: Window) -> windows.Counters | None:
    hits, first, last = window.hits, window.first.counters, window.last.counters
    if hits is None or first is None or last is None:
        return None
    return windows.Counters(
        read_hits=hits.read_hits,
        read_misses=hits.read_misses,
        write_hits=hits.write_hits,
        write_misses=hits.write_misses,
        promotions=hits.promotions,
        demotions=hits.demotions,
        dirty_blocks=last.dirty - first.dirty,
        used_blocks=last.used - first.used,
        bypassed=hits.bypassed or 0,
    )
