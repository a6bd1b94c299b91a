"""Kernel tiers for the benchmarks: made over a modelled slow disk, gone again afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from hotset.block.devicemapper import remove
from hotset.core.units import Bytes
from hotset.disk import sizing
from hotset.disk.sizing import KernelKind
from hotset.lab.backend import KernelBackend, alone
from hotset.lab.lab import Lab
from hotset.tier.base import WriteMode
from hotset.tier.bcache.tier import Bcache
from hotset.tier.choice import DatabaseKind
from hotset.tier.dmcache.tier import DmCache


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
def made(lab: Lab, wanted: Set, sizes: Sizes, mode: WriteMode) -> Iterator[DmCache | Bcache]:
    """The set-up's tier over a new slow disk; gone again afterwards."""
    backend = lab.backend
    assert isinstance(backend, KernelBackend)
    origin = backend.slow_disk("nas-2014", sizes.disk).attach(lab.cleanup)
    chosen = sizing.choose(
        wanted.kind, wanted.database, sizes.cache, sizes.volume, sizes.flash, mode, None
    )
    spec = replace(chosen.spec, volume=sizes.volume)
    place = alone(lab.machine, spec, backend.flash, origin)
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
