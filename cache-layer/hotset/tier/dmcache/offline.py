"""Off-line fill of dm-cache: the cache is written while the tier is down, then switched on.

What is cached stays as far as there is room. The missing blocks are copied in origin order, in
parts; after each part the metadata are written (``cache_restore``), so that whatever stops the
fill, the next one goes on from there. Metadata never name a block before it is on the cache, nor
one whose place is being overwritten: at any moment the tier can be activated as it is.

It is sound only while nobody else writes to the origin. The copy claims origin and cache
(``O_EXCL``: no mount, no device built on them); the origin's count of written sectors is compared
before each part is believed, and sampled blocks are compared byte for byte. When the count moved,
the whole cache is forgotten: its clean blocks could be older than the origin. Not seen is a write
that does not pass this machine's device: another computer's on a shared disk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from hotset.block import extents, programs, transfer
from hotset.block.devicemapper import Place, remove
from hotset.block.transfer import Progress
from hotset.core.errors import Remedy
from hotset.core.machines import locks
from hotset.core.machines.base import (
    CommandError,
    Machine,
    MachineGoneError,
    put_lines,
    put_text,
)
from hotset.core.units import Bytes

from ..base import TierSpec, Warmup, WarmupFailedError, sample
from ..filling import Filling, Records
from .metadata import Piece, Slots, parts

_FOLDER = PurePosixPath("/run/hotset")
_PART_LEAST = Bytes(1024**3)
_PARTS_MOST = 16
_ACTIVATE_TRIES, _ACTIVATE_PAUSE_S = 20, 0.5


class CacheTier(Protocol):
    """Tier as far as an offline warm-up needs it."""

    machine: Machine
    spec: TierSpec
    place: Place

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""

    @property
    def origin(self) -> PurePosixPath:
        """The origin."""

    @property
    def cache(self) -> PurePosixPath:
        """The CACHE slice's own device."""

    def is_active(self) -> bool:
        """True if the accelerated device exists."""

    def create(self) -> PurePosixPath:
        """Make the accelerated device."""

    def slots(self) -> Slots:
        """Read the slots of an active tier, with the levels."""

    def slots_at_rest(self) -> Slots:
        """Read the slots while the accelerated device is down."""

    def restore(self, slots: Slots) -> None:
        """Write the metadata again, while the accelerated device is down."""

    def flush(self, *, final: bool) -> int:
        """Write back what is dirty."""


def fill(tier: CacheTier, wanted: Filling) -> Warmup:
    """Have the runs cached; the tier is active afterwards, also after a failure if it was before.

    :raises InUseError: something is missing, and the accelerated device is mounted or open.
    :raises WarmupFailedError: the origin was written to meanwhile, or a sampled block differs.
    """
    begun = time.monotonic()
    stood = tier.is_active()
    if stood:
        before = tier.slots()
        if not extents.difference(wanted.runs, before.runs()):
            return Warmup("offline", Bytes(0), 0.0, time.monotonic() - begun, 0.0, 0, 0)
        slots = _take_down(tier, before, wanted.records)
    else:
        slots = _at_rest(tier)
    try:
        if slots.make_room(wanted.runs):
            tier.restore(slots)
        pieces = slots.places(extents.difference(wanted.runs, slots.runs()))
        copy = _Copy(tier, slots, _write(tier), wanted.rate)
        origin_rate = transfer.sequential_rate(tier.machine, tier.origin) if pieces else 0.0
        copy.all(pieces, wanted.samples, wanted.on_progress)
    except BaseException as error:
        if stood and not isinstance(error, MachineGoneError):
            _stand_up_again(tier, error, wanted.records)
        raise
    activate(tier, wanted.records)
    total = extents.count(piece.run for piece in pieces).bytes(tier.spec.block)
    return Warmup(
        "offline", total, copy.seconds, time.monotonic() - begun, origin_rate, copy.sampled, 0
    )


@dataclass(slots=True)
class _Copy:
    """A copy under way: what has been believed so far."""

    tier: CacheTier
    slots: Slots
    written: int
    rate: Bytes | None
    seconds: float = 0.0
    sampled: int = 0

    def all(
        self, pieces: list[Piece], samples: int, on_progress: Callable[[Progress], None]
    ) -> None:
        """Copy the pieces part by part, each believed and written down before the next."""
        if not pieces:
            self.believe((), 0)
        block = self.tier.spec.block
        total = extents.count(piece.run for piece in pieces)
        progress = transfer.progress_of(total.bytes(block), on_progress)
        before = 0
        for part in parts(pieces, max(_PART_LEAST // block, -(-total // _PARTS_MOST))):
            blocks = extents.count(piece.run for piece in part)
            share = math.ceil(samples * blocks / total)
            done = Bytes(0)

            def on_bytes(copied: Bytes, before: int = before) -> None:
                nonlocal done
                done = copied
                progress(Bytes(before + copied))

            try:
                self.seconds += self._copy_part(part, on_bytes)
            except (CommandError, KeyboardInterrupt):
                good = next(parts(part, done // block), []) if done >= block else []
                # Not sampled: the origin may be out of reach. Its count says whether it moved.
                self.believe(good, 0)
                raise
            self.believe(part, share)
            before += blocks.bytes(block)

    def _copy_part(self, part: Sequence[Piece], on_bytes: Callable[[Bytes], None]) -> float:
        """Copy from the origin to the slots; both devices are claimed. Returns the seconds."""
        tier, block = self.tier, self.tier.spec.block
        pieces = (
            (
                Bytes(piece.run.start * block),
                Bytes(piece.run.count * block),
                Bytes(piece.slot * block),
            )
            for piece in part
        )
        return transfer.copy_exclusively(
            tier.machine, tier.origin, tier.cache, pieces, on_bytes, self.rate
        )

    def believe(self, part: Sequence[Piece], samples: int) -> None:
        """Write down in the metadata what was copied, if the origin is as it was."""
        tier = self.tier
        moved = _write(tier) != self.written
        sampled, differing = compare(tier, part, samples)
        self.sampled += sampled
        if moved or differing:
            self.slots.clear()
            tier.restore(self.slots)
            differ = f"{differing} of {sampled} sampled blocks differ between origin and cache"
            raise WarmupFailedError(
                f"{f'{tier.origin} was written to' if moved else differ} while it was copied:"
                " something writes past the tier. So the cache could not be trusted and it was"
                " emptied; stop what writes to it and run the warm-up again"
            )
        self.slots.fill(part)
        tier.restore(self.slots)


def activate(tier: CacheTier, records: Records | None = None) -> None:
    """Switch the tier on. A copy that was broken off may hold its devices for a moment yet."""
    if records is not None:
        records.up()
    for left in reversed(range(_ACTIVATE_TRIES)):
        try:
            tier.create()
        except CommandError as error:
            if "busy" not in str(error) or left == 0:
                raise
            time.sleep(_ACTIVATE_PAUSE_S)
        else:
            tier.machine.run(["rm", "-f", str(_note(tier))])
            return


def _take_down(tier: CacheTier, before: Slots, records: Records | None) -> Slots:
    """Write back what is dirty and remove the accelerated device.

    :param before: has the levels, which the policy that writes back forgets.
    """
    programs.require_idle(tier.machine, tier.path)
    tier.flush(final=True)
    remove(tier.machine, (tier.path.name,))
    _write_note(tier)
    slots = _clean(tier)
    if records is not None:
        records.down()
    slots.levels_of(before)
    return slots


def _at_rest(tier: CacheTier) -> Slots:
    """Read the slots of a tier that is down; emptied, unless a fill of this machine's last
    start took it down and the origin was not written to since."""
    slots = _clean(tier)
    note = tier.machine.run(["cat", str(_note(tier))], check=False).stdout.strip()
    if slots.runs() and note != str(_write(tier)):
        slots.clear()
        tier.restore(slots)
    _write_note(tier)
    return slots


def _clean(tier: CacheTier) -> Slots:
    """:raises WarmupFailedError: blocks are dirty: their data are nowhere but in the cache."""
    slots = tier.slots_at_rest()
    if slots.dirty:
        raise WarmupFailedError(
            f"{slots.dirty} blocks of the cache are dirty and the tier is not active: activate it,"
            " write them back and run the warm-up again",
            Remedy("write them back", "tier flush"),
        )
    return slots


def _write(tier: CacheTier) -> int:
    """Return a count that every write to the origin raises; 0 in a dry run, which does not ask."""
    return programs.count_writes(tier.machine, tier.origin) or 0


def _note(tier: CacheTier) -> PurePosixPath:
    """Where the origin's count is kept while a fill has the tier down. /run ends with the machine,
    and so does the count."""
    return _FOLDER / f"{tier.path.name}.filling"


def _write_note(tier: CacheTier) -> None:
    tier.machine.run(["mkdir", "-p", "-m", "700", str(_FOLDER)])
    put_text(tier.machine, str(_write(tier)), _note(tier))


def _stand_up_again(tier: CacheTier, error: BaseException, records: Records | None) -> None:
    try:
        activate(tier, records)
    except CommandError as failure:
        error.add_note(f"the tier could not be activated again: {failure}")
    else:
        error.add_note(f"the tier is active again: {tier.path}")


def compare(tier: CacheTier, pieces: Sequence[Piece], samples: int) -> tuple[int, int]:
    """Compare sampled blocks of origin and cache; returns how many were sampled and differ."""
    chosen = sample([piece.run for piece in pieces], samples) if samples else []
    if not chosen:
        return 0, 0
    slots = extents.nth_blocks([piece.slots for piece in pieces], (place for place, _ in chosen))
    block = int(tier.spec.block)
    lines = (
        f"{at * block} {block} {slot * block}\n"
        for slot, (_, at) in zip(slots, chosen, strict=True)
    )
    with locks.scratch_folder(tier.machine, tier.place.name) as folder:
        put_lines(tier.machine, lines, folder / "samples")
        return programs.compare(tier.machine, tier.origin, tier.cache, folder / "samples")
