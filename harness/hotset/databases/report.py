"""A server's records as text: table, JSON or CSV."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from hotset.reports.render.plain import csv_text

from .base import Counter, Engine, Figure, FileIo, Memory, Unavailable, Wait, difference

SCHEMA_VERSION = 1
"""Of the JSON of `hotset database`. 1: first."""
_WAITS_SHOWN = 15
Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters of a server at one time, or what was added between two."""

    files: list[FileIo] | Unavailable
    waits: list[Wait] | Unavailable
    counters: list[Counter] | Unavailable

    @classmethod
    def take(cls, server: Engine) -> Reading:
        return cls(server.file_io(), server.waits(), server.counters())

    def since(self, before: Reading) -> Reading:
        return Reading(
            _since(before.files, self.files),
            _since(before.waits, self.waits),
            _since(before.counters, self.counters),
        )


def to_show(server: Engine, form: str) -> str:
    """Version, memory and files of a server."""
    version, databases = server.version(), server.databases()
    memory, files = server.memory(), server.placement()
    if form == "json":
        return _json(
            {
                "version": asdict(version),
                "databases": databases,
                "memory": _plain(memory),
                "files": _plain(files),
            }
        )
    columns = ("database", "name", "kind", "path", "bytes" if form == "csv" else "size")
    if isinstance(files, Unavailable):
        rows: list[Sequence[Cell]] | Unavailable = files
    elif form == "csv":
        rows = [(f.database, f.name, f.kind, f.path, int(f.size)) for f in files]
    else:
        rows = [(f.database, f.name, f.kind, f.path, str(f.size)) for f in files]
    if form == "csv":
        return _csv(columns, rows)
    edition = f", {version.edition}" if version.edition else ""
    head = [
        f"{version.product} {version.version}{edition}",
        f"memory: {_memory(memory)}",
        f"databases: {', '.join(databases)}",
        "",
    ]
    return "\n".join(head) + _table("files", columns, rows)


def to_counters(reading: Reading, interval_s: float, form: str) -> str:
    """I/O, waits and counters."""
    if form == "json":
        plain = {name: _plain(getattr(reading, name)) for name in ("files", "waits", "counters")}
        return _json({"interval_s": interval_s, **plain})
    if form == "csv":
        return _csv(("metric", "name", "value"), _long(reading))
    waits, counters = reading.waits, reading.counters
    if isinstance(waits, list):
        waits = sorted(waits, key=lambda wait: -wait.wait_ms)[:_WAITS_SHOWN]
    values: list[Sequence[Cell]] | Unavailable
    if isinstance(counters, Unavailable):
        values = counters
    else:
        values = [(one.name, one.value) for one in counters]
    columns = ("file", "kind", "reads", "read bytes", "ms", "writes", "written bytes", "ms")
    parts = [
        _table("I/O", columns, _records(reading.files)),
        _table("waits", ("wait", "count", "ms"), _records(waits)),
        _table("counters", ("counter", "value"), values),
    ]
    return "\n\n".join(parts)


def _since(
    before: list[Figure] | Unavailable, after: list[Figure] | Unavailable
) -> list[Figure] | Unavailable:
    if isinstance(before, Unavailable):
        return before
    return after if isinstance(after, Unavailable) else difference(before, after)


def _records(figures: Sequence[FileIo | Wait] | Unavailable) -> list[Sequence[Cell]] | Unavailable:
    if isinstance(figures, Unavailable):
        return figures
    return [tuple(asdict(one).values()) for one in figures]


def _long(reading: Reading) -> list[Sequence[Cell]]:
    """One figure a line; what is unavailable has a line too, without a value."""
    lines: list[Sequence[Cell]] = []
    for part in ("files", "waits", "counters"):
        figures = getattr(reading, part)
        if isinstance(figures, Unavailable):
            lines.append((part, f"unavailable: {figures.reason}", None))
            continue
        for one in figures:
            values = asdict(one)
            name = values.pop("name")
            lines += [
                (f"{part}.{key}", name, value)
                for key, value in values.items()
                if key not in ("kind", "gauge")
            ]
    return lines


def _plain(part: object) -> object:
    if isinstance(part, Unavailable):
        return {"unavailable": part.reason}
    if isinstance(part, list):
        return [asdict(one) for one in part]
    assert isinstance(part, Memory)
    machine = part.machine
    return {
        "machine": _plain(machine) if isinstance(machine, Unavailable) else int(machine),
        "cap": None if part.cap is None else int(part.cap),
    }


def _memory(memory: Memory | Unavailable) -> str:
    if isinstance(memory, Unavailable):
        return f"unavailable: {memory.reason}"
    machine = memory.machine
    known = f"unknown ({machine.reason})" if isinstance(machine, Unavailable) else str(machine)
    cap = "no cap" if memory.cap is None else f"cap {memory.cap}"
    return f"{cap}, machine {known}"


def _json(parts: dict[str, object]) -> str:
    return json.dumps({"schema_version": SCHEMA_VERSION, **parts}, indent=1)


def _csv(columns: Iterable[str], rows: Sequence[Sequence[Cell]] | Unavailable) -> str:
    return csv_text(columns, [] if isinstance(rows, Unavailable) else rows)


def _table(what: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]] | Unavailable) -> str:
    """Plain columns, numbers to the right; one line where the figure is unavailable."""
    if isinstance(rows, Unavailable):
        return f"{what}: unavailable: {rows.reason}"
    texts = [list(columns), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in texts) for at in range(len(columns))]
    right = [bool(rows) and not isinstance(rows[0][at], str) for at in range(len(columns))]
    lines = [
        "  ".join(
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in texts
    ]
    return "\n".join(lines)


def _cell(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else value
