"""How a flash device is split: from the slider's place to the sizes that ``tier create`` cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotset.block import devicemapper
from hotset.block.devicemapper import RESERVED, UNIT
from hotset.core.units import Bytes
from hotset.disk import sizing
from hotset.disk.flash_devices import FlashDevice
from hotset.tier.base import TierKind, TierSpec, WriteMode
from hotset.tier.choice import DatabaseKind

Share = Literal["cache", "metadata", "volume", "others", "free"]


@dataclass(frozen=True, slots=True)
class Split:
    """A flash device as it would be cut. ``others`` is what other disks have of it; ``volume_new``:
    the volume is made with this disk. ``reasons``: what the kind of database picks, and why."""

    size: Bytes
    spec: TierSpec
    volume: Bytes
    volume_new: bool
    others: Bytes
    free: Bytes
    reasons: tuple[str, ...]

    @property
    def parts(self) -> list[tuple[Share, Bytes]]:
        """From the left to the right of the bar."""
        shares: list[tuple[Share, Bytes]] = [
            ("cache", self.spec.cache),
            ("metadata", self.spec.metadata),
            ("volume", self.volume),
            ("others", self.others),
            ("free", self.free),
        ]
        return [(name, size) for name, size in shares if size]


def split(
    size: Bytes,
    flash: FlashDevice | None,
    kind: TierKind,
    database: DatabaseKind,
    mode: WriteMode | None,
    cache_percent: int,
    kept_percent: int,
) -> Split:
    """
    :param size: of the flash device.
    :param flash: it is set up already: its volume exists, and other disks have their parts.
    :param mode: None: the kind of database picks it.
    :param cache_percent: of what this disk and the volume get; the rest is the volume.
    :param kept_percent: of what is free now, for disks to come.
    :raises ChoiceError: no room for the least that the kind needs.
    """
    whole = size.align_down(UNIT)
    free = devicemapper.total(flash.free()) if flash else Bytes(whole - RESERVED)
    taken = Bytes(free * (100 - kept_percent) // 100).align_down(UNIT)
    is_active = devicemapper.total(flash.volume) if flash else Bytes(0)
    share = 100 if flash else cache_percent
    # The metadata's size hangs on the block, and the block on the cache: chosen for the most that
    # the cache can be, which is never too little metadata.
    rough = sizing.choose(kind, database, Bytes(taken * share // 100), is_active, size, mode, None)
    metadata = rough.spec.metadata.align_up(UNIT)
    shared = Bytes(max(0, taken - metadata))
    cache = Bytes(shared * share // 100).align_down(UNIT)
    volume = is_active if flash else Bytes(shared - cache)
    chosen = sizing.choose(kind, database, cache, volume, size, mode, None)
    used = cache + chosen.spec.metadata + (0 if flash else volume)
    return Split(
        size,
        chosen.spec,
        volume,
        flash is None,
        Bytes(whole - RESERVED - free - is_active),
        Bytes(free - used),
        chosen.reasons,
    )
