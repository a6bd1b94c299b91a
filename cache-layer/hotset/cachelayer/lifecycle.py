"""The life of a tier that stands: activated, flushed, resized, repaired, detached, destroyed.

Every verb takes the disk from its card, asks the kernel how things are, says what it does, and can
be repeated after it was cut short: the card's file never promises what is not on the flash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hotset.cachelayer import bootunit, devices, flash, traced
from hotset.cachelayer import card as cards
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.card import Card, CardError, Disk, KernelTier
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import MetadataDamagedError, Report, TierFailedError
from hotset.cachelayer.units import Blocks

Say = Callable[[str], None]
OnFlush = Callable[[Blocks], None]


class TierRefusedError(ValueError):
    """The verb would lose or hide data; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A disk as it is now. ``flash_answers``: whether the flash device can be read."""

    card: Card
    disk: Disk
    report: Report
    flash_answers: bool


def look(machine: Machine, card: Card, disk: Disk) -> Standing:
    """How a disk is now, with what its state means for the data; never raises for a bad tier."""
    answers = devices.answers(machine, card.flash)
    report = cards.built(machine, card, disk).report()
    notes = list(report.notes)
    state = report.state
    if not answers:
        state = "failed"
        notes.append(
            f"the flash {card.flash} is gone or does not answer:"
            f" `hotset tier detach {disk.name} --flash-is-dead` gives the origin back"
        )
    if not disk.made:
        state = "failed"
        notes.append("its creation was cut short: repeat `hotset tier create`, it starts over")
    elif report.state == "inactive" and may_be_dirty(disk):
        notes.append(
            f"{disk.origin} alone may hold OLD data (writes are held back on the flash): do not"
            f" mount it, `hotset tier activate {disk.name}` first"
        )
    return Standing(card, disk, replace(report, state=state, notes=tuple(notes)), answers)


def may_be_dirty(disk: Disk) -> bool:
    """Whether an inactive disk's origin may lack writes."""
    return disk.spec.mode == "writeback" and not disk.clean


def activate(machine: Machine, card: Card, disk: Disk, say: Say) -> None:
    """Make the devices of a disk again, after a reboot; nothing happens if they stand.

    :raises MetadataDamagedError: names what is wrong and the way out.
    """
    if not disk.made:
        raise CardError(f"DISK {disk.name}: its creation was cut short; repeat it")
    tier = cards.built(machine, card, disk)
    if tier.stands():
        say(f"{disk.device} stands: nothing changed")
        return
    if disk.clean:
        # Before the first write can make it untrue.
        cards.save(machine, card.with_disk(replace(disk, clean=False)))
    try:
        tier.activate()
    except MetadataDamagedError as error:
        tier.discard()
        stale = f"; {disk.origin} alone may hold OLD data, do not mount it" * may_be_dirty(disk)
        raise MetadataDamagedError(
            f"{error}{stale}. `hotset tier repair {disk.name}` tries to mend it"
        ) from None
    say(f"{disk.device} stands")


def deactivate(machine: Machine, card: Card, disk: Disk, say: Say) -> None:
    """Remove the devices; what is cached stays, what is dirty too."""
    tier = cards.built(machine, card, disk)
    if not tier.stands():
        tier.discard()
        say(f"{disk.device} does not stand: nothing changed")
        return
    _unused(machine, disk)
    try:
        # A unit would activate it at a boot, and nobody would know that it is clean no more.
        clean = not tier.counters().dirty and not bootunit.installed(machine, disk)
    except TierFailedError:
        clean = False
    tier.deactivate()
    cards.save(machine, card.with_disk(replace(disk, clean=clean)))
    say(f"{disk.device} is down; its cache stays as it is on the flash")
    if not clean:
        say(f"{disk.origin} alone holds OLD data now: do not mount it")


def flush(machine: Machine, card: Card, disk: Disk, progress: OnFlush) -> int:
    """Write everything back and go on as before; returns how many blocks were dirty."""
    tier = active(machine, card, disk)
    return tier.flush(progress)


def repair(machine: Machine, card: Card, disk: Disk, say: Say) -> None:
    """Mend what activation found damaged, then activate.

    :raises TierRefusedError: it cannot be mended and writes would be lost; says how to go on.
    """
    tier = cards.built(machine, card, disk)
    if tier.stands():
        raise TierRefusedError(f"{disk.device} stands: deactivate it before a repair")
    try:
        tier.activate()
        say("nothing is damaged; the tier was activated")
        return
    except MetadataDamagedError as error:
        tier.discard()
        say(str(error))
    if isinstance(tier, Bcache):
        lost: Exception = MetadataDamagedError("bcache has no repair of its own")
    else:
        try:
            words = tier.repair()
            tier.activate()
        except MetadataDamagedError as error:
            tier.discard()
            lost = error
        else:
            say(words or "cache_repair: done")
            kept = tier.counters().used
            say(f"mended: {int(kept)} blocks are cached again. What could not be read is not among"
                " them: check the file system and the database before they are used")  # fmt: skip
            return
    if may_be_dirty(disk):
        raise TierRefusedError(
            f"{lost}. Writes that were only on the flash are lost, how many is not known:"
            f" `hotset tier detach {disk.name} --flash-is-dead --yes` gives {disk.origin} back as"
            " it is; restore the database from a backup or check it"
        )
    say(f"{lost}; nothing is lost, all writes are on the origin: the cache begins empty")
    tier.prepare()
    tier.create()


def detach(
    machine: Machine, card: Card, disk: Disk, dead: bool, yes: bool, progress: OnFlush, say: Say
) -> Card:
    """Give the origin back as a plain disk; returns the card as it is then.

    :param dead: the flash is gone or fails: nothing is written back, the loss is said.
    :param yes: with ``dead``, also if the flash does answer.
    :raises TierRefusedError: it is in use, or the flash is not as ``dead`` says.
    """
    _unused(machine, disk)
    tier = cards.built(machine, card, disk)
    answers = devices.answers(machine, card.flash)
    if dead:
        _drop(tier, disk, answers and not yes, say)
    elif not answers:
        raise TierRefusedError(
            f"{card.flash} is gone or does not answer, so nothing can be written back:"
            " --flash-is-dead detaches without"
        )
    elif disk.made:
        _write_back(tier, disk, progress)
    tier.discard()
    traced.end(machine, disk.name)
    if answers:
        # So that no old superblock is found there by what comes next.
        flash.wipe(machine, card.flash, disk.metadata)
        flash.wipe(machine, card.flash, disk.cache)
    bootunit.remove(machine, disk)
    card = card.without(disk.name)
    cards.save(machine, card)
    say(f"{disk.origin} is a plain disk again: mount it instead of {disk.device}")
    return card


def _write_back(tier: KernelTier, disk: Disk, progress: OnFlush) -> None:
    if not tier.stands():
        if not may_be_dirty(disk):
            return
        try:
            tier.activate()
        except MetadataDamagedError:
            tier.discard()
            raise
    tier.flush(progress, going=True)


def _drop(tier: KernelTier, disk: Disk, refuse: bool, say: Say) -> None:
    """Say what is lost with the flash."""
    if disk.spec.mode == "writethrough" or (not tier.stands() and not may_be_dirty(disk)):
        say("nothing is lost: every write is on the origin")
        return
    try:
        dirty: Blocks | None = tier.counters().dirty if tier.stands() else None
    except TierFailedError:
        dirty = None
    if refuse:
        raise TierRefusedError(
            "the flash answers: detach without --flash-is-dead, which writes back what is dirty;"
            " --yes if it is to be given up all the same"
        )
    if dirty == 0:
        say("nothing is lost: nothing was dirty")
        return
    known = "an unknown number of blocks" if dirty is None else (
        f"{int(dirty)} blocks ({dirty.bytes(disk.spec.block)})"
    )  # fmt: skip
    say(f"LOST: {known} that were only on the flash. {disk.origin} is older than the database"
        " believes: check the file system and restore or recover the database")  # fmt: skip


def destroy(
    machine: Machine, card: Card, yes: bool, progress: Callable[[Disk], OnFlush], say: Say
) -> None:
    """Detach all disks of a card and give up its volume and the card itself.

    :param progress: what a disk's flush is told to.
    :raises TierRefusedError: something is in use, or the volume is not empty and ``yes`` is not.
    """
    if len(card.disks) > 1 and not yes:
        names = ", ".join(disk.name for disk in card.disks)
        raise TierRefusedError(
            f"the card {card.name} has several disks ({names}): --yes for all of them, or"
            " `hotset tier detach` for one"
        )
    volume = card.volume_slice
    _given_up(machine, card, yes)
    for disk in card.disks:
        card = detach(machine, card, disk, False, False, progress(disk), say)
    if volume.name in flash.standing(machine):
        machine.run(["wipefs", "--all", str(volume.path)])
        flash.remove(machine, [volume.name])
    cards.save(machine, replace(card, volume=()))
    say(f"the card {card.name} is gone: {card.flash} is free")


def _given_up(machine: Machine, card: Card, yes: bool) -> None:
    """:raises TierRefusedError: the card's volume is in use, or may hold something and ``yes`` is
    not."""
    volume = card.volume_slice
    uses = devices.mounts(machine, volume.path)
    if uses:
        raise TierRefusedError(f"{volume.path} is in use: {'; '.join(uses)}: unmount it first")
    if yes or not card.volume:
        return
    if volume.name not in flash.standing(machine):
        raise TierRefusedError(
            f"{volume.path} does not stand, so nobody sees what is on it: activate a disk of the"
            f" card {card.name} first, or --yes gives it up unseen"
        )
    found = devices.look(machine, volume.path).signatures
    if found:
        raise TierRefusedError(
            f"{volume.path} is not empty: {', '.join(found)} on it; --yes gives that up"
        )


def active(machine: Machine, card: Card, disk: Disk) -> KernelTier:
    tier = cards.built(machine, card, disk)
    if not tier.stands():
        raise TierRefusedError(f"{disk.device} does not stand: `hotset tier activate {disk.name}`")
    return tier


def _unused(machine: Machine, disk: Disk) -> None:
    uses = devices.mounts(machine, disk.device)
    if uses:
        raise TierRefusedError(f"{disk.device} is in use: {'; '.join(uses)}: unmount it first")
