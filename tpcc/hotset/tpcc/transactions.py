"""User input: parameters of the five transactions (clauses 2.4.1 to 2.8.1) and their mix."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from functools import cache

import numpy as np

from hotset.core.sql import Argument
from hotset.load.streams import stream
from hotset.load.workload import Step

from .data.nurand import LAST_NAMES, Constants, nurand, shares
from .database import Database, Session
from .record import Items, RunOptions
from .schema import CUSTOMERS, DISTRICTS, ITEMS, PROCEDURES, SCHEMA, TABLES


class Kind(IntEnum):
    """The five transaction types, in the order of their clauses 2.4 to 2.8."""

    NEW_ORDER = 0
    PAYMENT = 1
    ORDER_STATUS = 2
    DELIVERY = 3
    STOCK_LEVEL = 4

    @property
    def label(self) -> str:
        """The name in results, such as `new_order`."""
        return self.name.lower()


PROCEDURE: dict[Kind, str] = {
    kind: f"{SCHEMA}.{name}" for kind, name in zip(Kind, PROCEDURES, strict=True)
}

DECK: tuple[Kind, ...] = (
    *[Kind.NEW_ORDER] * 45,
    *[Kind.PAYMENT] * 43,
    *[Kind.ORDER_STATUS] * 4,
    *[Kind.DELIVERY] * 4,
    *[Kind.STOCK_LEVEL] * 4,
)
"""The cards each user shuffles and deals out, again and again (clause 5.2.4.2): the mix is
exact after every hundred transactions, and meets the minima of clause 5.2.3."""

DECKS: dict[Items, tuple[Kind, ...]] = {
    "nurand": DECK,
    "uniform": (
        *[Kind.NEW_ORDER] * 10,
        *[Kind.PAYMENT] * 10,
        Kind.ORDER_STATUS,
        Kind.DELIVERY,
        Kind.STOCK_LEVEL,
    ),
}
"""With HammerDB's draw goes its mix (pgoltp.tcl, mssqlsoltp.tcl: one of 23)."""

KEYING_S: dict[Kind, float] = dict(zip(Kind, (18.0, 3.0, 2.0, 2.0, 2.0), strict=True))
"""Keying times in seconds (clause 5.2.5.7)."""
THINK_S: dict[Kind, float] = dict(zip(Kind, (12.0, 12.0, 10.0, 5.0, 5.0), strict=True))
"""Mean think times in seconds; each is cut off at ten times its mean (clause 5.2.5.4)."""

BLOCK_BYTES = 64 * 1024


@cache
def hottest_fifth(items: Items) -> float:
    """The share of the accesses to STOCK that the hottest 20 % of its blocks of 64 KiB get: what
    decides the hit ratio of a cache smaller than the database."""
    if items == "uniform":
        return 0.2
    rows = BLOCK_BYTES // TABLES["stock"].bytes_per_row
    by_item = shares(8191, 1, ITEMS)
    blocks = np.sort(np.add.reduceat(by_item, np.arange(0, ITEMS, rows)))[::-1]
    return float(blocks[: len(blocks) // 5].sum())


UNUSED_ITEM = ITEMS + 1
"""The item number that makes a new-order roll back (clause 2.4.1.5)."""

Transaction = tuple[Kind, tuple[Argument, ...]]


def home_of(user: int, warehouses: int) -> tuple[int, int]:
    """A user's own warehouse and district: warehouses are distinct until all are taken.

    >>> [home_of(user, 2) for user in range(4)]
    [(1, 1), (2, 1), (1, 2), (2, 2)]
    """
    return user % warehouses + 1, user // warehouses % DISTRICTS + 1


class Terminal:
    """One user's endless, reproducible sequence of transactions.

    `all_warehouses` lets each transaction pick its warehouse uniformly, as HammerDB's
    option of that name does. Without it a user stays at home, and a few users on many
    warehouses touch a small part of the data: then any cache looks good.

    `items` "uniform" draws items, and customers by number, as HammerDB does; last names are drawn
    by NURand either way.

    Two users never share a stream: number and seed together make it.
    """

    def __init__(
        self,
        user: int,
        warehouses: int,
        seed: int,
        constants: Constants,
        all_warehouses: bool,
        items: Items = "nurand",
    ) -> None:
        self._stream = stream(seed, "user", user)
        # Floats scaled to integers: the library's own integers take five times as long.
        self._random = self._stream.random
        self._warehouses = warehouses
        self._constants = constants
        self._home, self._district = home_of(user, warehouses)
        self._all = all_warehouses
        self._uniform_rows = items == "uniform"
        self._deck = DECKS[items]
        self._hand: list[Kind] = []
        self._inputs: dict[Kind, Callable[[int], tuple[Argument, ...]]] = {
            Kind.NEW_ORDER: self.new_order,
            Kind.PAYMENT: self.payment,
            Kind.ORDER_STATUS: self.order_status,
            Kind.DELIVERY: self.delivery,
            Kind.STOCK_LEVEL: self.stock_level,
        }

    def next(self) -> Transaction:
        """Deal the next card and fill in its inputs, in the order of the procedure's parameters."""
        if not self._hand:
            self._hand = list(self._deck)
            self._stream.shuffle(self._hand)
        kind = self._hand.pop()
        warehouse = self._uniform(self._warehouses) if self._all else self._home
        return kind, self._inputs[kind](warehouse)

    def think_s(self, kind: Kind) -> float:
        """A think time in seconds: negative exponential (clause 5.2.5.4)."""
        return min(self._stream.expovariate(1 / THINK_S[kind]), 10 * THINK_S[kind])

    def new_order(self, warehouse: int) -> tuple[Argument, ...]:
        """Warehouse, district, customer, all local?, items, supplying warehouses, quantities.

        Items come ordered by supplying warehouse and number, the order in which every
        user locks stock. An item drawn twice for one order (about one order in 300) is
        drawn again, so that a line is a stock row and one statement can do them all.
        """
        lines: dict[tuple[int, int], int] = {}
        count = 5 + int(self._random() * 11)
        unused = self._random() < 0.01
        while len(lines) < count - unused:
            item = self._item()
            supply = warehouse if self._random() >= 0.01 else self._other_than(warehouse)
            lines[supply, item] = self._uniform(10)
        if unused:
            lines[warehouse, UNUSED_ITEM] = self._uniform(10)
        places = sorted(lines)
        supplies = tuple([supply for supply, _ in places])
        return (
            warehouse,
            self._uniform(DISTRICTS),
            self._customer(),
            int(supplies.count(warehouse) == count),
            tuple([item for _, item in places]),
            supplies,
            tuple([lines[place] for place in places]),
        )

    def payment(self, warehouse: int) -> tuple[Argument, ...]:
        """Warehouse, district, the customer's own two, number or last name, amount."""
        district = self._uniform(DISTRICTS)
        customer_warehouse, customer_district = warehouse, district
        if self._random() < 0.15 and self._warehouses > 1:
            customer_warehouse = self._other_than(warehouse)
            customer_district = self._uniform(DISTRICTS)
        number, name = self._customer_or_name()
        amount = Decimal(100 + int(self._random() * 499_901)).scaleb(-2)
        return warehouse, district, customer_warehouse, customer_district, number, name, amount

    def order_status(self, warehouse: int) -> tuple[Argument, ...]:
        """Warehouse, district, customer number or last name."""
        return warehouse, self._uniform(DISTRICTS), *self._customer_or_name()

    def delivery(self, warehouse: int) -> tuple[Argument, ...]:
        """Warehouse, carrier."""
        return warehouse, self._uniform(10)

    def stock_level(self, warehouse: int) -> tuple[Argument, ...]:
        """Warehouse, district, threshold; a user who stays at home keeps the district."""
        district = self._uniform(DISTRICTS) if self._all else self._district
        return warehouse, district, 10 + int(self._random() * 11)

    def _uniform(self, high: int) -> int:
        """1 to `high`."""
        return 1 + int(self._random() * high)

    def _other_than(self, warehouse: int) -> int:
        """Another warehouse, uniformly; the same one if there is no other."""
        if self._warehouses == 1:
            return warehouse
        other = self._uniform(self._warehouses - 1)
        return other if other < warehouse else other + 1

    def _item(self) -> int:
        if self._uniform_rows:
            return self._uniform(ITEMS)
        return nurand(self._random, 8191, self._constants.item, 1, ITEMS)

    def _customer(self) -> int:
        if self._uniform_rows:
            return self._uniform(CUSTOMERS)
        return nurand(self._random, 1023, self._constants.customer, 1, CUSTOMERS)

    def _customer_or_name(self) -> tuple[int | None, str | None]:
        """60 % by last name (clauses 2.5.1.2 and 2.6.1.2)."""
        if self._random() < 0.6:
            return None, LAST_NAMES[nurand(self._random, 255, self._constants.last_name, 0, 999)]
        return self._customer(), None


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
