"""What a run's throughput is counted in, and what its workload is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..model import words
from ..model.document import Repeat, RunDocument, TimedWorkload

if TYPE_CHECKING:
    from .answer import ArmFigures


@dataclass(frozen=True, slots=True)
class Unit:
    """
    :ivar short: heads a column.
    :ivar long: heads a chart.
    :ivar workload: the subject of a sentence.
    :ivar title: heads a table.
    :ivar kind: one kind of the workload's transactions.
    """

    short: str
    long: str
    workload: str
    title: str
    kind: str


UNITS: dict[TimedWorkload, Unit] = {
    "tpcc": Unit("NOPM", "New orders per minute", "TPC-C", "TPROC-C", "transaction"),
    "sql": Unit("TPS", "Transactions per second", "your SQL", "Your SQL", "script"),
}


def of(document: RunDocument) -> Unit:
    """TPC-C's where nothing was measured that had another."""
    return UNITS[document.timed or "tpcc"]


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `cells`."""
    return (of(document).short, *(() if document.timed == "sql" else ("TPM",)))


def cells(document: RunDocument, one: Repeat | ArmFigures) -> tuple[str, ...]:
    """The throughput of a repeat or an arm; TPC-C has that of all its transactions, too."""
    more = () if document.timed == "sql" else (words.count(one.tpm),)
    return (words.count(one.rate), *more)
