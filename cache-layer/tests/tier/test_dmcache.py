"""dm-cache's text formats, and the commands of the tier in their order.

Status lines after Documentation/admin-guide/device-mapper/cache.rst.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.machines.base import CommandTimeoutError
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes, Sectors
from hotset.lab.backend import alone
from hotset.tier.base import (
    Counters,
    FlushStalledError,
    MetadataDamagedError,
    TierFailedError,
    TierSpec,
    WriteMode,
)
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache import tier as dmcache
from hotset.tier.dmcache.status import CacheStatus, parse_dmsetup_status, parse_status
from hotset.tier.dmcache.tier import (
    BLOCK_MAX,
    BLOCK_STEP,
    DmCache,
    check_block,
)
from tests.fake_machine import FakeMachine, dm_cache, place
from tests.support.dm_cache_lines import LINE, PARAMETERS, SPEC

MIB, GIB = 2**20, 2**30
LIMIT = " 2 migration_threshold 2048"

COUNTS = st.integers(0, 2**32 - 1)
WORDS = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=12)
STATUSES = st.builds(
    CacheStatus,
    metadata_block_size=st.just(Sectors(8)),
    metadata_used=COUNTS,
    metadata_total=COUNTS,
    cache_block_size=st.integers(64, 2**21).map(Sectors),
    used=COUNTS.map(Blocks),
    total=COUNTS.map(Blocks),
    read_hits=COUNTS,
    read_misses=COUNTS,
    write_hits=COUNTS,
    write_misses=COUNTS,
    demotions=COUNTS,
    promotions=COUNTS,
    dirty=COUNTS.map(Blocks),
    features=st.lists(
        st.sampled_from(
            ["metadata2", "writeback", "writethrough", "passthrough", "no_discard_passdown"]
        ),
        unique=True,
    ).map(tuple),
    core_args=st.sampled_from([(), (("migration_threshold", "2048"),)]),
    policy=WORDS,
    policy_args=st.lists(st.tuples(WORDS, WORDS), max_size=4).map(tuple),
    metadata_mode=st.sampled_from(["rw", "ro"]),
    needs_check=st.booleans(),
)


@given(STATUSES)
def test_a_record_renders_and_parses_back(status: CacheStatus) -> None:
    line = status.render()
    assert parse_status(line) == status
    assert parse_status(line).render() == line
    assert parse_dmsetup_status(f"0 3145728 cache {line}\n") == status


def test_every_field_of_a_line() -> None:
    assert parse_dmsetup_status(LINE) == CacheStatus(
        metadata_block_size=Sectors(8),
        metadata_used=27,
        metadata_total=4096,
        cache_block_size=Sectors(128),
        used=Blocks(10145),
        total=Blocks(14336),
        read_hits=1234,
        read_misses=5,
        write_hits=678,
        write_misses=9,
        demotions=0,
        promotions=12,
        dirty=Blocks(33),
        features=("metadata2", "writeback"),
        core_args=(("migration_threshold", "2048"),),
        policy="smq",
        policy_args=(),
        metadata_mode="rw",
        needs_check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        PARAMETERS,
        "8 27/2048 128 5/16 1 2 3 4 0 5 0 1 writeback 2 migration_threshold 2048 smq 0 rw -",
        # `default` as in the documentation's first example, `mq` with its keys as in the second
        "8 72/1024 512 0/4096 0 0 0 0 0 0 0 1 writeback 2 migration_threshold 2048 default 0 rw -",
        "8 72/1024 1024 0/4096 0 0 0 0 0 0 0 1 writeback 2 migration_threshold 2048 "
        "mq 4 sequential_threshold 1024 random_threshold 8 rw -",
        "8 27/4096 128 9/16 1 2 3 4 5 6 0 2 metadata2 writethrough 2 migration_threshold 4096 "
        "cleaner 0 ro needs_check",
        "8 27/4096 128 9/16 1 2 3 4 5 6 0 3 metadata2 passthrough no_discard_passdown 0 smq 0 rw -",
        "8 27/4096 128 9/16 4294967295 2 3 4 5 6 0 0 2 migration_threshold 0 smq 0 rw -",
    ],
)
def test_lines_of_real_kernels_render_to_themselves(line: str) -> None:
    assert parse_status(line).render() == line


def test_counters_keep_their_names() -> None:
    assert parse_status(PARAMETERS).counters() == Counters(
        read_hits=1234,
        read_misses=5,
        write_hits=678,
        write_misses=9,
        promotions=12,
        demotions=0,
        dirty=Blocks(33),
        used=Blocks(10145),
        total=Blocks(14336),
        bypassed=None,
    )


@pytest.mark.parametrize("word", ["Fail", "Error"])
def test_a_failed_target_has_no_numbers(word: str) -> None:
    for read, text in ((parse_status, word), (parse_dmsetup_status, f"0 3145728 cache {word}\n")):
        with pytest.raises(TierFailedError, match=f"state {word}.*cache_check"):
            read(text)


# The name each word of PARAMETERS goes by in an error.
FIELD_NAMES = (
    "metadata block size",
    "metadata blocks",
    "cache block size",
    "cache blocks",
    "read hits",
    "read misses",
    "write hits",
    "write misses",
    "demotions",
    "promotions",
    "dirty",
    "number of features",
    "feature",
    "feature",
    "number of core arguments",
    "core argument",
    "core argument",
    "policy",
    "number of policy arguments",
    "metadata mode",
    "needs_check",
)


def test_a_line_that_ends_early_names_the_missing_field(subtests: pytest.Subtests) -> None:
    for kept in range(len(FIELD_NAMES)):
        with subtests.test(kept=str(kept)):
            line = " ".join(PARAMETERS.split()[:kept])
            with pytest.raises(ValueError, match=f"ends before {FIELD_NAMES[kept]}:"):
                parse_status(line)


def test_a_wrong_word_names_its_field_and_the_line(subtests: pytest.Subtests) -> None:
    for word in ["x", "-5", "1.5", "12/", "/3", "0x10"]:
        for at in [
            n for n, name in enumerate(FIELD_NAMES) if name not in ("core argument", "policy")
        ]:
            with subtests.test(at=str(at), word=str(word)):
                words = PARAMETERS.split()
                words[at] = word
                line = " ".join(words)
                with pytest.raises(ValueError) as refused:  # noqa: PT011 - the words are checked below
                    parse_status(line)
                message = str(refused.value)
                assert FIELD_NAMES[at] in message
                assert repr(word) in message
                assert line in message


def test_a_line_without_one_of_its_words_is_refused(subtests: pytest.Subtests) -> None:
    for at in range(len(FIELD_NAMES)):
        with subtests.test(at=str(at)):
            words = PARAMETERS.split()
            del words[at]
            with pytest.raises(ValueError, match="dm-cache status"):
                parse_status(" ".join(words))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("metadata2 writeback", "metadata2 write_around", "unknown feature 'write_around'"),
        ("migration_threshold", "migration_limit", "unknown core argument 'migration_limit'"),
        ("2 migration_threshold", "3 migration_threshold", "3 core arguments are no pairs"),
        ("smq 0", "smq 1 lonely", "1 policy arguments are no pairs"),
        (" rw -", " rw - surprise", "unknown field 'surprise'"),
        (" rw ", " rx ", "unknown metadata mode 'rx'"),
        (" rw -", " rw maybe", "unknown needs_check 'maybe'"),
    ],
)
def test_an_unknown_word_is_an_error_that_names_it(old: str, new: str, named: str) -> None:
    line = PARAMETERS.replace(old, new)
    assert line != PARAMETERS
    with pytest.raises(ValueError, match=named) as refused:
        parse_status(line)
    assert line in str(refused.value)


@pytest.mark.parametrize(
    "text", ["", "\n", "0 3145728 cache", "0 3145728 linear 8:0 0", "cache " + PARAMETERS]
)
def test_not_a_cache_target(text: str) -> None:
    with pytest.raises(ValueError, match="not the status of a cache target"):
        parse_dmsetup_status(text)


def test_two_targets_are_not_one() -> None:
    with pytest.raises(ValueError, match="unknown field"):
        parse_dmsetup_status(f"{LINE}\n3145728 8 linear 8:0 0\n")


def test_no_field_is_left_out_of_the_parser_tests() -> None:
    assert len(FIELD_NAMES) == len(PARAMETERS.split())
    assert len(fields(CacheStatus)) == 19


def table(spec: TierSpec) -> str | None:
    """Of the accelerated device, as the program makes it."""
    machine = FakeMachine({"blockdev --getsize64 /dev/origin": str(1536 * MIB)})
    dm_cache(machine, spec).create()
    (stdin,) = (call.stdin for call in machine.calls if call.line == created("hotset-data"))
    return stdin


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_table(mode: WriteMode) -> None:
    assert table(replace(SPEC, mode=mode)) == (
        "0 3145728 cache /dev/mapper/hotset-data-meta /dev/mapper/hotset-data-cache /dev/origin 128"
        f" 2 metadata2 {mode} smq 2 migration_threshold 2048"
    )


@pytest.mark.parametrize(("kib", "sectors"), [(64, 2048), (128, 2048), (256, 4096), (2048, 32768)])
def test_at_least_eight_blocks_may_be_written_back_at_a_time(kib: int, sectors: int) -> None:
    line = table(replace(SPEC, block=Bytes(kib * 1024)))
    assert line is not None
    assert line.endswith(f" smq 2 migration_threshold {sectors}")


@given(st.integers(0, 2**44), st.integers(1, 32768).map(lambda n: n * int(BLOCK_STEP)))
def test_metadata_is_enough_for_the_kernel(cache: int, block: int) -> None:
    room = metadata_bytes(Bytes(cache), Bytes(block))
    limit = 16 * GIB
    kernel_needs = 4 * MIB + cache // block * 28
    assert min(kernel_needs, limit) <= room <= limit
    assert room % MIB == 0
    assert metadata_bytes(Bytes(cache + block), Bytes(block)) >= room


def test_metadata_of_the_demonstration() -> None:
    assert metadata_bytes(Bytes(896 * MIB), Bytes(64 * 1024)) == 5 * MIB
    assert metadata_bytes(Bytes(0), Bytes(64 * 1024)) == 4 * MIB


@given(st.integers(1, BLOCK_MAX // BLOCK_STEP))
def test_block_sizes_the_kernel_takes(steps: int) -> None:
    block = Bytes(steps * BLOCK_STEP)
    assert check_block(block) is block


@given(
    st.one_of(
        st.integers(0, BLOCK_STEP - 1),
        st.integers(BLOCK_MAX + 1, 4 * BLOCK_MAX),
        st.integers(0, BLOCK_MAX).filter(lambda size: size % BLOCK_STEP),
    )
)
def test_block_sizes_the_kernel_refuses(size: int) -> None:
    with pytest.raises(ValueError, match=f"^{size} bytes: .* multiple of 32 KiB"):
        check_block(Bytes(size))


def created(name: str, mark: str = "") -> str:
    return f"dmsetup create {name} --uuid HOTSET-{mark}{name}"


def swaps(machine: FakeMachine) -> list[str]:
    """The tables that the accelerated device was given, in one command each."""
    return [
        (call.stdin or "").split(" 2 metadata2 ")[1]
        for call in machine.calls
        if call.argv[3:] == ("hotset-swap", "hotset-data")
    ]


def tier(machine: FakeMachine) -> DmCache:
    return dm_cache(machine, SPEC)


def with_dirty(*counts: int) -> FakeMachine:
    """A machine whose tier has so many dirty blocks at each look (the last stays)."""
    left = list(counts)

    def status() -> str:
        dirty = left.pop(0) if len(left) > 1 else left[0]
        return LINE.replace(" 12 33 ", f" 12 {dirty} ")

    return FakeMachine(
        {
            "dmsetup status hotset-data": status,
            "dmsetup ls": "hotset-data\t(253:3)\nhotset-data-meta\t(253:0)\n"
            "hotset-data-cache\t(253:1)\nhotset-volume\t(253:2)\nother-data\t(253:9)\n",
            "blockdev --getsize64 /dev/origin": str(1536 * MIB),
            "blockdev --getsize64 /dev/flash": str(2 * GIB),
        }
    )


def test_the_flash_is_split_into_three_with_empty_metadata() -> None:
    machine = FakeMachine({"dmsetup ls": "No devices found\n"})
    assert tier(machine).prepare() == PurePosixPath("/dev/origin")
    made = [(call.line, call.stdin) for call in machine.calls if "create" in call.line]
    assert made == [
        (created("hotset-data-meta", "private-"), "0 10240 linear /dev/flash 0"),
        (created("hotset-data-cache", "private-"), "0 1835008 linear /dev/flash 10240"),
        (created("hotset-volume"), "0 524288 linear /dev/flash 1845248"),
    ]
    blank = "dd if=/dev/zero of=/dev/flash bs=1048576 count=1 seek=0 oflag=direct"
    first = next(line for line in machine.commands if line.startswith(("dd", "dmsetup create")))
    assert first.startswith(blank), "before udev can see what was there"


def test_a_tier_that_is_active_is_not_blanked() -> None:
    machine = with_dirty(0)
    with pytest.raises(TierFailedError, match=r"hotset-data is active .*destroy"):
        tier(machine).prepare()
    assert not [line for line in machine.commands if line.startswith("dd")]


def test_slices_larger_than_the_flash_are_refused_before_anything_is_made() -> None:
    machine = FakeMachine({"blockdev --getsize64": str(1024 * MIB)})
    with pytest.raises(
        ValueError, match=r"volume 256 MiB, meta .* cache 896 MiB .* larger .*1 GiB"
    ):
        alone(machine, SPEC, PurePosixPath("/dev/flash"), PurePosixPath("/dev/origin"))
    assert machine.commands == ["blockdev --getsize64 /dev/flash"]


def test_the_accelerated_device_is_made_once() -> None:
    machine, listed = with_dirty(0), "hotset-data\t(253:3)\n"
    machine.answers["dmsetup ls"] = lambda: listed * (created("hotset-data") in machine.commands)
    made = tier(machine).create()
    assert tier(machine).create() == made == PurePosixPath("/dev/mapper/hotset-data")
    calls = [call for call in machine.calls if call.line.startswith("dmsetup create")]
    assert [call.line for call in calls] == [created("hotset-data")]


def test_counters_come_from_the_kernels_line() -> None:
    assert tier(with_dirty(33)).counters() == parse_status(PARAMETERS).counters()


def test_flush_waits_until_nothing_is_dirty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmcache, "_FLUSH_POLL_S", 0)
    machine, seen = with_dirty(7, 5, 2, 0), list[int]()
    assert tier(machine).flush(seen.append) == 7
    assert seen == [7, 5, 2, 0]
    assert swaps(machine) == [f"writethrough cleaner{LIMIT}", f"writeback smq{LIMIT}"], "as it was"
    alone = [line for line in machine.commands if line.startswith(("dmsetup susp", "dmsetup res"))]
    assert alone == [], "nothing stays suspended if this program ends here"


def test_a_flush_that_makes_no_progress_says_why_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dmcache, "_FLUSH_POLL_S", 0.01)
    monkeypatch.setattr(dmcache, "_STALL_S", 0.05)
    monkeypatch.setattr(dmcache, "_STALL_LIMIT_S", 0.2)
    machine, warned = with_dirty(367), list[str]()
    machine.answers["uname -r"] = "5.14.0-362.el9\n"
    with pytest.raises(FlushStalledError, match=r"367 blocks .*only while the disk is idle"):
        tier(machine).flush(warn=warned.append)
    assert warned
    assert "5.14.0-362.el9" in warned[0]
    pushed = "dmsetup message hotset-data 0 migration_threshold 16777216"
    assert pushed in machine.commands, "as LVM's users do by hand"
    assert swaps(machine)[-1] == f"writeback smq{LIMIT}", "goes on as before"
    machine.answers["uname -r"] = "6.12.1\n"
    machine.answers["dmesg"] = "[1.0] sdb: ok\n[2.0] I/O error, dev sdb, sector 8\n"
    with pytest.raises(
        FlushStalledError, match=r"I/O error, dev sdb, sector 8.*see to /dev/origin"
    ):
        tier(machine).flush()


def test_what_a_killed_flush_left_is_put_right() -> None:
    machine = with_dirty(0)
    machine.answers["blockdev --getsize64 /dev/mapper/hotset-data-cache"] = str(896 * MIB)
    machine.answers["dmsetup status hotset-data"] = LINE.replace("writeback", "writethrough")
    machine.answers["dmsetup info"] = "Suspended\n"
    assert "flush that was cut short" in str(tier(machine).settle())
    assert "dmsetup resume hotset-data" in machine.commands
    assert swaps(machine) == [f"writeback smq{LIMIT}"]


def test_a_flush_that_is_cut_short_puts_the_policy_back() -> None:
    machine = with_dirty(7)

    def interrupt(_: Blocks) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tier(machine).flush(interrupt)
    assert swaps(machine)[-1] == f"writeback smq{LIMIT}"


def test_flush_of_a_clean_tier_changes_nothing() -> None:
    machine = with_dirty(0)
    machine.answers["blockdev --getsize64 /dev/mapper/hotset-data-cache"] = str(896 * MIB)
    assert tier(machine).flush() == 0
    assert swaps(machine) == []


def test_flush_of_a_failed_tier_is_no_success() -> None:
    machine = FakeMachine({"dmsetup status": "0 3145728 cache Fail"})
    with pytest.raises(TierFailedError):
        tier(machine).flush()


def test_discard_does_not_write_back() -> None:
    machine = with_dirty(3)
    tier(machine).discard()
    assert not [line for line in machine.commands if "reload" in line or "status" in line]
    removed = [line.split()[-1] for line in machine.commands if line.startswith("dmsetup remove")]
    assert removed == ["hotset-data", "hotset-data-meta", "hotset-data-cache"], "not the volume"


def test_activation_checks_the_metadata_first() -> None:
    machine = FakeMachine(
        {
            "dmsetup ls": "No devices found\n",
            "cache_check": 1,
            "blockdev --getsize64 /dev/origin": str(1536 * MIB),
        }
    )
    with pytest.raises(MetadataDamagedError, match=r"cache_check .*/hotset-data-meta"):
        tier(machine).activate()
    assert created("hotset-data") not in machine.commands
    machine.answers["cache_check"] = ""
    tier(machine).activate()
    assert machine.commands.index(
        "cache_check --clear-needs-check-flag /dev/mapper/hotset-data-meta"
    ) < machine.commands.index(created("hotset-data"))
    assert not [line for line in machine.commands if line.startswith("dd ")]


def test_a_report_names_what_is_wrong() -> None:
    machine = with_dirty(0)
    assert tier(machine).report().state == "active"
    machine.answers["dmsetup status hotset-data"] = LINE.replace(" rw -", " ro needs_check")
    report = tier(machine).report()
    assert report.state == "degraded"
    assert [word in " ".join(report.notes) for word in ("read-only", "needs a check")] == [True] * 2
    machine.answers["dmsetup status hotset-data"] = "0 3145728 cache Fail\n"
    report = tier(machine).report()
    assert (report.state, report.counters) == ("failed", None)
    machine.answers["dmsetup ls"] = "No devices found\n"
    assert tier(machine).report().state == "inactive"


def test_a_cache_of_another_size_is_taken_in_while_it_works() -> None:
    machine = with_dirty(0)
    large = replace(SPEC, cache=Bytes(960 * MIB))
    DmCache(machine, large, place(large)).follow_cache()
    steps = [call.argv[3:] for call in machine.calls if call.argv[3:4] == ("hotset-swap",)]
    top = table(large)
    grown = f"0 {960 * 2048} linear /dev/flash 10240"
    assert steps == [("hotset-swap", "hotset-data", "hotset-data-cache", top, grown)]


SUPERBLOCK = "sh -c 'dd if=/dev/flash bs=4096 skip=0"


def superblock(flags: int = 1, version: int = 1) -> str:
    """As ``od`` prints it: csum, flags, blocknr, uuid, magic, version."""
    return f" 1234567 {flags} 0 0\n 0 0 0 0\n 6142003 0 {version}\n"


@pytest.mark.parametrize(
    ("version", "tools", "told"),
    [
        (1, "0.9.0", True),
        (2, "0.9.0", False),
        (2, "1.1.0", True),
        (2, "", False),
        (3, "1.1.0", False),
    ],
)
def test_dirty_bits_are_believed_where_the_tools_read_them(
    version: int, tools: str, told: bool
) -> None:
    """``cache_dump`` 0.9 (Debian 12) calls all blocks of format 2 clean, which the kernel makes."""
    machine = FakeMachine(
        {
            "dmsetup ls": "No devices found\n",
            "cache_dump --version": f"{tools}\n",
            "cache_dump /": '<mapping cache_block="3" origin_block="9" dirty="false"/>',
            SUPERBLOCK: superblock(version=version),
        }
    )
    assert tier(machine).may_be_dirty() is not told


def test_dirty_bits_are_not_believed_after_a_crash() -> None:
    """``cache_dump`` prints them whether or not the kernel closed the metadata."""
    machine = FakeMachine(
        {
            "dmsetup ls": "No devices found\n",
            "cache_dump": '<mapping cache_block="3" origin_block="9" dirty="false"/>',
            SUPERBLOCK: superblock(),
        }
    )
    assert not tier(machine).may_be_dirty()
    machine.answers[SUPERBLOCK] = superblock(flags=0)
    assert tier(machine).slots_at_rest().dirty == 1
    assert tier(machine).may_be_dirty()
    machine.answers["cache_dump"] = 64
    assert tier(machine).may_be_dirty(), "what it does not say is not known"

    def hang() -> str:
        raise CommandTimeoutError("db", ["cache_dump"], 60.0)

    machine.answers["cache_dump"] = hang
    assert tier(machine).may_be_dirty(), "nor what it does not come to"
    through = replace(SPEC, mode="writethrough")
    assert not dm_cache(machine, through).may_be_dirty(), "all of it is on the origin"


def test_a_repair_keeps_the_old_metadata_and_takes_all_for_dirty() -> None:
    machine = FakeMachine(
        {
            "dmsetup ls": "No devices found\n",
            "cache_dump": '<mapping cache_block="3" origin_block="9" dirty="false"/>',
        }
    )
    assert tier(machine).repair(write=False) == "cache_repair reads 1 blocks"
    assert not [call for call in machine.calls if call.argv[0] in ("cache_restore", "dd")]
    assert "/var/lib/hotset/archive/data-" in tier(machine).repair(write=True)
    archived = next(at for at, call in enumerate(machine.calls) if "hotset-archive" in call.argv)
    written = next(at for at, call in enumerate(machine.calls) if call.argv[0] == "cache_restore")
    assert archived < written
    xml = machine.files["/run/hotset/cache.xml"][0]
    assert 'cache_block="3" origin_block="9" dirty="true"' in xml
    assert not [line for line in machine.commands if line.startswith("dd if=/run")]


def test_copies_of_metadata_are_kept_for_each_disk_whatever_its_name(tmp_path: Path) -> None:
    """A repair of oltp once removed the copies of oltp-2."""
    source = tmp_path / "metadata"
    source.write_bytes(bytes(4096))
    machine = FakeMachine({"dmsetup ls": "No devices found\n"})
    tier(machine).repair(write=True)
    (call,) = (one for one in machine.calls if "hotset-archive" in one.argv)
    *script, folder, _, kept, _, most = call.argv
    names = [f"data-{day}-101010.metadata" for day in range(20260101, 20260108)]
    others = [f"data-2-{day}-101010.metadata" for day in range(20260101, 20260108)]
    for number, name in enumerate((*names, *others)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    words = [str(tmp_path), str(source), str(tmp_path / Path(kept).name), "data", most]
    assert folder == "/var/lib/hotset/archive"
    script[2] = script[2].replace("iflag=direct ", "")
    Local().run([*script, *words])
    left = sorted(one.name for one in tmp_path.glob("*.metadata"))
    assert set(others) < set(left)
    assert len(left) == len(others) + int(most)


def test_what_is_cached_is_read_without_holding_any_io_back() -> None:
    machine = with_dirty(0)
    tier(machine).resident()
    tier(machine).slots()
    programs = [call.argv[4] for call in machine.calls if "hotset-copy" in call.argv]
    assert [text.lstrip().startswith("for try in") for text in programs] == [True, False]
    assert all("trap 'dmsetup resume" in text for text in programs)
    assert not [line for line in machine.commands if line.startswith("dmsetup susp")]
