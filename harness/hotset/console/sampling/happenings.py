"""Actions of hotset itself on a machine, as events of its history: read from the audit log.

The log knows of the command line, the API and the console of this computer; what was done from
elsewhere shows only in what the tiers became.
"""

from __future__ import annotations

from datetime import datetime

from hotset.core.machines import names as connect
from hotset.core.paths import data_dir
from hotset.monitoring.history.observation import Event, EventKind
from hotset.monitoring.history.store import RESOLUTIONS
from hotset.operations import audit
from hotset.operations.audit import Entry

_ENTRIES = 500
_KINDS: tuple[tuple[str, EventKind], ...] = (
    ("warmup run", "warm-up"),
    ("warmup restore", "warm-up"),
    ("warmup refresh", "warm-up"),
    ("warmup pin", "setting"),
    ("warmup exclude", "setting"),
    ("warmup unpin", "setting"),
    ("warmup share", "setting"),
    ("tpcc", "benchmark"),
    ("tpch", "benchmark"),
    ("sql run", "benchmark"),
    ("experiment run", "benchmark"),
    ("demo", "benchmark"),
    ("disk ", "benchmark"),
    ("tier create", "disk"),
    ("tier activate", "disk"),
    ("tier deactivate", "disk"),
    ("tier detach", "disk"),
    ("tier destroy", "disk"),
    ("tier repair", "disk"),
    ("tier flush", "disk"),
    ("lab up", "disk"),
    ("lab down", "disk"),
)
"""By how an operation's name begins. Policy, mode and size are seen at the disks themselves."""
_WHEREVER: tuple[EventKind, ...] = ("benchmark",)
"""Kinds of event that load a machine without naming it."""


class Happenings:
    """Reader of what is new in the audit log."""

    def __init__(self, machine: str) -> None:
        self._machine = machine
        self._read: tuple[int, int] | None = None
        self._told: dict[str, Event] = {}

    def latest(self) -> list[Event]:
        """Events that are new, or have ended since; a log that cannot be read has none."""
        try:
            status = (data_dir() / "audit.jsonl").stat()
            if self._read == (status.st_ino, status.st_size):
                return []
            entries = audit.entries(_ENTRIES)
        except OSError:
            return []
        self._read = status.st_ino, status.st_size
        events = {
            event.key: event
            for entry in reversed(entries)
            if (event := event_of(entry, self._machine)) is not None
        }
        new = [event for key, event in events.items() if self._told.get(key) != event]
        self._told = events
        oldest = datetime.now().timestamp() - RESOLUTIONS[-1][1]
        return [event for event in new if event.at >= oldest]


def event_of(entry: Entry, machine: str) -> Event | None:
    """An entry as an event of a machine's history; None: it is none."""
    kind = next((kind for words, kind in _KINDS if entry.what.startswith(words)), None)
    values = entry.values
    if kind is None or entry.outcome == "refused":
        return None
    if kind not in _WHEREVER and values.get("machine", connect.LOCAL) != machine:
        return None
    named = [values.get("disk"), *_texts(values.get("targets"))]
    text = " ".join([entry.what, *(str(value) for value in named if value)])
    if entry.outcome == "failed":
        text += " failed"
    until = datetime.fromisoformat(entry.ended).timestamp() if entry.ended else None
    return Event(
        f"audit:{entry.id}", datetime.fromisoformat(entry.at).timestamp(), kind, text, until
    )


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
