"""Callers that nobody knows: counted by address and minute, beside the audit log.

Whatever they send, they get a line a minute and address, of few addresses, in a file of their own,
``data_dir()/strangers.jsonl``: past 4 MiB it is put aside as ``strangers.1.jsonl``, whose
predecessor goes. Nothing that they say is kept. The server counts in memory, and writes a minute
down when it is over.
"""

from __future__ import annotations

import atexit
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

from hotset.core.paths import data_dir, read_json_lines

from . import audit

What = Literal["no token", "unknown token", "wrong password", "too many wrong passwords"]
OTHERS = "other addresses"
_ADDRESSES_MAX = 256
"""Counted by themselves until they are written down."""
_SIZE_MAX = 4 * 1024**2
_lock = threading.Lock()
_counts: Counter[tuple[Path, str, str, What]] = Counter()
_waiting = threading.Event()
"""Set where a minute will be written down."""


@dataclass(frozen=True, slots=True)
class Strangers:
    """Events of one kind from one address within a minute.

    :ivar at: the minute, ISO 8601, UTC.
    """

    at: str
    address: str
    what: What
    count: int


def note(address: str, what: What) -> None:
    """Count one; returns at once, and touches no file."""
    file, minute = _file(), datetime.now(UTC).isoformat(timespec="minutes")
    with _lock:
        if (file, minute, address, what) not in _counts and len(_counts) >= _ADDRESSES_MAX:
            address = OTHERS
        _counts[file, minute, address, what] += 1
        if not _waiting.is_set():
            _waiting.set()
            timer = threading.Timer(60 - time.time() % 60, write_down)
            timer.daemon = True
            timer.start()


@atexit.register
def write_down() -> None:
    """Write down what was counted."""
    with _lock:
        _waiting.clear()
        by_file = _counted()
        _counts.clear()
    for file, counted in by_file.items():
        with suppress(FileNotFoundError):  # the folder was removed meanwhile
            text = "".join(f"{json.dumps(asdict(stranger))}\n" for stranger in counted)
            audit.append(file, text, _SIZE_MAX, partial(file.replace, _older(file)))


def _counted() -> dict[Path, list[Strangers]]:
    """List what is to be written down, by file; with the lock held."""
    by_file: dict[Path, list[Strangers]] = {}
    for (file, at, address, what), count in _counts.items():
        by_file.setdefault(file, []).append(Strangers(at, address, what, count))
    return by_file


def latest(limit: int) -> list[Strangers]:
    """List the records, newest first, with those that this process still counts."""
    with _lock:
        counted = _counted().get(_file(), [])
    return list(reversed([*_lines(_older(_file())), *_lines(_file()), *counted]))[:limit]


def _file() -> Path:
    return data_dir() / "strangers.jsonl"


def _older(file: Path) -> Path:
    return file.with_name("strangers.1.jsonl")


def _lines(path: Path) -> Iterator[Strangers]:
    for values in read_json_lines(path):
        with suppress(TypeError):  # of a later version
            yield Strangers(**values)
