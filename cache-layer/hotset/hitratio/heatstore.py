"""Heat kept on disk: readings of a disk's counters, folded together and decayed.

Reading folds: the kernel and the engine count by themselves, so between two commands nothing of
hotset runs. One SQLite file per disk below the XDG data folder; every fold is one transaction, so
that an interrupted one has not happened.

A store has a time of its own, seconds that begin as the wall clock's and go on as the kernel counts
them: a clock that is set changes neither the order of the readings nor how long ago they were.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from hotset.block.extents import Run
from hotset.core import clock, record
from hotset.core.clock import Moment
from hotset.core.errors import HotsetError, Remedy
from hotset.core.paths import data_dir
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import Counters

from .heat import (
    HALF_LIFE_S,
    Grid,
    Reading,
    Tally,
    cacheable_requests,
    decay,
    difference,
    spread,
    total,
)

KEPT_S = 14 * 24 * 3600.0
"""How long what each reading added is kept; heat itself only decays."""
SAMPLES_KEPT_S = 92 * 24 * 3600.0
"""How long the tier's own counters are kept, a line a reading."""
_LASTING = 7
"""Half-lives that heat counts for."""
_VERSION = 1
_APPLICATION = 0x68656174
"""``heat``: a file without it is of before the first release, with versions of its own."""
_COLUMNS = tuple(field.name for field in fields(Tally))
_SCHEMA = f"""
CREATE TABLE grid (disk INTEGER, region INTEGER, shift INTEGER, half_life_s REAL);
CREATE TABLE reading (id INTEGER PRIMARY KEY, epoch TEXT, begun REAL, at REAL, dropped INTEGER);
CREATE TABLE gained (reading INTEGER, region INTEGER, {", ".join(_COLUMNS)});
CREATE INDEX gained_reading ON gained (reading);
CREATE TABLE last (region INTEGER PRIMARY KEY, {", ".join(_COLUMNS)});
CREATE TABLE heat (region INTEGER PRIMARY KEY, value REAL);
CREATE TABLE sample (id INTEGER PRIMARY KEY, at REAL, counters TEXT);
CREATE INDEX sample_at ON sample (at);
CREATE TABLE asked (at REAL PRIMARY KEY);
CREATE TABLE clock (at REAL, wall REAL, boot TEXT, up REAL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
"""


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """Counter deltas per region, from ``begun`` to ``at`` (seconds of the store).

    ``dropped`` requests were counted in no region: the kernel's table was full.
    """

    grid: Grid
    begun: float
    at: float
    tallies: Mapping[int, Tally]
    dropped: int

    @property
    def total(self) -> Tally:
        return total(self.tallies.values())


def store_path(machine: str, disk: str, identity: str) -> Path:
    """The file of a disk's heat. Another disk with the name of one that is gone has its own.

    :param machine: as ``--machine`` names it.
    :param identity: lasting identity of the disk; empty: it has none.
    """
    folder = data_dir() / "heat"
    folder.mkdir(exist_ok=True)
    words = (machine, disk, identity) if identity else (machine, disk)
    return folder / f"{'-'.join(map(plain_name, words))}.sqlite"


def plain_name(text: str) -> str:
    """A name that a file may have.

    >>> plain_name("ssh://dba@db1:22")
    'ssh-dba-db1-22'
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "unnamed"


def hottest(machine: str, disk: str, identity: str, block: Bytes) -> list[tuple[Run, float]]:
    """Runs of the disk's cache blocks with their heat per block, hottest first.

    For a plan that takes what fits. Empty where no heat was ever read.
    """
    path = store_path(machine, disk, identity)
    if not path.exists():
        return []
    with open_store(path) as store:
        return store.hottest(block, store.now())


@contextmanager
def open_store(path: Path) -> Iterator[Store]:
    """The store in a file, made if need be.

    :raises StoreError: the file was made by another version of hotset, or is no store.
    """
    connection = sqlite3.connect(path, timeout=30)
    try:
        try:
            if not _number(connection, "user_version"):
                connection.executescript(_SCHEMA)
            version = _number(connection, "user_version")
            application = _number(connection, "application_id")
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{path} is not a heat store ({error}): move it away") from None
        if application != _APPLICATION:
            before = f"format {version} of before the first release, this one reads {_VERSION}"
            raise _of_another(path, before)
        if version != _VERSION:
            raise _of_another(path, record.expected_version(version, _VERSION))
        yield Store(connection, path)
    finally:
        connection.close()


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


class StoreError(HotsetError):
    """The store cannot be used, or does not fit a reading; the message says what to do."""


def _of_another(path: Path, what: str) -> StoreError:
    return StoreError(record.unknown(path, what, "and count again"))


class Store:
    """The heat of one disk."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._ahead = 0.0

    def now(self, moment: Moment | None = None) -> float:
        """The store's time now; from then on it knows which time the wall clock means."""
        moment = moment or clock.moment()
        with self._connection:
            row = self._execute("SELECT at, wall, boot, up FROM clock").fetchone()
            at = moment.wall if row is None else row[0] + moment.since(Moment(*row[1:]))
            self._execute("DELETE FROM clock")
            self._execute(
                "INSERT INTO clock VALUES (?, ?, ?, ?)", (at, moment.wall, moment.boot, moment.up)
            )
        self._ahead = at - moment.wall
        return float(at)

    def at(self, wall: float) -> float:
        """The store's time at a time of the wall clock as it goes now."""
        return wall + self._ahead

    def wall(self, at: float) -> float:
        """Convert a time of the store to the wall clock as it goes now."""
        return at - self._ahead

    @property
    def grid(self) -> Grid | None:
        """How the disk is cut; None before the first reading."""
        row = self._connection.execute("SELECT disk, region, shift FROM grid").fetchone()
        return Grid(*(Bytes(figure) for figure in row)) if row else None

    @property
    def half_life_s(self) -> float:
        row = self._connection.execute("SELECT half_life_s FROM grid").fetchone()
        return float(row[0]) if row else HALF_LIFE_S

    def fold(self, reading: Reading, at: float, half_life_s: float | None = None) -> CounterDelta:
        """Take a reading in; returns what it adds to the one before.

        A new counting adds all of it. A disk that was repartitioned or resized begins again: its
        old regions mean nothing any more.

        :param half_life_s: heat's from now on; None leaves it.
        :raises StoreError: a counter is smaller than it was; nothing is taken in.
        """
        with self._connection:
            if self.grid is not None and self.grid != reading.grid:
                self._forget()
            if self.grid is None:
                self._execute(
                    "INSERT INTO grid VALUES (?, ?, ?, ?)",
                    (*_sizes(reading.grid), half_life_s or HALF_LIFE_S),
                )
            elif half_life_s is not None:
                self._execute("UPDATE grid SET half_life_s = ?", (half_life_s,))
            before = self._before(reading.epoch)
            last = self._last() if before is not None else {}
            gained = CounterDelta(
                reading.grid,
                min(at, self.at(reading.begun)) if before is None else before[0],
                at,
                self._more(last, reading.tallies),
                reading.dropped - (0 if before is None else before[1]),
            )
            self._keep(gained, reading)
            self._warm(gained)
        return gained

    def since(self, start: float) -> CounterDelta | None:
        """Add up the readings after a time; the first of them may have begun before it.

        None where there is none.
        """
        rows = self._connection.execute(
            "SELECT min(begun), max(at) FROM reading WHERE at > ?", (start,)
        ).fetchone()
        if rows[0] is None or self.grid is None:
            return None
        dropped = self._new_drops(start)
        sums = ", ".join(
            f"CASE WHEN count(*) = count({name}) THEN sum({name}) END" for name in _COLUMNS
        )
        counts = self._connection.execute(
            f"SELECT region, {sums} FROM gained JOIN reading ON reading.id = gained.reading"
            " WHERE at > ? GROUP BY region ORDER BY region",
            (start,),
        )
        tallies = {region: Tally(*figures) for region, *figures in counts}
        return CounterDelta(self.grid, rows[0], rows[1], tallies, dropped)

    def restarts(self, start: float) -> list[tuple[float, float]]:
        """Where another counting began after a time: when the one before was read last, and when
        this one began."""
        rows = self._execute(
            "SELECT epoch, begun, at FROM reading WHERE at >="
            " coalesce((SELECT max(at) FROM reading WHERE at <= ?), 0) ORDER BY id",
            (start,),
        ).fetchall()
        return [(before[2], after[1]) for before, after in pairwise(rows) if before[0] != after[0]]

    def heats(self, at: float) -> dict[int, float]:
        """Heat per region at a time; regions that never had any are left out."""
        row = self._connection.execute("SELECT max(at) FROM reading").fetchone()
        age, half = at - (row[0] or at), self.half_life_s
        rows = self._connection.execute("SELECT region, value FROM heat ORDER BY region")
        return {region: decay(value, age, half) for region, value in rows}

    def begun(self, at: float) -> float:
        """When the heat of a time began, by the wall clock: of what was before, less than a
        hundredth is left."""
        (first,) = self._execute("SELECT min(begun) FROM reading").fetchone()
        return self.wall(max(at if first is None else first, at - _LASTING * self.half_life_s))

    def keep_sample(self, counters: Counters, at: float) -> None:
        """Keep a reading of the tier's own counters; old ones go."""
        with self._connection:
            plain = json.dumps(asdict(counters))
            self._execute("INSERT INTO sample (at, counters) VALUES (?, ?)", (at, plain))
            self._execute("DELETE FROM sample WHERE at < ?", (at - SAMPLES_KEPT_S,))

    def samples(self, start: float = 0.0, before: int = 1) -> list[tuple[float, Counters]]:
        """The tier's counters from a time on, oldest first, the last ``before`` it included.

        :raises StoreError: another version of hotset kept them.
        """
        rows = self._execute(
            "SELECT at, counters FROM sample WHERE at >="
            " coalesce((SELECT at FROM sample WHERE at <= ? ORDER BY at DESC LIMIT 1 OFFSET ?), 0)"
            " ORDER BY id",
            (start, before - 1),
        )
        return [(at, self._counters(text)) for at, text in rows]

    def _counters(self, text: str) -> Counters:
        plain = json.loads(text)
        if strange := record.strange(plain, [field.name for field in fields(Counters)]):
            raise _of_another(self._path, strange)
        plain |= {name: Blocks(plain[name]) for name in ("dirty", "used", "total")}
        return Counters(**plain)

    @property
    def marked(self) -> float | None:
        """When a report was marked last, for the next one to count from; None: never."""
        (last,) = self._execute("SELECT max(at) FROM asked").fetchone()
        return None if last is None else float(last)

    def mark(self, at: float) -> None:
        """Have the next report count from a time."""
        with self._connection:
            self._execute("DELETE FROM asked")
            self._execute("INSERT INTO asked VALUES (?)", (at,))

    def hottest(self, block: Bytes, at: float) -> list[tuple[Run, float]]:
        """Rank as :func:`hottest` does."""
        grid = self.grid
        if grid is None:
            return []
        runs = ((grid.run(region, block), heat) for region, heat in self.heats(at).items())
        ranked = [(run, heat / run.count) for run, heat in runs if run.count and heat > 0]
        return sorted(ranked, key=lambda pair: (-pair[1], pair[0].start))

    @staticmethod
    def _more(last: Mapping[int, Tally], now: Mapping[int, Tally]) -> dict[int, Tally]:
        try:
            return difference(last, now)
        except ValueError as error:
            raise StoreError(
                f"{error}; was it read twice at the same time? Read it again, or stop and start"
                " counting",
                Remedy("stop counting", "heat stop"),
            ) from None

    def _before(self, epoch: str) -> tuple[float, int] | None:
        """When this counting was read last, and what it had dropped by then."""
        row = self._connection.execute(
            "SELECT epoch, at, dropped FROM reading ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return (row[1], row[2]) if row and row[0] == epoch else None

    def _last(self) -> dict[int, Tally]:
        return {region: Tally(*figures) for region, *figures in self._execute("SELECT * FROM last")}

    def _keep(self, gained: CounterDelta, reading: Reading) -> None:
        number = self._connection.execute(
            "INSERT INTO reading (epoch, begun, at, dropped) VALUES (?, ?, ?, ?)",
            (reading.epoch, gained.begun, gained.at, reading.dropped),
        ).lastrowid
        marks = ", ".join("?" for _ in _COLUMNS)
        self._connection.executemany(
            f"INSERT INTO gained VALUES (?, ?, {marks})",
            ((number, region, *_row(tally)) for region, tally in gained.tallies.items()),
        )
        self._execute("DELETE FROM last")
        self._connection.executemany(
            f"INSERT INTO last VALUES (?, {marks})",
            ((region, *_row(tally)) for region, tally in reading.tallies.items()),
        )
        old = (gained.at - KEPT_S,)
        self._execute(
            "DELETE FROM gained WHERE reading IN (SELECT id FROM reading WHERE at < ?)", old
        )
        self._execute("DELETE FROM reading WHERE at < ?", old)

    def _warm(self, gained: CounterDelta) -> None:
        half, seconds = self.half_life_s, gained.at - gained.begun
        row = self._connection.execute(
            "SELECT at FROM reading ORDER BY id DESC LIMIT 1 OFFSET 1"
        ).fetchone()
        left = decay(1.0, gained.at - row[0], half) if row else 0.0
        self._execute("UPDATE heat SET value = value * ?", (left,))
        self._connection.executemany(
            "INSERT INTO heat VALUES (?, ?)"
            " ON CONFLICT (region) DO UPDATE SET value = value + excluded.value",
            (
                (region, spread(cacheable_requests(tally), seconds, half))
                for region, tally in gained.tallies.items()
            ),
        )

    def _new_drops(self, start: float) -> int:
        """Drops are kept as each counting's own sum: what they grew by after a time."""
        dropped, before = 0, ("", 0)
        for epoch, at, value in self._execute("SELECT epoch, at, dropped FROM reading ORDER BY id"):
            if at > start:
                dropped += value - (before[1] if before[0] == epoch else 0)
            before = epoch, value
        return dropped

    def _forget(self) -> None:
        for table in ("grid", "reading", "gained", "last", "heat"):
            self._execute(f"DELETE FROM {table}")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


def _sizes(grid: Grid) -> tuple[int, int, int]:
    return int(grid.disk), int(grid.region), int(grid.shift)


def _row(tally: Tally) -> tuple[int | None, ...]:
    return tuple(getattr(tally, name) for name in _COLUMNS)
