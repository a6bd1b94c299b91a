"""The life of a tier that exists: activated, flushed, taken down, detached, destroyed.

Every verb takes the disk from the label, asks the kernel how things are, says what it does, and can
be repeated after it was cut short. What can be cut short in between is in the flash's label
(``phase``) and in the disk's record (:mod:`.state`), written before the step that it announces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from hotset.block import devicemapper, devices, label, programs
from hotset.block.programs import InUseError
from hotset.core.errors import HotsetError, Remedy, RequestError
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine, MachineGoneError
from hotset.core.units import Blocks
from hotset.tier import pins, regions
from hotset.tier.base import (
    Counters,
    MetadataDamagedError,
    Report,
    TierFailedError,
    counters_restarted,
)
from hotset.tier.disk_tier import DiskTier, OnFlush

from . import abandoned, flash_devices, state
from .boot import fstab, program, startup, systemd_unit, udev
from .boot.program import Verdict
from .flash_devices import AttachedDisk, Disk, FlashDevice, FlashError
from .identity import origin, owner, reservation
from .state import Word

_SYNC_LIMIT_S = 300.0
Say = Callable[[str], None]
T = TypeVar("T")


class TierRefusedError(RequestError):
    """The verb would lose or hide data; the message says which and what to do."""


class OriginChangedError(TierRefusedError):
    """Somebody wrote to the origin while its tier was down and held writes back."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """A disk as it is now. ``flash_answers``: whether the flash device can be read; ``doubt``: why
    nobody knows whether its origin is used past the cache."""

    flash: FlashDevice
    disk: Disk
    report: Report
    flash_answers: bool
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class FlashState:
    """A flash device now: whether it can be read, and whether it is this machine's."""

    answers: bool
    ours: bool


def inspect_flash(disk: AttachedDisk) -> FlashState:
    """Look at the flash below a disk, which may be below others as well."""
    return FlashState(
        devices.answers(disk.machine, disk.flash.path),
        flash_devices.is_ours(disk.machine, disk.flash),
    )


def inspect_each(
    disks: Sequence[AttachedDisk], look: Callable[[AttachedDisk, FlashState], T]
) -> list[T]:
    """Inspect disks in parallel, each flash once however many disks it has."""
    first = {disk.flash.name: disk for disk in reversed(disks)}
    states = dict(
        zip(first, flash_devices.of_each(list(first.values()), inspect_flash), strict=True)
    )
    return flash_devices.of_each(disks, lambda disk: look(disk, states[disk.flash.name]))


def inspect(attached: AttachedDisk, seen: FlashState | None = None) -> DiskState:
    """How a disk is now, with what its state means for the data; never raises for a bad tier.

    :param seen: the flash device below it, where that was inspected already.
    """
    machine, flash, disk = attached.machine, attached.flash, attached.disk
    seen = seen or inspect_flash(attached)
    answers = seen.answers
    report = attached.tier.report()
    notes = list(report.notes)
    state_ = report.state
    if not answers:
        state_ = "failed"
        notes.append(
            f"the flash {flash.path} is gone or does not answer: detach the disk as one whose flash"
            " is dead, which gives the origin back"
        )
    if disk.phase != "ready":
        state_ = "failed"
        notes.append(_describe_unfinished(disk))
    elif report.state in ("inactive", "restarting") and may_be_dirty(
        disk, word_left_by(attached, answers)
    ):
        notes.append(
            f"{disk.origin} alone may hold OLD data (writes are held back on the flash): do not"
            " mount it, activate the disk first"
        )
    type_ = devices.type_of(machine, disk.origin)
    past, doubt = _past_the_cache(attached) if type_ == "file" else ("", "")
    if past:
        state_ = "failed"
    notes.extend(filter(None, (past, doubt)))
    if type_ is None:
        state_ = "failed" if state_ == "inactive" else state_
        notes.append(
            f"the origin {disk.origin} is not there: connect it (iSCSI: log in); if it is gone for"
            " good, detach the disk, which gives it up"
        )
    if answers and not seen.ours:
        state_ = "failed"
        whose = flash_devices.owner_in_words(machine, flash)
        notes.append(f"the flash belongs to {whose}: import it to take over")
    report = replace(report, state=state_, notes=tuple(notes))
    return DiskState(flash, disk, report, answers, doubt)


def _past_the_cache(attached: AttachedDisk) -> tuple[str, str]:
    """Who uses an origin that is a file beside its tier, in words, or why nobody knows. A device
    would be claimed; nothing claims a file."""
    file = attached.disk.origin
    try:
        used = programs.users(attached.machine, file, "loops")
    except MachineGoneError:
        raise
    except HotsetError as error:
        return "", str(error)
    past = "It is used past its cache: what is read there may be old, and what is written there"
    return used and f"{used}. {past} destroys data", ""


def _describe_unfinished(disk: Disk) -> str:
    if disk.phase == "creating":
        return "its creation was cut short: create it again, which starts over"
    return "its detach was cut short: detach it again, which ends it"


def word_left_by(attached: AttachedDisk, answers: bool = True) -> Word | None:
    """How an inactive disk was left; None if nobody knows."""
    if not answers:
        return None
    try:
        return state.read(attached)
    except (CommandError, CommandTimeoutError):
        return None


def may_be_dirty(disk: Disk, left: Word | None) -> bool:
    """True if an inactive disk's origin may lack writes."""
    return disk.spec.mode == "writeback" and (left != "clean")


def activate(
    attached: AttachedDisk,
    say: Say,
    *,
    break_reservation: bool = False,
    flash_counts: bool = False,
) -> None:
    """Make the devices of a disk again, after a reboot; what was cut short is put right.

    :param break_reservation: take the origin from another host that holds a reservation on it.
    :param flash_counts: what the flash holds counts, whatever was written to the origin meanwhile
        (:func:`keep_flash`).
    :raises OriginReservedError: another host does.
    :raises InUseError: somebody writes to the origin, or has what the engine serves.
    :raises MetadataDamagedError: names what is wrong and the way out.
    :raises OriginChangedError: somebody wrote to the origin, and the flash holds writes too.
    :raises DeviceRefusedError: the origin's name leads to another disk.
    """
    disk, tier = attached.disk, attached.tier
    if disk.phase != "ready":
        raise FlashError(f"disk {disk.name}: {_describe_unfinished(disk)}", field="disk")
    flash_devices.require_ours(attached.machine, attached.flash)
    udev.prepare(attached)
    if is_up(tier):
        mended = tier.settle()
        _claim(attached, say, break_reservation)
        # As this version of hotset keeps it.
        program.mark(attached, "active")
        systemd_unit.start(attached, say)
        say(f"{disk.device} is active{f'; {mended}' if mended else ': nothing changed'}")
        return
    was_restarting = tier.report().state == "restarting"
    if was_restarting or tier.may_be_active():
        # Else two engines would write to one flash; what is left of one that ended is in the way.
        tier.discard()
    attached = _with_origin(attached)
    # Nothing claims it from who has it open or behind a loop: he would go on past the cache.
    programs.require_unused(attached.machine, attached.disk.origin, "writers")
    # First: nobody writes to it any more once it is looked at.
    with claim_origin(attached, say, break_reservation):
        # Both put down what the origin looks like now, which another host may be changing until it
        # is refused: its writes would be taken for those of before.
        if flash_counts:
            keep_flash(attached)
        elif was_restarting:
            # It was about to be started without a question.
            program.mark(attached, "active")
        _bring_up(attached, tier, say, sure=flash_counts or was_restarting)
    systemd_unit.start(attached, say)
    say(f"{attached.disk.device} is active")


@contextmanager
def claim_origin(attached: AttachedDisk, say: Say, by_force: bool) -> Iterator[None]:
    """The origin is the tier's alone; what was reserved for a tier that does not come up is given
    back. Not what was reserved before: since a crash, that keeps others from writing to an origin
    whose flash holds writes."""
    disk = attached.disk
    was_held = disk.reserve and reservation.is_held(attached.machine, disk.origin)
    try:
        _claim(attached, say, by_force)
        yield
    except BaseException as error:
        try:
            if not was_held and not attached.tier.is_active():
                reservation.give_back(attached.machine, disk.origin)
        except Exception as other:
            error.add_note(f"{disk.origin} is still reserved: {other}")
        raise


@contextmanager
def removed_unless_up(tier: DiskTier) -> Iterator[None]:
    """Remove what was made for a tier, or to look into it, if the tier does not come up,
    whatever the reason: it would hold the flash."""
    try:
        yield
    except BaseException as error:
        try:
            if isinstance(error, MetadataDamagedError) or not tier.is_active():
                tier.discard()
        except Exception as other:
            error.add_note(f"what was made for the tier is still there: {other}")
        raise


def _bring_up(attached: AttachedDisk, tier: DiskTier, say: Say, *, sure: bool) -> None:
    """:param sure: that the flash counts was put down just before this: where the kernel counts no
    writes, nothing shows that nobody wrote since.
    """
    flash, disk = attached.flash, attached.disk
    kept = label.read_record(attached.machine, flash.path, disk.record)
    try:
        with removed_unless_up(tier):
            verdict = program.decide(attached)
            if verdict is None:
                what = f"whether {disk.origin} was written to while the tier was down"
                say(program.describe_unchecked(what))
            counts = sure and verdict is not None and verdict.reason == "conflict"
            why_empty = verdict and not counts and _why_empty(flash, disk, tier, verdict)
            if why_empty:
                words = tier.empty()
                say(f"the cache begins empty: {why_empty}")
                say(words)
            tier.activate(lambda: program.mark(attached, "active"))
    except MetadataDamagedError as error:
        if kept is not None:
            # It was never active: what is known of it still holds. (bcache may refuse what it was
            # given after that was written.)
            label.write_record(attached.machine, flash.path, disk.record, kept)
        old = may_be_dirty(disk, state.parse(disk, kept))
        stale = f"; {disk.origin} alone may hold OLD data, do not mount it" * old
        raise MetadataDamagedError(
            f"{error}{stale}",
            Remedy("try to mend it", "tier repair", {"disk": disk.name}),
        ) from None


def _claim(attached: AttachedDisk, say: Say, by_force: bool) -> None:
    """Have the origin for the tier alone, as far as others and the next boot go. A creation or a
    change that was cut short may have told the machine more or less than the flash says; one that
    came with its flash knows nothing of it."""
    # First what knows the key: a path that comes later, and the next boot if this one ends here.
    udev.hide_origin(attached)
    systemd_unit.count_starts(attached.machine)
    systemd_unit.renew(attached)
    if attached.disk.reserve:
        say(reservation.describe(attached.machine, attached.disk.origin, by_force=by_force))
    startup.warn(attached, say)


def _with_origin(attached: AttachedDisk) -> AttachedDisk:
    """The disk, once its origin is verified; one made before labels existed gets a label."""
    machine, disk = attached.machine, attached.disk
    if disk.origin_id is None:
        known = replace(disk, origin_id=origin.identify(machine, disk.origin))
        return attached.with_disk(known).save()
    origin.require_same(machine, disk.name, disk.origin, disk.origin_id)
    if attached.flash.hardware != owner.hardware_id(machine):
        return attached.save()
    return attached


def _why_empty(flash: FlashDevice, disk: Disk, tier: DiskTier, verdict: Verdict) -> str | None:
    """Why what is cached must not be used, in words; None if it may.

    :raises OriginChangedError: it must not, but may hold writes that the origin lacks.
    :raises TierRefusedError: the disk must stay down for another reason.
    """
    if verdict.action == "start":
        return None
    _require_that_disk(disk, verdict)
    # The program does not read a cache's metadata, which may prove that nothing in it is dirty.
    if verdict.action == "empty" or not tier.may_be_dirty():
        return f"{disk.origin}: {verdict.why}. Nothing is lost: the flash alone holds no write"
    name = {"disk": disk.name}
    raise OriginChangedError(
        f"{disk.origin}: {verdict.why}; and the flash {flash.path} may hold writes that it lacks."
        " Both cannot be kept, and nothing was changed",
        Remedy(
            "keep the origin as it is, and lose the writes that are on the flash alone",
            "tier detach",
            {"disk": disk.name, "flash_is_dead": True, "yes": True},
        ),
        Remedy(
            "keep what the flash holds, which overwrites what was written to the origin meanwhile"
            " (right if nobody mounted it or wrote to it)",
            "tier activate",
            {"disk": disk.name, "keep_flash": True},
        ),
        Remedy("mend the flash's metadata, if that finds them damaged", "tier repair", name),
    )


def _require_that_disk(disk: Disk, verdict: Verdict | None) -> None:
    """:raises TierRefusedError: the origin's name leads to another disk, or it is unfinished."""
    if verdict and verdict.reason in ("unfinished", "identity"):
        raise TierRefusedError(f"disk {disk.name}: {disk.origin} {verdict.why}", field="disk")


def keep_flash(attached: AttachedDisk) -> None:
    """From now on the flash of a disk that is down counts, whatever was written to the origin
    meanwhile. Nobody else may write to it any more by then.

    :raises FlashError: its creation or its end was cut short.
    :raises DeviceRefusedError: the origin's name leads to another disk by its numbers.
    :raises TierRefusedError: it does by what lies on it. That is on record, and so is what is seen
        now once the flash counts: nothing would tell the disks apart any more.
    """
    disk = attached.disk
    flash_devices.require_ours(attached.machine, attached.flash)
    if disk.phase != "ready":
        raise FlashError(f"disk {disk.name}: {_describe_unfinished(disk)}", field="disk")
    if attached.tier.is_active():
        return
    if disk.origin_id is not None:
        origin.require_same(attached.machine, disk.name, disk.origin, disk.origin_id)
    _require_that_disk(disk, program.decide(attached))
    program.mark(attached, "active")


def deactivate(attached: AttachedDisk, say: Say) -> None:
    """Remove the devices; what is cached stays, what is dirty too."""
    disk, tier = attached.disk, attached.tier
    flash_devices.require_ours(attached.machine, attached.flash)
    tier.require_unused()
    if not is_up(tier):
        _stay_down(attached, tier, say)
        return
    clean = _take_down(attached, tier)
    reservation.give_back(attached.machine, disk.origin)
    say(f"{disk.device} is down; its cache stays as it is on the flash")
    if not clean:
        say(f"{disk.origin} alone may hold OLD data now: do not mount it")


def _stay_down(attached: AttachedDisk, tier: DiskTier, say: Say) -> None:
    """An engine that ended is not started again; nothing changes for a disk that was down."""
    disk = attached.disk
    was = "ended" if tier.is_active() else tier.report().state
    tier.discard()
    # Nobody knows since when it has been down, nor who wrote to its origin.
    program.stop(attached)
    given_back = reservation.give_back(attached.machine, disk.origin)
    if was not in ("restarting", "ended"):
        rest = f"{disk.origin} was still reserved, and is no longer" if given_back else ""
        say(f"{disk.device} is not active: {rest or 'nothing changed'}")
        return
    if was == "restarting":
        # Nobody has it since its engine ended, seconds ago.
        program.mark(attached, "dirty")
    say(f"{disk.device} is down: its cache engine had ended, and is not started again")
    if may_be_dirty(disk, word_left_by(attached)):
        say(f"{disk.origin} alone may hold OLD data now: do not mount it")


def _take_down(attached: AttachedDisk, tier: DiskTier) -> bool:
    """Take an active tier down, and keep how it was left and what its origin looks like; returns
    whether all that was written is on the origin, for good: as the flash says once nobody can write
    any more.

    :raises InUseError: it is in use, and goes on.
    """
    program.stop(attached)
    try:
        clean = not tier.may_be_dirty()
    except TierFailedError:
        clean = False
    finally:
        tier.discard()
    try:
        tier.make_durable()
    except (CommandError, CommandTimeoutError):
        # It is gone, or fails: nobody knows what it has.
        clean = False
    if clean:
        program.mark(attached, "flushed")
    return clean


@dataclass(frozen=True, slots=True)
class FillRecords:
    """How a tier is left while an off-line fill has it down (:mod:`.tier.dmcache.offline`)."""

    attached: AttachedDisk

    def down(self) -> None:
        program.mark(self.attached, "clean")

    def up(self) -> None:
        program.mark(self.attached, "active")


def read_counters(tier: DiskTier) -> Counters | None:
    """None: they could not be read, which keeps nobody from changing the tier."""
    try:
        return tier.counters()
    except HotsetError:
        return None


def say_if_counters_restarted(attached: AttachedDisk, before: Counters | None, say: Say) -> None:
    """After a change of a tier: whether its counters lost what they had counted.

    :param before: as :func:`read_counters` gave them before the change.
    """
    tier = attached.tier
    after = read_counters(tier)
    if before is None or after is None:
        say(f"{attached.disk.device}: whether its hit counters restarted is not known")
    elif counters_restarted(before, after, tier.counting):
        say(
            f"{attached.disk.device}: its hit counters restarted; hit ratios are of what is"
            " requested from now on"
        )


def flush(attached: AttachedDisk, progress: OnFlush, say: Say = lambda _: None) -> int:
    """Write everything back and go on as before; returns how many blocks were dirty.

    :raises FlushStalledError: nothing more is written back; says why and what helps.
    """
    return active(attached).flush(progress, warn=say)


def detach(
    attached: AttachedDisk, dead: bool, yes: bool, progress: OnFlush, say: Say
) -> FlashDevice:
    """Give the origin back as a plain disk; returns its flash device as that is then.

    :param dead: the flash is gone or fails: nothing is written back, the loss is said.
    :param yes: with ``dead``, also if the flash does answer; without, also if the origin is gone,
        and with it what was to be written back.
    :raises InUseError: it is in use.
    :raises TierRefusedError: the flash is not as ``dead`` says, or the origin is gone.
    """
    machine, device = attached.machine, attached.flash.path
    attached.tier.require_unused()
    answers = devices.answers(machine, device)
    if not dead and not answers:
        raise TierRefusedError(
            f"{device} is gone or does not answer, so nothing can be written back",
            Remedy("detach without writing back", parameters={"flash_is_dead": True}),
        )
    if dead:
        return _detach_dead(attached, answers, yes, say)
    flash_devices.require_ours(machine, attached.flash)
    tier = attached.tier
    attached = _as_ready_if_used(attached, tier)
    is_gone = _is_gone(attached)
    if attached.disk.phase == "ready":
        if is_gone:
            _give_up_with_origin(tier, attached.disk, word_left_by(attached), yes, say)
        else:
            _write_back(attached, tier, progress, say)
            tier.make_durable()
        # From here on nothing of the flash is needed, whenever this is cut short.
        attached = attached.with_disk(replace(attached.disk, phase="detaching")).save()
    disk = attached.disk
    tier.discard()
    _forget_counting(attached, tier)
    # So that no old superblock is found there by what comes next.
    devicemapper.wipe(machine, device, disk.metadata)
    devicemapper.wipe(machine, device, disk.cache)
    _forget(attached, say)
    reservation.give_back(machine, disk.origin)
    _forget_machine(machine, disk)
    # Last, and once the rest is gone for good: the next detach ends what is cut short before.
    machine.run(["sync", "--file-system", "/etc"], timeout_s=_SYNC_LIMIT_S)
    flash = flash_devices.save(machine, attached.flash.without(disk.name))
    say(_farewell(disk, is_gone))
    return flash


def _as_ready_if_used(attached: AttachedDisk, tier: DiskTier) -> AttachedDisk:
    """A disk whose detach or creation was cut short, but that came up again: it is like any other
    since, with writes that are on its flash alone."""
    disk = attached.disk
    if disk.phase == "ready":
        return attached
    # Made again by a boot of an earlier hotset's script, which may have taken it down since, too.
    was_used = disk.phase == "detaching" and may_be_dirty(disk, word_left_by(attached))
    if not (tier.is_active() or was_used):
        return attached
    return attached.with_disk(replace(disk, phase="ready")).save()


def _is_gone(attached: AttachedDisk) -> bool:
    """True if the origin does not exist, or is a device that does not answer."""
    machine, path = attached.machine, attached.disk.origin
    type_ = devices.type_of(machine, path)
    return type_ is None or (type_ == "device" and not devices.answers(machine, path))


def _farewell(disk: Disk, is_gone: bool) -> str:
    if is_gone:
        return f"disk {disk.name} is given up; its origin, {disk.origin}, is not there"
    return f"{disk.origin} is a plain disk again: mount it instead of {disk.device}"


def _give_up_with_origin(
    tier: DiskTier, disk: Disk, left: Word | None, yes: bool, say: Say
) -> None:
    """Say what is lost with an origin that is gone.

    :raises TierRefusedError: something is, and ``yes`` is not.
    """
    lost = _only_on_flash(tier, disk, left)
    if lost is None:
        say(f"{disk.origin} is not there. The flash holds nothing that it lacks")
    elif yes:
        say(f"LOST: {lost} that were only on the flash, since {disk.origin} is not there")
    else:
        raise TierRefusedError(
            f"{disk.origin} is not there or does not answer, so {lost} that are only on the flash"
            " cannot be written back to it: connect it (iSCSI: log in), then detach again",
            Remedy("lose them, if it is gone for good", parameters={"yes": True}),
            field="disk",
        )


def _detach_dead(attached: AttachedDisk, answers: bool, yes: bool, say: Say) -> FlashDevice:
    machine, disk, tier = attached.machine, attached.disk, attached.tier
    if answers:
        flash_devices.require_ours(machine, attached.flash)
    left = word_left_by(attached, answers)
    _drop(tier, disk, left, answers and not yes, say)
    # First of all: whenever this flash is seen again, its writes are older than the origin's.
    abandoned.add(attached)
    _forget(attached, say, waits=False)
    reservation.give_back(machine, disk.origin)
    flash = attached.flash.without(disk.name)
    stuck = None
    try:
        tier.discard()
        _forget_counting(attached, tier)
        if answers:
            devicemapper.wipe(machine, flash.path, disk.metadata)
            devicemapper.wipe(machine, flash.path, disk.cache)
            flash = flash_devices.save(machine, flash)
    except (CommandError, CommandTimeoutError, InUseError, TierFailedError) as error:
        stuck = error
    if stuck or not answers:
        flash = flash_devices.save_without_flash(machine, flash)
    if stuck is None:
        _forget_machine(machine)
        say(_farewell(disk, _is_gone(attached)))
        return flash
    raise TierRefusedError(
        f"disk {disk.name} is given up, and no boot makes it again; but the kernel still waits for"
        f" the flash and does not let go of {disk.origin} ({stuck}). Restart the machine:"
        f" {disk.origin} is a plain disk then"
    )


def _forget_machine(machine: Machine, going: Disk | None = None) -> None:
    """Remove what no disk of the machine but ``going`` needs."""
    known = flash_devices.inventory(machine)
    if going is not None:
        known = known.without(going)
    udev.forget(machine, known)
    systemd_unit.forget_starts(machine, known)


def _forget_counting(attached: AttachedDisk, tier: DiskTier) -> None:
    """Remove what works for a disk next to its tier: its engine's service, the region tracing."""
    tier.uninstall()
    regions.end_tracing(attached.machine, attached.disk.name)


def _forget(attached: AttachedDisk, say: Say, *, waits: bool = True) -> None:
    """Remove what the machine knows of a disk that no longer exists.

    :param waits: for the unit's stop: not where the flash may hang, or the tier is still active,
        since that would wait for this process's lock.
    """
    machine, disk = attached.machine, attached.disk
    pins.forget(machine, disk.name)
    systemd_unit.remove(attached, waits)
    udev.show_origin(attached)
    try:
        for line in fstab.restore(attached):
            say(f"{fstab.PATH}: {line}")
    except CommandError as error:
        # Who made it read-only can change it; the disk is not held back for it.
        say(
            f"{fstab.PATH} cannot be changed ({error}): put the lines after `# hotset {disk.name}:`"
            f" in the place of those that mount {disk.device}"
        )
    if [other.name for other in attached.flash.disks] == [disk.name]:
        volume = attached.flash.volume_slice.path
        for folder in fstab.folders(machine, volume):
            say(
                f"/etc/fstab mounts {volume} on {folder}, and no disk is left whose unit makes it"
                " at boot: remove that line, or the next boot waits for it, and without `nofail`"
                " ends in emergency mode"
            )
    # Always: a removal before this one may have been cut short just before it.
    systemd_unit.reload(machine)


def _write_back(attached: AttachedDisk, tier: DiskTier, progress: OnFlush, say: Say) -> None:
    """Write everything back and take the tier down; see that nothing was left."""
    if not is_up(tier):
        if not may_be_dirty(attached.disk, word_left_by(attached)):
            return
        activate(attached, say)
    tier.flush(progress, final=True, warn=say)
    if not _take_down(attached, tier):
        raise TierRefusedError(
            f"{attached.disk.device} was written to while it was taken down: detach it again"
        )


def _only_on_flash(tier: DiskTier, disk: Disk, left: Word | None) -> str | None:
    """Describe the data that only the flash holds; None if there is none."""
    is_active = tier.is_active()
    if disk.spec.mode == "writethrough" or (not is_active and not may_be_dirty(disk, left)):
        return None
    try:
        dirty: Blocks | None = tier.counters().dirty if is_active else None
    except (TierFailedError, CommandError, CommandTimeoutError):
        dirty = None
    if dirty is None:
        return "an unknown number of blocks"
    return f"{int(dirty)} blocks ({dirty.bytes(disk.spec.block)})" if dirty else None


def _drop(tier: DiskTier, disk: Disk, left: Word | None, refuse: bool, say: Say) -> None:
    """Say what is lost with the flash."""
    lost = _only_on_flash(tier, disk, left)
    if lost is None:
        say("nothing is lost: every write is on the origin")
        return
    if refuse:
        raise TierRefusedError(
            "the flash is not dead, it answers: detach normally, which writes back what is dirty",
            Remedy("discard what is dirty all the same", parameters={"yes": True}),
            field="flash_is_dead",
        )
    say(
        f"LOST: {lost} that were only on the flash. {disk.origin} is older than the database"
        " believes: check the file system and restore or recover the database"
    )


def destroy(
    machine: Machine, flash: FlashDevice, yes: bool, progress: Callable[[Disk], OnFlush], say: Say
) -> None:
    """Detach all disks of a flash device and give up its volume and its label.

    :param progress: called with the progress of each flush.
    :param yes: also several disks, a volume that is not empty, and with a flash or an origin that
        is gone what was only on the flash; the loss is said.
    :raises InUseError: something is in use.
    :raises TierRefusedError: something would need ``yes``.
    """
    if len(flash.disks) > 1 and not yes:
        names = ", ".join(disk.name for disk in flash.disks)
        raise TierRefusedError(
            f"the flash device {flash.name} has several disks ({names})",
            Remedy("detach all of them", parameters={"yes": True}),
            *(
                Remedy(f"detach {disk.name}", "tier detach", {"disk": disk.name})
                for disk in flash.disks
            ),
        )
    volume = flash.volume_slice
    is_dead = not devices.answers(machine, flash.path)
    if is_dead and flash.disks and not yes:
        raise TierRefusedError(
            f"{flash.path} is gone or does not answer, so nothing can be written back",
            Remedy("give its disks up without that", parameters={"yes": True}),
        )
    _give_up(machine, flash, yes)
    for disk in flash.disks:
        attached = AttachedDisk(machine, flash, disk)
        flash = detach(attached, is_dead, yes, progress(disk), say)
    if flash_devices.volume_is_active(machine, flash) and not is_dead:
        # Again, as its disks' data may have taken hours to be written back.
        _give_up(machine, flash, yes)
        machine.run(["wipefs", "--all", str(volume.path)])
    flash_devices.remove_volume(machine, flash)
    bare = replace(flash, volume=())
    if not flash.volume:
        pass  # without a volume, the label went with the last disk
    elif devices.answers(machine, flash.path):
        flash_devices.save(machine, bare)
    else:
        flash_devices.forget(machine, bare)
    _forget_machine(machine)
    say(f"flash device {flash.name} is removed: {flash.path} is free")


def _give_up(machine: Machine, flash: FlashDevice, yes: bool) -> None:
    """:raises InUseError: the flash's volume is in use.
    :raises TierRefusedError: it may hold something and ``yes`` is not.
    """
    volume = flash.volume_slice
    programs.require_unused(machine, volume.path)
    if yes or not flash.volume:
        return
    if not flash_devices.volume_is_active(machine, flash):
        raise TierRefusedError(
            f"{volume.path} is not active, so nobody sees what is on it: activate a disk of the"
            f" flash device {flash.name} first",
            Remedy("discard it unseen", parameters={"yes": True}),
        )
    signatures = devices.inspect(machine, volume.path).signatures
    if signatures:
        raise TierRefusedError(
            f"{volume.path} is not empty: {', '.join(signatures)} on it", devices.OVERWRITE
        )


def active(attached: AttachedDisk) -> DiskTier:
    """:raises FlashError: it is not, nor can it be: the flash is of a later version of hotset, or
        another machine's.
    :raises TierRefusedError: it is not, and can be activated.
    """
    tier = attached.tier
    if not is_up(tier):
        flash_devices.require_ours(attached.machine, attached.flash)
        raise not_active(attached.disk)
    return tier


def not_active(disk: Disk) -> TierRefusedError:
    """Return the error of an operation that needs an active disk."""
    activate_it = Remedy("activate it", "tier activate", {"disk": disk.name})
    return TierRefusedError(f"{disk.device} is not active", activate_it)


def is_up(tier: DiskTier) -> bool:
    """True if it is active, and what serves it is running."""
    return tier.is_active() and not tier.has_ended()
