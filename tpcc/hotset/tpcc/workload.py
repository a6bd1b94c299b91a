"""What users do in a run: a `Workload`, of which TPC-C is one.

Driver, worker processes and samples know no more of a transaction than the number of its kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .data.nurand import Constants, stream
from .database import Argument, Database, Session
from .transactions import KEYING_S, PROCEDURE, Kind, Terminal
from .window.record import RunOptions, WindowOptions

KINDS: tuple[str, ...] = tuple(kind.label for kind in Kind)
"""TPC-C's, by their numbers."""


class Step(NamedTuple):
    """The next transaction of a user: the number of its kind, and the user's own pauses, in
    seconds, before and after it."""

    kind: int
    before_s: float = 0.0
    after_s: float = 0.0


class UserFailed(Exception):
    """A user cannot go on, whatever the server does; ends the run."""


class User(Protocol):
    """One user with a connection, used by one thread.

    first_pause_s  until the first transaction, so that not all begin in the same instant
    """

    first_pause_s: float

    def next(self) -> Step:
        """Choose a transaction and its inputs."""

    def perform(self) -> None:
        """Do it. Called again with the same inputs where it was `Aborted` as retryable.

        Raises `IntendedRollback`, `Aborted`, `ServerGone`, `UserFailed`.
        """

    def close(self) -> None:
        """Close the connection."""


class Workload(Protocol):
    """Picklable: each worker process gets a copy."""

    @property
    def kinds(self) -> Sequence[str]:
        """Names of the kinds of transactions, by number."""

    @property
    def options(self) -> WindowOptions:
        """How it is run."""

    def user(self, number: int) -> User:
        """Connect. Raises `CannotConnect`."""


@dataclass(frozen=True, slots=True)
class TpccWorkload:
    """TPC-C's five transactions."""

    database: Database
    options: RunOptions
    constants: Constants

    @property
    def kinds(self) -> tuple[str, ...]:
        return KINDS

    def user(self, number: int) -> "TpccUser":
        options = self.options
        terminal = Terminal(
            number,
            options.warehouses,
            options.seed,
            self.constants,
            options.all_warehouses,
            options.items,
        )
        return TpccUser(self.database.session(), terminal, number, options.think_time)


class TpccUser:
    """One user of TPC-C, at a person's pace (clause 5.2.5) or without pause."""

    def __init__(self, session: Session, terminal: Terminal, number: int, think_time: bool) -> None:
        self._session = session
        self._terminal = terminal
        self._think_time = think_time
        self._call: tuple[str, tuple[Argument, ...]] = ("", ())
        # People do not all sit down in the same second: the first pause is a random part of one.
        share = stream(0, f"user-{number}").random() if think_time else 0.0
        self.first_pause_s = share * KEYING_S[Kind.NEW_ORDER]

    def next(self) -> Step:
        kind, args = self._terminal.next()
        self._call = PROCEDURE[kind], args
        if not self._think_time:
            return Step(kind)
        return Step(kind, KEYING_S[kind], self._terminal.think_s(kind))

    def perform(self) -> None:
        self._session.call(*self._call)

    def close(self) -> None:
        self._session.close()
