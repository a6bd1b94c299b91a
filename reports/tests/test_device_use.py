"""What went through each device: means of the repeats, rows, the sentence."""

from __future__ import annotations

import pytest

from hotset.reports.analysis.breakdown import device_use
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import DirectionUse
from tests import documents


def test_each_arm_has_its_devices() -> None:
    found = device_use.by_arm(documents.complete())
    names = {arm: [one.name for one in each] for arm, each in found.items()}
    assert names == {
        "baseline": ["origin"],
        "accelerated": ["origin", "flash cache", "flash volume"],
        "all-flash": ["flash", "flash volume"],
    }


def test_a_mean_latency_weighs_by_requests() -> None:
    document = documents.complete()
    baseline = document.arm("baseline")
    assert baseline is not None
    first, second, third = (repeat.devices[0].read for repeat in baseline.repeats)
    slow = first.model_copy(update={"iops": 1, "latency_ms_mean": 1000, "queue": 1})
    (origin,) = device_use.summarize_devices(
        with_reads(document, [slow, second, third]), "baseline"
    )
    total = slow.iops + second.iops + third.iops
    expected = (1000 + sum(one.iops * 20 for one in (second, third))) / total
    assert origin.read.latency_ms_mean == pytest.approx(expected)
    assert origin.read.iops == pytest.approx(total / 3)


def with_reads(document: RunDocument, reads: list[DirectionUse]) -> RunDocument:
    """The baseline's origin with these in its repeats."""
    arms = []
    for arm in document.arms:
        repeats = [
            repeat.model_copy(
                update={"devices": (repeat.devices[0].model_copy(update={"read": read}),)}
            )
            for repeat, read in zip(arm.repeats, reads, strict=True)
        ]
        is_it = arm.name == "baseline"
        arms.append(arm.model_copy(update={"repeats": tuple(repeats)}) if is_it else arm)
    return document.model_copy(update={"arms": tuple(arms)})


def test_what_the_kernel_does_not_count_is_named() -> None:
    rows = device_use.rows(documents.complete())
    columns = device_use.COLUMNS
    p99 = {row[:2]: row[columns.index("p99 ms")] for row in rows}
    assert p99["baseline", "origin"] == "n/a"
    assert p99["accelerated", "flash cache"] == "0.28"
    assert p99["accelerated", "flash volume"] == "–", "it had no reads"
    assert all(len(row) == len(columns) for row in rows)


def test_the_sentence_names_the_devices_before_and_now() -> None:
    assert device_use.sentence(documents.complete()) == (
        "Before, the origin was busy 100 % of the time, with 14 requests under way; now the origin"
        " 92 %, the flash cache 43 % and the flash volume 2 %."
    )


def test_cpu_of_each_arm() -> None:
    line = device_use.cpu_line(documents.complete())
    assert line.startswith("Server CPU: baseline 9 % user, 2 % system, 0 % stolen; accelerated")


def test_what_was_not_counted_is_not_shown() -> None:
    bare = documents.complete().model_copy(update={"arms": ()})
    assert (device_use.rows(bare), device_use.sentence(bare)) == ([], None)
