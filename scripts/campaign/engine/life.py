"""A life of the engine: its programs, its users, and what has become of it."""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from .sectors import SECTOR, Sectors, Users, WrongError
from .served import Drive, Engine

_MIB = 1024**2
ORIGIN, _METADATA, SIZES = 6 * _MIB, _MIB, (_MIB // 2, _MIB, 2 * _MIB)
POLICIES = ("hotset", "smq", "lru", "arc", "s3-fifo", "sieve")
_OPERATIONS = range(20, 200)


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
    users: Users | None = None

    def __post_init__(self) -> None:
        self.flash = Drive("flash", self.folder, _METADATA + max(SIZES))
        self.origin = Drive("origin", self.folder, ORIGIN)
        block = self.dice.choice((4096, 16384, 32768, 65536))
        cache = self.dice.choice(SIZES)
        drives = (self.flash, self.origin)
        self.engine = Engine(self.folder, *drives, metadata=_METADATA, cache=cache, block=block)
        self.engine.options = {
            "policy": self.dice.choice(POLICIES),
            "mode": "writeback" if self.dice.random() < 0.8 else "writethrough",
        }
        self.sectors = Sectors(self.number, ORIGIN // SECTOR)

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
        self.users = Users(self.engine.data, self.sectors, self.number * 100 + self.ends)

    def go_on(self, operations: int | None = None) -> None:
        """Users do so many more operations."""
        assert self.users is not None
        if not self.users.go_on(operations or self.dice.choice(_OPERATIONS)):
            raise WrongError(f"users hang: {self.engine.log()}")

    def leave(self) -> None:
        """The users do nothing more; the engine may be gone."""
        users, self.users = self.users, None
        if users is None:
            return
        if not users.end():
            raise WrongError("users hang though the engine has ended")
        self.operations += users.done
        if self.sectors.wrong:
            raise WrongError(self.sectors.wrong[0])
