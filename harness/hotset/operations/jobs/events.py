"""Events of a child process while it works: one a line of its standard error.

Those lines are JSON (:mod:`hotset.core.progress`); what is not (a note, another
program's words) is taken as said.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["say", "task", "figure", "tick", "error", "end"]
MEASURED = ("done", "total", "unit", "eta_s")
"""How far a step is, in numbers."""
_TEXTS: tuple[Kind, ...] = ("say", "task", "figure", "error")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing said.

    :ivar id: where its line ends, in bytes from the beginning: what follows is read from there.
    :ivar at: seconds since the verb began; None where it was not told.
    :ivar kind: ``say`` stays, ``task`` begins a step, ``figure`` is the step's running figure,
        ``tick`` a second of TPC-C, ``error`` why it failed, ``end`` that there is no more.
    :ivar done: how much of ``total`` is done, in ``unit``; with a ``figure`` or ``tick``, where
        known.
    :ivar eta_s: seconds that it will still take, by the rate until now.
    :ivar message: of an ``error``: what is wrong alone, without field and remedies.
    :ivar tick: ``second, phase, tpm, nopm, failed`` and ``latency_ms_`` ``p50``, ``p95`` and
        ``p99``, of a tick only.
    :ivar field: the field that an ``error`` refuses, where known.
    :ivar status: the HTTP API's status for an ``error``, where hotset foresees it.
    :ivar type: what an ``error`` is, as the HTTP API's problems name it.
    :ivar remedies: remedies for an ``error``, each with ``purpose``, ``operation`` and
        ``parameters``.
    :ivar state: the job's state, of an ``end`` only.
    """

    id: int
    at: float | None
    kind: Kind
    text: str = ""
    done: float | None = None
    total: float | None = None
    unit: str | None = None
    eta_s: float | None = None
    message: str | None = None
    tick: dict[str, Any] | None = None
    field: str | None = None
    status: int | None = None
    type: str | None = None
    remedies: list[dict[str, Any]] | None = None
    state: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Without what is not told."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


def parse(output: bytes, begin: int = 0) -> list[Event]:
    """The events of whole lines.

    :param begin: where they begin, in bytes from the beginning of all that was said.

    >>> [event.text for event in parse(b'{"at": 1.5, "say": "up"}\\nnote: slow\\n')]
    ['up', 'note: slow']
    """
    events, at = [], begin
    for line in output.splitlines(keepends=True):
        at += len(line)
        text = line.decode(errors="replace").strip()
        if text:
            events.append(_event(text, at))
    return events


def failure(code: int, events: list[Event]) -> str:
    """Why a job failed, by its last events."""
    errors = [event for event in events if event.kind == "error"]
    if errors:
        return " ".join(event.text.strip() for event in errors)
    return events[-1].text if events else f"it ended with code {code}"


def _event(line: str, end: int) -> Event:
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "at" not in fields:
        return Event(end, None, "say", line)
    at = fields["at"]
    if "tick" in fields:
        tick = fields["tick"]
        return Event(end, at, "tick", _tick_text(tick), tick=tick, **_measurement(fields))
    for kind in _TEXTS:
        if kind in fields:
            return Event(
                end,
                at,
                kind,
                str(fields[kind]),
                field=fields.get("field"),
                status=fields.get("status"),
                type=fields.get("type"),
                remedies=fields.get("remedies") or None,
                message=fields.get("message"),
                **_measurement(fields),
            )
    return Event(end, at, "say", line)


def _measurement(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields.get(name) for name in MEASURED}


def _tick_text(tick: dict[str, Any]) -> str:
    latency = tick["latency_ms_p95"]
    p95 = "no commit" if latency is None else f"p95 {latency:.1f} ms"
    nopm = "" if tick["nopm"] is None else f" {tick['nopm']:,} NOPM,"
    return (
        f"second {tick['second'] + 1} ({tick['phase']}), {tick['tpm']:,} TPM,{nopm} {p95},"
        f" {tick['failed']:,} failed"
    )
