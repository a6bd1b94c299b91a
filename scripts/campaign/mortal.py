"""A machine that dies at a chosen step of what is done on it.

A kill is SIGKILL as the machine sees it: the commands until then ran, no further one comes, no
clean-up happens. It comes after a step, or within the next one: then the command that is this step
gets SIGKILL itself, with all that it has started, at a moment drawn from as long as it takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hotset.core.machines.base import Command, Forwarding, Machine, MachineGoneError, Result
from hotset.core.machines.dry_run import only_reads
from hotset.lab.machines.uml import Uml


class Killed(BaseException):
    """The campaign's SIGKILL; nothing of hotset's catches it and goes on."""


CutOff = Callable[[Machine, Command], bool]
"""Begins a command and cuts it off; returns whether it had not ended by then."""


class KillableMachine(Forwarding):
    """A machine on which the next commands run until the kill, and none after it.

    :ivar ran: the commands that may have changed something, shortened; ``seconds``: what each took.
    :ivar amid: the one that was cut off before it ended.
    """

    def __init__(self, machine: Machine, steps: int | None, cut_off: CutOff | None = None) -> None:
        """:param steps: how many commands that may change something run; None: all.
        :param cut_off: what is done with the next such command; None: it is not begun.
        """
        super().__init__(machine)
        self.ran: list[str] = []
        self.seconds: list[float] = []
        self.amid: str | None = None
        self._steps = steps
        self._cut_off = cut_off

    def execute(self, command: Command) -> Result:
        changes = not only_reads(command.argv)
        if self._is_due and (changes or self._cut_off is None):
            self._die(command)
        done = super().execute(command)
        if changes:
            self._note(_shorten(command), done.seconds)
        return done

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        if self._is_due:
            self._die()
        return super().stream(argv)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        if self._is_due:
            self._die()
        begun = time.monotonic()
        super().put(source, target, mode)
        self._note(f"write {target}", time.monotonic() - begun)

    @property
    def _is_due(self) -> bool:
        return self._steps is not None and len(self.ran) >= self._steps

    def _die(self, command: Command | None = None) -> None:
        # Once: no handler of what is killed gets anything done any more.
        cut_off, self._cut_off = self._cut_off, None
        if cut_off is not None and command is not None and cut_off(self._machine, command):
            self.amid = _shorten(command)
        raise Killed

    def _note(self, words: str, seconds: float) -> None:
        self.ran.append(words)
        self.seconds.append(seconds)


def _shorten(command: Command) -> str:
    return " ".join(command.argv[:2] + command.argv[3:])[:100].replace("\n", " ")


def kill_after(seconds: float) -> CutOff:
    """SIGKILL for a command and its children; what has a session of its own finishes, which
    the next operation waits for (by its lock)."""
    limited = ("sh", "-c", 'exec timeout --signal=KILL "$0" "$@"', f"{seconds:.4f}")
    end = "while grep -qszxE 'hotset-(copy|swap)' /proc/[0-9]*/cmdline; do sleep 0.1; done"

    def cut_off(machine: Machine, command: Command) -> bool:
        done = machine.execute(replace(command, argv=(*limited, *command.argv)))
        machine.run(["sh", "-c", end])
        return done.rc in (-9, 137)

    return cut_off


def cut_power_after(machine: Uml, seconds: float) -> CutOff:
    """The power goes while a command runs."""

    def cut_off(target: Machine, command: Command) -> bool:
        timer = threading.Timer(seconds, machine.power_cut)
        timer.start()
        try:
            target.execute(command)
        except MachineGoneError:
            return True
        finally:
            timer.join()
        return False

    return cut_off
