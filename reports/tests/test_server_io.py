"""What the database server counted: rows by arm, a window in a line."""

from __future__ import annotations

from hotset.reports.analysis.breakdown import server_io
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import ServerIo
from tests import documents


def with_io(io: ServerIo | None) -> RunDocument:
    return documents.with_windows(documents.complete(), lambda *_: {"server_io": io})


def test_each_arm_a_second_and_per_transaction() -> None:
    lines = {row[0]: row[1:] for row in server_io.rows(documents.complete())}
    assert list(lines) == ["baseline", "accelerated", "all-flash"]
    baseline = dict(zip(server_io.COLUMNS[1:], lines["baseline"], strict=True))
    # 4.7 reads for each new order, and 2.31 transactions for each of those.
    assert baseline["reads/transaction"] == "2"
    assert baseline["log bytes/transaction"] == "2,684"
    assert baseline["data syncs/s"] == "–", "PostgreSQL 15 does not count them"
    assert all(len(row) == len(server_io.COLUMNS) for row in server_io.rows(documents.complete()))


def test_what_is_not_counted_is_said_once() -> None:
    assert server_io.missing(documents.complete()) == [
        "PostgreSQL 15 does not count syncs of data files: 16 does"
    ]


def test_nothing_counted_is_no_row_and_nothing_done_no_division() -> None:
    assert server_io.rows(with_io(None)) == []
    nothing = ServerIo(seconds=10, reads=0, read_ms=0, log_bytes=0)
    assert server_io.rows(with_io(nothing))[0][1:5] == ("0", "0", "–", "–")
