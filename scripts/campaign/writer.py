"""A writer on a machine, as a database is: a record after the other, each with fsync, and only what
was acknowledged to somebody outside counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Protocol

from hotset.core.clock import wait_until
from hotset.core.machines.base import CommandError, Machine, MachineGoneError

from .records import MISSING, SLOTS, WRITE

_ANSWER_S = 300.0


class Host(Protocol):
    """Where a writer's program runs; as :meth:`hotset.core.machines.ssh.Remote.talk`."""

    def talk(self, argv: Sequence[str]) -> AbstractContextManager[Callable[[str, float], str]]: ...


class Writer:
    """Writes from its making until its end, or the machine's.

    :ivar acknowledged: how many records were.
    """

    def __init__(self, host: Host, file: PurePosixPath) -> None:
        self.acknowledged = 0
        self._host = host
        self._argv = ["sh", "-c", 'exec python3 -u -c "$@"', "sh", WRITE, str(file), str(SLOTS)]
        self._is_to_end = threading.Event()
        self._failure: str | None = None
        self._thread = threading.Thread(target=self._write, daemon=True, name="writer")
        self._thread.start()
        self.require_more(SLOTS // 8)

    def require_more(self, records: int) -> None:
        """Wait until so many more are acknowledged.

        :raises AssertionError: they are not, and why.
        """
        wanted = self.acknowledged + records
        wait_until(lambda: self.acknowledged >= wanted, _ANSWER_S, ended=self._has_ended)
        if self.acknowledged < wanted:
            raise AssertionError(f"the writer: {self._failure or 'it hangs'}")

    def end(self) -> None:
        """Have it write no more; also once its machine is gone."""
        self._is_to_end.set()
        self._thread.join(_ANSWER_S)
        if not self._has_ended():
            raise AssertionError("the writer hangs")

    def missing(self, machine: Machine, file: PurePosixPath) -> str | None:
        """Which acknowledged records are not in the file, in words; None if all are."""
        script = ["sh", "-ec", 'exec python3 -c "$@"', "sh", MISSING, str(file), str(SLOTS)]
        return machine.run([*script, str(self.acknowledged)]).stdout.strip() or None

    def _has_ended(self) -> bool:
        return not self._thread.is_alive()

    def _write(self) -> None:
        try:
            with self._host.talk(self._argv) as ask:
                while not self._is_to_end.is_set():
                    answer = ask(str(self.acknowledged), _ANSWER_S).strip()
                    if answer != str(self.acknowledged):
                        self._failure = answer or "it ended"
                        return
                    self.acknowledged += 1
        except (MachineGoneError, CommandError, TimeoutError, OSError) as error:
            self._failure = f"{type(error).__name__}: {error}"
