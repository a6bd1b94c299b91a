"""What people read, and what a monitor does: one line where there is nothing to say, and a code for
each outcome."""

from __future__ import annotations

import csv
import io
import sqlite3

import pytest

from hotset.core.errors import FAILED, LACKS, MISSED, HotsetError, Remedy
from hotset.core.machines.base import MachineGoneError
from hotset.disk import flash_devices, lifecycle
from hotset.disk.flash_devices import Inventory
from hotset.health import examination
from hotset.health.findings import Ask, Finding, Health, State
from hotset.warmup.plan import Request as Planning
from tests.fake_machine import FakeMachine
from tests.support.hit_counters import DISK, FLASH

RATIO = Finding("shop", "hit ratio", "ok", "95.0 % hit in the last day")


def health(*states: State) -> Health:
    flush = (Remedy("write it back", "tier flush", {"disk": "shop"}),)
    more = (Finding("shop", "dirty data", state, f"it is {state}", flush) for state in states)
    return Health("local", ("shop",), (RATIO, *more))


def code(found: Health) -> int:
    failure = found.failure()
    assert failure is None or isinstance(failure, HotsetError)
    return 0 if failure is None else failure.exit_code


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((), 0),
        (("ok",), 0),
        (("advice",), 0),
        (("warning",), MISSED),
        (("critical",), MISSED),
        (("unknown",), LACKS),
        (("advice", "unknown"), LACKS),
        (("unknown", "warning"), MISSED),
    ],
)
def test_each_outcome_has_its_exit_code(states: tuple[State, ...], expected: int) -> None:
    assert code(health(*states)) == expected


def test_nothing_to_say_is_one_line_with_the_hit_ratio() -> None:
    assert health("ok").to_text() == ("nothing to do on shop (shop: 95.0 % hit in the last day)")
    assert Health("local", (), ()).to_text() == "no disk is accelerated here"


def test_a_machine_without_disks_is_not_in_order() -> None:
    """A monitor of a machine whose flash device was gone saw code 0: all is well."""
    nothing = Health("local", (), ()).failure()
    assert isinstance(nothing, HotsetError)
    assert (nothing.exit_code, nothing.remedies[0].operation) == (LACKS, "tier scan")
    assert "nothing could be looked at" in str(nothing)
    far = Health("ssh://db1", (), ()).failure()
    assert isinstance(far, HotsetError)
    assert far.remedies[0].parameters == {"machine": "ssh://db1"}
    broken = Finding("", "flash", "critical", "the label is damaged")
    assert code(Health("local", (), (broken,))) == MISSED


def test_what_is_not_known_is_never_nothing_to_do() -> None:
    text = health("unknown").to_text()
    assert "nothing to do" not in text
    assert text.startswith("not known:\n  shop, dirty data: it is unknown")


def test_what_is_grave_comes_first_with_its_command() -> None:
    lines = health("unknown", "advice", "warning", "critical").to_text().splitlines()
    assert lines[:5] == [
        "to be done:",
        "  shop, dirty data: critical: it is critical",
        "    to write it back: `hotset tier flush shop`",
        "  shop, dirty data: warning: it is warning",
        "    to write it back: `hotset tier flush shop`",
    ]
    assert lines.index("could be better:") < lines.index("not known:")


def test_a_line_of_csv_says_what_helps_in_words_of_nobodys_own() -> None:
    (_, row) = csv.DictReader(io.StringIO(health("warning").csv()))
    assert row["requests"] == "to write it back: tier flush with disk=shop"


def test_a_look_that_fails_hinders_no_other_and_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inventory = Inventory((FLASH,), ("flash device spare cannot be read",))
    monkeypatch.setattr(flash_devices, "inventory", lambda _: inventory)

    def refuse(_: object, __: object) -> object:
        raise HotsetError("the tier says nothing")

    monkeypatch.setattr(lifecycle, "inspect", refuse)
    found = examination.examine(FakeMachine(), None, None, Planning("local", ()))
    assert [(one.subject, one.state) for one in found.findings] == [
        ("flash", "critical"),
        ("state", "unknown"),
    ]
    assert found.disks == (DISK.name,)
    assert code(found) == MISSED


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        OSError("no room"),
        HotsetError("gone"),
        sqlite3.OperationalError("database is locked"),
    ],
)
def test_a_failure_of_one_look_is_a_finding(error: Exception) -> None:
    def look(_: Ask) -> list[Finding]:
        raise error

    (found,) = examination._guard("local", "shop", "flash wear", look)
    assert (found.state, found.text) == ("unknown", str(error))


def test_a_machine_that_is_gone_is_no_finding() -> None:
    def look(_: Ask) -> list[Finding]:
        raise MachineGoneError("no route to host")

    with pytest.raises(MachineGoneError) as gone:
        examination._guard("ssh://db1", "shop", "flash wear", look)
    assert gone.value.exit_code == FAILED
