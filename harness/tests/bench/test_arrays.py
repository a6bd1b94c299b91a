"""The arrays of the published test: its table beside ours, failures of members and of the power."""

import pytest

from hotset.bench.disks import arrays
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.reports.model.disks import BenchRun
from tests.support.marks import needs_fuse

SIZE = Bytes(256 * 1024**2)
WITHOUT = BenchRun(mb_per_s=1500.0, iops=30_000.0, latency_us=33.0)
"""What the computer serves of a load without any model."""


def reason(unit: arrays.Unit, published: float, ours: float, ideal: float, path_us: int) -> str:
    line = arrays.compare("dc500m-raid5", "RND4K Q1T1", "read", unit, published, ours)
    promised = BenchRun(mb_per_s=ideal, iops=ideal, latency_us=ideal)
    return arrays.explain(line, promised, path_us, lambda: WITHOUT).reason


def test_a_difference_beyond_the_tolerance_has_a_reason() -> None:
    assert reason("MB/s", 1100.0, 1000.0, 1100.0, 62) == "", "within 15 %"
    assert reason("MB/s", 520.0, 880.0, 900.0, 62) == (
        "the model makes 900 MB/s on a file of this size"
    )
    unpublished = arrays.compare("dc500m-raid0", "SEQ1M Q1T1", "read", "MB/s", None, 1000.0)
    found = arrays.explain(unpublished, WITHOUT, 62, lambda: WITHOUT)
    assert (found.off, found.reason) == (None, "")


@pytest.mark.parametrize(
    ("unit", "published", "ours", "word"),
    [
        ("MB/s", 1100.0, 700.0, "more slowly"),
        ("MB/s", 1100.0, 1500.0, "faster"),
        ("IOPS", 2874.0, 1500.0, "more slowly"),
        ("IOPS", 2874.0, 4650.0, "faster"),
        ("us", 339.0, 480.0, "more slowly"),
        ("us", 339.0, 210.0, "faster"),
    ],
)
def test_a_reason_is_true_of_the_cell_that_it_stands_beside(
    unit: arrays.Unit, published: float, ours: float, word: str
) -> None:
    """Beside cells that were 28 and 62 % faster stood "this computer serves it more slowly"."""
    said = reason(unit, published, ours, published, 62)
    assert word in said
    assert ("more slowly" in said) != ("faster" in said)
    without = {"MB/s": "1,500 MB/s", "IOPS": "30,000 IOPS", "us": "33 µs"}[unit]
    assert (f"({without} without a model)" in said) == (word == "more slowly")
    assert ("the 62 µs that were measured" in said) == (word == "faster")
    assert ("no reason is known" in reason(unit, published, ours, published, 0)) == (
        word == "faster"
    )


@pytest.mark.parametrize("array", arrays.PUBLISHED)
def test_each_model_promises_what_was_published(array: str) -> None:
    """On a file larger than the memory of the NAS, and with no processor of ours in the way."""
    for (profile, direction, unit), published in zip(
        arrays.CELLS, arrays.PUBLISHED[array], strict=True
    ):
        if published is not None:
            size = Bytes(4 * 1024**3)
            promise = arrays.promise(Local(), array, size, profile, direction, 10.0)
            ours = {"MB/s": promise.mb_per_s, "IOPS": promise.iops, "us": promise.latency_us}
            off = ours[unit] / published - 1
            assert abs(off) <= arrays.TOLERANCE, (profile, direction, unit, ours[unit])


@needs_fuse
def test_a_member_fails_under_load_and_a_spare_takes_its_place() -> None:
    failure = arrays.member_fails(Local(), "dc500m-raid5", SIZE, seconds=3)
    assert failure.before_iops > 0
    assert failure.during_iops > 0
    assert failure.rebuilt_s is not None


@needs_fuse
@pytest.mark.parametrize("protected", [True, False])
def test_what_was_flushed_outlives_a_power_cut_and_what_was_not_needs_protection(
    protected: bool,
) -> None:
    drive = {"name": "slow", "device": {"ssd": {"program_us": 50_000}}}
    for _ in range(10):
        cut = arrays.power_fails(Local(), drive, protected, SIZE)
        assert cut.flushed_lost_bytes == 0
        assert cut.reported_bytes == cut.lost_bytes
        assert any(file.flushed_bytes for file in cut.files)
        assert any(file.flushed_every is None and file.written_bytes for file in cut.files)
        # On a busy computer a cut may come right after a flush: nothing is at stake then.
        if protected or cut.lost_bytes:
            break
    assert (cut.lost_bytes == 0) == protected
