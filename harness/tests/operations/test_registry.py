"""The table of operations: every way to call one takes the same fields and refuses the same."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer.main

from hotset import cli
from hotset.cli import generate
from hotset.core import errors, extras
from hotset.core import operation as registry
from hotset.core.errors import HotsetError, NotFoundError, Remedy, RequestError
from hotset.core.machines import names as connect
from hotset.core.operation import FieldKind, Kind, Lines, Operation
from hotset.core.rights import Names, Needs, Right
from hotset.operations import audit, run, table
from hotset.operations.audit import Caller
from hotset.tier import kinds
from tests.support.flash_devices import Keeping

OPERATIONS = list(table.every())
SECRET = "open-sesame"  # noqa: S105
DSN = "host=127.0.0.1 port=1 user=tester dbname=shop"
# Texts that a shell, or a parser of options, would take for something else.
ODD = "--yes; $(id) 'é ü\" ="
# Verbs that PowerShell approves (Get-Verb), of those that are used.
VERBS = {
    "Add",
    "Clear",
    "Compare",
    "Disable",
    "Enable",
    "Export",
    "Find",
    "Get",
    "Import",
    "Invoke",
    "Measure",
    "Move",
    "New",
    "Register",
    "Remove",
    "Repair",
    "Resize",
    "Restore",
    "Set",
    "Show",
    "Start",
    "Stop",
    "Sync",
    "Test",
    "Unregister",
    "Update",
}
NO_OPERATIONS = {
    "console": "it serves the operations",
    "jobs": "the API has them itself",
    "lab shell": "it needs a terminal",
    "runs alternate": "it asks at the terminal, or runs a program of the caller's",
    "tier watch": "it never ends",
    "top": "it needs a terminal",
}


def commands(command: Any, words: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: ANN401
    inner = getattr(command, "commands", None)
    if inner is None:
        return {} if command.hidden else {" ".join(words): command}
    return {k: v for name, one in inner.items() for k, v in commands(one, (*words, name)).items()}


COMMANDS = commands(typer.main.get_command(cli.create()))


def test_the_order_of_commands_is_not_that_of_imports() -> None:
    """The reference follows it."""
    text = "from hotset.operations import table; "
    names = "print([one.name for one in table.group('disk')])"
    first = "import hotset.bench.commands.reread; "
    asked = ([sys.executable, "-c", before + text + names] for before in ("", first))
    usual, other = (
        subprocess.run(argv, capture_output=True, text=True, check=True).stdout for argv in asked
    )
    assert usual == other


def test_every_command_is_an_operation_or_has_a_reason() -> None:
    others = {
        name
        for name in COMMANDS
        if any(name == one or name.startswith(f"{one} ") for one in NO_OPERATIONS)
    }
    assert {one.name for one in OPERATIONS} | others == set(COMMANDS)
    assert {one.name for one in OPERATIONS} & others == set()


def test_an_operation_says_what_its_callers_need(subtests: pytest.Subtests) -> None:
    for found in OPERATIONS:
        with subtests.test(found=found.name):
            assert found.help
            verb, noun = found.powershell
            assert verb in VERBS
            assert re.fullmatch(r"Hotset[A-Za-z]+", noun)
            for name, field in found.request.model_fields.items():
                assert field.description, f"{name} has no help"
            if found.destroys:
                marked = [one for field in found.fields.values() for one in field.metadata]
                assert found.right is Right.ADMIN or Needs(Right.ADMIN) in marked
            if found.right is Right.READ:
                assert found.kind is Kind.QUERY or found.name == "experiment plan"


def test_whoever_only_reads_has_nothing_connected_mounted_or_measured(
    subtests: pytest.Subtests,
) -> None:
    """It would go to any host, and loads the origin."""
    for found in OPERATIONS:
        with subtests.test(found=found.name):
            marks = {Names.DATABASE, Names.FILE, Names.OUTPUT, Names.DEVICE}
            for name, field in found.fields.items():
                kind = FieldKind.from_field(field)
                if not marks & set(kind.metadata) or (found.name, name) in FILES_THAT_ARE_READ:
                    continue
                needs = [one.right for one in kind.metadata if isinstance(one, Needs)]
                lowest = max((found.right, *needs), key=list(Right).index)
                assert not Right.READ.includes(lowest), name


def test_prices_are_kept_with_a_run_for_whoever_may_change_one() -> None:
    found = table.find("report run")
    for values, right in (({}, Right.READ), ({"price": ["server=1"]}, Right.OPERATE)):
        request = found.parse({"run": "last", **values})
        assert found.right_for(dict(request)) is right
        assert audit.counts(found, request) is (right is Right.OPERATE)


FILES_THAT_ARE_READ = {
    ("experiment plan", "file"),
    ("disk status", "socket"),
    ("whatif trace show", "trace"),
}


def test_no_two_cmdlets_have_one_name() -> None:
    names = [one.powershell for one in OPERATIONS]
    assert len(names) == len(set(names))


def samples(found: Operation, odd: bool) -> dict[str, Any]:
    """A value for every field: each other than the default where there is a choice."""
    values: dict[str, Any] = {}
    known: dict[str, Any] = {
        "dsn": DSN,
        "password": SECRET,
        "machine": "ssh://db1:2222",
        "mount_point": "/srv",
    }
    known |= {"hit_ratio": [0.5, 1.0], "storage_iops": "1:126", "users": "1,2,4"}
    known |= {"label": "before"}
    sizes = {"cache", "volume", "block", "size", "log_size", "rate", "origin_rate"}
    sizes |= {"buffer", "id_size", "read_rate", "sequential_cutoff", "guarantee", "limit"}
    sizes |= {"memory", "database_size"}
    for name, field in found.fields.items():
        kind = FieldKind.from_field(field)
        if name in known and kind.base in (str, float):
            values[name] = known[name]
        elif kind.base is bool:
            values[name] = not field.default
        elif kind.base in (int, float):
            values[name] = kind.limit("le") or 7
        elif kind.base not in (str, Path):
            last = kind.base.__args__[-1]
            values[name] = [last] if kind.is_list else last
        elif name in sizes:
            values[name] = ["1GiB"] if kind.is_list else "1GiB"
        else:
            text = ODD if odd else "a"
            values[name] = [text, "b"] if kind.is_list else text
    return values


def argv(found: Operation, values: dict[str, Any]) -> list[str]:
    """What a user types."""
    options, arguments = [], []
    for name, field in found.fields.items():
        if name not in values or name == "password":
            continue
        marks = generate.marks(field)
        given = values[name] if isinstance(values[name], list) else [values[name]]
        for value in given:
            if marks.argument:
                arguments.append(str(value))
            elif value is True:
                options.append(f"--{name.replace('_', '-')}")
            elif value is False:
                options += [marks.off] if marks.off else []
            else:
                options.append(f"--{name.replace('_', '-')}={value}")
    return [*options, "--", *arguments]


def test_every_number_has_a_largest(subtests: pytest.Subtests) -> None:
    """A request must not hold a server's memory or time for as long as it likes."""
    for found in OPERATIONS:
        with subtests.test(found=found.name):
            for name, field in found.fields.items():
                kind = FieldKind.from_field(field)
                if kind.base in (int, float):
                    bounds = [
                        getattr(one, end, None) for one in kind.metadata for end in ("le", "lt")
                    ]
                    assert any(one is not None for one in bounds), name


def test_one_caller_does_not_hold_all_that_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, go_on = threading.Semaphore(0), threading.Event()

    def waits(request: Any, context: Any) -> Lines:  # noqa: ANN401, ARG001
        asking.release()
        assert go_on.wait(60)
        return Lines()

    stand_in = replace(table.find("lab status"), function=waits)
    monkeypatch.setitem(registry.declared, "lab status", stand_in)
    one, other = (Caller(f"token {name}", Right.READ) for name in ("one", "other"))
    with ThreadPoolExecutor(run.QUERIES_AT_ONCE + 1) as pool:
        waiting = [
            pool.submit(run.answer, "lab status", {}, caller=one)
            for _ in range(run.QUERIES_AT_ONCE)
        ]
        for _ in waiting:
            assert asking.acquire(timeout=60)
        try:
            with pytest.raises(run.BusyCallerError, match="8 queries of token one"):
                run.answer("lab status", {}, caller=one)
            anothers = pool.submit(run.answer, "lab status", {}, caller=other)
            assert asking.acquire(timeout=60)
        finally:
            go_on.set()
        for done in (*waiting, anothers):
            done.result(60)
    run.answer("lab status", {}, caller=one)


def test_command_line_and_json_make_the_same_request(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    asked: list[Any] = []

    def taken(self: Operation, given: dict[str, Any]) -> None:
        asked.append(self.parse(generate.values_of(self, given), strict=False))

    monkeypatch.setattr(generate, "execute", taken)
    for found in OPERATIONS:
        for odd in [False, True]:
            with subtests.test(odd=odd, found=found.name):
                values = samples(found, odd)
                asked.clear()
                app = typer.Typer()
                app.command()(generate.command(found))
                app(argv(found, values), standalone_mode=False)
                json_values = {name: value for name, value in values.items() if name != "password"}
                from_json = found.parse_remote(
                    {**json_values, **({"yes": True} if found.needs_yes else {})}
                )
                given = {name: getattr(from_json, name) for name in json_values}
                assert {name: getattr(asked[0], name) for name in json_values} == given


@pytest.mark.parametrize(
    ("name", "values", "field", "said"),
    [
        ("tier status", {"cloud": 1}, "cloud", "no such field; it has: disk, machine"),
        ("tier create", {"disk": "shop"}, "flash", "needs it"),
        ("tier resize", {"disk": "shop", "cache": "much"}, "cache", "'much' is not a size"),
        ("tpcc run", {"dsn": DSN, "users": 0}, "users", "0 is refused"),
        ("tpcc run", {"dsn": DSN, "users": "8,4"}, "users", "a rising list"),
        ("tpcc run", {"dsn": DSN, "warehouses": "8"}, "warehouses", "'8' is refused"),
        ("tpcc run", {"dsn": DSN, "driver": "x"}, "driver", "'hotset' or 'hammerdb'"),
        ("tpcc run", {"dsn": DSN, "output": "/etc/passwd"}, "output", "no such field"),
        ("tpcc run", {"dsn": DSN, "password_file": "/etc/shadow"}, "password_file", "no such"),
        ("tpcc run", {"dsn": f"{DSN} password={SECRET}"}, "dsn", "give it separately"),
        ("tpcc run", {"dsn": "x"}, "dsn", "neither a URI"),
        ("tpcc run", {"dsn": DSN, "password": SECRET * 500}, "password", "at most 4096"),
        ("tpcc run", {"dsn": DSN, "password": f"{SECRET}\0"}, "password", "control characters"),
        ("tpcc run", {"dsn": DSN, "password": f"{SECRET}\ud800"}, "password", "unicode"),
        ("tier flush", {"machine": "ssh://root:x@db1"}, "machine", "ssh://[user@]host[:port]"),
        ("tier flush", {"disk": "a\0b"}, "disk", "control characters"),
        ("tpcc drop", {"dsn": DSN}, "yes", "changes or deletes"),
        ("database memory", {"dsn": DSN, "engine": "postgres"}, "yes", "changes or deletes"),
        ("warmup pin", {"targets": []}, "targets", "at least 1"),
    ],
)
def test_refused_values_are_named(name: str, values: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(HotsetError) as refused:
        (run.start if table.find(name).kind is Kind.JOB else run.answer)(name, values)
    assert refused.value.field == field
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_form_has_texts_only() -> None:
    found = table.find("tpcc run").parse_remote(
        {"dsn": DSN, "users": "8", "check": "false"}, strict=False
    )
    assert (found.users, found.check) == ("8", False)


def test_a_dry_run_needs_no_yes() -> None:
    values = {"dsn": DSN, "engine": "postgres", "dry_run": True}
    assert table.find("database memory").parse_remote(values).dry_run


def test_the_servers_own_password_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSET_PASSWORD", "the-servers-own")
    found = table.find("heat top").parse_remote({"dsn": DSN})
    assert found.password.get_secret_value() == ""


def test_unknown_operations() -> None:
    for name in ("lab shell", "tier", "frobnicate"):
        with pytest.raises(NotFoundError, match=name):
            table.find(name)
    with pytest.raises(RequestError, match="answers at once"):
        run.start("tier status", {})
    with pytest.raises(RequestError, match="is a job"):
        run.answer("tier flush", {})


def test_a_query_answers_in_this_process() -> None:
    assert run.answer("lab status", {}).document()["state"] == "down"


def test_what_a_query_refuses_has_code_field_and_status() -> None:
    with pytest.raises(HotsetError, match="is not a time") as failed:
        run.answer("report hit-ratio", {"since": "nope"})
    assert (failed.value.exit_code, failed.value.field) == (2, "since")
    with pytest.raises(HotsetError, match="there are no runs yet") as failed:
        run.answer("runs show", {"run": "x"})
    assert (failed.value.exit_code, failed.value.http_status) == (2, 404)


def test_an_answer_is_one_whatever_it_amounts_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` ends with code 3 where something is missing, and says what."""
    monkeypatch.setenv("PATH", "/nowhere")
    result = run.answer("doctor", {})
    assert "missing" in {finding["state"] for finding in result.document()["findings"]}
    assert result.failure() is not None


def test_the_doctor_of_a_package_looks_at_this_computers_disks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It named what the lab lacks, which nobody wants who has just installed a package."""
    there = Keeping()
    there.answers |= {"id -u": "0\n", "uname -m": f"{platform.machine()}\n"}
    asked = list[str]()

    @contextmanager
    def opened(name: str) -> Iterator[Keeping]:
        asked.append(name)
        yield there

    monkeypatch.setattr(connect, "open_machine", opened)
    monkeypatch.setattr(sys, "prefix", extras.PACKAGED)
    found = {one["what"] for one in run.answer("doctor", {}).document()["findings"]}
    assert asked == ["local"]
    # What a benchmark calls is here, and not on the server that is named: a page sends there who
    # wants to know whether HammerDB is found.
    called = {"pgbench", "HammerDB", "SQL Server"}
    assert found == {"hotset's programs", *kinds.names(), *called}
    named = run.answer("doctor", {"machine": "local"}).document()["findings"]
    assert {one["what"] for one in named} == found - called


def test_what_is_never_an_option_is_not_told_as_one() -> None:
    """``--target: …`` of `disk bench`, which takes it by its place."""
    places: dict[str, set[bool]] = {}
    for one in OPERATIONS:
        for name, field in one.request.model_fields.items():
            places.setdefault(name, set()).add(generate.marks(field).argument)
    always = {name for name, kinds in places.items() if kinds == {True}}
    assert always <= errors.ARGUMENTS
    assert places.keys() - always, "most fields are options"


def test_an_option_that_says_no_is_worded_as_the_command_line_has_it() -> None:
    off = {
        name: marked.off
        for one in OPERATIONS
        for name, field in one.request.model_fields.items()
        if (marked := generate.marks(field)).off
    }
    assert off
    for name, word in off.items():
        assert errors.command(Remedy("leave it out", parameters={name: False})) == f"add {word}"
