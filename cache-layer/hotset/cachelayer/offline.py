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
from typing import TYPE_CHECKING

from hotset.cachelayer import extents, flashdev, idle, warmup
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import remove
from hotset.cachelayer.machine import CommandError, MachineGoneError, put_lines, put_text
from hotset.cachelayer.slots import Piece, Slots, parts
from hotset.cachelayer.tier import Progress, Warmup, WarmupFailedError, sample
from hotset.cachelayer.units import Bytes, Sectors

if TYPE_CHECKING:
    from hotset.cachelayer.dmcache import DmCache

_FOLDER = PurePosixPath("/run/hotset")
_XML = _FOLDER / "cache.xml"
_METADATA_COPY = _FOLDER / "metadata"
_SAMPLES = _FOLDER / "samples"
_PART_LEAST = Bytes(1024**3)
_PARTS_MOST = 16
_ACTIVATE_TRIES, _ACTIVATE_PAUSE_S = 20, 0.5
_TOOL_TIMEOUT_S = 1800.0


def fill(
    tier: DmCache,
    runs: Sequence[Run],
    samples: int,
    on_progress: Callable[[Progress], None],
    rate: Bytes | None = None,
) -> Warmup:
    """Have the runs cached; the tier stands afterwards, also after a failure if it stood before.

    :param runs: in origin order, no more than the cache holds.
    :param rate: copy at most so many bytes a second.
    :raises InUseError: something is missing, and the accelerated device is mounted or open.
    :raises WarmupFailedError: the origin was written to meanwhile, or a sampled block differs.
    """
    begun = time.monotonic()
    stood = tier.stands()
    if stood:
        before = look(tier)
        if not extents.difference(runs, before.runs()):
            return Warmup("offline", Bytes(0), 0.0, time.monotonic() - begun, 0.0, 0, 0)
        slots = _taken_down(tier, before)
    else:
        slots = _at_rest(tier)
    try:
        if slots.make_room(runs):
            _restore(tier, slots)
        pieces = slots.places(extents.difference(runs, slots.runs()))
        copy = _Copy(tier, slots, idle.written(tier.machine, tier.origin), rate)
        origin_rate = warmup.sequential_rate(tier.machine, tier.origin) if pieces else 0.0
        copy.all(pieces, samples, on_progress)
    except BaseException as error:
        if stood and not isinstance(error, MachineGoneError):
            _stand_up_again(tier, error)
        raise
    activate(tier)
    total = extents.count(piece.run for piece in pieces).bytes(tier.spec.block)
    return Warmup("offline", total, copy.seconds, time.monotonic() - begun, origin_rate,
                  copy.sampled, 0)  # fmt: skip


@dataclass(slots=True)
class _Copy:
    """A copy under way: what has been believed so far."""

    tier: DmCache
    slots: Slots
    written: Sectors
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
        progress = warmup.progress_of(total.bytes(block), on_progress)
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
                self.seconds += warmup.copy_pieces(self.tier, part, self.rate, on_bytes)
            except (CommandError, KeyboardInterrupt):
                good = next(parts(part, done // block), []) if done >= block else []
                # Not sampled: the origin may be out of reach. Its count says whether it moved.
                self.believe(good, 0)
                raise
            self.believe(part, share)
            before += blocks.bytes(block)

    def believe(self, part: Sequence[Piece], samples: int) -> None:
        """Write down in the metadata what was copied, if the origin is as it was."""
        tier = self.tier
        moved = idle.written(tier.machine, tier.origin) - self.written
        sampled, differing = compare(tier, part, samples)
        self.sampled += sampled
        if moved or differing:
            self.slots.clear()
            _restore(tier, self.slots)
            found = f"{differing} of {sampled} sampled blocks differ between origin and cache"
            raise WarmupFailedError(
                f"{f'{moved} sectors were written to it' if moved else found} while {tier.origin}"
                " was copied: something writes past the tier. Nothing of the cache can be trusted"
                " and it was emptied; stop what writes to it and run the warm-up again"
            )
        self.slots.fill(part)
        _restore(tier, self.slots)


def look(tier: DmCache) -> Slots:
    """What the cache of a standing tier holds: from a copy of the metadata, taken while the tier
    is suspended for a moment and so all of it, the levels too, is written."""
    machine, name = tier.machine, tier.path.name
    machine.run(["mkdir", "-p", str(_FOLDER)])
    machine.run(["dmsetup", "suspend", name])
    try:
        machine.run(["dd", f"if={tier.metadata}", f"of={_METADATA_COPY}", "bs=1M",
                     "iflag=direct", "status=none"])  # fmt: skip
    finally:
        machine.run(["dmsetup", "resume", name])
    try:
        return _dumped(tier, _METADATA_COPY)
    finally:
        machine.run(["rm", "-f", str(_METADATA_COPY)])


def activate(tier: DmCache) -> None:
    """Switch the tier on. A copy that was broken off may hold its devices for a moment yet."""
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


def _taken_down(tier: DmCache, before: Slots) -> Slots:
    """Write back what is dirty and remove the accelerated device.

    :param before: has the levels, which the policy that writes back forgets.
    """
    idle.require_idle(tier.machine, tier.path)
    tier.flush(going=True)
    remove(tier.machine, (tier.path.name,))
    _write_note(tier)
    slots = _clean(tier)
    slots.levels_of(before)
    return slots


def _at_rest(tier: DmCache) -> Slots:
    """What the cache holds of a tier that is down; nothing, unless a fill of this machine's last
    start took it down and the origin was not written to since.

    The parts of the flash stand: :meth:`DmCache.prepare` has just made them, or a fill left them.
    """
    argv = ["cmp", "--quiet", "--bytes=4096", str(tier.metadata), "/dev/zero"]
    if tier.machine.run(argv, check=False).rc == 0:
        slots = Slots(tier.capacity)
    else:
        slots = _clean(tier)
        note = tier.machine.run(["cat", str(_note(tier))], check=False).stdout.strip()
        if note != str(idle.written(tier.machine, tier.origin)):
            slots.clear()
            _restore(tier, slots)
    _write_note(tier)
    return slots


def _clean(tier: DmCache) -> Slots:
    """:raises WarmupFailedError: blocks are dirty: their data are nowhere but in the cache."""
    slots = _dumped(tier, tier.metadata)
    if slots.dirty:
        raise WarmupFailedError(
            f"{slots.dirty} blocks of the cache are dirty and the tier is down: activate it and"
            " write them back (`hotset tier flush`), then run the warm-up again"
        )
    return slots


def _dumped(tier: DmCache, metadata: PurePosixPath) -> Slots:
    argv = ["cache_dump", str(metadata)]
    return Slots.parse(tier.machine.run(argv, timeout_s=_TOOL_TIMEOUT_S).stdout, tier.capacity)


def _note(tier: DmCache) -> PurePosixPath:
    """Where the origin's count is kept while a fill has the tier down. /run ends with the machine,
    and so does the count."""
    return _FOLDER / f"{tier.path.name}.filling"


def _write_note(tier: DmCache) -> None:
    tier.machine.run(["mkdir", "-p", str(_FOLDER)])
    put_text(tier.machine, str(idle.written(tier.machine, tier.origin)), _note(tier))


def _restore(tier: DmCache, slots: Slots) -> None:
    # A file, not standard input: cache_restore wants to know its size.
    tier.machine.run(["mkdir", "-p", str(_FOLDER)])
    put_lines(tier.machine, slots.xml(tier.spec.block, tier.spec.policy), _XML)
    argv = ["cache_restore", "--quiet", "-i", str(_XML), "-o", str(tier.metadata)]
    tier.machine.run(argv, timeout_s=_TOOL_TIMEOUT_S)
    tier.machine.run(["rm", "-f", str(_XML)])


def _stand_up_again(tier: DmCache, error: BaseException) -> None:
    try:
        activate(tier)
    except CommandError as failure:
        error.add_note(f"the tier could not be switched on again: {failure}")
    else:
        error.add_note(f"the tier stands again: {tier.path}")


def compare(tier: DmCache, pieces: Sequence[Piece], samples: int) -> tuple[int, int]:
    """Compare sampled blocks of origin and cache; returns how many were sampled and differ."""
    chosen = sample([piece.run for piece in pieces], samples) if samples else []
    if not chosen:
        return 0, 0
    slots = extents.nth_blocks([piece.slots for piece in pieces], (place for place, _ in chosen))
    block = int(tier.spec.block)
    lines = (f"{at * block} {block} {slot * block}\n"
             for slot, (_, at) in zip(slots, chosen, strict=True))  # fmt: skip
    put_lines(tier.machine, lines, _SAMPLES)
    return flashdev.compare(tier.machine, tier.origin, tier.cache, _SAMPLES)
