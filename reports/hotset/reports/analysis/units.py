"""Unit of a run's throughput, and the name of its workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hotset.core import words

from ..model.base import TimedWorkload
from ..model.document import RunDocument


class Throughput(Protocol):
    """Throughput of a repeat or an arm.

    :ivar rate: in the unit of `of`.
    :ivar tpm: of all transactions.
    """

    @property
    def rate(self) -> float: ...
    @property
    def tpm(self) -> float: ...


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


def find_unit(document: RunDocument) -> Unit:
    """TPC-C's where nothing was measured that had another."""
    return UNITS[document.timed or "tpcc"]


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `cells`."""
    return (find_unit(document).short, *(() if document.timed == "sql" else ("TPM",)))


def cells(document: RunDocument, throughput: Throughput) -> tuple[str, ...]:
    """TPC-C has the throughput of all its transactions, too."""
    more = () if document.timed == "sql" else (words.count(throughput.tpm),)
    return (words.count(throughput.rate), *more)
