"""A served array: a member fails under the file's user, and is rebuilt."""

import json
import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from hotset.block.io_counters import ServedDevice
from hotset.block.programs import RefusedError
from hotset.core.clock import wait_until
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.hitratio.sampler import Sampler
from hotset.lab import served_model
from hotset.lab.served_model import ArrayError
from tests.support.marks import needs_fuse

SIZE = Bytes(16 * 1024**2)


def is_whole(state: served_model.DiskArray) -> bool:
    return all(one.state == "active" for one in state.members)


@needs_fuse
def test_data_outlives_a_member_and_a_spare_takes_its_place() -> None:
    local = Local()
    with served_model.serve_model(local, "dc500m-raid5", SIZE) as device:
        assert is_whole(served_model.status(local, device.socket))
        data = bytes(range(256)) * 4096
        with device.file.open("r+b") as file:
            file.write(data)
        failed = served_model.fail(local, device.socket, 2)
        assert failed.members[2].state == "rebuilding"
        assert failed.spares == 1
        assert device.file.read_bytes()[: len(data)] == data
        rebuilt = wait_until(lambda: is_whole(served_model.status(local, device.socket)), 60)
        assert rebuilt, "the rebuild does not end"
    assert not device.file.exists()


@needs_fuse
def test_a_served_device_tells_what_went_through_it() -> None:
    """Its file is written, synced and read past the page cache; the sampler reads its counters."""
    local = Local()
    with served_model.serve_model(local, "pcie-flash-2014", SIZE) as device:
        source = ServedDevice.ask(local, "flash", PurePosixPath(device.socket))
        with Sampler(local, None, [source]) as sampler:
            before = len(sampler.samples)
            dd = ["dd", f"of={device.file}", "bs=64K", "count=32", "conv=notrunc,fsync"]
            subprocess.run([*dd, "if=/dev/zero", "oflag=direct"], check=True)
            assert wait_until(lambda: len(sampler.samples) >= before + 3, 60), "no samples arrive"
    counted = sampler.samples[-1].devices["flash"]
    assert counted.counted_by == "engine"
    assert counted.write.size == 32 * 65536
    assert counted.write.latencies_us is not None
    assert sum(count for _, count in counted.write.latencies_us) == counted.write.requests > 0
    assert 0 < counted.busy_ms < 60_000


@needs_fuse
def test_two_failures_are_too_many_for_raid_0_and_refusals_say_why() -> None:
    local = Local()
    with served_model.serve_model(local, "dc500m-raid0", SIZE) as device:
        with pytest.raises(ArrayError, match="active: only a failed member"):
            served_model.replace(local, device.socket, 1)
        with pytest.raises(ArrayError, match="members 0 to 5"):
            served_model.fail(local, device.socket, 6)
        served_model.fail(local, device.socket, 1)
        with pytest.raises(ArrayError, match="RAID 0 has lost data"):
            served_model.replace(local, device.socket, 1)
        with pytest.raises(OSError, match="Input/output error"), device.file.open("rb") as file:
            file.read()


@needs_fuse
def test_a_bad_model_names_field_and_range() -> None:
    members = {"alike": {"count": 2, "device": "hdd-7200"}}
    model = {"name": "x", "device": {"raid": {"level": "5", "members": members}}}
    with (
        pytest.raises(RefusedError, match="has 2 members: RAID 5 takes 3 to 64"),
        served_model.serve_model(Local(), model, SIZE),
    ):
        pass


def test_nobody_at_the_socket(tmp_path: Path) -> None:
    with pytest.raises(ArrayError, match="no served device answers"):
        served_model.status(Local(), tmp_path / "none")


@needs_fuse
@pytest.mark.parametrize("protected", [True, False])
def test_a_power_cut_takes_what_lay_in_an_unprotected_buffer(
    tmp_path: Path, protected: bool
) -> None:
    """The file is compared with what was written to it: all of it is there, or all but the end."""
    model, backing = tmp_path / "ssd.json", tmp_path / "data"
    ssd = {"power_loss_protection": protected, "program_us": 2_000_000}
    model.write_text(json.dumps({"name": "ssd", "device": {"ssd": ssd}}))
    backing.write_bytes(bytes(SIZE))
    local, page = Local(), b"x" * 4096
    with (
        served_model.serve_model(local, str(model), SIZE, backing=backing) as device,
        device.file.open("r+b", buffering=0) as file,
    ):
        file.write(page)
        os.fsync(file.fileno())
        file.write(page)
        lost = served_model.power_cut(local, device.socket)
        with pytest.raises(OSError, match="Input/output"):
            file.write(page)
    kept = page * 2 if protected else page
    assert backing.read_bytes() == kept.ljust(SIZE, b"\0")
    assert lost == 2 * len(page) - len(kept)
