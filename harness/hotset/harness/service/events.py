"""What a child process says while it works: one event a line of its standard error.

Those lines are JSON (:mod:`hotset.harness.structured`); what is not (a note, another program's
words) is taken as said.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["say", "task", "figure", "tick", "error", "end"]
_TEXTS: tuple[Kind, ...] = ("say", "task", "figure", "error")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing said.

    :ivar id: where its line ends, in bytes from the beginning: what follows is read from there.
    :ivar at: seconds since the verb began; None where it was not told.
    :ivar kind: ``say`` stays, ``task`` begins a step, ``figure`` is the step's running figure,
        ``tick`` a second of TPC-C, ``error`` why it failed, ``end`` that there is no more.
    :ivar tick: ``second, phase, tpm, nopm, latency_ms_p95, failed``, of a tick only.
    :ivar field: the field that an ``error`` refuses, where known.
    :ivar failure: the name of an ``error``'s kind, where it is one that hotset foresees.
    :ivar state: the job's state, of an ``end`` only.
    """

    id: int
    at: float | None
    kind: Kind
    text: str = ""
    tick: dict[str, Any] | None = None
    field: str | None = None
    failure: str | None = None
    state: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Without what is not told."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def parse(said: bytes, begin: int = 0) -> list[Event]:
    """The events of whole lines.

    :param begin: where they begin, in bytes from the beginning of all that was said.

    >>> [event.text for event in parse(b'{"at": 1.5, "say": "up"}\\nnote: slow\\n')]
    ['up', 'note: slow']
    """
    found, at = [], begin
    for line in said.splitlines(keepends=True):
        at += len(line)
        text = line.decode(errors="replace").strip()
        if text:
            found.append(_event(text, at))
    return found


def _event(line: str, end: int) -> Event:
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "at" not in fields:
        return Event(end, None, "say", line)
    at = fields["at"]
    if "tick" in fields:
        return Event(end, at, "tick", _tick_text(fields["tick"]), fields["tick"])
    for kind in _TEXTS:
        if kind in fields:
            return Event(end, at, kind, str(fields[kind]), field=fields.get("field"),
                         failure=fields.get("kind"))  # fmt: skip
    return Event(end, at, "say", line)


def _tick_text(tick: dict[str, Any]) -> str:
    latency = tick["latency_ms_p95"]
    p95 = "no commit" if latency is None else f"p95 {latency:.1f} ms"
    return (
        f"second {tick['second'] + 1} ({tick['phase']}), {tick['tpm']:,} TPM,"
        f" {tick['nopm']:,} NOPM, {p95}, {tick['failed']:,} failed"
    )
