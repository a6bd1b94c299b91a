"""What users know of each sector of a disk, and what it may hold after whatever ended its engine.

A sector is written by one user at a time. A version of it is *answered* once its write returned,
and *promised* once a sync did that began after that. As in the engine's own schedules
(`cache-core/src/engine/tests/world/sector.rs`), what a start finds is what there is from then on.
"""

from __future__ import annotations

import ctypes
import os
import random
import struct
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path

SECTOR = 512
_PAGE = 8
_STRIPE = 8 * _PAGE
"""Sectors of one user in a row: less than a block, or more."""
_COPIES = SECTOR // 16
_STALL_S = 60.0
_LIBC = ctypes.CDLL(None, use_errno=True)
_PUNCH_HOLE_KEEP_SIZE = 3


class WrongError(Exception):
    """A sector holds what it may not."""


class Sectors:
    """All of a disk.

    :ivar discards: which versions of a sector are zeros.
    :ivar wrong: what users found that may not be.
    """

    def __init__(self, life: int, count: int) -> None:
        self.life, self.count = life, count
        self.begun, self.newest = [0] * count, [0] * count
        self.answered, self.promised = [0] * count, [0] * count
        self.discards = dict[int, list[int]]()
        self.wrong: list[str] = []
        self.lock = threading.Lock()

    def begin(self, run: range, *, discards: bool = False) -> tuple[list[int], bytes]:
        """The next versions, and their bytes; of a discard there are none."""
        with self.lock:
            for sector in run:
                self.begun[sector] += 1
                self.newest[sector] = self.begun[sector]
                if discards:
                    self.discards.setdefault(sector, []).append(self.begun[sector])
            versions = self.begun[run.start : run.stop]
        if discards:
            return versions, b""
        pairs = zip(run, versions, strict=True)
        return versions, b"".join(self._stamp(*pair) * _COPIES for pair in pairs)

    def answer(self, run: range, versions: list[int]) -> None:
        with self.lock:
            self.answered[run.start : run.stop] = versions

    def promise(self, answered: list[int]) -> None:
        """A sync has returned that began when so much was answered."""
        with self.lock:
            self.promised = [max(pair) for pair in zip(self.promised, answered, strict=True)]

    def check(self, data: bytes, run: range, least: list[int]) -> list[int]:
        """:param least: of each sector of the run, the oldest version that it may hold.
        :returns: the versions there are.
        :raises WrongError: one that it may not.
        """
        versions = []
        for at, (sector, oldest) in enumerate(zip(run, least, strict=True)):
            version = self._version(sector, data[at * SECTOR : (at + 1) * SECTOR])
            if not oldest <= version <= self.newest[sector]:
                range_ = f"{oldest} to {self.newest[sector]}"
                raise WrongError(f"sector {sector} holds version {version}, not {range_}")
            versions.append(version)
        return versions

    def take_stock(self, data: bytes, least: list[int], *, stored: bool) -> None:
        """After a start.

        :param stored: what is there is on the medium.
        """
        current = self.check(data, range(self.count), least)
        self.answered, self.newest = current, list(current)
        for sector, versions in self.discards.items():
            versions[:] = [version for version in versions if version <= current[sector]]
        if stored:
            self.promised = list(current)

    def _stamp(self, sector: int, version: int) -> bytes:
        words = struct.pack("<III", sector, version, self.life)
        return words + struct.pack("<I", zlib.crc32(words))

    def _version(self, sector: int, data: bytes) -> int:
        head = data[:16]
        if data != head * _COPIES:
            raise WrongError(f"sector {sector} is torn")
        of, version, life, _ = struct.unpack("<IIII", head)
        if head == bytes(16):
            # Zeros are taken for the newest version that they can be.
            return max(self.discards.get(sector, ()), default=0)
        if head != self._stamp(sector, version):
            raise WrongError(f"sector {sector} holds version {version} of {of}, life {life}")
        return int(version)


class Users:
    """They write, read and sync a served file until they are told to end, or for ever.

    :ivar trusts: what they read is checked against what was answered, not promised alone.
    :ivar looks: what they read is checked at all.
    """

    def __init__(self, path: Path, sectors: Sectors, seed: int, count: int = 3) -> None:
        self.trusts = self.looks = True
        self.done = self.failed = 0
        self._path, self._sectors, self._count = path, sectors, count
        self._over = threading.Event()
        names = range(count)
        use = [(number, random.Random(f"{seed} {number}")) for number in names]
        self._threads = [
            threading.Thread(target=self._use, args=arguments, daemon=True) for arguments in use
        ]
        for thread in self._threads:
            thread.start()

    def go_on(self, operations: int) -> bool:
        """Wait until they have done so many more; False: they hang."""
        wanted, limit = self.done + self.failed + operations, time.monotonic() + _STALL_S
        while self.done + self.failed < wanted and time.monotonic() < limit:
            time.sleep(0.002)
        return self.done + self.failed >= wanted

    def sync(self) -> bool:
        """One more user, who does nothing else."""
        try:
            file = os.open(self._path, os.O_RDWR)
        except OSError:
            return False
        try:
            return self._sync(file)
        except OSError:
            return False
        finally:
            with suppress(OSError):
                os.close(file)

    def end(self) -> bool:
        """Once nothing that they wait for will come; False: they hang."""
        self._over.set()
        for thread in self._threads:
            thread.join(_STALL_S)
        return not any(thread.is_alive() for thread in self._threads)

    def _use(self, number: int, dice: random.Random) -> None:
        try:
            file = os.open(self._path, os.O_RDWR)
        except OSError:
            return
        try:
            while not self._over.is_set():
                try:
                    self._operate(file, number, dice)
                    self.done += 1
                except OSError:
                    self.failed += 1
                    time.sleep(0.001)
        except WrongError as error:
            self._sectors.wrong.append(f"a user reads: {error}")
        finally:
            # Of an engine that was killed it cannot be.
            with suppress(OSError):
                os.close(file)

    def _operate(self, file: int, number: int, dice: random.Random) -> None:
        chance = dice.random()
        run = self._run(number, dice)
        if chance < 0.08:
            self._sync(file)
        elif chance < 0.35:
            self._read(file, run)
        elif chance < 0.38:
            self._discard(file, run)
        else:
            versions, data = self._sectors.begin(run)
            if os.pwrite(file, data, run.start * SECTOR) == len(data):
                self._sectors.answer(run, versions)

    def _run(self, number: int, dice: random.Random) -> range:
        """Of its own stripes, half of the time of the first few."""
        stripes = self._sectors.count // _STRIPE // self._count
        stripe = dice.randrange(stripes // 8 if dice.random() < 0.5 else stripes)
        first, size = (stripe * self._count + number) * _STRIPE, dice.random()
        if size < 0.2:
            return range(first, first + _STRIPE)
        first += dice.randrange(_STRIPE // _PAGE) * _PAGE
        if size < 0.7:
            return range(first, first + _PAGE)
        start = dice.randrange(_PAGE)
        return range(first + start, first + start + 1 + dice.randrange(_PAGE - start))

    def _discard(self, file: int, run: range) -> None:
        versions, _ = self._sectors.begin(run, discards=True)
        start, size = (ctypes.c_int64(SECTOR * value) for value in (run.start, len(run)))
        if _LIBC.fallocate(file, _PUNCH_HOLE_KEEP_SIZE, start, size):
            raise OSError(ctypes.get_errno(), "discard")
        self._sectors.answer(run, versions)

    def _sync(self, file: int) -> bool:
        with self._sectors.lock:
            answered = list(self._sectors.answered)
        os.fsync(file)
        self._sectors.promise(answered)
        return True

    def _read(self, file: int, run: range) -> None:
        sectors, part = self._sectors, slice(run.start, run.stop)
        looks, trusts = self.looks, self.trusts
        answered, promised = sectors.answered[part], sectors.promised[part]
        data = os.pread(file, len(run) * SECTOR, run.start * SECTOR)
        if looks and self.looks:
            sectors.check(data, run, answered if trusts and self.trusts else promised)
