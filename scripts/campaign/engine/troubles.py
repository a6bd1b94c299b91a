"""What happens to an engine while it serves, how it ends, and what is owed by the next start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .life import ORIGIN, POLICIES, SIZES, Life
from .sectors import WrongError
from .served import Drive

Step = Callable[[Life], None]


def end(life: Life, ending: Step) -> None:
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
    witnessed = witness.exists() and bool(witness.read_text())
    life.witnessed += witnessed
    life.answers = witnessed and "flushes" not in life.failed
    life.story.append(f"kill{'' if witnessed else ' without a witness'}")


def _kill_amid(life: Life) -> None:
    """A change or a flush."""
    ending, seconds = life.dice.choice((_kill, _cut_power)), life.dice.random() * 0.1
    change = threading.Thread(target=life.dice.choice((_flush, _change)), args=(life,))
    change.start()
    time.sleep(0.005 + seconds)
    ending(life)
    change.join()


def _cut_power(life: Life) -> None:
    resets = life.dice.random() < 0.5
    if resets or life.dice.random() < 0.5:
        # Over drives that serve on it would take for synced what they have lost.
        life.engine.kill()
    _lose(life, [life.flash, life.origin], resets=resets)
    life.new_boot()
    life.answers, life.stored = False, True
    life.story.append("power cut")


def _stop(life: Life) -> None:
    state = life.engine.state()
    if FAULTS[life.faults][0] and life.dice.random() < 0.3:
        _arm(life, life.dice.choice(_kinds(life)))
    code = life.engine.stop()
    life.story.append(f"end with code {code} ({state})")
    if code and not life.failed:
        raise WrongError(f"an orderly end with code {code}: {life.engine.log()}")
    life.answers = not code
    if not code and life.dice.random() < 0.5:
        # The root disk is another one: the flash itself has to say that it was given up.
        life.engine.given_up.unlink(missing_ok=True)
    if not code and state == "serving" and not life.failed:
        life.sectors.promise(life.sectors.answered)
    if not code and life.dice.random() < 0.4:
        _cut_power(life)


def lose_caches(life: Life) -> None:
    """Drives are reset as the engine ends, and the computer goes on."""
    life.engine.kill()
    _lose(life, _some(life), resets=life.trusting or life.dice.random() < 0.5)
    life.answers = False
    life.story.append("reset")


def _unplug(life: Life) -> None:
    """And plugged in again, later."""
    drives = _some(life)
    life.failed.add("flushes")
    for drive in drives:
        drive.ask("power_cut")
    life.go_on(30)
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


def _lose(life: Life, drives: list[Drive], *, resets: bool) -> None:
    """Some of what they had not stored, or all."""
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
        size = dice.choice(SIZES)
        changed = engine.ask("reconfigure", cache_bytes=size, flash_parts=engine.parts(size))
        engine.cache = size if changed else engine.cache
    else:
        value = dice.choice(POLICIES if what == "policy" else ("writeback", "writethrough"))
        changed = engine.ask("reconfigure", **{what: value})
        engine.options[what] = value if changed else engine.options[what]
    life.story.append(f"other {what}{'' if changed else ' (refused)'}")


def _share(life: Life) -> None:
    blocks = ORIGIN // life.engine.block
    runs = [[life.dice.randrange(blocks // 2), 1 + life.dice.randrange(blocks // 16)]]
    what = life.dice.choice(("pinned", "excluded"))
    life.engine.ask("share", **{what: [{"name": "some", "runs": runs}]})
    life.engine.ask("set", dirty_target=life.dice.choice((0, 50, 100)))
    life.story.append(what)


def _syncs_fail(life: Life) -> None:
    users = life.users
    assert users is not None
    drive, times = _arm(life, "flushes")
    users.sync()
    users.looks = life.engine.wait_for_state("read-only", "pass-through", "gone")
    life.story.append(f"{times} syncs of the {drive.name} fail: {life.engine.state()}")


def _io_fails(life: Life) -> None:
    what = life.dice.choice(("reads", "writes"))
    drive, times = _arm(life, what)
    life.story.append(f"{times} {what} of the {drive.name} fail")


def cut_start_short(life: Life) -> None:
    """By a kill, the loss of power, or I/O that fails."""
    how = life.dice.choice(("kill", "power cut", *_kinds(life)))
    if how in ("kill", "power cut"):
        life.engine.begin_for(life.dice.random() * 0.1)
        if how == "power cut":
            _cut_power(life)
    else:
        drive, times = _arm(life, how)
        life.engine.begin()
        life.engine.kill()
        is_same = drive.ask("fail_next")[how] == times
        life.answers &= is_same or how != "flushes"
    life.story.append(f"a start is cut short ({how})")


def _kinds(life: Life) -> tuple[str, ...]:
    """Of I/O that may fail."""
    events = FAULTS[life.faults][0]
    syncs = ("flushes",) if _syncs_fail in events else ()
    return (*syncs, "reads", "writes") if _io_fails in events else syncs


def _arm(life: Life, what: str) -> tuple[Drive, int]:
    """Have some I/O of a drive fail: which one, and how many."""
    drive = life.dice.choice((life.flash, life.origin))
    times = life.dice.randrange(1, 4 if what == "flushes" else 30)
    life.failed.add(what)
    if what == "flushes" and life.users is not None:
        # Before the engine is told, what the drive has lost is read; and later it was not promised.
        life.users.looks = life.users.trusts = False
    drive.ask("fail_next", **{what: times, "seed": life.dice.getrandbits(32)})
    return drive, times


CHANGES: tuple[Step, ...] = (_flush, _change, _change, _share)
ENDINGS: tuple[Step, ...] = (_kill, _cut_power, _stop, _kill_amid)
FAULTS: dict[str, tuple[tuple[Step, ...], tuple[Step, ...]]] = {
    "none": ((), ()),
    "syncs": ((_syncs_fail,) * 3, ()),
    "drives": ((), (lose_caches, _unplug) * 2),
    "errors": ((_io_fails,) * 3, ()),
    "all": ((_syncs_fail,) * 2 + (_io_fails,) * 2, (lose_caches, _unplug)),
}
"""What may happen while the engine serves, and how it may end, beside what always may."""
