"""The CLI's verbs as data: the models take what the CLI takes, and argv is what it parses."""

from __future__ import annotations

import asyncio
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import typer.main

from hotset.harness import cli
from hotset.harness.service import verbs
from hotset.harness.service.now import VerbFailed, run_now
from hotset.harness.service.verbs import RefusedError, UnknownVerbError, Verb

COMMANDS = dict(verbs.commands_of(typer.main.get_command(cli.app)))
SECRET = "open-sesame"  # noqa: S105
DSN = "host=127.0.0.1 port=1 user=tester dbname=shop"
# Texts that a shell, or a parser of options, would take for something else.
ODD = "--yes; $(id) 'é ü\" ="


def test_every_verb_is_offered_or_left_out_for_a_reason() -> None:
    names = {" ".join(words) for words in COMMANDS}
    left = {name for name in names for out in verbs.LEFT_OUT
            if name == out or name.startswith(f"{out} ")}  # fmt: skip
    offered = {verb.name for verb in verbs.every().values()}
    assert offered | left == names
    assert offered & left == set()


def samples(verb: Verb, odd: bool) -> dict[str, Any]:
    """A value for every field: each other than the default where there is a choice."""
    found: dict[str, Any] = {}
    for name, field in verb.model.model_json_schema()["properties"].items():
        kinds = [kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
        kind = kinds[0]
        if "enum" in kind:
            found[name] = kind["enum"][-1]
        elif kind["type"] == "boolean":
            found[name] = not field.get("default")
        elif kind["type"] == "array":
            found[name] = [ODD, "b"] if odd else ["a"]
        elif kind["type"] in ("integer", "number"):
            found[name] = kind.get("maximum", field.get("maximum", 7))
        else:
            found[name] = ODD if odd else "a"
    return found | {name: value for name, value in known(verb).items() if name in found}


def known(verb: Verb) -> dict[str, Any]:
    """Fields whose text has a form."""
    machine = verb.model.model_fields.get("machine")
    hosts = machine is not None and machine.annotation is str
    return {"dsn": DSN, "password": SECRET} | ({"machine": "ssh://db1:2222"} if hosts else {}) | (
        {"engine": "postgres"}
    )  # fmt: skip


@pytest.mark.parametrize("odd", [False, True], ids=["plain", "odd"])
@pytest.mark.parametrize("verb", verbs.every().values(), ids=lambda verb: verb.name)
def test_the_cli_parses_what_the_model_took(verb: Verb, odd: bool) -> None:
    values = samples(verb, odd)
    call = verb.call(values)
    assert SECRET not in " ".join(call.argv)
    assert "password" not in call.values
    assert call.argv[: len(verb.words)] == verb.words
    command = COMMANDS[verb.words]
    parsed = command.make_context("hotset", list(call.argv[len(verb.words) :])).params
    names = {option.lstrip("-").replace("-", "_"): parameter.name for parameter in command.params
             for option in parameter.opts}  # fmt: skip
    for name, value in call.values.items():
        assert plain(parsed[names[name]]) == value, name
    assert verb.prints_json == (plain(parsed.get("format_")) == "json" and "format" not in values)


def plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value


def test_what_is_not_given_is_left_to_the_cli() -> None:
    call = verbs.find(("tpcc", "run")).call({"dsn": DSN, "check": False, "think_time": False})
    assert call.argv == ("tpcc", "run", f"--dsn={DSN}", "--no-check", "--format=json")


def test_the_password_travels_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSET_PASSWORD", "the-servers-own")
    verb = verbs.find(("tpcc", "run"))
    assert verb.call({"dsn": DSN, "password": SECRET}).environment["HOTSET_PASSWORD"] == SECRET
    assert "HOTSET_PASSWORD" not in verb.call({"dsn": DSN}).environment


@pytest.mark.parametrize(
    ("words", "values", "field", "said"),
    [
        ("tier status", {"cloud": 1}, "cloud", "no such field; it has: disk, machine"),
        ("tier create", {"disk": "shop"}, "flash", "it is missing"),
        ("tpcc run", {"dsn": DSN, "users": 0}, "users", "0 is refused"),
        ("tpcc run", {"dsn": DSN, "users": "8"}, "users", "'8' is refused"),
        ("tpcc run", {"dsn": DSN, "driver": "x"}, "driver", "'hotset' or 'hammerdb'"),
        ("tpcc run", {"dsn": DSN, "output": "/etc/passwd"}, "output", "no such field"),
        ("tpcc run", {"dsn": DSN, "password_file": "/etc/shadow"}, "password_file", "no such"),
        ("tpcc run", {"dsn": f"{DSN} password={SECRET}"}, "dsn", "holds a password"),
        ("tpcc run", {"dsn": "x"}, "dsn", "neither a URI"),
        ("tpcc run", {"dsn": DSN, "password": f"{SECRET}\n" * 500}, "password", "at most 4096"),
        ("tier status", {"machine": "ssh://root:x@db1"}, "machine", "ssh://[user@]host[:port]"),
        ("tier status", {"disk": "a\0b"}, "disk", "control characters"),
        ("tpcc drop", {"dsn": DSN}, "yes", 'add "yes": true'),
        ("database memory", {"dsn": DSN, "engine": "postgres"}, "yes", '"dry_run": true'),
        ("warmup plan", {"targets": []}, "targets", "at least 1"),
    ],
)
def test_refused_values_are_named(
    words: str, values: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        verbs.find(tuple(words.split())).call(values)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}:")
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_form_has_texts_only() -> None:
    call = verbs.find(("tpcc", "run")).call({"dsn": DSN, "users": "8", "check": "false"}, False)
    assert (call.values["users"], call.values["check"]) == (8, False)


def test_rehearsing_needs_no_yes() -> None:
    values = {"dsn": DSN, "engine": "postgres", "dry_run": True}
    assert "--dry-run" in verbs.find(("database", "memory")).call(values).argv


def test_unknown_verbs() -> None:
    for words in (("lab", "shell"), ("tier",), ("frobnicate",)):
        with pytest.raises(UnknownVerbError, match=words[-1]):
            verbs.find(words)


def test_a_verb_that_answers_at_once() -> None:
    assert asyncio.run(run_now(("lab", "status"), {}))["state"] == "down"


def test_what_a_verb_refuses_has_code_field_and_kind() -> None:
    with pytest.raises(VerbFailed, match="is no time") as failed:
        asyncio.run(run_now(("report", "hit-ratio"), {"since": "nope"}))
    assert (failed.value.code, failed.value.field) == (2, "since")
    with pytest.raises(VerbFailed, match="there are no runs yet") as failed:
        asyncio.run(run_now(("runs", "show"), {"run": "x"}))
    assert (failed.value.code, failed.value.failure) == (2, "NoSuchRunError")


def test_an_answer_is_one_whatever_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` ends with code 3 where something is missing, and says what."""
    monkeypatch.setenv("PATH", "/nowhere")
    findings = asyncio.run(run_now(("doctor",), {}))["findings"]
    assert "missing" in {finding["state"] for finding in findings}
