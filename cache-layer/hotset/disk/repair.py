"""A tier whose metadata is damaged: mended where its tools can do that, else what a cache in user
space provably holds is written back, or nothing is lost and the cache begins empty."""

from __future__ import annotations

from hotset.block import salvage
from hotset.block.salvage import Salvage
from hotset.core.errors import Remedy
from hotset.tier.base import MetadataDamagedError, TierFailedError
from hotset.tier.disk_tier import DiskTier

from .boot import program
from .flash_devices import AttachedDisk, Disk
from .lifecycle import (
    Say,
    TierRefusedError,
    activate,
    claim_origin,
    may_be_dirty,
    removed_unless_up,
    word_left_by,
)


def repair(attached: AttachedDisk, say: Say, yes: bool = False) -> None:
    """Mend what activation found damaged, then activate.

    :param yes: what is certain is kept and the rest given up; else it is only said what that is.
    :raises TierRefusedError: it cannot be mended and writes would be lost; says how to go on.
    """
    disk, tier = attached.disk, attached.tier
    if tier.is_active():
        raise TierRefusedError(f"{disk.device} is active: deactivate it before a repair")
    left = word_left_by(attached)
    try:
        activate(attached, say)
        say("nothing is damaged; the tier was activated")
        return
    except MetadataDamagedError as error:
        say(str(error))
    if not may_be_dirty(disk, left):
        # A cache is worth less than the certainty that it holds what the origin does.
        _begin_empty(attached, tier)
        say("nothing is lost, all writes are on the origin: the cache begins empty")
        return
    report = tier.salvage(write=False)
    if report is not None:
        _salvage(attached, tier, report, yes, say)
        return
    try:
        _mend(attached, tier, yes, say)
    except MetadataDamagedError as lost:
        raise TierRefusedError(
            f"{lost}. Writes that were only on the flash are lost, how many is not known: restore"
            " the database from a backup or check it",
            _as_it_is(disk),
        ) from None


def _mend(attached: AttachedDisk, tier: DiskTier, yes: bool, say: Say) -> None:
    """Activate it with what can be read of its metadata.

    :raises MetadataDamagedError: it cannot be mended.
    :raises TierRefusedError: that was not asked for.
    """
    disk = attached.disk
    with removed_unless_up(tier):
        words = tier.repair(write=yes)
        if not yes:
            raise TierRefusedError(
                f"of the damaged metadata of {disk.name}, {words}. What cannot be read may hold"
                " writes too: how many is not known. Nothing was changed",
                _go_on(disk, "go on with what can be read; writes in other blocks are lost"),
                _as_it_is(disk),
            )
        tier.activate(lambda: program.mark(attached, "active"))
    say(words)
    say(
        f"mended: {int(tier.counters().used)} blocks are cached again, all of them taken for dirty."
        " What could not be read is not among them: check the file system and the database before"
        " they are used"
    )


def _salvage(
    attached: AttachedDisk,
    tier: DiskTier,
    report: Salvage,
    yes: bool,
    say: Say,
) -> None:
    """Write back what a damaged cache provably holds and begin an empty one. The flash is emptied
    only once all of that is on the origin, so until then this can be repeated."""
    disk = attached.disk
    if not report.is_identified:
        raise TierRefusedError(
            "no superblock is left that says whose cache it is, and another disk's would destroy"
            f" {disk.origin}: nothing was changed. If you know that it is this one's, what is"
            f" certain is written back by this, on its machine: `{tier.salvage_by_hand()}`",
            _as_it_is(disk),
        )
    if not yes:
        raise _to_be_asked(disk, report)
    with claim_origin(attached, say, by_force=False):
        report = _write_back(attached, tier)
        if report.unreadable:
            raise TierRefusedError(
                f"{report.dirty} blocks are dirty, and of those {attached.flash.path} cannot be"
                f" read for {salvage.in_words(report.unreadable)} of {disk.origin}. The others are"
                " on it now; the cache was left as it is: repair it again once the flash can be"
                " read",
                _as_it_is(disk),
            )
        _begin_empty(attached, tier)
    say(f"{report.dirty} blocks ({report.dirty_size}) were certain, and are on {disk.origin} now")
    if report.unknown:
        likely = (
            f", most likely in {salvage.in_words(report.last_seen)}" if report.last_seen else ""
        )
        say(
            f"{report.unknown} blocks ({report.unknown_size}) were uncertain and given up: the"
            f" newest data may be lost in {salvage.in_words(report.may_be_lost)} of the"
            f" disk{likely}. Restore the database from a backup, or check it and its file system"
        )
    say("the cache begins empty")


def _write_back(attached: AttachedDisk, tier: DiskTier) -> Salvage:
    """Write back what is proven; it is on record that the origin's own cache wrote that, even if
    it was cut short."""
    try:
        report = tier.salvage(write=True)
    except TierFailedError:
        program.mark(attached, "dirty")
        raise
    program.mark(attached, "dirty")
    assert report is not None, "it was looked through before"
    return report


def _to_be_asked(disk: Disk, report: Salvage) -> TierRefusedError:
    """Return the refusal that says what repair would do, and what each way out loses."""
    lost = f"whatever the {report.unknown} unknown blocks hold is lost" if report.unknown else ""
    return TierRefusedError(
        f"of the cache of {disk.name} these are certain: {report.dirty} blocks hold"
        f" {report.dirty_size} that {disk.origin} lacks, {report.clean} hold nothing that it lacks."
        f" Uncertain: {report.unknown} blocks ({report.unknown_size}), which may hold some."
        " Nothing was changed",
        _go_on(
            disk,
            f"write the {report.dirty_size} back and begin with an empty cache;"
            f" {lost or 'nothing is lost'}",
        ),
        _as_it_is(disk),
    )


def _go_on(disk: Disk, what: str) -> Remedy:
    return Remedy(what, "tier repair", {"disk": disk.name, "yes": True})


def _as_it_is(disk: Disk) -> Remedy:
    return Remedy(
        f"get {disk.origin} back as it is, and lose all that is only on the flash",
        "tier detach",
        {"disk": disk.name, "flash_is_dead": True, "yes": True},
    )


def _begin_empty(attached: AttachedDisk, tier: DiskTier) -> None:
    """On record as active only once its metadata are usable: cut short before, it is still known
    that nothing was lost."""
    with removed_unless_up(tier):
        tier.empty()
        program.mark(attached, "active")
        tier.create()
