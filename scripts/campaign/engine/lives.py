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
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from json import JSONDecodeError, loads
from pathlib import Path

from .life import Life
from .sectors import SECTOR, WrongError
from .served import NOT_STARTED, enclose
from .troubles import CHANGES, ENDINGS, FAULTS, cut_start_short, end, lose_caches

_ENDS = range(3, 7)
_EVENTS = range(1, 4)
_CUT_SHORT = 0.15
_OTHER_SIZE = "with a cache size of "


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
                if life.users is not None:
                    life.users.end()
                life.flash.end()
                life.origin.end()
                shutil.rmtree(own)
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
        for event in life.dice.choices(CHANGES + events, k=life.dice.choice(_EVENTS)):
            life.go_on()
            event(life)
        life.go_on()
        end(life, life.dice.choice((lose_caches,) if life.trusting else ENDINGS + ends))
        life.leave()
        life.ends += 1
    if _start(life) and life.dice.random() < 0.5:
        _detach(life)


def _start(life: Life) -> bool:
    """And read everything; False: it is refused."""
    life.flash.ask("fail_next")
    life.origin.ask("fail_next")
    if life.dice.random() < _CUT_SHORT and not life.trusting:
        cut_start_short(life)
    why = life.engine.begin()
    if _OTHER_SIZE in why:
        # A change was cut short: hotset-boot goes by what the engine says, too.
        life.engine.cache = int(why.split(_OTHER_SIZE)[1].split()[0])
        why = life.engine.begin()
    if why.startswith(NOT_STARTED):
        raise WrongError(why)
    if why:
        life.refused = f"refused: {why}"
        _salvage(life)
        return False
    due = life.sectors.answered if life.answers else life.sectors.promised
    life.sectors.take_stock(life.engine.data.read_bytes(), due, stored=life.stored)
    life.failed.clear()
    life.stored = False
    return True


def _detach(life: Life) -> None:
    """Everything is copied back, and the origin used alone."""
    life.serve()
    life.go_on()
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
        report = loads(done.stdout)
    except JSONDecodeError:
        life.story.append(f"no salvage: {done.stderr.strip()}")
        return
    due = list(life.sectors.promised)
    for stretch in report["may_be_lost"] + report["unreadable"]:
        first, count = stretch["offset"] // SECTOR, stretch["bytes"] // SECTOR
        due[first : first + count] = [0] * len(due[first : first + count])
    life.sectors.check(life.origin.file.read_bytes(), range(life.sectors.count), due)
    life.story.append(f"salvage, {sum(not version for version in due)} sectors unknown")
