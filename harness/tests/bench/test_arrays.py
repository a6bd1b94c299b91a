"""The arrays of the published test: its table beside ours, failures of members and of the power."""

from pathlib import Path

import pytest

from hotset.bench.disks import arrays
from hotset.bench.disks.disk_bench import Sample
from hotset.core.machines.local import Local
from hotset.core.units import Bytes

SIZE = Bytes(256 * 1024**2)
SAMPLE = Sample(1000.0, 250_000.0, 400.0)
needs_fuse = pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="needs /dev/fuse")


def line(published: float | None, promised: float) -> arrays.ArrayLine:
    promise = Sample(promised, 250_000.0, 400.0)
    return arrays.line("dc500m-raid5", "SEQ1M Q1T1", "read", "MB/s", published, SAMPLE, promise)


def test_a_difference_beyond_the_tolerance_has_a_reason() -> None:
    near = line(1100.0, 1100.0)
    assert near.off == pytest.approx(-1 / 11)
    assert near.reason == ""
    assert "no reason known" in line(520.0, 900.0).reason
    assert "the model makes 1,990 MB/s" in line(2000.0, 1990.0).reason
    unpublished = line(None, 900.0)
    assert (unpublished.off, unpublished.reason) == (None, "")


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
        assert cut.said_bytes == cut.lost_bytes
        # On a busy computer a cut may come right after a flush: nothing is at stake then.
        if protected or cut.lost_bytes:
            break
    assert (cut.lost_bytes == 0) == protected
