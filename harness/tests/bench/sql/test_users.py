"""Users of scripts on SQL Server: what they send, and how they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hotset.bench.sql import users
from hotset.bench.sql.sources import ScriptError, Source
from hotset.bench.sql.users import SqlUser
from hotset.bench.sql.workload import SqlWorkload
from hotset.core.sql import Aborted, Value
from hotset.databases.sqlserver.product import SqlServerDatabase
from hotset.load.record import WindowOptions
from hotset.load.workload import UserFailed

DATABASE = SqlServerDatabase("127.0.0.1", 1, "someone", "", "shop")


class Recording:
    """Stands in for a connection: no SQL Server runs here."""

    def __init__(self) -> None:
        self.sent: list[tuple[tuple[str, ...], list[Value]]] = []
        self.rolled_back = 0
        self.open = False

    def execute(self, parts: Sequence[str], values: Sequence[Value]) -> None:
        self.sent.append((tuple(parts), list(values)))
        if "fails" in parts[0]:
            raise Aborted("error 2627", False, "Violation of PRIMARY KEY")
        if "reads" in parts[0]:
            raise Aborted("I/O error", False, "a torn page")

    def in_transaction(self) -> bool:
        return self.open

    def rollback(self) -> None:
        self.rolled_back += 1


def workload(*texts: str, **defined: Value) -> SqlWorkload:
    sources = tuple(
        Source(f"s{number}", f"s{number}.sql", 1 + 8 * number, text)
        for number, text in enumerate(texts)
    )
    options = WindowOptions(users=1, rampup_s=0.0, duration_s=1.0, seed=7)
    return SqlWorkload(DATABASE, sources, options, defined)


def user(of: SqlWorkload) -> tuple[SqlUser, Recording]:
    client: Any = Recording()
    return SqlUser(of, 3, client), client


def test_scripts_are_taken_by_their_weights_with_values_drawn_anew() -> None:
    one, client = user(
        workload(
            "SELECT :client_id;",
            "\\set n random(5, :most)\n\\set m random(:n, 9)\nSELECT :n, :m;",
            most=9,
        )
    )
    kinds = []
    for _ in range(400):
        kinds.append(one.next().kind)
        one.perform()
    assert sum(kinds) / len(kinds) == pytest.approx(0.9, abs=0.06)
    assert client.sent[kinds.index(0)] == (("SELECT ", ""), [3])
    drawn = [values for _, values in client.sent if len(values) == 2]
    assert {int(str(low)) for low, _ in drawn} == {5, 6, 7, 8, 9}
    assert all(int(str(low)) <= int(str(high)) <= 9 for low, high in drawn)


def test_a_failure_has_its_place_and_the_servers_first_words() -> None:
    one, client = user(workload("SELECT 1;\nSELECT fails;"))
    one.next()
    with pytest.raises(Aborted) as failed:
        one.perform()
    assert failed.value.cause == "s0.sql:2: error 2627 (Violation of PRIMARY KEY)"
    assert not failed.value.retryable
    assert client.rolled_back == 1


def test_a_state_that_does_not_pass_keeps_its_name() -> None:
    """With its place as its cause it ended no run."""
    one, _ = user(workload("SELECT 1;\nSELECT reads;"))
    one.next()
    with pytest.raises(Aborted) as failed:
        one.perform()
    assert (failed.value.cause, failed.value.message) == ("I/O error", "s0.sql:2: a torn page")


def test_what_a_script_does_wrong_ends_the_run() -> None:
    for text, defined, said in (
        (
            "\\set n random(9, :most)\nSELECT :n;",
            {"most": 5},
            r"s0\.sql:1: from 9 to 5 there is no",
        ),
        ("\\set n random(1, :most)\nSELECT :n;", {"most": "x"}, "random takes integers"),
        ("SELECT :nothing;", {}, r"s0\.sql:1: variable nothing is not set"),
    ):
        one, _ = user(workload(text, **defined))
        one.next()
        with pytest.raises(UserFailed, match=said):
            one.perform()
    one, client = user(workload("BEGIN TRANSACTION;"))
    client.open = True
    one.next()
    with pytest.raises(UserFailed, match=r"s0\.sql ends inside a transaction"):
        one.perform()


def test_a_variable_that_nothing_sets_is_told_before_anything_connects() -> None:
    with pytest.raises(ScriptError, match=r"^s0\.sql:1: nothing sets :items"):
        users.require(workload("SELECT :items;"))
    users.require(workload("SELECT :items;", items=3))
