"""The database's server while a benchmark runs against it: its CPU, and what goes through the
devices below its accelerated disks."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from hotset.block.io_counters import KernelDevice, Readings, Source
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.disk import cache_device
from hotset.hitratio.sampler import Sampler, Window
from hotset.tier.disk_tier import DiskTier


@dataclass(frozen=True, slots=True)
class ServerUse:
    """Over the window of a run, and second by second."""

    window: Window
    seconds: tuple[Window | None, ...]


class Span(Protocol):
    """From when to when, in seconds since 1970; a run's window is one."""

    @property
    def window_start(self) -> float: ...
    @property
    def window_end(self) -> float: ...


@dataclass(frozen=True, slots=True)
class PowerSpan:
    """A power run's."""

    window_start: float
    window_end: float


Watch: TypeAlias = Callable[[Span], ServerUse | None]
"""What the server did over a run's window; None where it is not watched."""


@dataclass(frozen=True, slots=True)
class TierDevices:
    """The devices of a disk whose tier counts what goes through them."""

    tier: DiskTier
    prefix: str

    @property
    def command(self) -> str:
        return shlex.join(self.tier.status_argv())

    def parse(self, line: str) -> Readings:
        return {f"{self.prefix}{name}": one for name, one in self.tier.parse_devices(line).items()}


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
        yield lambda _: None
        return

    def use(result: Span) -> ServerUse | None:
        start, end = result.window_start, result.window_end
        try:
            each = sampler.each_second(start, math.ceil(end - start))
            # A power run may be over within a second, and has rest around it.
            over = sampler.around if isinstance(result, PowerSpan) else sampler.window
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
    disks = cache_device.attached_disks(machine)
    found: list[Source] = []
    for disk in disks:
        prefix = f"{disk.disk.name} " if len(disks) > 1 else ""
        tier = disk.tier
        if not tier.is_active():
            continue
        devices = tier.devices()
        if not devices and not (watched and watched.path == tier.path):
            found.append(TierDevices(tier, prefix))
        for name, device in devices.items():
            found.append(KernelDevice.find(machine, f"{prefix}{name}", device))
    return found
