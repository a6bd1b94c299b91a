"""Every verb of a tier's life, killed at each of its steps, with the power cut or without.

Then comes what a user would do next, and every file is compared.

A kill is SIGKILL as the machine sees it: the commands until then ran, no further one comes, no
clean-up happens. It comes after a step, or within the next one: then the command that is this step
gets SIGKILL itself, with all that it has started, at a moment drawn from as long as it takes. A
power cut is the same for the machine. Flash and origin are cut out of the lab's flash disk, so that
nothing else is in the way. What was written with fsync or by direct I/O has to be there afterwards,
through the tier and, once it is detached, on the origin alone.

Verbs that work on a mounted tier are killed with a writer at work, too, who writes records with
fsync all the while: through the kill and what comes next, or until the power cut. Every record that
was acknowledged has to be there.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from ..block import devicemapper
from ..common.units import Bytes
from ..hosts.base import Command, CommandError, Forwarding, Machine, MachineGoneError, Result
from ..hosts.dry_run import only_reads
from ..provisioning import cache_device as cards
from ..provisioning import create as creation
from ..provisioning import lifecycle
from ..provisioning import resize as resizing
from ..provisioning import retune as retuning
from ..provisioning.cache_device import Card, Disk
from ..provisioning.create import CreateRequest
from ..tiers.base import MetadataDamagedError, TierKind
from .lab import FLASH_DISK
from .machines.quick import quick
from .machines.uml import Uml
from .writer import Writer

Verb = Literal[
    "create",
    "deactivate",
    "activate",
    "flush",
    "grow",
    "shrink",
    "set",
    "repair",
    "repair clean",
    "detach",
]
Ending = Literal["kill", "kill within", "power cut", "power cut within"]
VERBS: tuple[Verb, ...] = get_args(Verb)
ON_LINE: tuple[Verb, ...] = ("flush", "grow", "shrink", "set")
"""Those that work on a tier that is mounted."""
MENDED: tuple[TierKind, ...] = ("dm-cache",)
"""Whose metadata ``repair`` can mend with writes on the flash; a cache that was clean begins empty,
of every kind (``repair clean``)."""
KINDS: tuple[TierKind, ...] = get_args(TierKind)
ENDINGS: tuple[Ending, ...] = get_args(Ending)
MIB = 1024**2
_MOUNT = PurePosixPath("/run/hotset/campaign")
_RECORDS = _MOUNT / "records"
_NAME, _FLASH, _ORIGIN = "shop", "campaign-flash", "campaign-origin"
_CUTS = ((_FLASH, 0, 224), (_ORIGIN, 256, 96))
_FILES_MIB, _BEHIND_MIB = 80, 84
_SPACE_MAP = 80
_ROUNDS = 5


class Killed(BaseException):
    """The campaign's SIGKILL; nothing of hotset's catches it and goes on."""


CutOff = Callable[[Machine, Command], bool]
"""Begins a command and cuts it off; returns whether it had not ended by then."""


class KillableMachine(Forwarding):
    """A machine on which the next commands run until the kill, and none after it.

    :ivar ran: the commands that may have changed something, shortened; ``seconds``: what each took.
    :ivar amid: the one that was cut off before it ended.
    """

    def __init__(self, machine: Machine, steps: int | None, cut_off: CutOff | None = None) -> None:
        """:param steps: how many commands that may change something run; None: all.
        :param cut_off: what is done with the next such command; None: it is not begun.
        """
        super().__init__(machine)
        self.ran: list[str] = []
        self.seconds: list[float] = []
        self.amid: str | None = None
        self._steps = steps
        self._cut_off = cut_off

    def execute(self, command: Command) -> Result:
        changes = not only_reads(command.argv)
        if self._is_due and (changes or self._cut_off is None):
            self._die(command)
        done = super().execute(command)
        if changes:
            self._note(_shown(command), done.seconds)
        return done

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        if self._is_due:
            self._die()
        return super().stream(argv)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        if self._is_due:
            self._die()
        begun = time.monotonic()
        super().put(source, target, mode)
        self._note(f"write {target}", time.monotonic() - begun)

    @property
    def _is_due(self) -> bool:
        return self._steps is not None and len(self.ran) >= self._steps

    def _die(self, command: Command | None = None) -> None:
        # Once: no handler of what is killed gets anything done any more.
        cut_off, self._cut_off = self._cut_off, None
        if cut_off is not None and command is not None and cut_off(self._machine, command):
            self.amid = _shown(command)
        raise Killed

    def _note(self, words: str, seconds: float) -> None:
        self.ran.append(words)
        self.seconds.append(seconds)


def _shown(command: Command) -> str:
    return " ".join(command.argv[:2] + command.argv[3:])[:100].replace("\n", " ")


def _killed_after(seconds: float) -> CutOff:
    """SIGKILL for a command and its children; what has a session of its own comes to its end, which
    the next operation waits for (by its lock)."""
    limited = ("sh", "-c", 'exec timeout --signal=KILL "$0" "$@"', f"{seconds:.4f}")
    end = "while grep -qszxE 'hotset-(copy|swap)' /proc/[0-9]*/cmdline; do sleep 0.1; done"

    def cut_off(machine: Machine, command: Command) -> bool:
        done = machine.execute(replace(command, argv=(*limited, *command.argv)))
        machine.run(["sh", "-c", end])
        return done.rc in (-9, 137)

    return cut_off


def _powered_for(machine: Uml, seconds: float) -> CutOff:
    """The power goes while a command runs."""

    def cut_off(there: Machine, command: Command) -> bool:
        timer = threading.Timer(seconds, machine.power_cut)
        timer.start()
        try:
            there.execute(command)
        except MachineGoneError:
            return True
        finally:
            timer.join()
        return False

    return cut_off


@dataclass(slots=True)
class Outcome:
    """What came of one verb, killed at every step that was tried.

    :ivar amid: how many of the kills hit a command before it ended.
    :ivar records: how many a writer had acknowledged, in all kills; None: there was no writer.
    """

    kind: TierKind
    verb: Verb
    ending: Ending
    steps: int = 0
    tried: list[int] = field(default_factory=list)
    amid: int = 0
    failures: list[str] = field(default_factory=list)
    records: int | None = None

    def line(self) -> str:
        found = "all files as written" if not self.failures else f"{len(self.failures)} FAILED"
        if self.records is not None:
            found += f" ({self.records} records by a writer at work)"
        is_within = self.ending in ("kill within", "power cut within")
        # After a step, or before the first.
        moments = self.steps if is_within else self.steps + 1
        amid = f" ({self.amid} amid a command)" if is_within else ""
        return (
            f"{self.kind:9}  {self.verb:10}  {self.ending:16}  cut short at {len(self.tried):3} of"
            f" {moments:3} moments{amid}: {found}"
        )


def run(
    machine: Uml,
    kinds: Sequence[TierKind],
    verbs: Sequence[Verb],
    endings: Sequence[Ending],
    chosen: Callable[[int], Sequence[int]],
    say: Callable[[str], None],
    follow: Callable[[str], None] = lambda _: None,
    *,
    writers: bool = False,
) -> Iterator[Outcome]:
    """
    :param writers: have one at work; only for verbs of ``ON_LINE``.
    :param chosen: of so many steps, those to be killed after.
    :param say: gets a line a verb, and one a failure.
    :param follow: gets a line a kill.
    """
    for kind in kinds:
        for verb in verbs:
            if verb == "repair" and kind not in MENDED:
                continue
            for ending in endings:
                outcome = Outcome(kind, verb, ending, records=0 if writers else None)
                _verb(machine, outcome, chosen, follow)
                say(outcome.line())
                for failure in outcome.failures:
                    say(f"    {failure}")
                yield outcome


def _verb(
    machine: Uml,
    outcome: Outcome,
    chosen: Callable[[int], Sequence[int]],
    follow: Callable[[str], None],
) -> None:
    kind, verb, ending = outcome.kind, outcome.verb, outcome.ending
    with quick(machine) as there:
        whole = _Bench(there, kind, verb)
        before = whole.prepare()
        writer = whole.writer(machine) if outcome.records is not None else None
        alive = KillableMachine(there, None)
        whole.perform(alive)
        outcome.steps = len(alive.ran)
        failure = whole.verdict(before, writer)
    if failure:
        outcome.failures.append(f"without a kill: {failure}")
    for step in chosen(outcome.steps):
        cut_off = None
        if ending in ("kill within", "power cut within"):
            if step == outcome.steps:
                continue
            cut_off = _cut_off(machine, outcome, step, alive.seconds[step])
        begun = time.monotonic()
        mortal, failure = _kill(machine, outcome, step, cut_off)
        outcome.tried.append(step)
        outcome.amid += mortal.amid is not None
        last = mortal.ran[-1] if mortal.ran else "(nothing)"
        where = f"after step {step}, `{last}`"
        if mortal.amid:
            where += f", amid `{mortal.amid}`"
        spent = time.monotonic() - begun
        follow(f"{kind} {verb} {ending} {where}: {failure or 'as written'} ({spent:.1f} s)")
        if failure:
            outcome.failures.append(f"{where}: {failure}")


def _kill(
    machine: Uml, which: Outcome, step: int, cut_off: CutOff | None
) -> tuple[KillableMachine, str | None]:
    """One kill, and what is wrong after it."""
    with quick(machine) as there:
        bench = _Bench(there, which.kind, which.verb)
        before = bench.prepare()
        writer = bench.writer(machine) if which.records is not None else None
        mortal = KillableMachine(there, step, cut_off)
        with suppress(Killed):
            bench.perform(mortal)
    if which.ending in ("power cut", "power cut within"):
        machine.power_cut()
        if writer is not None:
            writer.end()
        machine.power_on()
    with quick(machine) as there:
        bench = _Bench(there, which.kind, which.verb)
        bench.cut()
        failure = bench.verdict(before, writer)
    if writer is not None:
        which.records = (which.records or 0) + writer.acknowledged
    return mortal, failure


def _cut_off(machine: Uml, which: Outcome, step: int, usual_s: float) -> CutOff:
    """At a moment that is the same in every campaign, as far as the machine is as fast."""
    drawn = random.Random(f"{which.kind} {which.verb} {step}")
    after_s = usual_s * drawn.random()
    return (
        _killed_after(after_s) if which.ending == "kill within" else _powered_for(machine, after_s)
    )


def _by_id(name: str) -> PurePosixPath:
    return PurePosixPath(f"/dev/disk/by-id/dm-name-{name}")


def _nothing(_: object) -> None:
    pass


@dataclass(frozen=True, slots=True)
class _Bench:
    """One verb on fresh devices."""

    machine: Machine
    kind: TierKind
    verb: Verb

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=120).stdout.strip()

    def cut(self) -> None:
        """Make flash and origin, if they are not there."""
        there = devicemapper.active_names(self.machine)
        for name, at, mib in _CUTS:
            if name not in there:
                table = f"0 {mib * 2048} linear {FLASH_DISK} {at * 2048}"
                devicemapper.make(self.machine, name, table)
        self.sh("udevadm settle --timeout=20")

    def prepare(self) -> str:
        """Everything as the verb is to find it; returns what has to be read ever after."""
        self.clear()
        self.cut()
        origin = f"/dev/mapper/{_ORIGIN}"
        self.sh(
            f"dd if=/dev/zero of=/dev/mapper/{_FLASH} bs=1M count=2 oflag=direct status=none;"
            f" mke2fs -q -F -t ext4 -E lazy_itable_init=0 {origin} {_FILES_MIB}M"
        )
        self._write(PurePosixPath(origin), "before")
        if self.verb == "create":
            before = self._read(PurePosixPath(origin))
        else:
            self._create(self.machine)
            device = self._found()[1].device
            self._hold_back(device)
            self._write(device, "after")
            before = self._read(device)
        if self.verb == "repair clean":
            lifecycle.flush(self.machine, *self._found(), _nothing)
        if self.verb in ("activate", "repair", "repair clean"):
            lifecycle.deactivate(self.machine, *self._found(), _nothing)
        if self.verb in ("repair", "repair clean"):
            self._spoil()
        return before

    def perform(self, machine: Machine) -> None:
        """The verb itself, on a machine that may die."""
        if self.verb == "create":
            self._create(machine)
            return
        card, disk = self._found()
        verbs: dict[Verb, Callable[[], object]] = {
            "deactivate": lambda: lifecycle.deactivate(machine, card, disk, _nothing),
            "activate": lambda: lifecycle.activate(machine, card, disk, _nothing),
            "flush": lambda: lifecycle.flush(machine, card, disk, _nothing),
            "grow": lambda: self._resize(machine, 112),
            "shrink": lambda: self._resize(machine, 72),
            "set": lambda: retuning.retune(
                machine, card, disk, None, "writethrough", _nothing, _nothing
            ),
            "repair": lambda: lifecycle.repair(machine, card, disk, _nothing),
            "repair clean": lambda: lifecycle.repair(machine, card, disk, _nothing),
            "detach": lambda: self._detach(machine, card, disk),
        }
        verbs[self.verb]()

    def writer(self, guest: Uml) -> Writer:
        """One at work on the tier, which is mounted until it ends."""
        self.sh(f"mkdir -p {_MOUNT}; mount {self._found()[1].device} {_MOUNT}")
        return Writer(guest, _RECORDS)

    def verdict(self, before: str, writer: Writer | None = None) -> str | None:
        """Go on as a user would, read all, detach, read all again; what is wrong, if anything."""
        try:
            device = self._recovered()
            if writer is not None:
                self._end(writer)
            if device is not None:
                found = self._wrong(device, before, writer)
                if found:
                    return f"through the tier: {found}"
                self._detach(self.machine, *self._found())
            origin = PurePosixPath(f"/dev/mapper/{_ORIGIN}")
            found = self._wrong(origin, before, writer)
            if found:
                return f"on the origin: {found}"
            self.sh(f"e2fsck -fn {origin}")
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:300]}"
        return None

    def _end(self, writer: Writer) -> None:
        """Where the machine was not switched off meanwhile, whoever wrote there goes on."""
        if self.sh(f"grep -c ' {_MOUNT} ' /proc/mounts || :") != "0":
            writer.require_more(1)
            writer.end()
            # Its process ends a moment after it was told to.
            self.sh(f"n=0; until umount {_MOUNT}; do n=$((n + 1)); [ $n -lt 100 ]; sleep 0.1; done")

    def _wrong(self, device: PurePosixPath, before: str, writer: Writer | None) -> str | None:
        now = self._read(device)
        if now != before:
            return _differences(before, now)
        if writer is None:
            return None
        self.sh(f"mount {device} {_MOUNT}")
        missing = writer.missing(self.machine, _RECORDS)
        self.sh(f"umount {_MOUNT}")
        return missing

    def clear(self) -> None:
        """Take away whatever an earlier verb left."""
        self.sh(
            f"umount -q {_MOUNT} || :;"
            " for s in /etc/hotset/engine/*.sh; do [ ! -e $s ] || sh $s stop; done;"
            " for n in $(dmsetup ls | grep -o '^hotset-[a-z]*' | sort -u); do"
            " dmsetup resume $n 2>/dev/null || :; dmsetup remove --retry $n 2>/dev/null || :; done;"
            " for b in /sys/block/dm-*/bcache/stop; do [ ! -e $b ] || echo 1 > $b; done;"
            " for s in /sys/fs/bcache/*-*/stop; do [ ! -e $s ] || echo 1 > $s; done;"
            " n=0; while ls /sys/fs/bcache 2>/dev/null | grep -q -- -; do n=$((n + 1));"
            " [ $n -lt 50 ] || break; sleep 0.1; done;"
            " for n in $(dmsetup ls | grep -o '^hotset-[a-z-]*'); do"
            " dmsetup remove --retry $n; done;"
            " rm -rf /etc/hotset/cards /etc/hotset/abandoned /etc/hotset/engine"
            " /etc/hotset/given-up /run/hotset/scratch /run/hotset/engine"
        )

    def _create(self, machine: Machine) -> None:
        wanted = CreateRequest(
            _NAME,
            _by_id(_FLASH),
            _by_id(_ORIGIN),
            self.kind,
            "oltp",
            Bytes(80 * MIB),
            Bytes(8 * MIB),
        )
        creation.create(machine, wanted, True, _nothing)

    def _resize(self, machine: Machine, mib: int) -> None:
        resizing.resize(machine, *self._found(), Bytes(mib * MIB), True, _nothing, _nothing)

    def _detach(self, machine: Machine, card: Card, disk: Disk) -> None:
        lifecycle.detach(machine, card, disk, False, False, _nothing, _nothing)

    def _found(self) -> tuple[Card, Disk]:
        return cards.find(self.machine, _NAME)

    def _recovered(self) -> PurePosixPath | None:
        """The tier, active again by what a user would do; None where the disk is plain again."""
        for _ in range(_ROUNDS):
            there = cards.pairs(self.machine)
            if not there or there[0][1].phase == "creating":
                if self.verb == "detach":
                    return None
                self._create(self.machine)
                continue
            card, disk = there[0]
            if disk.phase == "detaching":
                self._detach(self.machine, card, disk)
                return None
            try:
                lifecycle.activate(self.machine, card, disk, _nothing)
            except MetadataDamagedError:
                lifecycle.repair(self.machine, card, disk, _nothing)
            except lifecycle.OriginChangedError:
                # Nobody knows whether it was written to meanwhile: whoever runs this does, it was
                # not.
                lifecycle.keep_flash(self.machine, card, disk)
                continue
            report = cards.tier_for(self.machine, *self._found()).report()
            if report.state != "active":
                raise CommandError(
                    "tier", Result(("report",), 1, report.state, " ".join(report.notes), 0.0)
                )
            return disk.device
        raise AssertionError("it does not come to rest")

    def _hold_back(self, device: PurePosixPath) -> None:
        """Have the kernel write nothing back of itself, so that the flash matters. The engine in
        user space cannot be told; it waits for the origin to be idle."""
        if self.kind == "dm-cache":
            self.sh(f"dmsetup message {device.name} 0 migration_threshold 0")
        elif self.kind == "bcache":
            self.sh("for f in /sys/block/dm-*/bcache/writeback_running; do echo 0 > $f; done")

    def _write(self, device: PurePosixPath, names: str) -> None:
        self.sh(
            f"mkdir -p {_MOUNT}; mount {device} {_MOUNT}; cd {_MOUNT};"
            f" for n in 1 2 3; do head -c 1500000 /dev/urandom > {names}$n; done; sync; cd /;"
            f" umount {_MOUNT};"
            f" dd if=/dev/urandom of={device} bs=64k seek={_BEHIND_MIB * 16} count=64"
            " oflag=direct status=none"
        )

    def _read(self, device: PurePosixPath) -> str:
        """Checksums of every file, and of what lies behind the file system."""
        return self.sh(
            f"mkdir -p {_MOUNT}; mount {device} {_MOUNT}; cd {_MOUNT};"
            f" find . -type f ! -path ./{_RECORDS.name} | sort | xargs -r md5sum; cd /;"
            f" umount {_MOUNT};"
            f" dd if={device} bs=64k skip={_BEHIND_MIB * 16} count=64 iflag=direct status=none"
            " | md5sum"
        )

    def _spoil(self) -> None:
        """Damage the index of the metadata's space map: what ``cache_repair`` can mend. Of a clean
        cache, what the metadata begin with."""
        at = self._found()[1].metadata[0].start // 4096
        flash = f"/dev/mapper/{_FLASH}"
        if self.verb == "repair clean":
            self.sh(
                f"dd if=/dev/urandom of={flash} bs=4096 seek={at} count=256 oflag=direct"
                " conv=notrunc status=none"
            )
            return
        self.sh(
            f"block=$(dd if={flash} bs=4096 skip={at} count=1 iflag=direct status=none"
            f" | od -An -tu8 -j {_SPACE_MAP} -N 8 | tr -d ' ');"
            f" dd if=/dev/zero of={flash} bs=4096 seek=$(({at} + block)) count=1 oflag=direct"
            " conv=notrunc status=none"
        )


def _differences(before: str, now: str) -> str:
    """The lines that are not in both."""
    old, new = set(before.splitlines()), set(now.splitlines())
    return f"{len(old - new)} of {len(old)} differ: {', '.join(sorted(old - new))[:200]}"
