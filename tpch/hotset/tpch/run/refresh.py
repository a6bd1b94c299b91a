"""Refresh functions (clause 2.5): RF1 adds 0.1 % of the orders with their lines, RF2 removes them.

tpchgen-cli makes no update sets, so the rows are made here, after the rules of clause 4.2.3. The
generator uses order keys whose last five bits are 0 to 7, and RF1 takes others. RF2 then deletes
the very orders of its RF1, where the specification deletes other old ones: the database holds
afterwards what it held before, and a pair can be repeated for ever.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random

from hotset.core.sql import DatabaseError

from .. import schema, words
from ..database import Database, Session

MAX_SETS = 125
"""Update sets whose keys differ: one in 125 groups of 32 keys gets an order of each set."""

_FIRST, _LAST = date(1992, 1, 1), date(1998, 8, 2)
_TODAY = date(1995, 6, 17)
_FREE_BITS = 8
_DELETE_AT_ONCE = 500
_COMMENT = (
    "carefully",
    "quickly",
    "blithely",
    "final",
    "regular",
    "ironic",
    "pending",
    "bold",
    "deposits",
    "packages",
    "accounts",
    "theodolites",
    "sleep",
    "haggle",
)


@dataclass(frozen=True, slots=True)
class UpdateSet:
    """The rows of one pair of refresh functions: order keys, and texts as `Session.load` wants."""

    keys: tuple[int, ...]
    orders: bytes
    lines: bytes


def update_set(scale: float, number: int) -> UpdateSet:
    """The set `number` (0 to 124), the same each time: SF · 1500 orders, at least one."""
    random = Random(f"refresh/{number}")
    keys = tuple(
        ((place * MAX_SETS + number % MAX_SETS) << 5) | _FREE_BITS
        for place in range(max(1, round(1500 * scale)))
    )
    orders, lines = [], []
    for key in keys:
        order, own = _order(random, scale, key)
        orders.append(order)
        lines += own
    return UpdateSet(keys, "".join(orders).encode(), "".join(lines).encode())


def insert(session: Session, update: UpdateSet) -> None:
    """RF1: the orders, then their lines."""
    for table, rows in (("orders", update.orders), ("lineitem", update.lines)):
        session.load(f"{schema.SCHEMA}.{table}", schema.TABLES[table].columns, [rows])


def delete(database: Database, session: Session, update: UpdateSet) -> None:
    """RF2: the same orders with their lines; those not there are no error."""
    template = schema.statement(database.engine, "refresh_delete")
    for start in range(0, len(update.keys), _DELETE_AT_ONCE):
        keys = ", ".join(map(str, update.keys[start : start + _DELETE_AT_ONCE]))
        session.script(template.replace(":1", keys))


@contextmanager
def leaving_nothing(
    database: Database, session: Session, updates: Sequence[UpdateSet]
) -> Iterator[None]:
    """Around a run: what a killed one left goes first, and what a failing one leaves goes last."""
    for update in updates:
        delete(database, session, update)
    try:
        yield
    except BaseException:
        with suppress(DatabaseError):  # the server may be gone: the next run does it
            for update in updates:
                delete(database, session, update)
        raise


def _order(random: Random, scale: float, key: int) -> tuple[str, list[str]]:
    """An order's row and its lines' rows (clause 4.2.3)."""
    ordered = _FIRST + timedelta(random.randint(0, (_LAST - _FIRST).days))
    made = [_line(random, scale, key, number, ordered) for number in range(1, random.randint(2, 8))]
    states = {state for _, state, _ in made}
    customer = random.randrange(max(1, round(50_000 * scale))) * 3 + random.randint(1, 2)
    fields = (
        key,
        customer,
        states.pop() if len(states) == 1 else "P",
        _money(sum(price for _, _, price in made)),
        ordered,
        random.choice(words.PRIORITIES),
        f"Clerk#{random.randint(1, max(1, round(1000 * scale))):09}",
        0,
        _comment(random, 79),
    )
    return "|".join(map(str, fields)) + "\n", [row for row, _, _ in made]


def _line(
    random: Random, scale: float, key: int, number: int, ordered: date
) -> tuple[str, str, int]:
    """A line's row, its status, and what it adds to the order's total in cents."""
    parts, suppliers = max(1, round(200_000 * scale)), max(1, round(10_000 * scale))
    part, quantity = random.randint(1, parts), random.randint(1, 50)
    supplier = (part + random.randrange(4) * (suppliers // 4 + (part - 1) // suppliers)) % suppliers
    price = quantity * (90_000 + part // 10 % 20_001 + 100 * (part % 1000))
    discount, tax = random.randint(0, 10), random.randint(0, 8)
    shipped = ordered + timedelta(random.randint(1, 121))
    received = shipped + timedelta(random.randint(1, 30))
    status = "O" if shipped > _TODAY else "F"
    fields = (
        key,
        part,
        supplier + 1,
        number,
        quantity,
        _money(price),
        _money(discount),
        _money(tax),
        random.choice("RA") if received <= _TODAY else "N",
        status,
        shipped,
        ordered + timedelta(random.randint(30, 90)),
        received,
        random.choice(words.INSTRUCTIONS),
        random.choice(words.MODES),
        _comment(random, 44),
    )
    total = price * (100 - discount) // 100 * (100 + tax) // 100
    return "|".join(map(str, fields)) + "\n", status, total


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"


def _comment(random: Random, length: int) -> str:
    return " ".join(random.choices(_COMMENT, k=9))[: random.randint(length // 4, length)]
