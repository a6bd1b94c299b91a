"""Readings of a database server: records, and tables of them for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from hotset.core.record import Record, columns_of, document_of
from hotset.core.words import csv_text

from .base import (
    Counter,
    DatabaseFile,
    Engine,
    Figure,
    FileIo,
    Memory,
    Unavailable,
    Version,
    Wait,
    difference,
)

_WAITS_SHOWN = 15
Cell = str | int | float | None
T = TypeVar("T")


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


@dataclass(frozen=True)
class DatabaseServer(Record):
    """A server: its version, databases, memory, and which file lies where."""

    version: Version
    databases: tuple[str, ...]
    memory: Memory | Unavailable
    files: tuple[DatabaseFile, ...] | Unavailable

    @classmethod
    def from_server(cls, server: Engine) -> DatabaseServer:
        version, databases = server.version(), server.databases()
        return cls(version, tuple(databases), server.memory(), _rows(server.placement()))

    def to_text(self) -> str:
        """Version, memory and files, as a table."""
        version, files = self.version, self.files
        rows: list[Sequence[Cell]] | Unavailable = (
            files
            if isinstance(files, Unavailable)
            else [
                (file.database, file.name, file.kind, file.path, str(file.size)) for file in files
            ]
        )
        edition = f", {version.edition}" if version.edition else ""
        head = [
            f"{version.product} {version.version}{edition}",
            f"memory: {_memory(self.memory)}",
            f"databases: {', '.join(self.databases)}",
            "",
        ]
        columns = ("database", "name", "kind", "path", "size")
        return "\n".join(head) + _table("files", columns, rows)

    def csv(self) -> str:
        """A line a file; none where the server does not tell."""
        columns = columns_of(DatabaseFile)
        files = [] if isinstance(self.files, Unavailable) else map(document_of, self.files)
        return csv_text(columns, ([file[name] for name in columns] for file in files))


@dataclass(frozen=True)
class DatabaseCounters(Record):
    """Counters of a server in an interval."""

    interval_s: float
    files: tuple[FileIo, ...] | Unavailable
    waits: tuple[Wait, ...] | Unavailable
    counters: tuple[Counter, ...] | Unavailable

    @classmethod
    def from_reading(cls, reading: Reading, interval_s: float) -> DatabaseCounters:
        return cls(
            interval_s,
            _rows(reading.files),
            _rows(reading.waits),
            _rows(reading.counters),
        )

    def to_text(self) -> str:
        """I/O, waits and counters, as tables."""
        waits, counters = self.waits, self.counters
        if not isinstance(waits, Unavailable):
            waits = tuple(sorted(waits, key=lambda wait: -wait.wait_ms)[:_WAITS_SHOWN])
        values: list[Sequence[Cell]] | Unavailable = (
            counters
            if isinstance(counters, Unavailable)
            else [(counter.name, counter.value) for counter in counters]
        )
        columns = ("file", "kind", "reads", "read bytes", "ms", "writes", "written bytes", "ms")
        parts = [
            _table("I/O", columns, _records(self.files)),
            _table("waits", ("wait", "count", "ms"), _records(waits)),
            _table("counters", ("counter", "value"), values),
        ]
        return "\n\n".join(parts)

    def csv(self) -> str:
        """One figure a line."""
        return csv_text(("metric", "name", "value"), _long(self))


def _rows(part: Sequence[T] | Unavailable) -> tuple[T, ...] | Unavailable:
    return part if isinstance(part, Unavailable) else tuple(part)


def _since(
    before: list[Figure] | Unavailable, after: list[Figure] | Unavailable
) -> list[Figure] | Unavailable:
    if isinstance(before, Unavailable):
        return before
    return after if isinstance(after, Unavailable) else difference(before, after)


def _records(
    figures: Sequence[FileIo] | Sequence[Wait] | Unavailable,
) -> list[Sequence[Cell]] | Unavailable:
    if isinstance(figures, Unavailable):
        return figures
    return [tuple(asdict(figure).values()) for figure in figures]


def _long(counters: DatabaseCounters) -> list[Sequence[Cell]]:
    """List the counters, one per line; unavailable parts have a line too, without a value."""
    lines: list[Sequence[Cell]] = []
    for part in ("files", "waits", "counters"):
        figures = getattr(counters, part)
        if isinstance(figures, Unavailable):
            lines.append((part, f"unavailable: {figures.unavailable}", None))
            continue
        for figure in figures:
            values = asdict(figure)
            name = values.pop("name")
            lines += [
                (f"{part}.{key}", name, value)
                for key, value in values.items()
                if key not in ("kind", "gauge")
            ]
    return lines


def _memory(memory: Memory | Unavailable) -> str:
    if isinstance(memory, Unavailable):
        return f"unavailable: {memory.unavailable}"
    machine = memory.machine
    known = f"unknown ({machine.unavailable})" if isinstance(machine, Unavailable) else str(machine)
    cap = "no cap" if memory.cap is None else f"cap {memory.cap}"
    return f"{cap}, machine {known}"


def _table(what: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]] | Unavailable) -> str:
    """Plain columns, numbers to the right; one line where the figure is unavailable."""
    if isinstance(rows, Unavailable):
        return f"{what}: unavailable: {rows.unavailable}"
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
