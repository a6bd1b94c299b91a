"""Everything made is taken down again: in reverse order, also on failure, also by the next run.

Each thing made on this computer is written to a journal on disk before it is made, as the step
that undoes it. A run that is killed leaves the journal; the next run, or ``hotset lab down``, works
it off. Steps are idempotent, so undoing what was never made is no error.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..clock import wait_until
from ..errors import PrerequisiteError, Remedy
from ..paths import read_json_lines
from .base import CommandError, CommandTimeoutError, PrerequisiteMissingError
from .local import Local, start_time


class BusyError(PrerequisiteError):
    """Another hotset holds the lab; the message names it and the remedy."""


def end_process(pid: int, started: str, at_once: bool = False, grace_s: float = 10.0) -> None:
    """SIGTERM, then SIGKILL (``at_once``: only that), the very process that the journal names."""
    for number in (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGKILL):
        if start_time(pid) != started:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        if wait_until(lambda: _has_ended(pid, started), grace_s):
            return
    raise TimeoutError(f"process {pid} did not end after SIGKILL within {grace_s:.0f} s")


def _has_ended(pid: int, started: str) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    return start_time(pid) != started


class Cleanup:
    """A stack of undo steps, those for this computer kept on disk as well."""

    def __init__(self, folder: Path, local: Local) -> None:
        """:param folder: the lab's state folder; holds ``cleanup.jsonl``."""
        self._journal = folder / "cleanup.jsonl"
        self._local = local
        self._steps: list[tuple[str, Callable[[], object]]] = []

    def owner(self, purpose: str) -> None:
        """Write down who makes things now (``lab up`` or a run's id)."""
        self._write({"owner": purpose, "pid": os.getpid()})

    def process(self, name: str, pid: int, at_once: bool = False) -> None:
        """A process that has just been started on this computer.

        :param at_once: it has nothing to tidy up, SIGKILL will do.
        """
        started = self.leftover_process(name, pid, at_once)
        if started is not None:
            self._steps.append((f"end {name}", lambda: end_process(pid, started, at_once)))

    def leftover_process(self, name: str, pid: int, at_once: bool = False) -> str | None:
        """A process for the next run only: a step that was noted before ends it in this one.

        Returns when it began; None when it is gone already.
        """
        started = start_time(pid)
        if started is not None:
            self._write({"process": name, "pid": pid, "started": started, "at_once": at_once})
        return started

    def command(self, name: str, argv: Sequence[str]) -> None:
        """A command on this computer that undoes what is about to be made."""
        self._write({"command": name, "argv": list(argv)})
        self._steps.append((name, lambda: self._local.run(argv, timeout_s=60)))

    def leftover(self, name: str, argv: Sequence[str]) -> None:
        """A command for the next run only: needed if something is killed that else tidies up."""
        self._write({"command": name, "argv": list(argv)})

    def call(self, name: str, undo: Callable[[], object]) -> None:
        """An undo step that dies with the lab's machine and so need not be on disk."""
        self._steps.append((name, undo))

    def mark(self) -> int:
        """How many steps there are now; hand it to :meth:`undo` to take down what came after."""
        return len(self._steps)

    def forget(self, down_to: int) -> None:
        """Drop the steps above a mark: what they would undo has been undone in good order."""
        del self._steps[down_to:]

    def undo(self, down_to: int = 0) -> None:
        """Run the undo steps above ``down_to``, the last made first; every one runs.

        :raises ExceptionGroup: those that failed, all together.
        """
        errors: list[Exception] = []
        while len(self._steps) > down_to:
            name, step = self._steps.pop()
            try:
                step()
            except Exception as error:
                error.add_note(f"while removing: {name}")
                errors.append(error)
        if down_to == 0 and not errors:
            self._journal.unlink(missing_ok=True)
        if errors:
            raise ExceptionGroup("some resources could not be removed", errors)

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of the work whose things are taken down at its end, also when it fails."""
        mark = self.mark()
        try:
            yield
        except BaseException as error:
            try:
                self.undo(mark)
            except ExceptionGroup as failures:
                error.add_note(f"clean-up failed as well: {failures.exceptions}")
            raise
        self.undo(mark)

    def _write(self, entry: dict[str, Any]) -> None:
        with self._journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """Read a journal's entries; a half-written last line (a crash) is left out."""
    return list(read_json_lines(folder / "cleanup.jsonl"))


def clear_journal(folder: Path, local: Local) -> list[str]:
    """Undo what a journal on disk names; returns what was undone.

    Processes end in the order they were started (the machine first, then what served it and so
    has nobody left to serve), then commands undo the rest, the last first. A command that fails
    because its thing is gone already is no error.
    """
    entries = read_journal(folder)
    undone: list[str] = []
    for entry in entries:
        if "process" in entry and start_time(entry["pid"]) == entry["started"]:
            end_process(entry["pid"], entry["started"], entry["at_once"])
            undone.append(f"ended {entry['process']} (pid {entry['pid']})")
    seen = set[tuple[str, ...]]()
    for entry in reversed(entries):
        if "command" in entry:
            with suppress(CommandError, CommandTimeoutError, PrerequisiteMissingError):
                local.run(entry["argv"], timeout_s=60)
                # What a thing's maker and its user both remove is gone once.
                if (same := tuple(entry["argv"])) not in seen:
                    seen.add(same)
                    undone.append(entry["command"])
    (folder / "cleanup.jsonl").unlink(missing_ok=True)
    return undone


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the lab's lock; one hotset at a time makes and unmakes things.

    :raises BusyError: another one holds it.
    """
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise BusyError(
                f"another hotset (pid {holder}) is using the lab: wait for it, or stop it",
                Remedy("remove what a killed run left behind", "lab down"),
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
