"""A program that drives users under supervision: its lines, its silence, its end."""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from hotset.core.clock import wait_until

from . import guard

_TERMINATE_S = 2.0


class Supervised:
    """A command in a session and process group of its own, as a context: at its end all is gone.

    Standard input of the command is empty, standard error joins standard output.
    """

    def __init__(
        self, argv: Sequence[str], folder: Path, environment: Mapping[str, str], scratch: Path
    ) -> None:
        """:param scratch: removed if this program is killed meanwhile."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(guard.__file__)), str(scratch.absolute()), *argv],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,  # held open, never written: the guard sees hotset end by it
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._pending = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_group()

    def lines(self, patience_s: float) -> Iterator[str | None]:
        """Lines as they come; None whenever none came for `patience_s`; ends with the output."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while True:
            ready, _, _ = select.select([descriptor], [], [], patience_s)
            if not ready:
                yield None
                continue
            chunk = os.read(descriptor, 65536)
            yield from self._split(chunk)
            if not chunk:
                return

    def send(self, number: signal.Signals) -> None:
        """To all of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _split(self, chunk: bytes) -> Iterator[str]:
        text = self._pending + self._decoder.decode(chunk, final=not chunk)
        *whole, self._pending = text.split("\n")
        yield from whole
        if not chunk and self._pending:
            yield self._pending

    def _end_group(self) -> None:
        """SIGTERM for the group, SIGKILL for what is left of it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.send(number)
            wait_until(lambda: not self._group_lives(), _TERMINATE_S)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _group_lives(self) -> bool:
        self._process.poll()  # reaps the guard, which would count as alive
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True
