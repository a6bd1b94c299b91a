"""Whether a window did what was due."""

import pytest

from hotset.load.served import shortfall
from hotset.reports.model.windows import Repeat, Transaction, Unfinished

DENIED = "error 42501: permission denied for table customer"


def window(unfinished: Unfinished | None = None, failed: int = 0, **kinds: Transaction) -> Repeat:
    counted = sum(sum(kind.failed.values()) for kind in kinds.values())
    return Repeat(
        users=8,
        rampup_s=0,
        duration_s=60,
        tpm=0,
        transactions=kinds,
        failed=failed or counted,
        retries=0,
        unfinished=unfinished,
    )


def kind(committed: int, failed: int = 0, rolled_back: int = 0, unfinished: int = 0) -> Transaction:
    causes = {DENIED: failed} if failed else {}
    return Transaction(
        committed=committed, rolled_back=rolled_back, failed=causes, unfinished=unfinished
    )


@pytest.mark.parametrize(
    "kinds",
    [
        {"new_order": kind(100, rolled_back=1), "delivery": kind(0)},
        {"new_order": kind(100), "delivery": kind(0, failed=4)},
        {"new_order": kind(100, failed=4)},
        {"new_order": kind(1000, failed=20)},
        {"search": kind(3, unfinished=8)},
        {"new_order": kind(0, rolled_back=5)},
    ],
    ids=str,
)
def test_what_was_due_was_done(kinds: dict[str, Transaction]) -> None:
    assert shortfall(window(**kinds)) == ""


def test_nothing_got_through() -> None:
    assert shortfall(window(new_order=kind(0))) == "no transaction got through in the window"
    stuck = window(Unfinished(count=8, oldest_s=2.5), new_order=kind(0, unfinished=4))
    assert shortfall(stuck) == (
        "no transaction got through in the window: 8 had not ended 10 s after the window, the"
        " oldest after 12 s"
    )


def test_a_kind_that_never_gets_through_fails_the_window_in_the_server_s_words() -> None:
    result = window(order_status=kind(4000), payment=kind(0, failed=187))
    assert shortfall(result) == f"payment: none of 187 got through: {DENIED} (187 times)"


def test_a_share_of_failures_fails_the_window() -> None:
    result = window(new_order=kind(3860, failed=765), payment=kind(4000))
    assert shortfall(result) == (
        f"new_order: 765 of 4,625 failed, more than 2%: {DENIED} (765 times)"
    )


def test_a_driver_that_tells_failures_of_all_kinds_together() -> None:
    result = window(failed=400, new_order=kind(3860), payment=kind(4000))
    assert shortfall(result) == "all: 400 of 8,260 failed, more than 2%"
