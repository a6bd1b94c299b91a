"""Results of benchmarks as the pages that the command line prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hotset.core.errors import HotsetError
from hotset.core.record import record_of
from hotset.reports.model.document import RunDocument
from hotset.reports.render.page import Page


class UnreadableError(HotsetError):
    """A result that this hotset cannot read; the message says why."""


def tell(operation: str, document: object) -> Page | None:
    """
    :param document: the result of a job, as JSON has it.
    :return: None: nobody tells results of this operation, or there is none.
    :raises UnreadableError: it is not as this hotset writes it.
    """
    teller = _TELLERS.get(operation)
    if teller is None or document is None:
        return None
    try:
        return teller(document)
    except ValueError as error:
        raise UnreadableError(f"it was written by another hotset: {error}") from None


def _run(document: object) -> Page:
    from hotset.reports.render import sections

    return sections.page_of(record_of(RunDocument, document))


def _tpcc_check(document: object) -> Page:
    from hotset.reports.render import sections
    from hotset.tpcc.data.consistency import TpccConditions

    return sections.of_conditions(record_of(TpccConditions, document).conditions)


def _tpch_check(document: object) -> Page:
    from hotset.tpch.check import TpchCheck

    return record_of(TpchCheck, document).page()


_TELLERS: Mapping[str, Callable[[object], Page]] = {
    "tpcc run": _run,
    "tpcc check": _tpcc_check,
    "tpch run": _run,
    "tpch check": _tpch_check,
    "sql run": _run,
}
