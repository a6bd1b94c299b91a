from __future__ import annotations

from typing import Any

import pytest

from hotset.reports.analysis import answer, caveats, stats
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Caveat, Steadiness
from hotset.reports.render import markdown
from tests import documents

RAW = documents.complete().model_dump()


def codes(document: RunDocument) -> set[str]:
    return {caveat.code for caveat in caveats.derive(document)}


def test_the_complete_run() -> None:
    assert codes(documents.complete()) == {
        "FITS_IN_CACHE",
        "LOG_MOVED",
        "USER_MODE_LINUX",
        "MODELLED_STORAGE",
        "SHORT_RAMPUP",
        "NOT_LEVEL",
        "FAILED_TRANSACTIONS",
        "IDLE_SECONDS",
        "NOT_AUDITED",
    }


def test_the_plain_run() -> None:
    assert codes(documents.plain()) == {
        "FITS_IN_CACHE",
        "LOG_MOVED",
        "NO_INTERVAL",
        "CPU_BOUND",
        "FEW_REPEATS",
        "SHORT_RAMPUP",
        "NOT_LEVEL",
        "FAILED_TRANSACTIONS",
        "IDLE_SECONDS",
        "NOT_AUDITED",
    }


def test_one_repeat_without_seconds_has_no_interval() -> None:
    """As HammerDB leaves it; 32.9–32.9 would be read as certain, and it does not contain 1×."""
    arms = {
        name: documents.arm(name, 1).model_copy(
            update={
                "repeats": (documents.repeat(name, 1, level).model_copy(update={"series": ()}),)
            }
        )
        for name, level in documents.LEVELS.items()
    }
    factor = stats.factor(arms["accelerated"], arms["baseline"])
    document = documents.changed(
        documents.complete(),
        arms=tuple(one.model_dump() for one in arms.values()),
        factors={"tpcc": factor.model_dump()},
    )
    assert "NO_INTERVAL" in codes(document)
    assert "NOT_SIGNIFICANT" not in codes(document)
    said = answer.headline(document)
    assert said.startswith("With the flash cache TPC-C ran ")
    assert "(one repeat: how far runs lie apart is not known)" in said


@pytest.mark.parametrize(
    ("code", "changes", "says"),
    [
        ("INCOMPLETE", {"state": "failed"}, "The run failed"),
        ("WARMUP_DIFFERS", {"warmup": RAW["warmup"] | {"differing_blocks": 2}}, "2 of 4,096"),
        ("PROBE_BELOW", {"warmup": RAW["warmup"] | {"probe_hit_ratio": 0.9}}, "90.0 %"),
        ("WARMUP_SLOW", {"warmup": RAW["warmup"] | {"mb_per_s": 49.2}}, "50 %"),
        ("MODELLED_FLASH", {"tier": RAW["tier"] | {"emulated": True}}, "Modelled flash"),
        (
            "MODELLED_FLASH",
            {"tier": RAW["tier"] | {"emulated": True, "flash_model_read_us": 90.0}},
            "in 70 µs, the way to it not counted (its model: 90 µs for 8 KiB)",
        ),
        ("CHECKED_AFTER_LOAD", {"database": RAW["database"] | {"checked_after": "load"}}, "twelve"),
        (
            "QUERIES_FIT_IN_MEMORY",
            {"database": RAW["database"] | {"tpch_bytes": RAW["database"]["buffers_bytes"]}},
            "served by memory",
        ),
        ("FITS_IN_MEMORY", {"database": RAW["database"] | {"bytes": 2**30}}, "1 GiB"),
        (
            "CALIBRATION_OFF",
            {"storage": RAW["storage"] | {"measured": {"seq_read_mb_per_s": 80}}},
            "seq read mb per s -20 %",
        ),
        ("USER_MODE_LINUX", {}, "as a process: one CPU"),
        ("FITS_IN_CACHE", {}, "The cache (6 GiB) holds the whole database (5 GiB)"),
        ("LOG_MOVED", {}, "What they give by themselves is not known"),
    ],
)
def test_each_figure_brings_its_caveat(code: str, changes: dict[str, Any], says: str) -> None:
    document = documents.changed(documents.complete(), **changes)
    found = [caveat for caveat in caveats.derive(document) if caveat.code == code]
    assert len(found) == 1
    assert says in found[0].text


def test_a_cache_smaller_than_the_database_without_a_volume_is_the_caches_factor() -> None:
    tier = RAW["tier"] | {"cache_bytes": RAW["database"]["bytes"] // 2, "volume_bytes": 0}
    document = documents.changed(documents.complete(), tier=tier)
    assert not codes(document) & {"FITS_IN_CACHE", "LOG_MOVED"}
    assert "all cached" not in answer.conditions(document)
    assert "all cached" in answer.conditions(documents.complete())


def test_an_arm_with_the_volume_alone_tells_what_the_log_gives() -> None:
    document = documents.complete()
    slow = document.arm("baseline")
    assert slow
    faster = [one.model_copy(update={"nopm": one.nopm * 1.3}) for one in slow.repeats if one.nopm]
    volume = slow.model_copy(update={"name": "flash-volume", "repeats": tuple(faster)})
    document = document.model_copy(update={"arms": (*document.arms, volume)})
    (found,) = [one for one in caveats.derive(document) if one.code == "LOG_MOVED"]
    assert "By themselves they give 1.30×" in found.text


def test_cpu_of_a_transaction_is_told_beside_its_rate() -> None:
    plain = documents.plain()
    (found,) = [one for one in caveats.derive(plain) if one.code == "CPU_BOUND"]
    arm, machine = plain.arm("accelerated"), plain.machine
    assert arm
    assert machine
    figures = answer.figures(arm)
    assert figures.server_cpu
    each = figures.server_cpu * machine.cores * 60_000 / figures.tpm
    assert f"{each:.2f} ms of a core for each transaction" in found.text
    assert "CPU ms each" in markdown.render(plain)


def test_a_run_checked_after_every_window_has_no_caveat_about_it() -> None:
    database = RAW["database"] | {"checked_after": "every-arm"}
    assert "CHECKED_AFTER_LOAD" not in codes(
        documents.changed(documents.complete(), database=database)
    )


def test_a_bad_repeat_is_not_hidden_by_a_good_mean() -> None:
    each = [dict(figures) for figures in RAW["warmup"]["repeats"]]
    each[1]["probe_hit_ratio"] = 0.4
    document = documents.changed(documents.complete(), warmup=RAW["warmup"] | {"repeats": each})
    assert "PROBE_BELOW" in codes(document)


@pytest.mark.parametrize(("figure", "code"), [("server_steal", "STOLEN"), ("others_cpu", "LOADED")])
@pytest.mark.parametrize("workload", ["arms", "power_arms"])
def test_a_machine_that_is_not_alone_says_so(workload: str, figure: str, code: str) -> None:
    document = documents.with_queries(5)
    assert code not in codes(document)
    arms = list(getattr(document, workload))
    robbed = arms[1].repeats[0].model_copy(update={figure: 0.32})
    arms[1] = arms[1].model_copy(update={"repeats": (robbed, *arms[1].repeats[1:])})
    text = {
        caveat.code: caveat.text
        for caveat in caveats.derive(documents.changed(document, **{workload: tuple(arms)}))
    }[code]
    assert "up to 32 %" in text
    assert "(accelerated 32 %)" in text


def test_thresholds_are_open_at_their_figure() -> None:
    cpu = [dict(repeat) for repeat in RAW["arms"][1]["repeats"]]
    for repeat in cpu:
        repeat["server_cpu"] = 0.85
    arms = [RAW["arms"][0], {"name": "accelerated", "repeats": cpu}]
    document = documents.changed(
        documents.complete(),
        arms=arms,
        warmup=RAW["warmup"] | {"mb_per_s": 90.0, "origin_mb_per_s": 100.0, "repeats": ()},
    )
    assert not codes(document) & {"CPU_BOUND", "WARMUP_SLOW"}


@pytest.mark.parametrize(("seconds", "short"), [(6.2, "6"), (12.0, "12"), (29.4, "29"), (30, "")])
def test_a_window_shorter_than_is_advised_is_named(seconds: float, short: str) -> None:
    arms = [dict(arm) for arm in RAW["arms"]]
    arms[0]["repeats"] = [dict(repeat) for repeat in arms[0]["repeats"]]
    arms[0]["repeats"][0] |= {"duration_s": seconds}
    document = documents.changed(documents.complete(), arms=arms)
    found = [one for one in caveats.derive(document) if one.code == "SHORT_WINDOW"]
    assert len(found) == bool(short)
    assert all(f"only {short} s were measured" in one.text for one in found)
    assert all("Measure for 30 s or more" in one.advice for one in found)


def test_every_code_has_text_and_advice() -> None:
    for code in caveats.Code:
        assert code.text.endswith(".")
        assert code.advice.endswith(".")


def test_removed_warnings_come_back_and_foreign_ones_stay() -> None:
    own = Caveat(code="HARNESS_OWN", text="Something else.", advice="Look there.")
    document = documents.complete().model_copy(update={"warnings": (own,)})
    assert caveats.list_caveats(document) == (*caveats.derive(document), own)


def test_what_is_not_steady_is_named_with_its_second() -> None:
    turned = Steadiness(
        of="stock_level",
        measure="latency_ms",
        rounds=(1.9, 1.9, 2.0, 51.0, 51.2),
        excursion=2.2,
        slope=2.3,
        second=72,
        steady=False,
    )
    document = documents.complete()
    first = document.arms[0].repeats[0]
    found = caveats.derive(
        documents.with_windows(
            document, lambda _, one: {"steadiness": (turned,)} if one is first else {}
        )
    )
    (caveat,) = [one for one in found if one.code == "NOT_STEADY"]
    assert "baseline, repeat 1: stock-level's mean latency (1.9 to 51.2 ms, from second 72)" in (
        caveat.text
    )
    assert "NOT_STEADY" not in {one.code for one in caveats.derive(document)}


def test_what_cannot_be_told_to_be_steady_is_named_apart() -> None:
    few = Steadiness(
        of="all",
        measure="reads",
        rounds=(29.6, 25.6, 20.0, 19.7, 19.6),
        excursion=0,
        slope=0,
        second=0,
        steady=None,
    )
    latency = few.model_copy(update={"of": "delivery", "measure": "latency_ms"})
    document = documents.with_windows(
        documents.complete(),
        lambda arm, _: {"steadiness": (few, latency)} if arm == "baseline" else {},
    )
    found = caveats.derive(document)
    (caveat,) = [one for one in found if one.code == "STEADINESS_UNKNOWN"]
    assert "reads per transaction in baseline (repeat 1, repeat 2" in caveat.text
    assert "delivery" not in caveat.text
    assert "NOT_STEADY" not in {one.code for one in found}


def test_settings_that_decide_the_figure_stand_beside_it() -> None:
    """Nothing said that one arm wrote without fsync, or with other settings than the other."""
    fast = {"fsync": "off", "max_wal_size": "1GB"}
    document = documents.with_windows(
        documents.complete(),
        lambda arm, _: {"settings": fast if arm == "accelerated" else fast | SAFE},
    )
    assert codes(document) >= {"NOT_DURABLE", "SETTINGS_DIFFER"}
    (differ,) = [one for one in caveats.list_caveats(document) if one.code == "SETTINGS_DIFFER"]
    assert "fsync on in baseline, off in accelerated" in differ.text
    assert "in accelerated a crash would lose commits (fsync = off)" in answer.headline(document)


SAFE = {"fsync": "on"}
