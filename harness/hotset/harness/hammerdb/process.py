"""One HammerDB process under supervision: its lines, its silence, its end."""

from __future__ import annotations

import codecs
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from hotset.harness.hammerdb import guard

_TERMINATE_S = 2.0


class Supervised:
    """A command in a session and process group of its own, as a context: at its end all is gone.

    Standard input of the command is empty, standard error joins standard output.
    """

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(Path(guard.__file__)), *argv],
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def _split(self, chunk: bytes) -> Iterator[str]:
        text = self._pending + self._decoder.decode(chunk, final=not chunk)
        *whole, self._pending = text.split("\n")
        yield from whole
        if not chunk and self._pending:
            yield self._pending

    def _end_group(self) -> None:
        """SIGTERM for the group, SIGKILL for what is left of it."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            deadline = time.monotonic() + _TERMINATE_S
            while self._group_lives() and time.monotonic() < deadline:
                time.sleep(0.02)
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
