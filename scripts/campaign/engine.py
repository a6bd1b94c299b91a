"""Whole lives of hotset's own engine, as real programs, drawn at random: users who write and sync,
kills, power cuts, orderly ends, drives that lose their cache while the computer goes on, syncs and
I/O that fail, changes of a running tier.

After each start every sector holds a version of its own that is not older than what a sync had
promised; after a kill that the engine's witness tells of, and after an orderly end, not older than
what was answered. A sync that fails promises nothing, and takes back nothing that earlier ones
promised. Or the engine refuses, by a message: there a life ends, and what `salvage` proves has to
be true. Half of the lives end with the cache detached: the origin alone then has everything.

A life is drawn from its number alone; what comes between two threads is not.
"""

from __future__ import annotations

import random
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from json import JSONDecodeError, loads
from pathlib import Path

from .sectors import SECTOR, Sectors, Users, WrongError
from .served import Drive, Engine, enclose

_MIB = 1024**2
_ORIGIN, _METADATA, _SIZES = 12 * _MIB, _MIB, (_MIB, 2 * _MIB, 4 * _MIB)
_POLICIES = ("hotset", "smq", "lru", "arc", "s3-fifo", "sieve")
_ENDS = range(3, 7)
_EVENTS = range(1, 4)
_CUT_SHORT = 0.15
_OPERATIONS = range(50, 500)


@dataclass
class Life:
    """One cache's, and what has become of it.

    :ivar trusting: the witness is left as it was where a drive has lost its cache, which no
        computer does: a loss that has to be noticed.
    :ivar answers: the next start owes what was answered, not promised alone.
    :ivar stored: what it finds is on the medium.
    :ivar failed: kinds of I/O that failed in this session.
    """

    number: int
    faults: str
    folder: Path
    boot: Path
    dice: random.Random
    trusting: bool = False
    ends: int = 0
    operations: int = 0
    witnessed: int = 0
    answers: bool = True
    stored: bool = True
    failed: set[str] = field(default_factory=set)
    story: list[str] = field(default_factory=list)
    refused: str = ""
    failure: str = ""

    def __post_init__(self) -> None:
        self.flash = Drive("flash", self.folder, _METADATA + max(_SIZES))
        self.origin = Drive("origin", self.folder, _ORIGIN)
        block = self.dice.choice((4096, 16384, 32768, 65536))
        cache = self.dice.choice(_SIZES)
        drives = (self.flash, self.origin)
        self.engine = Engine(self.folder, *drives, metadata=_METADATA, cache=cache, block=block)
        self.engine.options = {
            "policy": self.dice.choice(_POLICIES),
            "mode": "writeback" if self.dice.random() < 0.8 else "writethrough",
        }
        self.sectors = Sectors(self.number, _ORIGIN // SECTOR)

    @property
    def users(self) -> Users:
        return self._users

    def line(self) -> str:
        outcome = self.failure or self.refused or "nothing is lost"
        options = " ".join(self.engine.options.values())
        return (
            f"{self.faults} life {self.number} ({options}, {self.engine.block}): "
            f"{' · '.join(self.story)}: {outcome}"
        )

    def new_boot(self) -> None:
        self.boot.write_text(f"{uuid.UUID(int=self.dice.getrandbits(128))}\n")
        self.engine.witness.unlink(missing_ok=True)

    def serve(self) -> None:
        self._users = Users(self.engine.data, self.sectors, self.number * 100 + self.ends)

    def leave(self) -> None:
        """Nobody answers the users any more."""
        if not self.users.end():
            raise WrongError("users hang though the engine has ended")
        self.operations += self.users.done
        if self.sectors.wrong:
            raise WrongError(self.sectors.wrong[0])


Step = Callable[[Life], None]


def run(
    numbers: Sequence[int],
    faults: str | None,
    say: Callable[[str], None],
    *,
    trusting: bool = False,
) -> Iterator[Life]:
    """
    :param numbers: of the lives.
    :param faults: of :data:`FAULTS`; None: drawn.
    :param say: gets a line a life.
    """
    with tempfile.TemporaryDirectory(prefix="lives-") as folder:
        boot = enclose(Path(folder))
        for number in numbers:
            own = Path(folder) / str(number)
            own.mkdir()
            kind = faults or [*FAULTS][number % len(FAULTS)]
            life = Life(number, kind, own, boot, random.Random(f"engine {number}"), trusting)
            try:
                _live(life)
            except Exception as error:
                life.failure = f"{type(error).__name__}: {str(error)[:400]}"
            finally:
                life.engine.kill()
                life.flash.end()
                life.origin.end()
            say(life.line())
            yield life


def _live(life: Life) -> None:
    life.flash.begin()
    life.origin.begin()
    life.engine.format()
    life.new_boot()
    events, ends = FAULTS[life.faults]
    for _ in range(life.dice.choice(_ENDS)):
        if not _start(life):
            return
        life.serve()
        for event in life.dice.choices(_CHANGES + events, k=life.dice.choice(_EVENTS)):
            _go_on(life)
            event(life)
        _go_on(life)
        _end(life, life.dice.choice((_lose_caches,) if life.trusting else _ENDINGS + ends))
        life.leave()
        life.ends += 1
    if _start(life) and life.dice.random() < 0.5:
        _detach(life)


def _start(life: Life) -> bool:
    """And read everything; False: it is refused."""
    life.flash.ask("fail_next")
    life.origin.ask("fail_next")
    if life.dice.random() < _CUT_SHORT and not life.trusting:
        _cut_start_short(life)
    why = life.engine.begin()
    if _OTHER_SIZE in why:
        # A change was cut short: hotset-boot goes by what the engine says, too.
        life.engine.cache = int(why.split(_OTHER_SIZE)[1].split()[0])
        why = life.engine.begin()
    if why:
        life.refused = f"refused: {why}"
        _salvage(life)
        return False
    due = life.sectors.answered if life.answers else life.sectors.promised
    life.sectors.take_stock(life.engine.data.read_bytes(), due, stored=life.stored)
    life.failed.clear()
    life.stored = False
    return True


def _cut_start_short(life: Life) -> None:
    """By a kill, the loss of power, or a sync that fails."""
    drive, times = life.dice.choice((life.flash, life.origin)), life.dice.randrange(1, 3)
    how = life.dice.choice(("kill", "power cut", "syncs fail"))
    if how == "syncs fail" and {*_SYNCS} & {*FAULTS[life.faults][0]}:
        drive.ask("fail_next", flushes=times, seed=life.dice.getrandbits(32))
        life.engine.begin()
        life.engine.kill()
        life.answers &= drive.ask("fail_next")["flushes"] == times
    else:
        life.engine.begin_for(life.dice.random() * 0.1)
        if how == "power cut":
            _cut_power(life)
    life.story.append(f"a start is cut short ({how})")


def _go_on(life: Life) -> None:
    if not life.users.go_on(life.dice.choice(_OPERATIONS)):
        raise WrongError(f"users hang: {life.engine.log()}")


def _end(life: Life, ending: Step) -> None:
    assert life.engine.process is not None
    code = life.engine.process.poll()
    if code is None:
        ending(life)
    elif life.failed:
        life.story.append(f"it ended with code {code}")
        _kill(life)
    else:
        raise WrongError(f"the engine ended with code {code}: {life.engine.log()}")


def _kill(life: Life) -> None:
    life.engine.kill()
    witness = life.engine.witness
    told = witness.exists() and bool(witness.read_text())
    life.witnessed += told
    life.answers = told and "flushes" not in life.failed
    life.story.append(f"kill{'' if told else ' without a witness'}")


def _kill_amid(life: Life) -> None:
    """A change or a flush."""
    ending, seconds = life.dice.choice((_kill, _cut_power)), life.dice.random() * 0.1
    change = threading.Thread(target=life.dice.choice((_flush, _change)), args=(life,))
    change.start()
    time.sleep(0.005 + seconds)
    ending(life)
    change.join()


def _cut_power(life: Life) -> None:
    if life.dice.random() < 0.5:
        life.engine.kill()
    _lose(life, life.flash, life.origin)
    life.engine.kill()
    life.new_boot()
    life.answers, life.stored = False, True
    life.story.append("power cut")


def _stop(life: Life) -> None:
    state = life.engine.state()
    code = life.engine.stop()
    life.story.append(f"end with code {code} ({state})")
    if code and not life.failed:
        raise WrongError(f"an orderly end with code {code}: {life.engine.log()}")
    life.answers = not code
    if not code and life.dice.random() < 0.5:
        # The root disk is another one: the flash itself has to say that it was given up.
        life.engine.given_up.unlink(missing_ok=True)
    if code or life.dice.random() < 0.6:
        return
    if state == "serving":
        life.sectors.promise(life.sectors.answered)
    _cut_power(life)


def _lose_caches(life: Life) -> None:
    """Drives are reset as the engine ends, and the computer goes on."""
    life.engine.kill()
    _lose(life, *_some(life))
    life.answers = False
    life.story.append("reset")


def _unplug(life: Life) -> None:
    """And plugged in again, later."""
    drives = _some(life)
    life.failed.add("flushes")
    for drive in drives:
        drive.ask("power_cut")
    life.users.go_on(30)
    if life.dice.random() < 0.5:
        life.engine.kill()
    else:
        life.engine.stop()
    for drive in drives:
        drive.end()
        drive.begin()
    life.answers = False
    life.story.append(f"unplug {' and '.join(drive.name for drive in drives)}")


def _some(life: Life) -> list[Drive]:
    both = [life.flash, life.origin]
    return life.dice.choice(([life.flash], [life.origin], both))


def _lose(life: Life, *drives: Drive) -> None:
    """All that they had not stored, or some of it."""
    resets = life.trusting or life.dice.random() < 0.5
    for drive in drives:
        drive.ask("reset", seed=life.dice.getrandbits(32)) if resets else drive.ask("power_cut")
    life.engine.kill()
    for drive in drives if not life.trusting else ():
        if resets:
            drive.is_new()
        else:
            drive.end()
            drive.begin()


def _flush(life: Life) -> None:
    life.story.append("flush" if life.engine.ask("flush") else "flush (refused)")


def _change(life: Life) -> None:
    engine, dice = life.engine, life.dice
    what = dice.choice(("policy", "mode", "cache"))
    if what == "cache":
        size = dice.choice(_SIZES)
        changed = engine.ask("reconfigure", cache_bytes=size, flash_parts=engine.parts(size))
        engine.cache = size if changed else engine.cache
    else:
        value = dice.choice(_POLICIES if what == "policy" else ("writeback", "writethrough"))
        changed = engine.ask("reconfigure", **{what: value})
        engine.options[what] = value if changed else engine.options[what]
    life.story.append(f"other {what}{'' if changed else ' (refused)'}")


def _share(life: Life) -> None:
    blocks = _ORIGIN // life.engine.block
    runs = [[life.dice.randrange(blocks // 2), 1 + life.dice.randrange(blocks // 16)]]
    what = life.dice.choice(("pinned", "excluded"))
    life.engine.ask("share", **{what: [{"name": "some", "runs": runs}]})
    life.engine.ask("set", dirty_target=life.dice.choice((0, 50, 100)))
    life.story.append(what)


def _flash_syncs_fail(life: Life) -> None:
    _syncs_fail(life, life.flash)


def _origin_syncs_fail(life: Life) -> None:
    _syncs_fail(life, life.origin)


def _syncs_fail(life: Life, drive: Drive) -> None:
    # Before the engine is told, what the drive has lost is read; and later it was not promised.
    life.users.looks = life.users.trusts = False
    life.failed.add("flushes")
    times = life.dice.randrange(1, 4)
    drive.ask("fail_next", flushes=times, seed=life.dice.getrandbits(32))
    life.users.sync()
    life.users.looks = life.engine.wait_for_state("read-only", "pass-through", "gone")
    life.story.append(f"{times} syncs of the {drive.name} fail: {life.engine.state()}")


def _io_fails(life: Life) -> None:
    drive, what = life.dice.choice((life.flash, life.origin)), life.dice.choice(("reads", "writes"))
    life.failed.add(what)
    times = life.dice.randrange(1, 30)
    drive.ask("fail_next", **{what: times})
    life.story.append(f"{times} {what} of the {drive.name} fail")


def _detach(life: Life) -> None:
    """Everything is copied back, and the origin used alone."""
    life.serve()
    _go_on(life)
    life.leave()
    flushed, code = life.engine.ask("flush"), life.engine.stop()
    checked = life.engine.check().stdout
    if "flushed" not in flushed or code or loads(checked)["dirty"]:
        raise WrongError(f"not detached: {flushed}, code {code}, {checked} {life.engine.log()}")
    whole = range(life.sectors.count)
    life.sectors.check(life.origin.file.read_bytes(), whole, life.sectors.answered)
    life.story.append("detach")


def _salvage(life: Life) -> None:
    """Of what it does not name as unknown nothing may be lost."""
    done = life.engine.run("salvage", *life.engine.words(), "--write", "--json")
    try:
        told = loads(done.stdout)
    except JSONDecodeError:
        life.story.append(f"no salvage: {done.stderr.strip()}")
        return
    due = list(life.sectors.promised)
    for stretch in told["may_be_lost"] + told["unreadable"]:
        first, count = stretch["offset"] // SECTOR, stretch["bytes"] // SECTOR
        due[first : first + count] = [0] * len(due[first : first + count])
    life.sectors.check(life.origin.file.read_bytes(), range(life.sectors.count), due)
    life.story.append(f"salvage, {sum(not one for one in due)} sectors unknown")


_OTHER_SIZE = "with a cache size of "
_CHANGES: tuple[Step, ...] = (_flush, _change, _change, _share)
_ENDINGS: tuple[Step, ...] = (_kill, _cut_power, _stop, _kill_amid)
_SYNCS: tuple[Step, ...] = (_flash_syncs_fail, _origin_syncs_fail)
FAULTS: dict[str, tuple[tuple[Step, ...], tuple[Step, ...]]] = {
    "none": ((), ()),
    "flash-syncs": ((_flash_syncs_fail,) * 3, ()),
    "origin-syncs": ((_origin_syncs_fail,) * 3, ()),
    "drives": ((), (_lose_caches, _unplug) * 2),
    "errors": ((_io_fails,) * 3, ()),
    "all": ((*_SYNCS, _io_fails, _io_fails), (_lose_caches, _unplug)),
}
"""What may happen while the engine serves, and how it may end, beside what always may."""
