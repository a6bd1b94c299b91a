"""What the kernel is asked to count, and how its tables become counters: without a kernel."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.units import Bytes
from hotset.hitratio import tracepoints
from hotset.hitratio.heat import Grid, Tally, total
from hotset.hitratio.histogram import Entry, Histogram
from hotset.hitratio.tracepoints import (
    BcacheSource,
    DmCacheSource,
    NotCountedError,
    Traced,
    first_eight,
)
from tests.fake_machine import FakeMachine

MIB = 1024**2
DEVICE = PurePosixPath("/dev/mapper/hotset-erp")
GRID = Grid(Bytes(256 * MIB), Bytes(64 * 1024))
INSTANCE = "/sys/kernel/tracing/instances/hotset-erp"


def table(*entries: Entry) -> Histogram:
    return Histogram("", entries, sum(entry.events for entry in entries), 0)


def test_dm_cache_is_told_by_where_a_bio_went() -> None:
    machine = FakeMachine(
        {
            "blockdev --getsize64": str(256 * MIB),
            "dmsetup table": "0 524288 cache 253:0 253:1 8:0 128 2 metadata2 writeback smq 0\n",
            "dmsetup info": "253:2\n",
        }
    )
    counters = tracepoints.dm_cache(machine, "erp", DEVICE)
    assert counters.grid == GRID
    source = DmCacheSource(GRID, 253 << 20 | 2, 253 << 20 | 1)
    reads, writes = source.tables()
    assert reads.event == "block/block_bio_remap"
    assert reads.trigger.render() == (
        "hist:keys=dev,old_sector.buckets=128:size=8192"
        ' if old_dev==265289730 && nr_sector > 0 && rwbs ~ "R*"'
    )
    assert 'rwbs ~ "W*"' in writes.trigger.render()

    def went(device: int, sector: int, events: int) -> Entry:
        return Entry((("dev", device), ("old_sector", sector)), events)

    tallies = source.tallies(
        [
            table(went(source.cache, 0, 5), went(8 << 20, 0, 2), went(8 << 20, 256, 1)),
            table(went(source.cache, 256, 7)),
        ]
    )
    assert tallies == {0: Tally(7, 0, 5, 2, 0, 0, None), 2: Tally(1, 7, 0, 1, 7, 0, None)}


def test_bcache_tells_hits_of_reads_and_takes_or_bypasses_writes() -> None:
    ours, others = first_eight("1b66ea3f-2580-4316-a318-40f6402d1be7"), 77
    source = BcacheSource(GRID, 8 << 20, 0, ours)
    inspected, bypassed, written = source.tables()
    assert inspected.trigger.render().endswith(
        ":vals=cache_hit:size=4096 if dev==8388608 && bypass==0"
    )
    assert bypassed.trigger.condition.endswith("bypass==1")
    assert written.trigger.keys == ("uuid.hex", "bypass", "sector.buckets=128")

    def write(uuid: int, bypass: int, events: int) -> Entry:
        return Entry((("uuid", uuid), ("bypass", bypass), ("sector", 128)), events)

    tallies = source.tallies(
        [
            table(Entry((("sector", 0),), 10, (("cache_hit", 8),))),
            table(Entry((("sector", 0),), 3)),
            table(write(ours, 0, 6), write(ours, 1, 2), write(others, 0, 999)),
        ]
    )
    assert tallies == {0: Tally(13, 0, 8, 2, None, None, 3), 1: Tally(0, 8, 0, 0, None, None, 2)}
    assert total(tallies.values()).ratio == 0.8


def test_bcache_is_found_below_its_linear_device() -> None:
    backing = "/sys/devices/virtual/block/dm-4"
    uuid = "1b66ea3f-2580-4316-a318-40f6402d1be7"
    machine = FakeMachine(
        {
            "dmsetup table": "0 522240 linear 252:0 0\n",
            "readlink -f /sys/dev/block/252:0/bcache/cache": f"/sys/fs/bcache/{uuid}\n",
            "readlink -f /sys/dev/block/252:0/bcache": f"{backing}/bcache\n",
            "cat /sys/dev/block/252:0/size": "524288\n",
            f"cat {backing}/size": "526336\n",
            f"cat {backing}/dev": "253:4\n",
            "find": f"bdev3 ../../..{backing.removeprefix('/sys')}/bcache\n",
        }
    )
    counters = tracepoints.bcache(machine, "erp", DEVICE, Bytes(64 * 1024))
    assert counters.grid == Grid(Bytes(256 * MIB), Bytes(64 * 1024), Bytes(MIB))
    assert counters.tables()[2].trigger.condition == 'inode==3 && rwbs ~ "*W*"'
    machine.answers["readlink -f /sys/dev/block/252:0/bcache/cache"] = "/sys/dev/block/252:0/cache"
    with pytest.raises(NotCountedError, match="no cache attached"):
        tracepoints.bcache(machine, "erp", DEVICE, Bytes(64 * 1024))


@pytest.mark.parametrize(
    ("uuid", "shown"),
    [
        ("1b66ea3f-2580-4316-a318-40f6402d1be7", "164380253fea661b"),
        ("1b66003f-2580-4316-a318-40f6402d1be7", "661b"),
        ("00660000-0000-0000-0000-000000000000", "0"),
    ],
)
def test_a_uuid_as_the_kernel_shows_it_ends_at_a_zero(uuid: str, shown: str) -> None:
    assert f"{first_eight(uuid):x}" == shown


def dm_traced(machine: FakeMachine) -> Traced:
    return Traced(machine, "erp", DmCacheSource(GRID, 253 << 20 | 2, 253 << 20 | 1))


def shown(counters: Traced) -> str:
    return "".join(f"{one.trigger.shown} [active]\n" for one in counters.tables())


def test_start_appends_each_trigger_and_does_nothing_the_second_time() -> None:
    machine = FakeMachine({f"test -d {INSTANCE}": 1})
    counters = dm_traced(machine)
    assert counters.start() is True
    event = f"{INSTANCE}/events/block/block_bio_remap/trigger"
    written = [call for call in machine.calls if call.argv[0] == "tee"]
    names, *triggers = written
    assert (names.argv, names.stdin) == (("tee", f"{INSTANCE}/trace_options"), "norecord-cmd"), (
        "before any trigger, or the kernel rewrites its scheduler"
    )
    assert [call.argv for call in triggers] == [("tee", "-a", event)] * 2
    assert [call.stdin for call in triggers] == [t.trigger.render() for t in counters.tables()]
    machine = FakeMachine({f"cat {event}": shown(counters)})
    assert dm_traced(machine).start() is False
    assert not [call for call in machine.calls if call.argv[0] in ("tee", "mkdir", "rmdir")]


def test_a_half_made_counting_is_made_again() -> None:
    event = f"cat {INSTANCE}/events/block/block_bio_remap/trigger"
    half = shown(dm_traced(FakeMachine())).splitlines()[0]
    machine = FakeMachine({event: half})
    with pytest.raises(NotCountedError, match="device that is gone"):
        dm_traced(machine).read()
    assert dm_traced(machine).start() is True
    names = [call.argv[0] for call in machine.calls]
    assert names.index("rmdir") < names.index("mkdir") < names.index("tee")


def test_a_refused_trigger_leaves_nothing_and_shows_the_kernels_words() -> None:
    machine = FakeMachine(
        {
            f"test -d {INSTANCE}": 1,
            "tee": 1,
            f"cat {INSTANCE}/error_log": "hist:block: error: Couldn't find field\n",
        }
    )
    made: list[str] = []
    machine.answers["mkdir"] = lambda: (made.append("made"), "")[1]
    machine.answers[f"test -d {INSTANCE}"] = lambda: _absent(made)
    with pytest.raises(Exception, match="tee") as caught:
        dm_traced(machine).start()
    assert "Couldn't find field" in caught.value.__notes__[0]
    assert machine.commands[-1] == f"rmdir {INSTANCE}"


def _absent(made: list[str]) -> str | int:
    return "" if made else 1


def test_a_kernel_without_tracing_is_named() -> None:
    machine = FakeMachine({"test -d /sys/kernel/tracing/instances": 1, "mount": 32})
    with pytest.raises(PrerequisiteMissingError, match="CONFIG_HIST_TRIGGERS"):
        dm_traced(machine).start()


def test_a_device_of_another_kind_is_refused() -> None:
    machine = FakeMachine({"blockdev": "4096", "dmsetup table": "0 8 linear 8:0 0"})
    with pytest.raises(ValueError, match="is not a device-mapper cache"):
        tracepoints.dm_cache(machine, "erp", DEVICE)
    machine = FakeMachine({"dmsetup table": "0 8 linear 8:0 2048"})
    with pytest.raises(ValueError, match="sector 2048"):
        tracepoints.bcache(machine, "erp", DEVICE, Bytes(4096))
