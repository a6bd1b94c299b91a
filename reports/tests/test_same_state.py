"""Whether the arms were measured in the same state: pages per transaction, apart and by repeat."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from hotset.reports.analysis import answer, caveats, same_state
from hotset.reports.model.document import Arm, RunDocument
from hotset.reports.model.windows import Preparation, Repeat, ServerIo
from hotset.reports.render import html, markdown, terminal
from tests import documents

PUBLISHED = Path(__file__).parents[1] / "published"
DEMO = "20261123-164110-demo"
TRANSACTIONS = 1000
MB = 10**6


def published(name: str) -> RunDocument:
    return RunDocument.model_validate_json((PUBLISHED / name / "result.json").read_text())


def text(document: RunDocument, code: str) -> str:
    """Empty where the caveat is not among the derived."""
    return next((one.text for one in caveats.derive(document) if one.code == code), "")


def counting(reads: int | None, writes: int | None, faster: int = 1) -> Callable[[Repeat], Repeat]:
    """Pages of `TRANSACTIONS`, in a minute; of so many times as many transactions and pages."""
    each = {"reads": reads, "writes": writes}
    counted = {name: one if one is None else one * faster for name, one in each.items()}
    of_server = ServerIo.model_validate({"seconds": 60, **counted})
    return lambda one: one.model_copy(update={"server_io": of_server, "tpm": TRANSACTIONS * faster})


def without(one: Repeat) -> Repeat:
    return one.model_copy(update={"server_io": None, "preparation": None})


def changed(document: RunDocument, arms: dict[str, Callable[[Repeat], Repeat]]) -> RunDocument:
    """Every repeat of these arms."""

    def of(arm: Arm) -> Arm:
        if arm.name not in arms:
            return arm
        repeats = tuple(arms[arm.name](one) for one in arm.repeats)
        return arm.model_copy(update={"repeats": repeats})

    return document.model_copy(update={"arms": tuple(of(arm) for arm in document.arms)})


def pages(reads: int, writes: int) -> RunDocument:
    """Two arms: all do 16 reads and 8 writes per transaction, but the baseline so many."""
    fast, flash = (counting(16 * TRANSACTIONS, 8 * TRANSACTIONS, times) for times in (10, 9))
    return changed(
        documents.complete(),
        {"accelerated": fast, "all-flash": flash, "baseline": counting(reads, writes)},
    )


def test_the_published_demo_compares_servers_that_were_not_in_the_same_state() -> None:
    """In its first repeat reads and writes together are the same, and neither is."""
    said = text(published(DEMO), "WORK_DIFFERS")
    assert (
        "baseline, repeat 1, read 21.5 where accelerated read 16.2 (33 % more) and wrote 3.2 where"
        " accelerated wrote 8.6 (63 % less)" in said
    )
    assert "repeat 2" in said
    assert "repeat 3" in said
    assert "all-flash" not in said, "within 5 % of the accelerated arm"
    assert "At equal work the factor would be about 41×, not 45.1× (an estimate" in said
    assert "before its buffers were full" in said
    # A CPU that was busy hides less of the factor than that adds.
    assert "so it held that run back" in text(published(DEMO), "CPU_BOUND")
    assert "CPU-bound" in answer.verdicts(published(DEMO))


@pytest.mark.parametrize(
    ("reads", "writes", "says"),
    [
        (16_790, 8_390, ""),
        (16_900, 8_000, "read 16.9 where accelerated read 16.0 (6 % more)"),
        (15_100, 8_000, "read 15.1 where accelerated read 16.0 (6 % less)"),
        (16_000, 7_500, "wrote 7.5 where accelerated wrote 8.0 (6 % less)"),
        (20_000, 4_000, "(25 % more) and wrote 4.0"),
    ],
)
def test_reads_and_writes_are_compared_apart(reads: int, writes: int, says: str) -> None:
    said = text(pages(reads, writes), "WORK_DIFFERS")
    assert bool(said) == bool(says)
    assert says in said


def test_a_good_mean_does_not_hide_repeats() -> None:
    """One repeat with half more, one with half less."""
    document = pages(16_000, 8_000)
    baseline = document.arms[0]
    first, second, *rest = baseline.repeats
    first, second = counting(24_000, 8_000)(first), counting(8_000, 8_000)(second)
    arm = baseline.model_copy(update={"repeats": (first, second, *rest)})
    said = text(document.model_copy(update={"arms": (arm, *document.arms[1:])}), "WORK_DIFFERS")
    assert "baseline, repeat 1, read 24.0" in said
    assert "baseline, repeat 2, read 8.0" in said
    assert "repeat 3" not in said


def test_pages_too_few_to_matter_are_not_compared() -> None:
    """Of a workload that only reads, some pages are written all the same."""
    document = changed(
        documents.complete(),
        {
            "baseline": counting(16_000, 10),
            "accelerated": counting(16_000, 20, 10),
            "all-flash": counting(16_000, 700),
        },
    )
    assert text(document, "WORK_DIFFERS") == ""
    document = changed(document, {"all-flash": counting(16_000, 1_000)})
    assert "all-flash, repeat 1, wrote 1.0 where" in text(document, "WORK_DIFFERS")


def test_none_there_is_no_share() -> None:
    none = counting(0, 8_000, 10)
    document = changed(pages(4_000, 8_000), {"accelerated": none, "all-flash": none})
    assert "read 4.0 where accelerated read 0.0;" in text(document, "WORK_DIFFERS")


def test_larger_buffers_are_another_state_on_purpose() -> None:
    document = pages(16_000, 8_000)
    memory = document.arms[2].model_copy(update={"name": "in-memory"})
    document = changed(
        document.model_copy(update={"arms": (*document.arms[:2], memory)}),
        {"in-memory": counting(10, 8_000)},
    )
    assert text(document, "WORK_DIFFERS") == ""
    assert text(document, "WORK_UNKNOWN") == ""


def test_a_baseline_that_its_cpu_held_back_has_no_estimate() -> None:
    document = pages(20_000, 8_000)
    assert "At equal work the factor would be about" in text(document, "WORK_DIFFERS")
    busy = changed(document, {"baseline": lambda one: one.model_copy(update={"server_cpu": 0.95})})
    assert "read 20.0 where" in text(busy, "WORK_DIFFERS")
    assert "At equal work" not in text(busy, "WORK_DIFFERS")


def test_the_factor_does_not_change_where_only_others_differ() -> None:
    document = changed(pages(16_000, 8_000), {"all-flash": counting(20_000, 8_000)})
    assert "all-flash, repeat 1, read 20.0" in text(document, "WORK_DIFFERS")
    assert "At equal work" not in text(document, "WORK_DIFFERS")


@pytest.mark.parametrize(
    "name", ["20261121-220932-demo", "20261121-232218-zdxl-2014", "20261122-215748-curve"]
)
def test_what_was_not_counted_is_not_known_and_said_once(name: str) -> None:
    document = published(name)
    assert text(document, "WORK_DIFFERS") == ""
    found = [one.text for one in caveats.derive(document) if one.code == "WORK_UNKNOWN"]
    assert len(found) == 1
    assert "Not known whether the arms did the same work per transaction" in found[0]
    assert "baseline" in found[0]


def test_what_is_partly_counted_is_named() -> None:
    document = documents.complete()
    assert same_state.unknown(document) == []
    document = changed(document, {"baseline": counting(16_000, None), "all-flash": without})
    assert same_state.unknown(document) == [
        "baseline (pages written in 3 of 3 windows)",
        "all-flash",
    ]
    nothing_done = changed(
        documents.complete(),
        {"baseline": lambda one: one.model_copy(update={"tpm": 0}) if one.repeat == 2 else one},
    )
    assert same_state.unknown(nothing_done) == [
        "baseline (pages read in 1 of 3 windows and pages written in 1 of 3 windows)"
    ]


def test_one_arm_has_nothing_to_be_compared_with() -> None:
    document = changed(documents.complete(), {"baseline": without})
    alone = document.model_copy(update={"arms": document.arms[:1]})
    assert same_state.unknown(alone) == []
    assert same_state.differences(alone) == []


def test_windows_of_a_curve_are_compared_at_the_same_number_of_users() -> None:
    said = text(published("20261123-165615-curve"), "WORK_DIFFERS")
    assert "baseline with 64 users, repeat 2, wrote 5.4 where accelerated wrote 9.4" in said
    assert "baseline with 1 user, repeat 1, read 38.9 where all-flash read 17.1" in said
    assert said.count("repeat") == same_state.NAMED
    assert " more windows" in said


def reading(
    mb_per_s: float | None, rampup_s: float = 30, orders_before: int | None = None
) -> Callable[[Repeat], Repeat]:
    count = None if mb_per_s is None else round(mb_per_s * 60 * MB)
    of_server = ServerIo(seconds=60, read_bytes=count)
    changes = {
        "server_io": of_server,
        "rampup_s": rampup_s,
        "orders_before": orders_before,
        "preparation": None,
    }
    return lambda one: one.model_copy(update=changes)


def buffered(buffers_mb: float, arms: dict[str, Callable[[Repeat], Repeat]]) -> RunDocument:
    """Of a larger database, without a probe."""
    document = documents.complete()
    assert document.database is not None
    database = document.database.model_copy(update={"buffers_bytes": round(buffers_mb * MB)})
    names = ("baseline", "accelerated", "all-flash")
    all_arms = {name: reading(1000) for name in names} | arms
    return changed(document.model_copy(update={"database": database, "warmup": None}), all_arms)


def test_the_published_demo_opened_its_windows_before_the_buffers_were_full() -> None:
    """48.2 MiB at 690 pages a second are 9 s; the ramp-up was 3 s."""
    said = text(published(DEMO), "SHORT_RAMPUP")
    assert "hold (48.2 MiB)" in said
    assert "baseline, 3 of 3 windows (at worst 3.0 s of the 9.0 s that takes)" in said
    assert "accelerated" not in said
    assert "all-flash" not in said
    assert text(published(DEMO), "RAMPUP_UNKNOWN") == ""


@pytest.mark.parametrize(("buffers_mb", "short"), [(299, False), (301, True)])
def test_the_buffers_have_to_be_read_once_before(buffers_mb: float, short: bool) -> None:
    said = text(buffered(buffers_mb, {"baseline": reading(10)}), "SHORT_RAMPUP")
    assert ("baseline, 3 of 3 windows" in said) == short


def test_the_probe_of_a_warmed_cache_is_a_preparation() -> None:
    slow = {"accelerated": reading(10), "baseline": reading(10)}
    document = buffered(800, slow)
    assert "accelerated" in text(document, "SHORT_RAMPUP")
    warmed = document.model_copy(update={"warmup": documents.complete().warmup})
    said = text(warmed, "SHORT_RAMPUP")
    assert "accelerated" not in said, "30 s of ramp-up and 60 s of the probe"
    assert "baseline, 3 of 3 windows (at worst 30 s of the 1 min 20 s that takes)" in said


def test_no_more_is_to_be_read_than_there_is() -> None:
    document = buffered(800, {"baseline": reading(10)})
    assert document.database is not None
    small = document.database.model_copy(update={"bytes": 200 * MB})
    assert text(document, "SHORT_RAMPUP")
    assert text(document.model_copy(update={"database": small}), "SHORT_RAMPUP") == ""


def test_a_server_that_reads_nothing_has_all_it_needs() -> None:
    document = buffered(800, {"baseline": reading(0)})
    assert text(document, "SHORT_RAMPUP") == ""
    assert text(document, "RAMPUP_UNKNOWN") == ""


def test_earlier_windows_of_a_curve_fill_the_buffers() -> None:
    """As they did: only windows that opened a turn wrote less than those after them."""
    said = text(published("20261123-165615-curve"), "SHORT_RAMPUP")
    assert "baseline, 3 of 14 windows (at worst 3.0 s of the 33 s that takes)" in said


@pytest.mark.parametrize(
    ("baseline", "buffers_mb"),
    [(reading(None), 800), (without, 800), (reading(10), 0)],
    ids=["not counted", "no counts", "no size"],
)
def test_a_ramp_up_is_not_judged_without_figures(
    baseline: Callable[[Repeat], Repeat], buffers_mb: float
) -> None:
    document = buffered(buffers_mb, {"baseline": baseline})
    assert text(document, "SHORT_RAMPUP") == ""
    assert "missing for baseline" in text(document, "RAMPUP_UNKNOWN")
    assert text(document, "RAMPUP_UNKNOWN").count("baseline") == 1


@pytest.mark.parametrize(("other", "known"), [(None, False), (5, False), (4, True)])
def test_a_curve_whose_order_is_not_known_is_not_judged(other: int | None, known: bool) -> None:
    document = buffered(100, {"baseline": reading(10, orders_before=5)})
    baseline = document.arms[0]
    curve = tuple(reading(10, orders_before=other)(one) for one in baseline.repeats)
    arms = (baseline.model_copy(update={"curve": curve}), *document.arms[1:])
    said = text(document.model_copy(update={"arms": arms}), "RAMPUP_UNKNOWN")
    assert (said == "") == known


@pytest.mark.parametrize(
    "name", ["20261121-220932-demo", "20261121-232218-zdxl-2014", "20261122-215748-curve"]
)
def test_ramp_ups_of_older_runs_are_not_known(name: str) -> None:
    assert text(published(name), "SHORT_RAMPUP") == ""
    assert "missing for baseline" in text(published(name), "RAMPUP_UNKNOWN")


def prepared(
    level: bool | None,
    read_mb: float | None = 600,
    rampup_mb: float | None = 0,
    seconds: float = 20,
) -> Callable[[Repeat], Repeat]:
    read, rampup = (None if one is None else round(one * MB) for one in (read_mb, rampup_mb))
    done = Preparation(users=16, seconds=seconds, limit_s=24, level=level, read_bytes=read)
    changes = {"preparation": done, "rampup_read_bytes": rampup, "rampup_s": 3}
    return lambda one: reading(10)(one).model_copy(update=changes)


@pytest.mark.parametrize(
    ("level", "read_mb", "rampup_mb", "short", "known"),
    [
        (False, 700, 99, True, True),
        (False, 700, 101, False, True),
        (None, 799, 0, True, True),
        (True, 1, 0, False, True),
        (False, None, 101, False, False),
        (False, 700, None, False, False),
        (False, 0, 0, False, False),
    ],
)
def test_what_was_read_before_is_taken_from_the_record(
    level: bool | None, read_mb: float | None, rampup_mb: float | None, short: bool, known: bool
) -> None:
    """And not reckoned at the window's 10 MB/s, by which 23 s were never enough."""
    document = buffered(800, {"baseline": prepared(level, read_mb, rampup_mb)})
    said = text(document, "SHORT_RAMPUP")
    assert ("baseline, 3 of 3 windows (at worst 23 s of the" in said) == short
    assert ("baseline" in text(document, "RAMPUP_UNKNOWN")) != known


def test_only_what_is_not_on_record_is_said_to_be_reckoned() -> None:
    names = ("baseline", "accelerated", "all-flash")
    all_short = buffered(800, {name: prepared(False, 100) for name in names})
    reckoned = "is reckoned at the rate of its windows"
    assert text(all_short, "SHORT_RAMPUP")
    assert reckoned not in text(all_short, "SHORT_RAMPUP")
    assert reckoned in text(published(DEMO), "SHORT_RAMPUP")


def test_reads_that_were_not_level_are_told_by_arm() -> None:
    document = changed(documents.complete(), {"baseline": prepared(False, seconds=24)})
    assert "baseline (3 of 3 repeats, after 24 s of load)" in text(document, "NOT_LEVEL")
    assert text(document, "LEVEL_UNKNOWN") == ""
    some = changed(
        documents.complete(),
        {
            "baseline": prepared(True),
            "all-flash": lambda one: (
                prepared(None, seconds=9 + one.repeat)(one) if one.repeat > 1 else one
            ),
        },
    )
    assert text(some, "NOT_LEVEL") == ""
    said = text(some, "LEVEL_UNKNOWN")
    assert "all-flash (2 of 3 repeats, after 11 s to 12 s of load)" in said
    assert "baseline" not in said


def test_level_reads_have_no_caveat() -> None:
    document = changed(documents.complete(), {"baseline": prepared(True)})
    assert text(document, "NOT_LEVEL") == text(document, "LEVEL_UNKNOWN") == ""
    assert same_state.levels(document) == {
        True: [
            f"{arm} (3 of 3 repeats, after 20 s of load)"
            for arm in ("baseline", "accelerated", "all-flash")
        ]
    }


def test_whether_reads_were_level_in_older_runs_is_not_known() -> None:
    document = published(DEMO)
    assert text(document, "NOT_LEVEL") == ""
    assert "baseline (3 of 3 repeats, not on record)" in text(document, "LEVEL_UNKNOWN")


def test_a_preparation_comes_back_from_the_document() -> None:
    document = changed(documents.complete(), {"baseline": prepared(None, None, None)})
    again = RunDocument.model_validate_json(document.model_dump_json())
    assert again == document
    done = again.arms[0].repeats[0].preparation
    assert done is not None
    assert (done.level, done.read_bytes) == (None, None)


def test_the_page_tells_how_the_arms_were_prepared() -> None:
    document = changed(documents.complete(), {"baseline": prepared(False, seconds=24)})
    page = " ".join(html.render(document).replace("\N{NO-BREAK SPACE}", " ").split())
    assert "reads not level: baseline (3 of 3 repeats, after 24 s of load)" in page


def test_every_report_says_it() -> None:
    document = published(DEMO)
    said = "baseline, repeat 1, read 21.5 where accelerated read 16.2 (33 % more)"
    for report in (_terminal(document), markdown.render(document), html.render(document)):
        assert said in " ".join(report.replace("\N{NO-BREAK SPACE}", " ").split())


def _terminal(document: RunDocument) -> str:
    stream = io.StringIO()
    terminal.summary(document, Console(file=stream, width=100))
    return stream.getvalue()
