"""What goes through a device: the kernel's line, the engine's reply, differences of either."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block.io_counters import (
    Direction,
    IoCounters,
    KernelDevice,
    ServedDevice,
    between,
    parse_engine,
    parse_stat,
)
from hotset.core.units import Bytes
from tests.fake_machine import FakeMachine

LINE = "700 10 11200 5600 300 7 9600 900 2 4000 6500 0 0 0 0 12 40"


def engine(requests: int, ns: int, *latencies_us: tuple[int, int]) -> dict[str, object]:
    return {
        "requests": requests,
        "bytes": requests * 4096,
        "ns": ns,
        "latencies_us": [list(one) for one in latencies_us],
    }


def served(name: str, read: dict[str, object], write: dict[str, object]) -> dict[str, object]:
    return {"name": name, "read": read, "write": write, "busy_ns": 250_000_000}


def test_the_kernels_line() -> None:
    found = parse_stat(LINE)
    assert found.read == Direction(700, Bytes(11200 * 512), 5600.0)
    assert found.write == Direction(300, Bytes(9600 * 512), 900.0)
    assert (found.counted_by, found.busy_ms) == ("kernel", 4000.0)


@pytest.mark.parametrize("line", ["", "1 2 3", "Fail", LINE.replace("700", "-700"), "a " * 17])
def test_no_line_of_the_kernels(line: str) -> None:
    with pytest.raises(ValueError, match="not the counters of a block device"):
        parse_stat(line)


@given(st.lists(st.integers(0, 2**40), min_size=11, max_size=17))
def test_every_line_of_numbers_is_read(numbers: list[int]) -> None:
    found = parse_stat(" ".join(map(str, numbers)))
    assert (found.read.requests, found.write.requests) == (numbers[0], numbers[4])
    assert found.busy_ms == numbers[9]


def test_what_went_through_in_a_while() -> None:
    later = parse_stat("1700 10 31200 25600 300 7 9600 900 2 9000 26500")
    (use,) = between({"origin": parse_stat(LINE)}, {"origin": later}, 10)
    assert (use.name, use.counted_by, use.utilisation) == ("origin", "kernel", 0.5)
    assert (use.read.iops, use.read.mb_per_s) == (100, pytest.approx(20000 * 512 / 1e7))
    assert (use.read.latency_ms_mean, use.read.queue) == (20, 2)
    assert use.read.latency_ms_p99 is None
    assert (use.write.iops, use.write.latency_ms_mean, use.write.queue) == (0, None, 0)


def test_sums_of_milliseconds_that_wrapped_around_go_on() -> None:
    first = parse_stat(f"0 0 0 {2**32 - 100} 0 0 0 0 0 {2**32 - 50} 0")
    (use,) = between({"a": first}, {"a": parse_stat("10 0 80 100 0 0 0 0 0 50 0")}, 1)
    assert use.read.latency_ms_mean == 20
    assert use.utilisation == pytest.approx(0.1)


def test_counters_that_began_anew_are_no_use() -> None:
    first, last = parse_stat(LINE), parse_stat("1 0 8 1 0 0 0 0 0 1 1")
    assert between({"a": first}, {"a": last}, 1) == ()
    assert between({"a": first}, {"b": first}, 1) == ()
    assert between({"a": first}, {"a": first}, 0) == ()


def test_the_engine_counts_latencies() -> None:
    first = parse_engine([served("origin", engine(10, 10**6, (100, 10)), engine(0, 0))])
    gained = engine(110, 21 * 10**6, (100, 108), (5000, 1), (9000, 1))
    last = parse_engine([served("origin", gained, engine(0, 0))])
    (use,) = between(first, last, 2)
    assert use.counted_by == "engine"
    assert (use.read.iops, use.read.latency_ms_mean) == (50, pytest.approx(0.2))
    assert use.read.latency_ms_p99 == 5
    assert use.write.latency_ms_p99 is None


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 50)), min_size=1, max_size=20))
def test_a_99th_percentile_is_that_of_the_requests(pairs: list[tuple[int, int]]) -> None:
    latencies = dict(pairs)
    every = sorted(us for us, count in latencies.items() for _ in range(count))
    counted = engine(len(every), sum(every) * 1000, *sorted(latencies.items()))
    nothing = parse_engine([served("origin", engine(0, 0), engine(0, 0))])
    last = parse_engine([served("origin", counted, engine(0, 0))])
    (use,) = between(nothing, last, 1)
    assert use.read.latency_ms_p99 == every[-(-len(every) * 99 // 100) - 1] / 1000


def test_an_engines_field_that_is_not_known_is_passed_over() -> None:
    whole = served("origin", engine(0, 0), engine(0, 0))
    assert parse_engine([{**whole, "surprise": 1}]) == parse_engine([whole])
    less = {**whole, "read": {"requests": 1, "bytes": 1, "ns": 1}}
    assert parse_engine([less])["origin"].read.latencies_us is None, "not counted"
    with pytest.raises(KeyError, match="busy_ns"):
        parse_engine([{name: value for name, value in whole.items() if name != "busy_ns"}])


def test_a_kernels_device_is_read_by_its_number() -> None:
    machine = FakeMachine({"stat --dereference": "8 10\n"})
    device = KernelDevice.find(machine, "log", PurePosixPath("/dev/sdb"))
    assert device.command == 'read -r stat < /sys/dev/block/8:16/stat && echo "$stat"'
    assert device.parse(LINE) == {"log": parse_stat(LINE)}


def test_a_served_device_is_asked_for_its_file() -> None:
    reply = json.dumps(
        {
            "devices": [
                served("disk", engine(1, 5, (1, 1)), engine(0, 0)),
                served("volume", engine(0, 0), engine(2, 9, (1, 2))),
            ]
        }
    )
    device = ServedDevice("flash volume", "/bin/hotset-engine", PurePosixPath("/run/a b"), "volume")
    assert device.command == "timeout 2 /bin/hotset-engine ask '/run/a b' '{\"devices\": {}}'"
    found = device.parse(reply)["flash volume"]
    assert isinstance(found, IoCounters)
    assert found.write == Direction(2, Bytes(8192), 9e-6, ((1, 2),))
    with pytest.raises(ValueError, match="not the counters of a served device"):
        device.parse('{"error": "not a request"}')
