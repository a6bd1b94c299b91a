"""What of the audit log is an event of a machine's history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.console.sampling import happenings
from hotset.console.sampling.happenings import Happenings, event_of
from hotset.operations import audit, table
from hotset.operations.audit import Caller, Entry

CHIEF = Caller("chief (command line)")
WARMED = Entry(
    "a1",
    "2026-11-26T10:00:00+00:00",
    "chief",
    "",
    "warmup run",
    {"disk": "shop", "targets": ["table:public.orders"]},
    "done",
    ended="2026-11-26T10:00:30+00:00",
)


def test_a_warm_up_with_what_it_was_of_and_how_long_it_took() -> None:
    found = event_of(WARMED, "local")
    assert found is not None
    assert (found.kind, found.text) == ("warm-up", "warmup run shop table:public.orders")
    assert found.until == found.at + 30


def test_what_was_done_to_another_machine_is_not_of_this_one() -> None:
    elsewhere = replace(WARMED, values={**WARMED.values, "machine": "ssh://db1"})
    assert event_of(elsewhere, "local") is None
    assert event_of(elsewhere, "ssh://db1") is not None
    assert event_of(WARMED, "ssh://db1") is None


def test_what_was_refused_or_only_read_did_not_happen() -> None:
    assert event_of(replace(WARMED, outcome="refused"), "local") is None
    assert event_of(replace(WARMED, what="console log-in"), "local") is None


def test_what_failed_says_so() -> None:
    found = event_of(replace(WARMED, outcome="failed"), "local")
    assert found is not None
    assert found.text.endswith(" failed")


def test_the_log_tells_what_is_new_and_then_how_it_ended() -> None:
    one = Happenings("local")
    assert one.latest() == [], "there is no log yet"
    id_ = audit.begin(CHIEF, "tpcc run", {"users": 8})
    (begun,) = one.latest()
    assert (begun.text, begun.until) == ("tpcc run", None)
    assert one.latest() == []
    audit.end(id_, "done")
    (ended,) = one.latest()
    assert (ended.key, ended.until is not None) == (begun.key, True)
    audit.begin(CHIEF, "console log-in", {})
    assert one.latest() == []


def test_every_operation_that_is_told_exists(subtests: pytest.Subtests) -> None:
    """A renamed operation would vanish from the history without a word."""
    for words in [words for words, _ in happenings._KINDS]:
        with subtests.test(words=str(words)):
            names = [one.name for one in table.every()]
            assert any(name.startswith(words) for name in names), words
