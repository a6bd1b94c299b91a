"""hotset's own cache engine as a tier, on any Linux with FUSE and loop devices.

``hotset-engine tier`` serves the accelerated disk as a block device where the kernel's ublk can be
used, else as a file, and a loop device shows that to the machine. It chooses at each start.
Its metadata and cached blocks lie on the same parts of the flash that a kernel's tier would have,
and origin and flash may be block devices or files. What keeps the engine at work is
``hotset-boot``'s (``boot/src/devices/engine.sh``).
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Literal

from hotset.block import extents, loop, programs, salvage
from hotset.block.devicemapper import Part, Place
from hotset.block.extents import Run
from hotset.core.machines import needrestart
from hotset.core.machines.base import Machine, PrerequisiteMissingError, Result
from hotset.core.units import Blocks, Bytes
from hotset.core.words import duration, percent

from ..base import Report, TierFailedError, TierSpec
from ..devices import Action, Devices, EngineRefusedError
from ..disk_tier import Contents, InPlaceTier
from ..division import Division, Owners
from . import control as engine
from .base import EngineTier

BLOCK_MIN, BLOCK_MAX = Bytes(4096), Bytes(1024**3)
_START_TIMEOUT_S = 400.0
_SALVAGE_TIMEOUT_S = 24 * 3600.0
_REFUSED = 2
_DIVIDE_POLL_S = 0.2
_DIVIDE_PATIENCE_S = 120.0
_NOTES = {
    "pass-through": "its flash failed, with nothing on it that is not on the origin too: the cache"
    " is off, and the origin serves everything. Replace the flash",
    "read-only": "a device failed while the flash held writes that are not on the origin yet: the"
    " disk is read-only now. The engine's log says which device",
}
_NOTHING_DIRTY = '{"dirty":0}'
_WELL = frozenset(("serving", "flushing", "stopping"))


def check_block(block: Bytes) -> Bytes:
    """:raises ValueError: not a block size that the engine takes."""
    if not BLOCK_MIN <= block <= BLOCK_MAX or block & (block - 1):
        raise ValueError(
            f"{int(block)} bytes: the engine takes a power of two from 4 KiB to 1 GiB (64KiB suits"
            " OLTP)"
        )
    return block


def require(machine: Machine) -> None:
    """:raises PrerequisiteMissingError: the machine cannot have such a tier."""
    if not loop.has_device(machine, "/dev/fuse", "fuse"):
        raise PrerequisiteMissingError(
            f"{machine.kind} has no FUSE (/dev/fuse), by which a cache in user space is served:"
            " load the kernel's module (modprobe fuse); a container has to be given the device"
            " (docker run --device /dev/fuse --cap-add SYS_ADMIN)"
        )
    if not loop.may_mount(machine):
        raise PrerequisiteMissingError(
            f"a cache in user space is a mount, and on this machine ({machine.kind})"
            f" {loop.NO_MOUNTS}"
        )
    loop.require(machine)


class Userspace(EngineTier, InPlaceTier):
    """The tier of one disk, whether its engine runs or not."""

    def __init__(self, machine: Machine, spec: TierSpec, place: Place, identity: str) -> None:
        """:param identity: the disk's UUID; the engine's metadata remember it."""
        super().__init__(machine, spec, place)
        self.identity = identity
        self.control = programs.control_of(place.name)

    @property
    def origin(self) -> PurePosixPath:
        return self.place.origin

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""
        return loop.FOLDER / self.place.name

    def is_active(self) -> bool:
        """True if the accelerated device exists."""
        result = self._script("attached")
        return result.rc == 0 and not result.made_up

    def has_ended(self) -> bool:
        """True if the engine of an existing device has ended; under systemd a restart is no end.
        Since when, and who wrote to the origin meanwhile, is unknown."""
        rc = self._script("alive").rc
        if rc not in (0, 1):
            # No answer is not that it has.
            raise TierFailedError(f"{self.path}: whether its engine runs is not known: code {rc}")
        return rc == 1

    def require_unused(self) -> None:
        """As `DiskTier.require_unused`, also where the device's name is gone."""
        super().require_unused()
        self.perform("unserved")

    def perform(self, action: Action) -> str:
        """Call `Devices.perform`."""
        devices = Devices(self.machine, self.kind, self.spec, self.place, self.identity)
        return devices.perform(action)

    def prepare(self) -> PurePosixPath:
        """An empty cache; returns the origin."""
        if self.is_active():
            raise TierFailedError(f"{self.path} is active already: destroy it first")
        require(self.machine)
        self.empty()
        return self.origin

    def create(self) -> PurePosixPath:
        self.activate()
        return self.path

    def empty(self) -> str:
        """Forget everything that is cached, while the engine does not run. Which blocks those were
        is noted: the engine fetches them from the origin again. Returns how many, in words."""
        return self.perform("empty")

    def activate(self, on_usable: Callable[[], None] = lambda: None) -> None:
        """Start the engine on what lies on flash and origin.

        :param on_usable: called once its metadata were found good, before anybody can write.
        :raises MetadataDamagedError: its metadata cannot be used.
        """
        if self.is_active():
            return
        require(self.machine)
        resized = self.perform("open")
        if self._has_systemd():
            needrestart.install(self.machine)
        on_usable()
        self.perform("make")
        if resized:
            # A resize was cut short: it has the size of before, or the one that was to be.
            self.follow_cache()

    def salvage(self, write: bool) -> salvage.Salvage:
        """Examine a cache that is refused as damaged; with ``write``, dirty data is on the origin
        afterwards, for good. The cache is only read, so it can be repeated.

        :raises EngineRefusedError: it is in use, or is another's.
        :raises TierFailedError: the origin could not be read or written.
        """
        argv = self._salvage_argv("--json", *["--write"] * write)
        done = self.machine.run(argv, check=False, timeout_s=_SALVAGE_TIMEOUT_S)
        if done.rc in (salvage.COMPLETE, salvage.INCOMPLETE):
            return salvage.parse(done.stdout)
        message = (
            done.stderr.strip().rpartition(f"{programs.ENGINE}: ")[2]
            or f"it ended with code {done.rc}"
        )
        refused = done.rc == _REFUSED
        raise (EngineRefusedError if refused else TierFailedError)(
            f"{self.path}: salvage: {message}"
        )

    def salvage_by_hand(self) -> str:
        return shlex.join(self._salvage_argv("--write", "--unidentified"))

    def _salvage_argv(self, *more: str) -> list[str]:
        witness = ("--witness", str(programs.witness_of(self.place.name)))
        options = json.loads(self.perform("cache-options"))
        return [programs.engine(self.machine), "salvage", *options, *witness, *more]

    def may_be_dirty(self) -> bool:
        """True if the flash may hold writes that the origin lacks; the engine does not run. Its
        metadata say so, if it ended in order."""
        if self.spec.mode == "writethrough":
            return False
        result = self._script("check")
        return result.rc != 0 or result.stdout.strip() != _NOTHING_DIRTY

    def settle(self) -> str | None:
        """Put right what an operation that was cut short left of an active tier. Returns what was
        put right, in words."""
        try:
            engine.serving(self.machine, self.control, engine.PATIENCE_S)
        except engine.OtherVersionError:
            # It serves the disk, and is not for this hotset to end.
            raise
        except TierFailedError:
            # It hangs, so nobody else has had the origin.
            self.discard()
            self.activate()
            return "its engine did not answer, and was started again"
        if not self._is_another():
            return None
        self.reconfigure()
        return "a change of size, policy or mode had been cut short, and is done now"

    def reconfigure(self) -> None:
        """Have the running engine be as the specification and the place say, without an
        interruption; dirty blocks are written back first where that must be.

        :raises TierFailedError: it cannot; it goes on as it was.
        """
        # One of another version is refused before its script is written.
        engine.serving(self.machine, self.control, engine.PATIENCE_S)
        parts = [_text(part) for part in (*self.place.metadata, *self.place.cache)]
        wanted = {
            "policy": self.spec.policy,
            "mode": self.spec.mode,
            "cache_bytes": int(self.spec.cache),
            "flash_parts": parts,
        }
        script = programs.script_of(self.place.name)
        before = self.machine.run(["cat", str(script)]).stdout
        # First what starts it, should it end meanwhile: the engine tells of another size.
        self.perform("install")
        try:
            engine.ask(self.machine, self.control, {"reconfigure": wanted})
        except TierFailedError:
            if self._is_another():
                self.machine.replace(before, script, 0o700)
            raise

    def _is_another(self) -> bool:
        """True if the engine answers, and differs from the specification."""
        try:
            now = engine.serving(self.machine, self.control)
        except TierFailedError:
            return False
        is_as_asked = (now.policy, now.mode) == (self.spec.policy, self.spec.mode)
        return not is_as_asked or now.counters.total != self.capacity

    def retune(self) -> None:
        """Take in another policy or mode of the specification."""
        self.reconfigure()

    def resize_drops_dirty(self, cache: Bytes) -> bool:  # noqa: ARG002 - it writes back by itself
        return False

    def follow_cache(self) -> None:
        """Take in the CACHE as the place has it now, larger or smaller than it was."""
        self.reconfigure()

    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, without an interruption; returns its size.

        :raises TierFailedError: it is served by ublk, which cannot; all is as it was.
        """
        done = engine.ask(self.machine, self.control, {"reconfigure": {"follow_origin": True}})[-1]
        # The kernel asks for a file's size again after a second.
        time.sleep(1.1)
        self.machine.run(["stat", str(self.control.parent / "mount/data")])
        self.machine.run(["losetup", "--set-capacity", str(self._loop())])
        return Bytes(done["origin_bytes"])

    def _loop(self) -> PurePosixPath:
        output = self.machine.run(["readlink", "-f", str(self.path)]).stdout
        return PurePosixPath(output.strip())

    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""
        if not self.is_active():
            ended = self._report_ended()
            # It may just have been started again.
            if ended.state == "restarting" or not self.is_active():
                return ended
        try:
            now = engine.serving(self.machine, self.control)
            division = self._division_in_words()
        except (TierFailedError, PrerequisiteMissingError) as error:
            return Report("failed", None, (), (str(error),))
        tunables = (
            ("mode", now.mode),
            ("policy", now.policy),
            ("engine", now.state),
            *_front_in_words(now.front),
            *_refill_in_words(now.refill),
            *division,
        )
        notes = tuple(self._notes(now))
        return Report("degraded" if notes else "active", now.counters, tunables, notes)

    def _notes(self, now: engine.Serving) -> Iterator[str]:
        if (note := _note(now.state)) is not None:
            yield f"{note} ({now.reason})" if now.reason else note
        if now.failure is not None:
            yield _failure_in_words(now.failure, self.origin)

    def _report_ended(self) -> Report:
        restarting = self._script("restarting")
        if restarting.rc:
            return Report("inactive", None)
        since, _, waits = restarting.stdout.strip().partition(" ")
        note = f"its cache engine ended {since} s ago and is being restarted." + (
            " Programs that have the disk open wait for it, and then go on"
            if waits
            else " Programs that had the disk open get errors: once it is active, unmount its file"
            " system and mount it again"
        )
        return Report("restarting", None, (), (note,))

    def _division_in_words(self) -> tuple[tuple[str, str], ...]:
        division = self.division()
        block = division.block
        words = [
            (what, f"{part.blocks.bytes(block)} ({part.resident.bytes(block)} cached)")
            for what, part in (("pinned", division.pinned), ("excluded", division.excluded))
            if part.blocks
        ]
        words += [
            (
                f"share of {part.name}",
                f"{percent(part.resident / division.total, 0)} of the cache (guaranteed"
                f" {percent(part.guaranteed / division.total, 0)},"
                f" limit {percent(part.most / division.total, 0)})",
            )
            for part in division.shares
        ]
        return tuple(words)

    def by_level(self) -> dict[int, list[Run]]:
        """Group the cached runs by their worth to the policy, 0 to 63."""
        return engine.by_level(self.machine, self.control)

    def divisible(self) -> Userspace:
        """Itself."""
        return self

    def division(self) -> Division:
        """How the cache is divided among what is pinned, excluded and shared."""
        return engine.division(self.machine, self.control)

    def owners(self) -> Owners:
        """Return the owners of the last :meth:`divide`."""
        return engine.owners(self.machine, self.control)

    def divide(self, owners: Owners, on_left: Callable[[Blocks], None] = lambda _: None) -> None:
        """Divide the cache, while the disk is in use, and wait until what has no place any more
        has left.

        :param on_left: called now and then with how many blocks have still to leave.
        :raises RequestError: more is pinned or guaranteed than fits; all is as it was.
        :raises TierFailedError: it cannot be kept, and all is as it was; or blocks do not leave.
        """
        division = engine.divide(self.machine, self.control, owners)
        left, since = division.to_leave, time.monotonic()
        while division.to_leave:
            on_left(division.to_leave)
            time.sleep(_DIVIDE_POLL_S)
            division = self.division()
            if division.to_leave != left:
                left, since = division.to_leave, time.monotonic()
            elif time.monotonic() - since > _DIVIDE_PATIENCE_S:
                raise TierFailedError(
                    f"{int(left)} blocks do not leave the cache of {self.path}: look at its state;"
                    " dirty ones leave once they can be written back to the origin"
                )

    def contents(self) -> Contents:
        """The engine says which blocks are dirty."""
        now = engine.resident(self.machine, self.control)
        cached, dirty = (
            extents.merge(extents.of_runs(runs, self.spec.block)) for runs in (now.runs, now.dirty)
        )
        return Contents(cached, dirty)

    def may_be_active(self) -> bool:
        """True always: an engine whose name and notes are gone serves on."""
        return True

    def discard(self) -> None:
        """End the engine without writing back; what is cached, also dirty, stays on the flash and
        is known as it was, and the volume stays."""
        self.perform("remove")

    def uninstall(self) -> None:
        """Remove what starts the engine."""
        self.perform("uninstall")
        needrestart.remove(self.machine)

    def _script(self, verb: Literal["alive", "attached", "check", "restarting"]) -> Result:
        """Ask what starts the engine; one that was never installed says no."""
        script = str(programs.script_of(self.place.name))
        return self.machine.run(["sh", script, verb], check=False, timeout_s=_START_TIMEOUT_S)

    def _has_systemd(self) -> bool:
        return self.machine.run(["test", "-d", "/run/systemd/system"], check=False).rc == 0


def _note(state: str) -> str | None:
    """Describe what is wrong in a state of the engine, and what to do."""
    if state in _WELL:
        return None
    unknown = f"its engine says {state!r}, which this version of hotset does not know"
    return _NOTES.get(state, unknown)


def _failure_in_words(failure: engine.WriteBackFailure, origin: PurePosixPath) -> str:
    """Describe what keeps blocks from being written back, and what to do.

    >>> failure = engine.WriteBackFailure("origin", "No space left on device", 83.2, Blocks(1099))
    >>> _failure_in_words(failure, PurePosixPath("/srv/shop.img"))
    'for 1 min 23 s 1,099 blocks cannot be written back: /srv/shop.img: No space left on device. They are on the flash alone, and are tried again every second: mend that before the flash is full'
    """  # noqa: E501
    where = "the flash" if failure.device == "flash" else str(origin)
    return (
        f"for {duration(failure.seconds)} {int(failure.blocks):,} blocks cannot be written back:"
        f" {where}: {failure.error.partition(' (os error')[0]}. They are on the flash alone, and"
        " are tried again every second: mend that before the flash is full"
    )


def _front_in_words(front: engine.Front | None) -> tuple[tuple[str, str], ...]:
    """How the disk is served.

    >>> _front_in_words(engine.Front("ublk", "/dev/ublkb0"))
    (('served by', 'ublk (/dev/ublkb0)'),)
    >>> _front_in_words(engine.Front("fuse", "no ublk"))
    (('served by', 'FUSE and a loop device (no ublk)'),)
    """
    if front is None:
        return ()
    kind = "FUSE and a loop device" if front.kind == "fuse" else front.kind
    return (("served by", f"{kind} ({front.detail})"),)


def _refill_in_words(refill: engine.Refill | None) -> tuple[tuple[str, str], ...]:
    """How far it is to fetch again what was cached before the cache had to begin empty.

    >>> _refill_in_words(engine.Refill("fetching", Blocks(30), Blocks(28), Blocks(40)))
    (('fetched again', '28 of 40 blocks, 10 still to come'),)
    """
    if refill is None:
        return ()
    rest = int(refill.total - refill.seen_to)
    to_come = f", {rest} still to come" if refill.state == "fetching" else ""
    stopped = ", and stopped: the next start goes on" if refill.state == "stopped" else ""
    words = f"{int(refill.fetched)} of {int(refill.total)} blocks{to_come}{stopped}"
    return (("fetched again", words),)


def _text(part: Part) -> str:
    return f"{int(part.start)}:{int(part.size)}"
