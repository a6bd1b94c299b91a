"""Measurements of one label as repeats of one: three of them before a change, three after it. Or
sittings of one experiment, days apart.

They are pooled only where nothing is known to differ between them, their tier among it: what
differs is what two labels are to show. Repeats of two labels were not interleaved, as those of an
experiment's arms are: whatever else changed between the labels counts as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ...model.disks import DiskResults
from ...model.document import Arm, PowerArm, RunDocument
from ...model.windows import HighestRate, PowerRun, Repeat
from .. import stats
from . import compare

One = TypeVar("One", Repeat, PowerRun, HighestRate)
AnyArm = TypeVar("AnyArm", Arm, PowerArm)


def pool(label: str, documents: Sequence[RunDocument], force: bool = False) -> RunDocument:
    """One run with the repeats of all, the oldest first.

    :param force: although they differ.
    :raises SetUpsDiffer: two of them differ; names in what.
    """
    first, *others = documents
    for other in () if force else others:
        differences = compare.differing_in_a_label(first, other)
        if differences:
            raise compare.SetUpsDiffer(
                f"{first.run} and {other.run} are both labelled {label}, and differ:"
                f" {'; '.join(map(str, differences))}"
            )
    timed = _by_name(arm for document in documents for arm in document.arms)
    queried = _by_name(arm for document in documents for arm in document.power_arms)
    pooled = first.model_copy(
        update={
            "run": label,
            "arms": tuple(map(_pool, timed)),
            "power_arms": tuple(map(_pool_queries, queried)),
            "disks": _pool_disks(documents),
        }
    )
    return pooled.model_copy(update=stats.compare_arms(pooled))


def _by_name(arms: Iterable[AnyArm]) -> list[list[AnyArm]]:
    """An experiment has several arms, a measurement one."""
    named = dict[str, list[AnyArm]]()
    for arm in arms:
        named.setdefault(arm.name, []).append(arm)
    return list(named.values())


def _pool(arms: Sequence[Arm]) -> Arm:
    return arms[0].model_copy(
        update={
            "repeats": _renumber(arms, lambda arm: arm.repeats),
            "curve": _renumber(arms, lambda arm: arm.curve),
            "rates": _renumber(arms, lambda arm: arm.rates),
        }
    )


def _pool_disks(documents: Sequence[RunDocument]) -> DiskResults | None:
    """The lines that all have, with a median of each measurement."""
    measured = [document for document in documents if document.disks is not None]
    results = [document.disks for document in measured if document.disks is not None]
    if not results:
        return None
    each = [{line.name: line for line in result.bench} for result in results]
    lines = tuple(
        line.model_copy(
            update={
                "runs": tuple(by_name[line.name].median for by_name in each),
                "measurements": len(each),
            }
        )
        for line in results[0].bench
        if all(line.name in by_name for by_name in each)
    )
    began = tuple(document.started_at for document in measured)
    return results[0].model_copy(update={"bench": lines, "began": began})


def _pool_queries(arms: Sequence[PowerArm]) -> PowerArm:
    return PowerArm(name=arms[0].name, repeats=_renumber(arms, lambda arm: arm.repeats))


def _renumber(
    arms: Sequence[AnyArm], windows: Callable[[AnyArm], Sequence[One]]
) -> tuple[One, ...]:
    """The windows of all arms, each with the number of its run as its repeat."""
    return tuple(
        window.model_copy(update={"repeat": number})
        for number, arm in enumerate(arms, 1)
        for window in windows(arm)
    )
