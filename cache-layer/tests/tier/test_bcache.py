"""bcache's texts, and its commands in their order."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hotset.block import programs
from hotset.block.devicemapper import Part, Place, Slice
from hotset.core.machines.base import Command, CommandTimeoutError, Result
from hotset.core.machines.local import Local
from hotset.core.units import SECTOR_BYTES, Blocks, Bytes, Sectors
from hotset.tier.base import (
    Counters,
    FlushStalledError,
    MetadataDamagedError,
    TierFailedError,
    TierSpec,
    hits_between,
    hits_over,
)
from hotset.tier.bcache import tier as bcache
from hotset.tier.bcache.sysfs import (
    STATUS_PROGRAM,
    UNDER_WAY,
    Key,
    extents_of,
    parse_choice,
    parse_key,
    parse_line,
    parse_size,
)
from hotset.tier.bcache.tier import BLOCK, CACHE_MIN, HEADER, Bcache, bucket_bytes
from tests.fake_machine import FakeMachine, dm_cache

MIB = 2**20
LINE = "21\t7\t3\t2\t1\t12.5M\tdirty\t0\t\t75%\n"
SET = "11111111-2222-3333-4444-555555555555"
SPEC = TierSpec("writeback", "lru", BLOCK, HEADER, Bytes(96 * MIB), Bytes(16 * MIB), Bytes(0))
PAST = replace(SPEC, bypass=Bytes(4 * MIB))
ATTRIBUTES = "/sys/block/dm-N/bcache/"
REQUESTS = ("hits", "misses", "bypass_hits", "bypass_misses")
PLACE = Place(
    "data",
    PurePosixPath("/dev/flash"),
    PurePosixPath("/dev/origin"),
    (Part(Bytes(17 * MIB), Bytes(MIB)),),
    (Part(Bytes(18 * MIB), Bytes(96 * MIB)),),
    Slice("hotset-volume", (Part(Bytes(MIB), Bytes(16 * MIB)),)),
)


def machine(standing: str = "No devices found\n") -> FakeMachine:
    """One on which bcache does as it is told."""
    return FakeMachine(
        {
            "dmsetup ls": standing,
            "dmsetup info": "dm-3\n",
            "readlink -f /sys/block/dm-3/bcache/dev": "/sys/devices/virtual/block/bcache0\n",
            "blockdev --getsize64 /dev/origin": str(256 * MIB),
            "blockdev --getss": "512\n",
            "bcache-super-show": "sb.csum\t\t11A261F64A4B484F [match]\n",
            "sh -c": LINE,
        }
    )


def tier(there: FakeMachine) -> Bcache:
    return Bcache(there, SPEC, PLACE, SET)


def attributes_set(there: FakeMachine) -> list[str]:
    """What the kernel was told, in its order."""
    told = list[str]()
    for call in there.calls:
        if call.argv[3:5] == ("set", "hotset-data-backing"):
            told += call.argv[5:]
        elif call.argv[0] == "tee" and call.argv[1].startswith(ATTRIBUTES):
            told.append(f"{call.argv[1].removeprefix(ATTRIBUTES)}={call.stdin}")
    return told


def line(reads: int, state: str = "dirty", **counts: int) -> str:
    """What bcache and the block layer have counted."""
    words = (str(counts.get(name, 0)) for name in REQUESTS)
    return "\t".join((str(reads), *words, "12.5M", state, "0", "\t75%\n"))


def test_a_line_of_its_counters() -> None:
    counters = tier(FakeMachine()).parse(LINE)
    assert (counters.read_hits, counters.read_misses, counters.bypassed) == (9, 4, None)
    assert counters.dirty == Blocks(12.5 * MIB / 4096)
    assert counters.total == 96 * MIB // 4096
    assert counters.used == counters.total // 4
    assert counters.write_hits is counters.write_misses is counters.promotions is None
    later = tier(FakeMachine()).parse(LINE.replace("7\t3", "17\t5"))
    hits = hits_between(counters, later, bcache.COUNTING)
    assert hits.ratio == hits.read_ratio == 10 / 12, "of reads alone"
    assert hits.write_ratio is None


def test_what_goes_past_the_cache_as_asked_is_in_no_ratio() -> None:
    counters = Bcache(FakeMachine(), PAST, PLACE, SET).parse(LINE)
    assert (counters.read_hits, counters.read_misses, counters.bypassed) == (7, 3, 3)


@dataclass
class Modelled:
    """What bcache counts of reads, and shows of that (drivers/md/bcache/stats.c)."""

    made: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)

    def serve(self, requests: dict[str, int]) -> None:
        self.made.update(requests)
        self.counted.update(requests)

    def add_up(self) -> None:
        for name, count in self.counted.items():
            self.shown[name] += count % 2**16
        self.counted.clear()

    def look(self, spec: TierSpec) -> Counters:
        text = line(self.made.total(), **self.shown)
        return Bcache(FakeMachine(), spec, PLACE, SET).parse(text)


# Of an origin that serves 4,800 requests a second.
SERVED = st.fixed_dictionaries(
    {name: st.integers(0, 2**18 if name == "hits" else 2**13) for name in REQUESTS}
)


NEARLY_LOST = dict.fromkeys(REQUESTS, 2**13) | {"hits": 39_936}
"""As many as make it look as if 65,536 were lost, were some more under way."""


@given(st.lists(st.tuples(SERVED, st.booleans())), st.sampled_from((SPEC, PAST)))
@example([(NEARLY_LOST, False)], SPEC)
@example([(NEARLY_LOST, False)], PAST)
def test_no_more_requests_are_told_than_were_made(
    served: list[tuple[dict[str, int], bool]], spec: TierSpec
) -> None:
    """But for those that the block layer may not have seen the end of; and all of them once they
    are added up, each for what it was."""
    kernel, looks = Modelled(), list[Counters]()
    for requests, is_added_up in served:
        looks.append(kernel.look(spec))
        kernel.serve(requests)
        if is_added_up:
            kernel.add_up()
        looks.append(kernel.look(spec))
        found = hits_over(looks, bcache.COUNTING)
        told = found.read_hits + found.read_misses + (found.bypassed or 0)
        assert told <= kernel.made.total() + UNDER_WAY
    kernel.add_up()
    found = hits_over([Modelled().look(spec), *looks, kernel.look(spec)], bcache.COUNTING)
    made = kernel.made
    past = made["bypass_hits"] + made["bypass_misses"]
    if spec.bypass:
        assert (found.read_hits, found.read_misses) == (made["hits"], made["misses"])
        assert found.bypassed == past
    else:
        assert found.read_hits == made["hits"] + made["bypass_hits"]
        assert found.read_misses == made["misses"] + made["bypass_misses"]


def test_a_request_that_is_cached_in_part_is_one_that_missed() -> None:
    """It was several, as many as the origin got, and took hits away later."""
    of = tier(FakeMachine())
    told = ({}, {"misses": 64}, {"misses": 64, "hits": 404})
    looks = [of.parse(line(sum(some.values()), **some)) for some in told]
    found = hits_over(looks, bcache.COUNTING)
    assert (found.read_hits, found.read_misses) == (404, 64)


def test_the_share_that_takes_the_kernel_seconds_is_asked_for_once_a_minute(tmp_path: Path) -> None:
    """All buckets are gone through for it, at each sampling."""
    attributes = tmp_path / "sys/block/dm-7/bcache"
    (attributes / "dev").mkdir(parents=True)
    (attributes / "stats_total").mkdir()
    (attributes / "sets/one/cache0").mkdir(parents=True)
    (attributes / "cache").symlink_to("sets/one")
    (attributes / "dev/stat").write_text("21 0 0\n")
    for name in ("hits", "misses", "bypass_hits", "bypass_misses"):
        (attributes / f"stats_total/cache_{name}").write_text("1\n")
    for name, value in (("dirty_data", "0"), ("state", "clean"), ("io_errors", "0")):
        (attributes / name).write_text(f"{value}\n")
    (tmp_path / "data").symlink_to("/nonexistent/dm-7")
    (tmp_path / "uptime").write_text("100.5 1.0\n")
    program = STATUS_PROGRAM.replace("/dev/mapper/", f"{tmp_path}/")
    for place in ("/sys/block/", "/run/hotset"):
        program = program.replace(place, f"{tmp_path}{place}")
    program = program.replace("/proc/uptime", str(tmp_path / "uptime"))

    def unused(share: int) -> float:
        (attributes / "cache/cache0/priority_stats").write_text(f"Unused:\t\t{share}%\nClean: 1%\n")
        shown = Local().run(["sh", "-c", program, "sh", "data"]).stdout
        return parse_line(shown).unused

    assert [unused(share) for share in (75, 50)] == [0.75, 0.75]
    (tmp_path / "uptime").write_text("161.0 1.0\n")
    assert unused(50) == 0.5
    (attributes / "sets/one").rename(attributes / "sets/two")
    (attributes / "cache").unlink()
    (attributes / "cache").symlink_to("sets/two")
    assert unused(25) == 0.25, "another set's"


def test_requests_under_way_are_no_hits_that_were_lost() -> None:
    """bcache has counted them, and the block layer has not."""
    for lost in (0, 2**16):
        counters = tier(FakeMachine()).parse(line(lost + 990, hits=900, misses=100))
        assert (counters.read_hits, counters.read_misses) == (lost + 900, 100)


@pytest.mark.parametrize("state", ["no cache", "inconsistent"])
def test_what_an_origin_without_its_cache_serves_is_neither_hit_nor_missed(state: str) -> None:
    counters = tier(FakeMachine()).parse(line(2**20, state, hits=7, misses=3))
    assert (counters.read_hits, counters.read_misses, counters.stale) == (7, 3, True)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("\t7\t", "\t", "8 fields, not 9"),
        ("\t7\t", "\tx\t", "bcache: hits is 'x'"),
        ("\t3\t", "\t-3\t", "bcache: misses is '-3'"),
        ("dirty", "wet", "unknown state 'wet'"),
        ("\t0\t", "\t-1\t", "io_errors is '-1'"),
        ("75%", "75", "Unused is '75'"),
        ("12.5M", "12.5Q", "'12.5Q' is not a size"),
        ("12.5M", "-1.0k", "'-1.0k' is not a size"),
        ("\n", "\tmore\n", "10 fields"),
    ],
)
def test_what_is_not_such_a_line_is_named(old: str, new: str, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        parse_line(LINE.replace(old, new, 1))


def test_a_device_that_bcache_let_go_of_has_no_numbers() -> None:
    with pytest.raises(TierFailedError, match="stopped"):
        parse_line("Fail\n")
    there = machine("hotset-data\t(252:4)\n")
    there.answers["sh -c"] = 1
    why = "bcache: bch_cached_dev_error() stop bcache0: too many IO errors on backing device dm-1"
    there.answers["dmesg"] = f"bcache: register_bdev() registered backing device dm-1\n{why}\n"
    report = tier(there).report()
    assert (report.state, report.counters) == ("failed", None)
    assert why in report.notes[0]


def test_an_origin_that_fails_is_told_before_the_kernel_stops_the_disk() -> None:
    there = machine("hotset-data\t(252:4)\n")
    there.answers["sh -c"] = LINE.replace("\t0\t", "\t3\t")
    report = tier(there).report()
    assert report.state == "degraded"
    assert f"{PLACE.origin} failed 3 requests" in report.notes[0]


@given(st.integers(0, 2**50))
def test_a_size_is_read_to_a_tenth_of_its_unit(size: int) -> None:
    """``bch_hprint``: units of 1024, one decimal, rounded down."""
    value, unit, tenth = size, "", 0
    for name in "kMGT":
        if value < 1024:
            break
        value, tenth, unit = value // 1024, value % 1024 * 10 // 1024, name
    written = f"{value}.{tenth}{unit}" if unit else str(value)
    factor = 1024 ** (" kMGT".index(unit) if unit else 0)
    assert 0 <= size - parse_size(written) <= factor / 10 + factor / 1024


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60), st.booleans()), max_size=30))
def test_keys_become_the_sectors_that_they_name(found: list[tuple[int, int, bool]]) -> None:
    lines = [
        f"0:{2048 + start} len {length} -> [0:69120 gen 1]{' dirty' * dirty}"
        for start, length, dirty in found
    ]
    keys = [parse_key(line) for line in lines]
    assert keys == [Key(0, 2048 + start, length, dirty) for start, length, dirty in found]
    extents = extents_of([key for key in keys if key], Sectors(2048))
    named = {at for start, length, _ in found for at in range(start, start + length)}
    covered = [
        at
        for one in extents
        for at in range(one.start // SECTOR_BYTES, (one.start + one.length) // SECTOR_BYTES)
    ]
    assert covered == sorted(named)


@pytest.mark.parametrize(
    "line", ["", "0:1 len 2", "0:1 len x -> []", "0:1 len 2 -> [0:1 gen 1] wet", "x" * 80]
)
def test_what_is_no_key_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        parse_key(line)


def test_odd_keys() -> None:
    assert parse_key("0:8 len 8 -> []") is None
    assert parse_key("1:8 len 8 -> [check dev] cs1 ab12") == Key(1, 8, 8, False)


@pytest.mark.parametrize("text", ["a b", "[a] [b]", ""])
def test_no_single_choice(text: str) -> None:
    with pytest.raises(ValueError, match="no single choice"):
        parse_choice(text)


@given(st.integers(int(CACHE_MIN), 2**44))
def test_buckets_are_enough_and_not_too_many_small_ones(cache: int) -> None:
    bucket = bucket_bytes(Bytes(cache))
    # cache_alloc refuses 512 or fewer.
    assert cache // bucket > 512
    assert bucket == bcache.BUCKET or cache < 1024 * bcache.BUCKET


def test_the_origin_lies_one_to_one_behind_a_header_on_the_flash() -> None:
    there = machine()
    made = tier(there)
    assert str(made.prepare()) == "/dev/origin"
    assert str(made.create()) == "/dev/mapper/hotset-data"
    tables = {
        call.argv[2]: call.stdin for call in there.calls if call.line.startswith("dmsetup create")
    }
    assert tables == {
        "hotset-data-cache": "0 196608 linear /dev/flash 36864",
        "hotset-volume": "0 32768 linear /dev/flash 2048",
        "hotset-data-backing": "0 2048 linear /dev/flash 34816\n2048 524288 linear /dev/origin 0",
        "hotset-data": "0 524288 linear /dev/bcacheN 0",
    }
    lines = there.commands
    for blank, shown in ((17, "hotset-data-backing"), (18, "hotset-data-cache")):
        wiped = next(at for at, line in enumerate(lines) if f"seek={blank} " in line)
        made_at = next(at for at, line in enumerate(lines) if f"dmsetup create {shown}" in line)
        assert wiped < made_at, "udev would find the old one"
    assert (
        f"make-bcache -C --bucket 65536 --block 512 --cset-uuid {SET} /dev/mapper/hotset-data-cache"
    ) in lines
    assert "make-bcache -B --block 512 --data-offset 2048 /dev/mapper/hotset-data-backing" in lines
    written = {call.argv[1]: call.stdin for call in there.calls if call.argv[0] == "tee"}
    assert written["/sys/block/dm-N/bcache/attach"] == SET
    wanted = {"cache_mode=writeback", "sequential_cutoff=0", "cache/congested_read_threshold_us=0"}
    assert wanted < set(attributes_set(there))


def test_activation_formats_nothing() -> None:
    there = machine()
    tier(there).activate()
    assert not [line for line in there.commands if line.startswith(("make-bcache", "dd "))]
    assert "dmsetup create hotset-data --uuid HOTSET-hotset-data" in there.commands


STUBS = {
    "modprobe": "",
    "dd": "",
    "make-bcache": 'echo "$*" >> formatted',
    "blockdev": "echo 512",
    "dmsetup": '[ "$1" != info ]',
    "bcache-super-show": '! grep -q "${1##*-}" lost && echo "sb.csum [match]"',
}
"""Stand-ins of the programs that the real one runs: no device is there, and some superblocks are
lost."""


@pytest.mark.parametrize(
    ("lost", "dirty", "refused"),
    [("backing", False, True), ("cache", True, True), ("cache", False, False), ("", True, False)],
)
def test_activation_refuses_what_has_no_superblock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str, dirty: bool, refused: bool
) -> None:
    """But for a cache that a resize was about to format, when nothing was dirty any more."""
    for name, script in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "boot", lambda _: str(programs.find_boot()))
    (tmp_path / "lost").write_text(f"{lost or 'none'}\n")
    flash, origin = tmp_path / "flash", tmp_path / "origin"
    origin.write_bytes(bytes(MIB))
    with flash.open("wb") as file:
        file.truncate(128 * MIB)
        file.seek(17 * MIB + 4096 + 111)
        file.write(bytes([2 << 5 if dirty else 1 << 5]))
    on_files = replace(PLACE, flash=PurePosixPath(flash), origin=PurePosixPath(origin))
    there = Bcache(Local(), SPEC, on_files, SET)
    assert there.may_be_dirty() is dirty
    with pytest.raises(MetadataDamagedError, match=lost) if refused else nullcontext():
        there.perform("open")
    is_formatted = (tmp_path / "formatted").exists()
    assert is_formatted is (lost == "cache" and not dirty)


def test_a_flush_ends_and_puts_all_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bcache, "_POLL_S", 0)
    there, left = machine("hotset-data\t(252:4)\n"), ["8.0k", "4.0k", "0.0k", "0.0k"]

    def shown() -> str:
        size = left.pop(0)
        return LINE.replace("12.5M", size).replace("dirty", "dirty" if left else "clean")

    there.answers["sh -c"] = shown
    seen: list[Blocks] = []
    assert tier(there).flush(seen.append) == 2
    assert seen == [2, 1, 0, 0], "until the superblock says so"
    told = attributes_set(there)
    modes = [one for one in told if one.startswith("cache_mode=")]
    assert modes == ["cache_mode=writethrough", "cache_mode=writeback"]
    percents = [one for one in told if one.startswith("writeback_percent=")]
    assert percents == ["writeback_percent=0", "writeback_percent=10"]


def test_a_flush_that_makes_no_progress_says_why_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_POLL_S", 0.01), ("_STALL_S", 0.05), ("_STALL_LIMIT_S", 0.2)):
        monkeypatch.setattr(bcache, name, seconds)
    there, warned = machine("hotset-data\t(252:4)\n"), list[str]()
    there.answers["dmesg"] = "[1.0] sdb: ok\n[2.0] I/O error, dev sdb, sector 8\n"
    with pytest.raises(FlushStalledError, match=r"blocks are dirty still.*I/O error, dev sdb"):
        tier(there).flush(warn=warned.append)
    assert warned
    modes = [one for one in attributes_set(there) if one.startswith("cache_mode=")]
    assert modes[-1] == "cache_mode=writeback", "goes on as before"


def test_whoever_has_the_kernels_lock_makes_a_tier_a_failed_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = machine("hotset-data\t(252:4)\n")
    run = there.execute

    def execute(command: Command) -> Result:
        if command.argv[0] == "sh":
            assert command.timeout_s <= 30
            raise CommandTimeoutError("vm", command.argv, command.timeout_s)
        return run(command)

    monkeypatch.setattr(there, "execute", execute)
    assert tier(there).report().state == "failed"
    with pytest.raises(CommandTimeoutError):
        tier(there).flush()


def test_what_a_refused_activation_left_is_nothing_to_fill() -> None:
    """A fill makes the accelerated device where it is not there. A disk whose cache alone is there
    was activated, and that was refused or cut short: nobody has looked at its origin since."""
    left = FakeMachine({"dmsetup ls": "hotset-data-cache\t(254:1)\n"})
    assert not tier(left).may_be_filled()
    assert dm_cache(left, SPEC).may_be_filled(), "its own off-line fill looks at the origin"
