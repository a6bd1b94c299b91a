"""Histograms of the kernel: what is written, what is read back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.hitratio.histogram import Entry, Trigger, parse, size_for, triggers

# As Debian's kernel 6.12 printed them.
REMAPPED = """\
# event histogram
#
# trigger info: hist:keys=dev,old_sector.buckets=256:vals=hitcount:sort=hitcount:size=131072 if old_dev==265289730 && nr_sector > 0 && rwbs ~ "R*" [active]
#

{ dev:  265289729, old_sector: ~ 2093824-2094079 } hitcount:          3
{ dev:  265289729, old_sector: ~ 768-1023 } hitcount:         11

Totals:
    Hits: 14
    Entries: 2
    Dropped: 0


# event histogram
#
# trigger info: hist:keys=uuid.hex,bypass,writeback:vals=hitcount,cache_hit:sort=hitcount:size=16384 if inode==0 && rwbs ~ "*W*" [active]
#

{ uuid: 1643802540000000, bypass:          1, writeback:          0 } hitcount:         40  cache_hit:          7

Totals:
    Hits: 41
    Entries: 1
    Dropped: 1
"""  # noqa: E501


def test_tables_of_an_event() -> None:
    reads, writes = parse(REMAPPED)
    assert reads.entries == (
        Entry((("dev", 265289729), ("old_sector", 2093824)), 3),
        Entry((("dev", 265289729), ("old_sector", 768)), 11),
    )
    assert (reads.hits, reads.dropped, writes.hits, writes.dropped) == (14, 0, 41, 1)
    (entry,) = writes.entries
    assert entry.key("uuid") == 0x1643802540000000, "a .hex key, though it has no letter"
    assert (entry.key("bypass"), entry.sum("cache_hit"), entry.events) == (1, 7, 40)
    assert writes.trigger.startswith("hist:keys=uuid.hex")


def render(trigger: Trigger, entries: list[Entry], dropped: int) -> str:
    """A table as kernel/trace/trace_events_hist.c prints it (hist_trigger_show)."""
    buckets = {key.split(".")[0]: int(key.split("=")[1]) for key in trigger.keys if "=" in key}
    hexed = {key.split(".")[0] for key in trigger.keys if key.endswith(".hex")}

    def key(name: str, value: int) -> str:
        if name in buckets:
            return f"{name}: ~ {value}-{value + buckets[name] - 1}"
        return f"{name}: {value:x}" if name in hexed else f"{name}: {value:10}"

    lines = [
        f"{{ {', '.join(key(*pair) for pair in entry.keys)} }} hitcount: {entry.events:10}"
        + "".join(f"  {name}: {value:10}" for name, value in entry.sums)
        for entry in entries
    ]
    hits = sum(entry.events for entry in entries) + dropped
    head = f"# event histogram\n#\n# trigger info: {trigger.shown} [active]\n#\n\n"
    tail = f"\nTotals:\n    Hits: {hits}\n    Entries: {len(entries)}\n    Dropped: {dropped}\n"
    return head + "".join(line + "\n" for line in lines) + tail


U64 = st.integers(0, 2**64 - 1)
TRIGGER = Trigger(
    ("uuid.hex", "bypass", "sector.buckets=128"), 'a==1 && b ~ "*W*"', 2048, ("cache_hit",)
)
ENTRIES = st.lists(
    st.builds(
        lambda uuid, bypass, sector, events, hits: Entry(
            (("uuid", uuid), ("bypass", bypass), ("sector", sector)), events, (("cache_hit", hits),)
        ),
        U64,
        st.integers(0, 1),
        U64,
        U64,
        U64,
    )
)


@given(st.lists(st.tuples(ENTRIES, st.integers(0, 9)), min_size=1, max_size=3))
def test_any_table_reads_back(tables: list[tuple[list[Entry], int]]) -> None:
    text = "\n".join(render(TRIGGER, entries, dropped) for entries, dropped in tables)
    read = parse(text)
    assert [(list(table.entries), table.dropped) for table in read] == tables
    assert {table.trigger for table in read} == {TRIGGER.shown}


@given(st.integers(0, len(REMAPPED)))
def test_a_table_cut_short_is_never_taken_for_a_whole_one(at: int) -> None:
    whole = parse(REMAPPED)
    try:
        read = parse(REMAPPED[:at])
    except ValueError:
        return
    for mine, full in zip(read, whole, strict=False):
        assert mine.entries == full.entries


@pytest.mark.parametrize(
    "line",
    [
        "{ dev: x } hitcount: 3",
        "{ dev: 1 } hitcount: many",
        "{ dev: 1, } hitcount: 3",
        "{ dev: 1 } hitcount:  3  weight: ?",
        "something else",
    ],
)
def test_a_line_that_is_not_understood_is_named(line: str) -> None:
    text = REMAPPED.replace(
        "{ dev:  265289729, old_sector: ~ 768-1023 } hitcount:         11", line
    )
    with pytest.raises(ValueError, match=re.escape(line)):
        parse(text)


def test_triggers_as_they_stand() -> None:
    text = f"# Available triggers:\n# traceon hist\n{TRIGGER.shown} [active]\nstacktrace\n"
    assert triggers(text) == [TRIGGER.shown]
    assert TRIGGER.render() == (
        'hist:keys=uuid.hex,bypass,sector.buckets=128:vals=cache_hit:size=2048 if a==1 && b ~ "*W*"'
    )


def test_sizes_are_powers_of_two_within_the_kernels_bounds() -> None:
    assert [size_for(keys) for keys in (0, 128, 129, 65536, 10**9)] == [
        128,
        128,
        256,
        65536,
        131072,
    ]
