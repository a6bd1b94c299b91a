"""Users of scripts, where no program of the product's runs them: each takes a script by chance, by
the weights, and runs it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

from hotset.core.sql import LASTING, Aborted, Value
from hotset.load.record import WindowOptions
from hotset.load.streams import stream
from hotset.load.workload import Step, UserFailed

from . import script
from .script import Bound, Draw, Script, Statement
from .sources import ScriptError
from .workload import SqlWorkload


class Statements(Protocol):
    """One connection for single statements, used by one thread; raises `Aborted` and
    `ServerGone`."""

    def execute(self, parts: Sequence[str], values: Sequence[Value]) -> None: ...
    def check(self, parts: Sequence[str]) -> str | None: ...
    def in_transaction(self) -> bool: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class TakesStatements(Protocol):
    """A database that takes single statements of a user's own."""

    def statements(self, *, prepared: bool) -> Statements:
        """Open a connection for them.

        :param prepared: values are parameters of statements prepared once; otherwise they are in
            the text.
        :raises CannotConnect: with the server's reason.
        """


def read(workload: SqlWorkload) -> list[Script]:
    """:raises ScriptError: one cannot be read."""
    return [script.read(source.file_name, source.text) for source in workload.sources]


def require(workload: SqlWorkload) -> None:
    """See that all scripts can be read, and that their variables are set.

    :raises ScriptError: one cannot, or is not; names file and line.
    """
    script.require_set(read(workload), workload.defined)


def connect(workload: SqlWorkload, database: TakesStatements) -> Statements:
    """:raises CannotConnect: there is no server."""
    return database.statements(prepared=workload.protocol == "prepared")


def check(workload: SqlWorkload, database: TakesStatements) -> None:
    """Have the server read every statement.

    :raises CannotConnect: there is no server.
    :raises ScriptError: it finds one that is no SQL; names file and line.
    """
    with closing(connect(workload, database)) as client:
        for script in read(workload):
            for statement in script.statements():
                problem = client.check(statement.parts)
                if problem is not None:
                    raise ScriptError(script.file, statement.line, problem)


@dataclass(frozen=True, slots=True)
class Users:
    """A `hotset.load.workload.Workload`."""

    workload: SqlWorkload
    database: TakesStatements

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.workload.kinds

    @property
    def options(self) -> WindowOptions:
        return self.workload.options

    def user(self, number: int) -> SqlUser:
        return SqlUser(self.workload, number, connect(self.workload, self.database))


class SqlUser:
    """One user; keeps its variables from script to script, as pgbench's clients do."""

    first_pause_s = 0.0

    def __init__(self, workload: SqlWorkload, number: int, client: Statements) -> None:
        self._client = client
        self._scripts = read(workload)
        self._bounds = list(accumulate(source.weight for source in workload.sources))
        self._random = stream(workload.options.seed, "user", number)
        self._variables: dict[str, Value] = {**workload.defined, "client_id": number}
        self._script = self._scripts[0]
        self._causes: dict[tuple[str, int, str], str] = {}

    def next(self) -> Step:
        kind = self._random.choices(range(len(self._scripts)), cum_weights=self._bounds)[0]
        self._script = self._scripts[kind]
        return Step(kind)

    def perform(self) -> None:
        for command in self._script.commands:
            if isinstance(command, Draw):
                self._variables[command.name] = self._draw(command)
            else:
                self._send(command)
        if self._client.in_transaction():
            raise UserFailed(
                f"{self._script.file} ends inside a transaction: end it with COMMIT or ROLLBACK"
            )

    def close(self) -> None:
        self._client.close()

    def _draw(self, draw: Draw) -> int:
        low, high = self._number(draw, draw.low), self._number(draw, draw.high)
        if low > high:
            raise self._failure_of(draw, f"from {low} to {high} there is no number")
        return self._random.randint(low, high)

    def _number(self, draw: Draw, bound: Bound) -> int:
        value = self._value(draw, bound) if isinstance(bound, str) else bound
        if not isinstance(value, int):
            raise self._failure_of(draw, f":{bound} is {value!r}, and random takes integers")
        return value

    def _value(self, command: Statement | Draw, name: str) -> Value:
        if name not in self._variables:
            raise self._failure_of(command, f"variable {name} is not set")
        return self._variables[name]

    def _failure_of(self, command: Statement | Draw, problem: str) -> UserFailed:
        return UserFailed(f"{self._script.file}:{command.line}: {problem}")

    def _send(self, statement: Statement) -> None:
        values = [self._value(statement, name) for name in statement.names]
        try:
            self._client.execute(statement.parts, values)
        except Aborted as aborted:
            self._client.rollback()
            if aborted.cause in LASTING:
                place = f"{self._script.file}:{statement.line}"
                raise Aborted(aborted.cause, False, f"{place}: {aborted.message}") from None
            raise Aborted(self._cause(statement.line, aborted), False) from None

    def _cause(self, line: int, aborted: Aborted) -> str:
        """Where and why, with what the server said when it failed so first: messages may name
        values, and causes are to be counted."""
        place = self._script.file, line, aborted.cause
        if place not in self._causes:
            is_told = aborted.message and aborted.cause.startswith("error")
            detail = f" ({aborted.message})" if is_told else ""
            self._causes[place] = f"{self._script.file}:{line}: {aborted.cause}{detail}"
        return self._causes[place]
