"""Kernel tiers for the benchmarks: made over a modelled slow disk, gone again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from hotset.cachelayer import choice
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.choice import DatabaseKind, KernelKind
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.flash import remove
from hotset.cachelayer.ground import KernelGround, alone
from hotset.cachelayer.lab import Lab
from hotset.cachelayer.tier import WriteMode
from hotset.cachelayer.units import Bytes


@dataclass(frozen=True)
class Set:
    """A set-up: what it is called, and how its tier is made."""

    name: str
    kind: KernelKind
    database: DatabaseKind


@dataclass(frozen=True)
class Sizes:
    """Of the slow disk, and of the flash and its parts."""

    disk: Bytes
    cache: Bytes
    volume: Bytes
    flash: Bytes


@contextmanager
def made(
    lab: Lab, wanted: Set, time_scale: float, sizes: Sizes, mode: WriteMode
) -> Iterator[DmCache | Bcache]:
    """The set-up's tier over a new slow disk; gone again afterwards."""
    ground = lab.ground
    assert isinstance(ground, KernelGround)
    origin = ground.slow_disk("nas-2014", sizes.disk, time_scale).attach(lab.takedown)
    chosen = choice.choose(wanted.kind, wanted.database, sizes.cache, sizes.volume, sizes.flash,
                           mode, None)  # fmt: skip
    spec = replace(chosen.spec, volume=sizes.volume)
    place = alone(lab.machine, spec, ground.flash, origin)
    tier: DmCache | Bcache
    if wanted.kind == "bcache":
        tier = Bcache(lab.machine, spec, place, str(uuid4()))
    else:
        tier = DmCache(lab.machine, spec, place)
    try:
        yield tier
    finally:
        tier.discard()
        remove(lab.machine, [place.volume.name])
