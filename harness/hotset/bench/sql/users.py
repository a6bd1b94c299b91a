"""The users of SQL scripts: each takes a script by chance, by the weights, and runs it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random

from hotset.core.errors import RequestError
from hotset.core.sql import Aborted, Value
from hotset.databases.connect import SqlDatabase, looking, statements
from hotset.databases.statements import Client, Protocols, Rows
from hotset.load.record import WindowOptions
from hotset.load.streams import stream
from hotset.load.workload import Step, UserFailed

from . import script
from .expressions import ExpressionError, Scope, truth
from .functions import ValueProblem
from .script import Assign, Block, Choice, Script, ScriptError, Sleep, Statement

WEIGHT_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """A script as it was given.

    :ivar name: of its transactions, in results and thresholds.
    :ivar weight: how often it is run, beside the others.
    """

    name: str
    file: str
    weight: int
    text: str = field(repr=False)

    def read(self) -> Script:
        """:raises ScriptError: it cannot be read."""
        return script.read(Path(self.file).name, self.text)


def source(given: str, folder: Path = Path()) -> Source:
    """A script by its file's name, with its weight behind an ``@`` (1 without).

    :param folder: what the name is relative to.
    :raises RequestError: there is no such file, or the weight is none.
    """
    file, weight = split(given)
    try:
        # Windows' editors put a byte order mark in front.
        text = (folder / file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RequestError(f"{file}: {reason}", field="script") from None
    name = re.sub(r"[^a-z0-9_]+", "_", Path(file).stem.lower())
    return Source(name, file, weight, text)


def split(given: str) -> tuple[str, int]:
    """
    >>> split("sql/checkout.sql@70"), split("search.sql")
    (('sql/checkout.sql', 70), ('search.sql', 1))

    :raises RequestError: the weight is no number from 1.
    """
    file, sign, weight = given.rpartition("@")
    if not sign or "/" in weight:
        return given, 1
    if not re.fullmatch(r"[1-9][0-9]*", weight) or int(weight) > WEIGHT_MAX:
        raise RequestError(
            f"{given}: the weight behind @ is a number from 1 to {WEIGHT_MAX:,}; a file with @ in"
            f" its name is written {given}@1",
            field="script",
        )
    return file, int(weight)


def sources(given: list[str], folder: Path = Path()) -> tuple[Source, ...]:
    """All scripts of a run.

    :raises RequestError: there is none, or two have the same name.
    :raises ScriptError: one of them is wrong; names file and line.
    """
    found = [source(one, folder) for one in given]
    names = [one.name for one in found]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(
                f"two scripts are called {name}: their results could not be told apart,"
                " rename one file",
                field="script",
            )
    if not found:
        raise RequestError("name at least one script", field="script")
    for one in found:
        one.read()
    return tuple(found)


_DEFINED = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=(.*)")


def parse_definitions(given: list[str]) -> dict[str, Value]:
    """
    >>> parse_definitions(["scale=10", "part=1.5", "name=x"])
    {'scale': 10, 'part': 1.5, 'name': 'x'}

    :raises RequestError: one is not NAME=VALUE.
    """
    found: dict[str, Value] = {}
    for text in given:
        match = _DEFINED.fullmatch(text)
        if match is None:
            raise RequestError(f"{text!r}: give NAME=VALUE", field="define")
        found[match[1]] = _number(match[2])
    return found


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True, slots=True)
class SqlWorkload:
    """Scripts on a database.

    :ivar popular: what `default_seed` is, by which hashes say which rows are popular; None: the
        seed.
    """

    database: SqlDatabase
    sources: tuple[Source, ...]
    options: WindowOptions
    defined: Mapping[str, Value]
    protocol: Protocols = "prepared"
    popular: int | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.sources)

    def user(self, number: int) -> SqlUser:
        return SqlUser(self, number, statements(self.database, self.protocol))

    def check(self) -> None:
        """Have the server read every statement.

        :raises CannotConnect: there is no server.
        :raises ScriptError: it finds one that is no SQL; names file and line.
        :raises Locked: another session has one of its tables to itself.
        """
        client = statements(looking(self.database), self.protocol)
        try:
            for one in (each.read() for each in self.sources):
                for statement in one.statements():
                    problem = client.check(statement.parts)
                    if problem is not None:
                        line = statement.line + problem.line
                        raise ScriptError(one.file, line, problem.message)
        finally:
            client.close()


class SqlUser:
    """One user; keeps its variables from script to script, as pgbench's clients do."""

    first_pause_s = 0.0

    def __init__(self, workload: SqlWorkload, number: int, client: Client) -> None:
        self._client = client
        self._scripts = [one.read() for one in workload.sources]
        self._bounds = list(accumulate(one.weight for one in workload.sources))
        seed = workload.options.seed
        self._random: Random = stream(seed, "user", number)
        popular = seed if workload.popular is None else workload.popular
        built_in = {"scale": 1, "random_seed": seed, "default_seed": popular}
        variables: dict[str, Value] = {**built_in, **workload.defined, "client_id": number}
        self._scope = Scope(variables, self._random)
        self._script = self._scripts[0]
        self._causes: dict[tuple[str, int, str], str] = {}

    def next(self) -> Step:
        kind = self._random.choices(range(len(self._scripts)), cum_weights=self._bounds)[0]
        self._script = self._scripts[kind]
        return Step(kind)

    def perform(self) -> None:
        self._run(self._script.block)
        if self._client.in_transaction():
            raise UserFailed(
                f"{self._script.file} ends inside a transaction: end it with COMMIT or ROLLBACK"
            )

    def try_out(self, limits: str) -> None:
        """Run the first script once and take it back, under limits that are statements.

        :raises Aborted: the server refuses one of its statements.
        """
        self._client.execute(("BEGIN TRANSACTION",), ())
        try:
            for limit in filter(None, limits.split("; ")):
                self._client.execute((limit,), ())
            self._run(self._script.block)
        finally:
            self._client.rollback()

    def close(self) -> None:
        self._client.close()

    def _run(self, block: Block) -> None:
        for command in block:
            try:
                self._command(command)
            except (ExpressionError, ValueProblem) as error:
                raise UserFailed(f"{self._script.file}:{command.line}: {error}") from None

    def _command(self, command: Statement | Assign | Sleep | Choice) -> None:
        match command:
            case Statement():
                self._send(command)
            case Assign(name=name, value=value):
                self._scope.variables[name] = value(self._scope)
            case Sleep(amount=amount, unit_s=unit_s):
                time.sleep(max(0.0, float(amount(self._scope) or 0) * unit_s))
            case Choice(branches=branches):
                for _, condition, inner in branches:
                    if truth(condition(self._scope)):
                        self._run(inner)
                        break

    def _send(self, statement: Statement) -> None:
        variables = self._scope.variables
        for name in statement.names:
            if name not in variables:
                raise ExpressionError(f"variable {name} is not set")
        try:
            rows = self._client.execute(
                statement.parts,
                [variables[name] for name in statement.names],
                rows=statement.prefix is not None,
            )
        except Aborted as aborted:
            self._client.rollback()
            raise Aborted(self._cause(statement.line, aborted), False) from None
        if statement.prefix is not None:
            self._keep(statement, rows)

    def _keep(self, statement: Statement, rows: Rows | None) -> None:
        """The row's columns as variables."""
        count = len(rows.rows) if rows else 0
        if statement.one_row and count != 1:
            self._client.rollback()
            cause = "returned no row" if not count else "returned several rows"
            raise Aborted(f"{self._script.file}:{statement.line}: \\gset: {cause}", False)
        if rows and rows.rows:
            for name, value in zip(rows.columns, rows.rows[-1], strict=True):
                self._scope.variables[f"{statement.prefix}{name}"] = value

    def _cause(self, line: int, aborted: Aborted) -> str:
        """Where and why, with what the server said when it failed so first: messages may name
        values, and causes are to be counted."""
        place = self._script.file, line, aborted.cause
        if place not in self._causes:
            said = (
                f" ({aborted.message})"
                if aborted.message and aborted.cause.startswith("error")
                else ""
            )
            self._causes[place] = f"{self._script.file}:{line}: {aborted.cause}{said}"
        return self._causes[place]
