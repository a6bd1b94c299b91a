"""TPC-C as a workload: what each of its users does."""

from dataclasses import dataclass

from hotset.core.sql import Argument
from hotset.load.streams import stream
from hotset.load.workload import Step

from .data.nurand import Constants
from .database import Database, Session
from .record import RunOptions
from .transactions import KEYING_S, PROCEDURE, Kind, Terminal

KINDS: tuple[str, ...] = tuple(kind.label for kind in Kind)
"""TPC-C's, by their numbers."""


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
