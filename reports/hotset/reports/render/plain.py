"""Rows as plain text, CSV or JSON. It loads nothing, so whoever prints a list can import it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """CSV with a line of names; None is empty, truth values are `true` and `false`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if cell is None else _plain(cell) for cell in row])
    return text.getvalue()


def text_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Plain columns: the first to the left, the others, figures, to the right.

    >>> print(text_table(("file", "hits"), [("a", "1"), ("bc", "20")]))
    file  hits
    a        1
    bc      20
    """
    lines = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if at else text.ljust(width)
            for at, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def listing(
    name: str,
    version: int,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    form: str,
    none: str = "",
) -> str:
    """A list of records under a name, as a table, ``csv`` or ``json``.

    :param version: the ``schema_version`` of the JSON.
    :param none: what the table says instead where there are none.
    """
    if form == "csv":
        return csv_text(columns, rows)
    if form == "json":
        found = [dict(zip(columns, row, strict=True)) for row in rows]
        return json.dumps({"schema_version": version, name: found}, indent=1)
    cells = [tuple("-" if cell in (None, "") else str(cell) for cell in row) for row in rows]
    return text_table(columns, cells) if rows or not none else none


def _plain(cell: object) -> object:
    return str(cell).lower() if isinstance(cell, bool) else cell
