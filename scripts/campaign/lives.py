"""Whole lives of a disk, drawn at random: verbs, kills, power cuts, boots, one without its flash,
writes past the tier.

Whatever was written and synced has to be there whenever the disk is up again; or bringing it up is
refused, by a message that names more than one way out. There a life ends: which writes are lost is
for the administrator to say. A life is drawn from its number alone, so that one can be lived again.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from hotset.block.programs import InUseError
from hotset.core.errors import RequestError
from hotset.disk import flash_devices, lifecycle
from hotset.tier.base import TierKind

from .bench import FOLDER, ORIGIN, Bench, boot_fresh, nothing
from .mortal import KillableMachine, Killed
from .systemd import Server

_STEPS = 8
_DETACH_STEPS = 35
"""At most so many commands of a detach change something."""
_FIRST_PARTITION = 446
"""Where a disk's table has the flash device's entry of 16 bytes."""


@dataclass(slots=True)
class Life:
    """One disk's, and what has become of it.

    :ivar openers: draws who has the device open; apart, so that a number's life stays what it was.
    :ivar due: checksum and name of every file that has to be there.
    :ivar story: what was done.
    :ivar end: why it ended before its time; None: it did not.
    """

    server: Server
    kind: TierKind
    number: int
    dice: random.Random
    openers: random.Random
    due: set[str] = field(default_factory=set)
    story: list[str] = field(default_factory=list)
    end: str | None = None
    failure: str | None = None

    @property
    def bench(self) -> Bench:
        return Bench(self.server, self.kind, "activate")

    def line(self) -> str:
        outcome = self.failure or self.end or "nothing is lost"
        return f"{self.kind} life {self.number}: {' · '.join(self.story)}: {outcome}"


def run(
    server: Server,
    kinds: Sequence[TierKind],
    numbers: Sequence[int],
    say: Callable[[str], None],
) -> Iterator[Life]:
    """
    :param server: of :func:`.bench.server`; off before and after.
    :param numbers: of the lives.
    :param say: gets a line a life.
    """
    for kind in kinds:
        for number in numbers:
            dice, openers = (random.Random(f"{name} {number}") for name in (kind, "openers"))
            life = Life(server, kind, number, dice, openers)
            try:
                _live(life)
            except Exception as error:
                life.failure = f"{type(error).__name__}: {str(error)[:400]}"
            finally:
                server.power_cut()
            say(life.line())
            yield life


def _live(life: Life) -> None:
    boot_fresh(life.server)
    life.due |= life.bench.prepare()
    for _ in range(_STEPS):
        step = life.dice.choice(_ACTIVE if _device(life) else _DOWN)
        step(life)
        if life.dice.random() < 0.5:
            _bring_up(life)
        if life.end or life.failure:
            return
    _bring_up(life)


def _bring_up(life: Life) -> None:
    """As its administrator would, and read everything."""
    try:
        device = life.bench.recover(untouched=False) or ORIGIN
    except RequestError as refusal:
        if len(refusal.remedies) < 2:
            life.failure = f"refused without both ways out: {refusal}"
        life.end = f"refused: {refusal}"
        return
    lost = life.due - life.bench.read(device)
    if lost:
        life.failure = f"{len(lost)} of {len(life.due)} differ: {', '.join(sorted(lost))[:300]}"
    if device == ORIGIN and not flash_devices.list_disks(life.server.machine):
        life.bench.create(life.server.machine)
        life.story.append("create")


def _write(life: Life) -> None:
    """As a database does, through the tier."""
    _put(life, "write", str(_device(life)))


def _write_past(life: Life) -> None:
    """Somebody mounts the origin while its tier is down."""
    _put(life, "write past the tier", str(ORIGIN))


def _put(life: Life, what: str, device: str) -> None:
    name = f"./file{len(life.story)}"
    written = life.server.sh(
        f"mount {device} {FOLDER} || exit 0; cd {FOLDER}; head -c 300000 /dev/urandom > {name};"
        f" sync; md5sum {name}; cd /; umount {FOLDER}"
    )
    life.due |= set(written.splitlines())
    life.story.append(what if written else f"{what} (it cannot be mounted)")


_HOLDERS = ("exec sleep 900 5<>{}", "mount {} /mnt; exec sleep 900")
"""A process that has the device open, and a mount that no other namespace sees."""


def _refuse_while_open(life: Life, verb: Callable[[], object]) -> None:
    """In some lives the disk is in use: then the verb is refused, and the disk goes on."""
    if life.openers.random() < 0.5:
        return
    command = life.openers.choice(_HOLDERS).format(_device(life))
    pid = life.server.sh(
        f"setsid unshare --mount sh -c {shlex.quote(command)} > /dev/null 2>&1 < /dev/null &"
        " until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.1; done; echo $!"
    )
    try:
        verb()
        life.failure = f"taken down while a process had it open: {command}"
    except InUseError as refusal:
        if pid not in str(refusal) or not _device(life):
            life.failure = f"{command} is process {pid}, and the disk is refused: {refusal}"
    life.server.sh(f"kill {pid}; while [ -e /proc/{pid} ]; do sleep 0.1; done")
    life.story.append("refused while it is open")


def _deactivate(life: Life) -> None:
    _refuse_while_open(life, lambda: lifecycle.deactivate(life.bench.attached(), nothing))
    lifecycle.deactivate(life.bench.attached(), nothing)
    life.story.append("deactivate")


def _flush(life: Life) -> None:
    lifecycle.flush(life.bench.attached(), nothing)
    life.story.append("flush")


def _write_through(life: Life) -> None:
    Bench(life.server, life.kind, "set").perform(life.server.machine)
    life.story.append("set write-through")


def _detach_cut_short(life: Life) -> None:
    """The detach is killed, and not repeated for now."""
    _refuse_while_open(life, lambda: life.bench.detach(life.bench.attached()))
    mortal = KillableMachine(life.server.machine, life.dice.randrange(_DETACH_STEPS))
    with suppress(Killed):
        life.bench.detach(replace(life.bench.attached(), machine=mortal))
    life.story.append(f"detach, killed after step {len(mortal.ran)}")


def _power_cut(life: Life) -> None:
    life.server.power_cut()
    life.story.append("power cut")
    _boot(life)


def _reboot(life: Life) -> None:
    life.server.shut_down()
    life.story.append("reboot")
    _boot(life)


def _boot_without_flash(life: Life) -> None:
    life.server.power_cut()
    entry = _exchange(life.server, bytes(16))
    life.server.boot()
    life.story.append("boot without flash")
    if life.dice.random() < 0.5:
        _write_past(life)
    life.server.shut_down()
    _exchange(life.server, entry)
    life.story.append("reboot with flash")
    _boot(life)


def _exchange(server: Server, entry: bytes) -> bytes:
    """Of a machine that is off; returns the entry of the flash before."""
    with server.flashes.open("r+b") as file:
        file.seek(_FIRST_PARTITION)
        before = file.read(len(entry))
        file.seek(_FIRST_PARTITION)
        file.write(entry)
    return before


def _boot(life: Life) -> None:
    """What it mounts is written to."""
    life.server.boot()
    later = life.bench.use()
    if later:
        names = tuple(line.split()[1] for line in later)
        life.due = {entry for entry in life.due if not entry.endswith(names)} | later
        life.story.append("it is mounted and written to")


def _device(life: Life) -> PurePosixPath | None:
    """The tier, if it is up."""
    for disk in flash_devices.list_disks(life.server.machine):
        if disk.tier.is_active():
            return disk.disk.device
    return None


Step = Callable[[Life], None]
_BOOTS: tuple[Step, ...] = (_power_cut, _reboot, _boot_without_flash)
_ACTIVE: tuple[Step, ...] = (
    *(_write, _write, _deactivate, _flush, _write_through, _detach_cut_short),
    *_BOOTS,
)
_DOWN: tuple[Step, ...] = (_write_past, *_BOOTS)
