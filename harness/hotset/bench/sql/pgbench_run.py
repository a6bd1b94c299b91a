"""A run of scripts by pgbench: started, followed, ended, and told as other runs are.

pgbench prints progress every second and keeps a log of each transaction, which is read once all
users have ended: at ten thousands of transactions a second it would take a core from them. It goes
on for longer than ramp-up and window; SIGALRM, its own timer, has each user finish its transaction
and end. A user whose script fails ends there, which would change the load: it ends the run.
"""

from __future__ import annotations

import math
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from signal import SIGALRM
from typing import Protocol, runtime_checkable

from psycopg.sql import Literal

from hotset.core.sql import DatabaseError, EngineName, Session
from hotset.databases.base import sql
from hotset.databases.postgres.pgbench import environment_of, find
from hotset.load.record import (
    DRAIN_S,
    NotServed,
    Phase,
    RunFailed,
    RunInterrupted,
    Tick,
)
from hotset.load.samples import Recorder, RunLog
from hotset.load.served import shortfall
from hotset.load.supervised import Supervised
from hotset.reports.model.windows import Repeat

from . import pgbench, pgbench_log
from .pgbench_log import Progress, parse_progress
from .workload import SqlWorkload

_POLL_S = 0.1
_GRACE_S = 0.25
"""The progress of a second comes a little after it."""
_ERROR = "pgbench: error: "
_ERROR_LINES = 6
_ERROR_S = 5.0
"""Time for pgbench to say which script failed, after the server's own words."""
_WHOLE = "number of transactions actually processed: "
"""Printed once all logs are written."""

Observer = Callable[[Tick | Phase], None]


class _Failed(Exception):
    """The run has no result; says why."""


@runtime_checkable
class TakesPgbench(Protocol):
    """A database that libpq's own programs reach."""

    @property
    def engine(self) -> EngineName: ...
    @property
    def password(self) -> str: ...
    @property
    def application(self) -> str: ...
    def conninfo(self, application_name: str) -> str: ...
    def limit(self) -> str: ...
    def session(self) -> Session: ...
    def describe(self, statements: Iterable[str]) -> list[str | None]: ...


def run(workload: SqlWorkload, database: TakesPgbench, observe: Observer) -> Repeat:
    """Run scripts and measure a window.

    :param observe: gets a `Phase` as it begins and a `Tick` every second. What it raises ends the
        run.
    :raises RunFailed: a script failed, the server went away, or nothing is done any more.
    :raises NotServed: the server did not do what was due.
    :raises RunInterrupted: Ctrl-C.
    :raises PrerequisiteMissingError: there is no pgbench.
    """
    program = find().program
    name = f"{database.application} {secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="hotset-pgbench-") as given:
        folder = Path(given)
        files = pgbench.write(folder, workload.sources)
        argv = [str(program), *pgbench.options(workload), *files, database.conninfo(name)]
        environment = environment_of(database.password)
        with Supervised(argv, folder, environment, folder) as process:
            load = _Load(workload, database, name, process, folder, observe)
            try:
                return load.follow()
            except BaseException as error:
                load.end(0.0)
                if isinstance(error, KeyboardInterrupt):
                    raise RunInterrupted(load.partial()) from None
                if isinstance(error, _Failed):
                    raise RunFailed(_explain(str(error), database), load.partial()) from None
                raise


def _explain(cause: str, database: TakesPgbench) -> str:
    """With the server's own limit of time for a statement, where that was the end of one."""
    if "due to statement timeout" in cause:
        with suppress(DatabaseError):
            return "; ".join(filter(None, (cause, database.limit())))
    return cause


class _Load:
    """The users of one run, from the first connection to the last transaction."""

    def __init__(
        self,
        workload: SqlWorkload,
        database: TakesPgbench,
        name: str,
        process: Supervised,
        folder: Path,
        observe: Observer,
    ) -> None:
        """:param name: of its sessions alone."""
        self._workload = workload
        self._options = workload.options
        self._database = database
        self._name = name
        self._process = process
        self._lines: Iterator[str | None] = process.lines(_POLL_S)
        self._observe = observe
        self._folder = folder
        self._recorder = Recorder(len(workload.kinds))
        self._known_until = -math.inf
        self._log: RunLog | None = None
        self._start = 0.0
        self._ticks = 0
        self._failed = 0
        self._last_success = time.time()
        self._served_until = 0.0
        self._errors: list[str] = []
        self._error_at = 0.0
        self._stopped = math.inf
        self._under_way: list[float] = []
        """When what was cancelled at the end had begun."""
        self._is_whole = False

    def follow(self) -> Repeat:
        """
        :raises _Failed: it has no result.
        :raises NotServed: the server did not do what was due.
        """
        self._take_until(lambda: self._log is not None)
        assert self._log is not None
        opens, closes = self._log.window
        self._observe(Phase("rampup"))
        self._take_until(lambda: time.time() >= opens)
        self._observe(Phase("measure"))
        self._take_until(lambda: time.time() >= closes)
        self._observe(Phase("done"))
        self._take_until(lambda: time.time() >= closes + _GRACE_S)
        self.end(DRAIN_S + self._serve_due(closes))
        return self._result(self._log)

    def _serve_due(self, closes: float) -> float:
        """Go on after the window until all that was due in it is served.

        :return: seconds until the last user has waited for a due time of its own.
        """
        rate_per_s, patience_s = self._options.rate_per_s, self._options.patience_s
        if rate_per_s is None:
            return 0.0
        self._take_until(lambda: max(self._served_until, time.time() - patience_s) >= closes)
        return self._options.users / rate_per_s

    def _result(self, log: RunLog) -> Repeat:
        if self._errors:
            raise _Failed(self._cause())
        if not self._is_whole:
            raise _Failed(
                f"pgbench did not end {DRAIN_S:g} s after the window: its log is not whole"
            )
        result = log.result()
        if cause := shortfall(result, log.ended_kinds()):
            raise NotServed(cause, result)
        return result

    def partial(self) -> Repeat | None:
        """Return the result of the window so far, as far as the logs are complete."""
        until = self._stopped if self._is_whole else min(self._stopped, self._known_until)
        if self._log is None or until <= self._log.window[0]:
            return None
        return self._log.result(until)

    def end(self, patience_s: float) -> None:
        """Have users finish what they are at, and cancel what is not finished in time."""
        self._stopped = min(self._stopped, time.time())
        if self._log is not None:
            # Ctrl-C ends a generator that waits.
            self._lines = chain(self._lines, self._process.lines(_POLL_S))
            self._process.send(SIGALRM)
            if not self._has_ended(patience_s):
                self._cancel()
                self._has_ended(DRAIN_S)
        self._read_log()

    def _has_ended(self, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        for line in self._lines:
            self._take(line)
            if time.monotonic() > deadline:
                return False
        return True

    def _cancel(self) -> None:
        """Cancel the statements still running; ignore a server that is gone."""
        text = sql(self._database.engine, "cancel_statements")
        with suppress(DatabaseError), closing(self._database.session()) as session:
            name = Literal(self._name).as_string(None)
            rows = session.query(text.format(name=name))
            self._under_way = sorted(time.time() - float(str(age)) for age, _ in rows)

    def _take_until(self, condition: Callable[[], bool]) -> None:
        """
        :raises _Failed: pgbench ended, a user failed, or nothing is done any more.
        """
        for line in self._lines:
            self._take(line)
            if self._errors and self._has_told_all(line):
                raise _Failed(self._cause())
            self._require_progress()
            if condition():
                return
        raise _Failed(self._cause() if self._errors else "pgbench ended before the window did")

    def _has_told_all(self, line: str | None) -> bool:
        """True if nothing more of an error is to come: a busy computer may pause between its lines.

        :param line: the newest; None: there has been none for a while.
        """
        if line is not None:
            return len(self._errors) > _ERROR_LINES
        is_named = any(error.startswith("client ") for error in self._errors)
        return is_named or time.time() - self._error_at > _ERROR_S

    def _require_progress(self) -> None:
        quiet_s = time.time() - self._last_success
        if self._log is None and quiet_s > pgbench.CONNECT_S:
            raise _Failed(f"users not connected after {pgbench.CONNECT_S:g} s")
        if self._log is not None and quiet_s > self._options.stall_s:
            raise _Failed(f"no transaction completed for {self._options.stall_s:g} s")
        most = self._options.max_errors
        if most is not None and self._failed > most:
            raise _Failed(f"{self._failed:,} transactions failed, more than the {most:,} allowed")

    def _take(self, line: str | None) -> None:
        if line is None:
            return
        if progress := parse_progress(line):
            self._advance(progress)
        elif line.startswith(_WHOLE):
            self._is_whole = True
        elif self._under_way and (kind := _script(line)) is not None:
            since = self._under_way.pop(0)
            if self._log is not None and self._stopped >= self._log.window[1]:
                self._recorder.record_unfinished(kind, since, time.time())
        elif (_ERROR in line or self._errors) and not self._is_whole:
            self._error_at = self._error_at or time.time()
            self._errors.append(_message(line))

    def _advance(self, progress: Progress) -> None:
        """One more second. With the first, all users are connected and at work."""
        if self._log is None:
            self._start = self._last_success = progress.at
            self._log = RunLog(self._options, self._workload.kinds, self._start, 0.0)
            self._recorder.begin(*self._log.window)
        self._failed += progress.failed
        if progress.tps:
            self._last_success = progress.at
            self._served_until = progress.at - 1 - (progress.mean_ms or 0) / 1e3
        length_s = math.ceil(self._options.rampup_s + self._options.duration_s)
        until = min(round(progress.at - self._start), length_s)
        while self._ticks < until and time.time() < self._stopped:
            self._observe(self._tick(progress))
            self._ticks += 1

    def _tick(self, progress: Progress) -> Tick:
        """pgbench tells no percentiles while it runs."""
        in_window = self._ticks >= math.ceil(self._options.rampup_s)
        return Tick(
            self._ticks,
            "measure" if in_window else "rampup",
            None,
            round(progress.tps),
            progress.failed,
            progress.mean_ms,
            None,
        )

    def _read_log(self) -> None:
        if self._log is not None:
            threads, patience_s = pgbench.threads(self._options.users), self._options.patience_s
            self._known_until = pgbench_log.read(self._folder, threads, self._recorder, patience_s)
            self._log.add(self._recorder.collect())

    def _cause(self) -> str:
        """pgbench's words of the first user that failed, with its script's name."""
        words = [" ".join(line.split()) for line in self._errors if line.strip(" ^")]
        about = next((place for place, word in enumerate(words) if word.startswith("client ")), 0)
        kind = _script(words[about])
        file = "" if kind is None else f"{self._workload.sources[kind].file_name}: "
        return file + "; ".join(dict.fromkeys(words[:about]) or [words[about]])


def _message(line: str) -> str:
    """A line without pgbench's name: its threads write it in pieces, and so between each other's.

    >>> _message("pgbench: pgbench: error: error: ERROR:  division by zero")
    'ERROR:  division by zero'
    """
    return re.sub(r"^(pgbench: |error: )+", "", line)


def _script(line: str) -> int | None:
    """The number of the script that a message is about.

    >>> _script("client 1 script 0 aborted in command 1 query 0: ERROR:  division by zero")
    0
    """
    match = re.search(r"\bscript ([0-9]+)\b", line)
    return int(match[1]) if match else None
