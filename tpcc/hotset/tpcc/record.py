"""How TPC-C is run, and what a window of it leaves."""

from dataclasses import dataclass, field
from typing import Literal

from hotset.core.errors import PrerequisiteError
from hotset.load.record import ServerErrors, ServerRate, WindowOptions, WindowResult

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(WindowResult):
    """The window of a run of TPC-C.

    nopm              new-orders committed per minute
    tpm               the same on every engine; HammerDB's TPM is another figure: it counts the
                      server's own commits and rollbacks, whoever caused them
    nopm_by_district  change of sum(d_next_o_id) per minute, which is how HammerDB counts: a
                      cross-check by the server, apart from nopm by the orders under way at the
                      edges of the window
    kinds             new_order, payment, order_status, delivery, stock_level
    driver            who drove it: hotset's own driver, or hammerdb
    isolation         the isolation level of the users' sessions, as the server says; None: it
                      does not
    hottest_fifth     share of the accesses to STOCK that the hottest 20 % of its blocks of 64 KiB
                      get, by the way in which items are drawn

    HammerDB tells less, and more of its own. `nopm` is what it says then; `tpm` is worked out
    from it by the mix of all calls, which include the ramp-up, and so are the counts in `kinds`;
    latencies are of ramp-up and window together; `series` is empty, and instead there are

    server_tpm     HammerDB's TPM, as the server counts
    server_series  the same by interval, ramp-up included
    server_errors  deadlocks and errors that the server counted, ramp-up included
    """

    options: RunOptions
    nopm: float
    nopm_by_district: float | None = None
    driver: Literal["hotset", "hammerdb"] = "hotset"
    server_tpm: float | None = None
    server_series: list[ServerRate] = field(repr=False, default_factory=list)
    server_errors: ServerErrors | None = None
    orders_before: int | None = None
    isolation: str | None = None
    hottest_fifth: float | None = None
