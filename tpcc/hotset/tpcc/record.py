"""How TPC-C is run."""

from dataclasses import dataclass
from typing import Literal

from hotset.core.errors import PrerequisiteError
from hotset.load.record import WindowOptions

Items = Literal["nurand", "uniform"]
"""How items and customers are drawn: as the specification says (clause 2.1.6), or as HammerDB."""


class DriverMissing(PrerequisiteError):
    """The compiled driver is not there; the message says how to build it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(WindowOptions):
    """How to run TPC-C.

    warehouses      how many of the database's warehouses take part (from number 1)
    all_warehouses  each transaction picks its warehouse uniformly; otherwise a user stays at
                    home, and the working set is as small as the number of users
    think_time      keying and think times of clause 5.2.5; without them users never pause
    items           "uniform": HammerDB's draw of items and customers, and its mix
    popular         seed of which rows are popular (the constants C of clause 2.1.6); None: `seed`
    """

    warehouses: int
    all_warehouses: bool = True
    think_time: bool = False
    items: Items = "nurand"
    popular: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no run, naming the field."""
        WindowOptions.__post_init__(self)
        if self.warehouses < 1:
            raise ValueError(f"warehouses must be at least 1, not {self.warehouses}")
        if self.rate_per_s is not None and self.think_time:
            raise ValueError("rate_per_s and think_time exclude each other: both set the pace")
