"""The users of a run in the compiled driver (crate `tpcc/driver`), for engines that libpq reaches.

One program drives all connections without blocking: it takes a tenth of the client CPU of threads
in Python, and the client shares its computer with the server in a lab. It speaks the worker
processes' messages, so a run cannot tell the two apart.
"""

import json
import os
import select
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotset.core.paths import shipped_folder
from hotset.core.sql import Libpq
from hotset.load.processes import WorkerDied, deaf_to_interrupts
from hotset.load.record import DRAIN_S
from hotset.load.samples import Tally
from hotset.load.streams import stream_words
from hotset.load.worker import (
    BACKOFF_S,
    FAILURE_PAUSE_S,
    REPORT_GRACE_S,
    RETRIES,
    Begin,
    Finished,
    Gone,
    Ready,
    Samples,
)

from .data.nurand import Constants
from .record import DriverMissing, RunOptions
from .transactions import DECKS, KEYING_S, PROCEDURE, THINK_S, Kind, home_of

_USERS_PER_THREAD = 32
"""One thread does about 50,000 transactions a second; more users want more of them."""
_HEADER = struct.Struct("<cI")
_END_S = 1.0
_READ_BYTES = 1 << 20


def settings(libpq: Libpq, options: RunOptions, constants: Constants) -> dict[str, Any]:
    """The driver's options (`tpcc/driver/src/options.rs`). A password is among them."""
    cores = os.cpu_count() or 1
    threads = max(1, min(cores, options.users // _USERS_PER_THREAD))
    return {
        "libpq": libpq.library,
        "connection": libpq.parameters,
        "setup": libpq.setup,
        "procedures": [PROCEDURE[kind] for kind in Kind],
        "errors": {
            "intended_rollback": libpq.intended_rollback,
            "retryable": libpq.retryable,
            "lasting": libpq.lasting,
            "gone": libpq.gone,
        },
        "threads": threads,
        "users": [_user(options, user) for user in range(options.users)],
        "warehouses": options.warehouses,
        "all_warehouses": options.all_warehouses,
        "think_time": options.think_time,
        "arrivals": _arrivals(options, threads),
        "uniform": options.items == "uniform",
        "constants": asdict(constants),
        "deck": DECKS[options.items],
        "keying_s": [KEYING_S[kind] for kind in Kind],
        "think_s": [THINK_S[kind] for kind in Kind],
        "retries": RETRIES,
        "backoff_s": BACKOFF_S,
        "failure_pause_s": FAILURE_PAUSE_S,
        "drain_s": DRAIN_S,
        "report_grace_s": REPORT_GRACE_S,
    }


def _arrivals(options: RunOptions, threads: int) -> dict[str, Any] | None:
    if options.rate_per_s is None:
        return None
    seeds = [stream_words(options.seed, "arrivals", thread) for thread in range(threads)]
    return {"rate_per_s": options.rate_per_s, "patience_s": options.patience_s, "seeds": seeds}


def _user(options: RunOptions, user: int) -> dict[str, Any]:
    warehouse, district = home_of(user, options.warehouses)
    seed = stream_words(options.seed, "user", user)
    return {"seed": seed, "warehouse": warehouse, "district": district}


class NativeCrew:
    """The driver as a context, a `run.Crew`: on the way out it has ended."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Start it; options travel by standard input, which no other user of a computer reads."""
        self._threads = int(settings["threads"])
        self._arrived = bytearray()
        with deaf_to_interrupts():
            self._process = subprocess.Popen(
                [program(), "run"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        self._write(settings)

    def __enter__(self) -> "NativeCrew":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __len__(self) -> int:
        return self._threads

    def tell(self, message: object) -> None:
        """Say when to begin."""
        assert isinstance(message, Begin)
        self._write(asdict(message))

    def dismiss(self, thread: int) -> None:
        """Nothing more comes of a thread that finished; the process stays until the end."""

    def listen(self, timeout_s: float) -> Iterator[tuple[int, object]]:
        """Messages there are, after waiting at most `timeout_s` for one.

        Raises WorkerDied when the program has ended.
        """
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        if not select.select([pipe], [], [], max(timeout_s, 0.0))[0]:
            return
        arrived = os.read(pipe, _READ_BYTES)
        if not arrived:
            raise WorkerDied(self._last_words())
        self._arrived += arrived
        while (frame := self._frame()) is not None:
            yield 0, _message(*frame)

    def _frame(self) -> tuple[bytes, bytes] | None:
        """The next whole frame of what has arrived."""
        if len(self._arrived) < _HEADER.size:
            return None
        tag, length = _HEADER.unpack_from(self._arrived)
        end = _HEADER.size + length
        if len(self._arrived) < end:
            return None
        body = bytes(self._arrived[_HEADER.size : end])
        del self._arrived[:end]
        return tag, body

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):  # listen() reports the death
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        code = self._process.wait(_END_S)
        message = self._process.stderr.read().decode(errors="replace").strip()
        return f"{PROGRAM} ended with exit code {code}" + (f": {message}" if message else "")

    def _end(self) -> None:
        """Closing its input asks; SIGKILL makes sure."""
        assert self._process.stdin is not None
        with suppress(OSError):  # it is gone already
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


def _message(tag: bytes, body: bytes) -> object:
    """A frame as the worker processes' message (`tpcc/driver/src/report.rs`)."""
    match tag:
        case b"R":
            return Ready()
        case b"F":
            return Finished()
        case b"G":
            return Gone(body.decode(errors="replace"))
        case b"S":
            try:
                return Samples([_tally(**record) for record in json.loads(body)])
            except (TypeError, ValueError):
                raise DriverMissing(
                    f"{program()} is of another version of hotset: run `make build` in its folder"
                ) from None
        case _:
            raise AssertionError(f"unknown frame {tag!r}")


def _tally(
    second: int,
    histograms: list[str | None],
    committed: list[int],
    outcomes: list[tuple[int, Any, str, str, int]],
    due: int,
    late: int,
    skipped: int,
) -> Tally:
    named = tuple(
        (outcome[0], outcome[1], outcome[2], outcome[3], outcome[4]) for outcome in outcomes
    )
    return Tally(second, tuple(histograms), tuple(committed), named, due, late, skipped)


PROGRAM = "hotset-tpcc"


def program() -> Path:
    """HOTSET_TPCC_DRIVER, this checkout's release build, the one that was installed with hotset, or
    PATH.

    Raises DriverMissing.
    """
    named = os.environ.get("HOTSET_TPCC_DRIVER") or None
    built = Path(__file__).resolve().parents[2] / "driver/target/release" / PROGRAM
    for candidate in (named, built, shipped_folder(PROGRAM), shutil.which(PROGRAM)):
        if candidate is not None and Path(candidate).exists():
            return Path(candidate)
    raise DriverMissing(
        f"{PROGRAM} is not here: run `make build` in hotset's folder, or install a wheel for this"
        " kind of computer"
    )
