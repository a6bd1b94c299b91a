"""A plausible run, whole and in pieces, for the tests. Every figure is seeded.

Documents do not change, so each is made once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any

import numpy as np

from hotset.reports.analysis import caveats, stats
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import (
    CACHED_ARMS,
    Arm,
    PowerArm,
    RunDocument,
    WarmUp,
    WarmUpRepeat,
)
from hotset.reports.model.setup import (
    Calibration,
    Database,
    Experiment,
    Host,
    Machine,
    Storage,
    Tier,
)
from hotset.reports.model.windows import (
    Arrived,
    Counters,
    DeviceUse,
    DirectionUse,
    HighestRate,
    Latency,
    PowerRun,
    Preparation,
    Query,
    RateTrial,
    Repeat,
    Second,
    ServerIo,
    TimeUse,
    Transaction,
)

GIB = 2**30
LEVELS: dict[ArmName, float] = {"baseline": 428, "accelerated": 4193, "all-flash": 4150}
SPEC: dict[str, Any] = {
    "experiment": {"name": "demo", "title": "A flash cache in front of six slow disks"},
    "storage": {"model": "nas-6x7200-raid0", "link_mbit_per_s": 1000},
    "tier": {"kind": "dm-cache", "mode": "writeback", "policy": "smq", "block": "64 KiB"},
    "tpcc": {"items": "nurand", "warehouses": 60, "users": 16, "repeats": 3, "duration_s": 120},
}


def warned(document: RunDocument) -> RunDocument:
    """The same document with its `warnings` filled in."""
    return document.model_copy(update={"warnings": caveats.list_caveats(document)})


DEVICES: dict[ArmName, dict[str, tuple[float, float, float]]] = {
    "baseline": {"origin": (612, 88, 20)},
    "accelerated": {
        "origin": (41, 60, 9),
        "flash cache": (5200, 900, 0.07),
        "flash volume": (0, 410, 0.06),
    },
    "all-flash": {"flash": (5150, 930, 0.07), "flash volume": (0, 405, 0.06)},
}
"""Reads and writes a second, mean latency of either in ms."""


def devices(arm: ArmName, factor: float = 1) -> tuple[DeviceUse, ...]:
    """The baseline's disk is counted by the kernel, all others by the engine."""

    def direction(iops: float, ms: float) -> DirectionUse:
        return DirectionUse(
            iops=iops,
            mb_per_s=iops * 8192 / 1e6,
            latency_ms_mean=ms if iops else None,
            latency_ms_p99=4 * ms if iops and arm != "baseline" else None,
            queue=iops * ms / 1000,
        )

    return tuple(
        DeviceUse(
            name=name,
            counted_by="kernel" if arm == "baseline" else "engine",
            read=direction(reads * factor, ms),
            write=direction(writes * factor, ms),
            utilisation=min(1, (reads + writes) * factor * ms / 1000),
        )
        for name, (reads, writes, ms) in DEVICES[_kind(arm)].items()
    )


def _kind(arm: ArmName) -> ArmName:
    """A policy's arm is as any with a cache."""
    return "accelerated" if arm in CACHED_ARMS else arm


def repeat(
    arm: ArmName, number: int, nopm: float, duration_s: int = 120, noise: float = 0.15
) -> Repeat:
    random = np.random.default_rng((sum(map(ord, arm)), number))
    tiered = arm in CACHED_ARMS
    slow = arm == "baseline"
    wave = 1 + 0.25 * np.sin(np.arange(duration_s) / 9) if slow else np.ones(duration_s)
    rates = np.maximum(0, nopm * wave * random.normal(1, noise * (3 if slow else 1), duration_s))
    nopm = round(float(rates.mean()), 1)
    hits = {"read_hits": 982_000 + 900 * number, "write_hits": 402_000}
    misses = {"read_misses": 24_000 - 700 * number, "write_misses": 11_000}
    counters = Counters(
        **hits,
        **misses,
        promotions=2_114,
        demotions=1_020,
        dirty_blocks=3_310,
        used_blocks=1_094,
        bypassed=812,
    )
    reads = hits["read_hits"] + misses["read_misses"]
    writes = hits["write_hits"] + misses["write_misses"]
    cpu = 0.11 if slow else 0.72
    scale = 7.5 if slow else 1.0
    series = tuple(
        Second(
            second=second,
            nopm=round(float(rate), 1),
            tpm=round(float(rate) * 2.31, 1),
            failed=0,
            latency_ms_p95=round(41 * scale * float(random.normal(1, 0.1)), 1),
            hit_ratio=min(1.0, round(0.965 + 0.01 * math.sin(second / 7), 4)) if tiered else None,
            server_cpu=round(float(np.clip(random.normal(cpu, 0.03), 0, 1)), 3),
            dirty_bytes=second * 65536 * 28 if tiered else None,
            devices=devices(arm, 0.8 + 0.01 * (second % 20)),
        )
        for second, rate in enumerate(rates)
    )
    spread = scale * (1 + 0.04 * (number - 2)) * (0.93 if arm == "all-flash" else 1)
    latency = Latency(
        p50=11.2 * spread,
        p90=29.7 * spread,
        p95=41.3 * spread,
        p99=88.1 * spread,
        p99_9=163.0 * spread,
        p99_99=402.0 * spread,
    )
    failed = 3 if slow and number == 2 else 0
    time = TimeUse(
        cpu=0.11 if slow else 0.69,
        data_read=0.79 if slow else 0.05,
        data_write=0.01,
        log=0.05 if slow else 0.03,
        lock=0.02 if slow else 0.06,
        client=0.02 if slow else 0.15,
        other=0.0 if slow else 0.01,
        sessions=16,
    )
    return Repeat(
        repeat=number,
        nopm=nopm,
        tpm=round(nopm * 2.31, 1),
        hit_ratio=counters.hit_ratio() if tiered else None,
        read_hit_ratio=hits["read_hits"] / reads if tiered else None,
        write_hit_ratio=hits["write_hits"] / writes if tiered else None,
        latency_ms=latency,
        failed=failed,
        retries=2,
        server_cpu=cpu + 0.004 * number,
        server_user=cpu * 0.8,
        server_system=cpu * 0.2,
        server_iowait=0.71 if slow else 0.08,
        rampup_s=30,
        rampup_read_bytes=round(nopm * 4.7 / 2) * 8192,
        preparation=Preparation(
            users=16,
            seconds=60 if slow else 20,
            limit_s=60,
            level=not slow,
            read_bytes=round(nopm * 4.7) * 8192 if slow else 40 * GIB,
        ),
        items="nurand",
        hottest_fifth=0.62,
        isolation="read committed",
        seed=number,
        duration_s=duration_s,
        counters=counters if tiered else None,
        devices=devices(arm, 0.95 + 0.03 * number),
        server_io=ServerIo(
            seconds=duration_s,
            reads=round(nopm * 4.7 * duration_s / 60),
            read_bytes=round(nopm * 4.7 * duration_s / 60) * 8192,
            writes=round(nopm * 1.1 * duration_s / 60),
            write_bytes=round(nopm * 1.1 * duration_s / 60) * 8192,
            log_bytes=round(nopm * 6200 * duration_s / 60),
            log_writes=round(nopm * 1.6 * duration_s / 60),
            log_syncs=round(nopm * 1.5 * duration_s / 60),
        ),
        server_io_missing="PostgreSQL 15 does not count syncs of data files: 16 does",
        transactions={
            "new_order": Transaction(
                committed=round(nopm * duration_s / 60),
                rolled_back=7,
                retries=2,
                failed={"deadlock": failed} if failed else {},
                latency_ms=latency,
            ),
            "payment": Transaction(committed=round(nopm * duration_s / 62), latency_ms=latency),
        },
        series=series,
        time=time,
    )


@cache
def arm(name: ArmName, repeats: int = 3, nopm: float | None = None, duration_s: int = 120) -> Arm:
    level = LEVELS[name] if nopm is None else nopm
    drift = (0.98, 1.03, 1.0, 0.99, 1.01)
    return Arm(
        name=name,
        repeats=tuple(
            repeat(name, number + 1, level * drift[number], duration_s) for number in range(repeats)
        ),
    )


@cache
def warmup() -> WarmUp:
    figures: dict[str, Any] = {
        "method": "offline",
        "bytes": 5 * GIB,
        "origin_mb_per_s": 98.4,
        "sampled_blocks": 4096,
        "differing_blocks": 0,
        "probe_seconds": 60,
    }
    rates = (96.1, 94.8, 97.0)
    each = tuple(
        WarmUpRepeat(
            repeat=number,
            mb_per_s=rate,
            seconds=round(5 * GIB / 1e6 / rate, 1),
            probe_hit_ratio=0.971 + number / 1000,
            **figures,
        )
        for number, rate in enumerate(rates, start=1)
    )
    return WarmUp(mb_per_s=96.0, seconds=55.9, probe_hit_ratio=0.973, repeats=each, **figures)


@cache
def complete(duration_s: int = 120) -> RunDocument:
    """A whole run under User-Mode Linux on modelled storage."""
    arms = {name: arm(name, duration_s=duration_s) for name in LEVELS}
    document = RunDocument(
        hotset_version="0.1.0",
        run="20261121-071500-demo",
        state="complete",
        started_at=datetime(2026, 11, 21, 7, 15, tzinfo=UTC),
        seconds=3125.4,
        command=(),
        experiment=Experiment(
            name="demo", title="A flash cache in front of six slow disks", spec=SPEC
        ),
        tier=Tier(
            kind="dm-cache",
            mode="writeback",
            policy="smq",
            block_bytes=65536,
            metadata_bytes=16 * 2**20,
            cache_bytes=6 * GIB,
            volume_bytes=2 * GIB,
            emulated=False,
        ),
        storage=Storage(
            kind="modelled",
            name="NAS, 6 × 1 TB 7200 rpm, RAID 0",
            description="six 7200 rpm disks, RAID 0, iSCSI over 1 Gbit/s",
            size_bytes=40 * GIB,
            measured=Calibration(seq_read_mb_per_s=98.4, rand_read_iops=642),
            expected=Calibration(seq_read_mb_per_s=100, rand_read_iops=660),
        ),
        machine=Machine(
            kind="uml",
            cores=2,
            memory_bytes=2 * GIB,
            kernel="6.12.48",
            host=Host(cpu="Example CPU @ 2.90GHz", cores=2, memory_bytes=8 * GIB, kernel="6.8.0"),
        ),
        database=Database(
            engine="PostgreSQL",
            version="17.6",
            bytes=5 * GIB,
            buffers_bytes=512 * 2**20,
            warehouses=60,
            users=16,
        ),
        arms=tuple(arms.values()),
        warmup=warmup(),
        factors={
            "tpcc": stats.factor(arms["accelerated"], arms["baseline"], arms["all-flash"]),
        },
    )
    return warned(document)


@cache
def with_policies() -> RunDocument:
    """Three cache policies in place of the one arm with a cache."""
    document = complete()
    levels: dict[ArmName, float] = {"smq": 1200, "arc": 1350, "hotset": 3900}
    policies = tuple(arm(name, nopm=level) for name, level in levels.items())
    others = tuple(one for one in document.arms if one.name != "accelerated")
    return warned(document.model_copy(update={"arms": (*others, *policies), "factors": {}}))


QUERY_SECONDS = {number: 0.05 * 1.35 ** (number * 7 % 22) for number in range(1, 23)}
SLOWER: dict[ArmName, float] = {"baseline": 14, "accelerated": 1.1, "all-flash": 1}


@cache
def power_run(arm: ArmName, number: int) -> PowerRun:
    """Queries that gain unequally: the higher their number, the less."""
    wobble = np.random.default_rng((sum(map(ord, arm)), number)).normal(1, 0.03, 22)
    counters = Counters(
        read_hits=96_000,
        read_misses=1_500,
        write_hits=80,
        write_misses=0,
        promotions=40,
        demotions=3,
        dirty_blocks=12,
        used_blocks=40,
        bypassed=0,
    )
    tiered = arm == "accelerated"
    return PowerRun(
        repeat=number,
        hit_ratio=counters.hit_ratio() if tiered else None,
        read_hit_ratio=96_000 / 97_500 if tiered else None,
        write_hit_ratio=1.0 if tiered else None,
        server_cpu=0.3,
        server_iowait=0.5,
        duration_s=120,
        counters=counters if tiered else None,
        queries=tuple(
            Query(
                number=query,
                seconds=round(base * SLOWER[arm] ** (1 - query / 40) * float(noise), 4),
                rows=query * 3,
                checksum=f"{query:08x}",
            )
            for (query, base), noise in zip(QUERY_SECONDS.items(), wobble, strict=True)
        ),
    )


@cache
def with_queries(duration_s: int = 120, repeats: int = 2) -> RunDocument:
    """A run of both workloads."""
    document = complete(duration_s)
    arms = tuple(
        PowerArm(name=name, repeats=tuple(power_run(name, n) for n in range(1, repeats + 1)))
        for name in SLOWER
    )
    base, fast, flash = arms
    factors = {**document.factors, "tpch": stats.power_factor(fast, base, flash)}
    return warned(changed(document, power_arms=arms, factors=factors))


SCRIPTS = {"checkout": 30, "search": 70}


@cache
def with_sql() -> RunDocument:
    """A run of one's own SQL that also sought the highest rate with a limit."""
    document = complete()
    arms = {one.name: _sql_arm(one) for one in document.arms}
    accelerated, baseline, flash = (arms[name] for name in ("accelerated", "baseline", "all-flash"))
    spec = {name: value for name, value in SPEC.items() if name != "tpcc"}
    experiment = {
        "name": "shop",
        "title": "A shop before and after",
        "spec": spec | {"sql": {"users": 16, "find_rate": "p95<50ms"}},
        "scripts": [
            {"name": name, "weight": weight, "text": f"SELECT '<{name}>';\n"}
            for name, weight in SCRIPTS.items()
        ],
    }
    assert document.database is not None
    database = document.database.model_copy(update={"warehouses": None})
    return changed(
        document,
        experiment=experiment,
        database=database.model_dump(),
        arms=tuple(one.model_dump() for one in arms.values()),
        factors={"sql": stats.factor(accelerated, baseline, flash).model_dump()},
        rate_factor=stats.rate_factor(accelerated, baseline, flash).model_dump(),
    )


@cache
def at_a_rate() -> RunDocument:
    """As `with_sql`, with a rate that the baseline could not keep up with."""
    document = with_sql()
    arms = [
        one.model_copy(
            update={
                "rates": (),
                "repeats": tuple(_arrived(each, one.name == "baseline") for each in one.repeats),
            }
        )
        for one in document.arms
    ]
    dumped = tuple(one.model_dump() for one in arms)
    return changed(document, arms=dumped, factors={}, rate_factor=None)


def _arrived(one: Repeat, behind: bool) -> Repeat:
    arrived = Arrived(rate_per_s=500, due=60_120, late=48, skipped=8_700 if behind else 0)
    return one.model_copy(update={"arrived": arrived})


def _sql_arm(arm: Arm) -> Arm:
    """The throughput of TPC-C's arm, as transactions a second of two scripts."""
    repeats = tuple(_sql_repeat(one) for one in arm.repeats)
    rates = tuple(highest_rate(one.repeat, LEVELS[arm.name] / 10) for one in repeats)
    return Arm(name=arm.name, workload="sql", repeats=repeats, rates=rates)


def _sql_repeat(one: Repeat) -> Repeat:
    assert one.nopm is not None
    seconds = [(each, each.nopm or 0) for each in one.series]
    kinds = {
        name: Transaction(
            committed=round(one.nopm * one.duration_s * weight / 100), latency_ms=one.latency_ms
        )
        for name, weight in SCRIPTS.items()
    }
    changes: dict[str, Any] = {
        **dict.fromkeys(("nopm", "items", "hottest_fifth", "isolation")),
        "tpm": one.nopm * 60,
        "transactions": kinds,
        "series": tuple(
            each.model_copy(update={"nopm": None, "tpm": rate * 60}) for each, rate in seconds
        ),
    }
    return one.model_copy(update=changes)


def highest_rate(repeat: int, rate_per_s: float) -> HighestRate:
    """A search that ended there."""
    latency = Latency(p50=11, p95=43, p99=61)
    missed = ("", "p95<50ms: missed, measured 83.1 ms")
    trials = tuple(
        RateTrial(rate_per_s=rate, reached_per_s=rate, missed=said, latency_ms=latency)
        for rate, said in zip((rate_per_s, rate_per_s * 1.04), missed, strict=True)
    )
    return HighestRate(
        repeat=repeat,
        limits=("p95<50ms",),
        users=16,
        rate_per_s=rate_per_s,
        failed_per_s=trials[-1].rate_per_s,
        trials=trials,
    )


@cache
def queries_alone() -> RunDocument:
    """An experiment without a workload of many users."""
    document = with_queries()
    spec = {name: value for name, value in SPEC.items() if name != "tpcc"}
    assert document.database is not None
    database = document.database.model_copy(update={"warehouses": None, "users": None})
    return changed(
        document,
        experiment={"name": "queries", "title": "The queries", "spec": spec | {"tpch": {}}},
        database=database.model_dump(),
        arms=(),
        factors={name: one for name, one in document.factors.items() if name == "tpch"},
    )


CURVE_USERS = (1, 2, 4, 8)
"""Beside the 16 of all runs."""


@cache
def with_curve(duration_s: int = 30) -> RunDocument:
    """A run that measured a curve: each arm is full with so many users."""
    document = complete(duration_s)
    full_at: dict[ArmName, float] = {"baseline": 2, "accelerated": 8, "all-flash": 8}
    arms = tuple(
        one.model_copy(
            update={
                "repeats": tuple(each.model_copy(update={"users": 16}) for each in one.repeats),
                "curve": tuple(
                    repeat(
                        one.name,
                        number,
                        LEVELS[one.name] * min(1, users / full_at[one.name]),
                        duration_s,
                    ).model_copy(update={"users": users})
                    for number in (1, 2)
                    for users in CURVE_USERS
                ),
            }
        )
        for one in document.arms
    )
    return changed(document, arms=tuple(one.model_dump() for one in arms))


@cache
def judged() -> RunDocument:
    """A run that met one threshold and missed another."""
    said = "factor>=12: missed, measured 9.785"
    return changed(
        complete(),
        thresholds=(
            {
                "threshold": "nopm>=4000",
                "measured": 4200.0,
                "met": True,
                "text": "nopm>=4000: met, measured 4,200",
            },
            {"threshold": "factor>=12", "measured": 9.785, "met": False, "text": said},
        ),
    )


def with_windows(
    document: RunDocument, change: Callable[[ArmName, Repeat], Mapping[str, object]]
) -> RunDocument:
    """A copy whose windows have other fields: what ``change`` returns of an arm's window."""
    arms = tuple(
        each.model_copy(
            update={
                "repeats": tuple(
                    one.model_copy(update=change(each.name, one)) for one in each.repeats
                )
            }
        )
        for each in document.arms
    )
    return document.model_copy(update={"arms": arms})


def changed(document: RunDocument, **changes: object) -> RunDocument:
    """A copy, validated again, whose caveats are derived again."""
    raw = document.model_dump() | {"warnings": ()} | changes
    return warned(RunDocument.model_validate(raw))


@cache
def interrupted() -> RunDocument:
    """Stopped during the accelerated arm: no factor, no ceiling."""
    arms = (arm("baseline", 2).model_dump(), {"name": "accelerated", "repeats": ()})
    return changed(
        complete(),
        state="interrupted",
        failure={"phase": "accelerated", "text": "interrupted by the user"},
        arms=arms,
        factors={},
    )


@cache
def failed_early() -> RunDocument:
    """The machine never came up: almost nothing is on record."""
    return changed(
        complete(),
        state="failed",
        failure={"phase": "machine", "text": "no answer from the machine <within 300 s>"},
        tier=None,
        storage=None,
        machine=None,
        database=None,
        arms=(),
        warmup=None,
        factors={"tpcc": None},
    )


@cache
def plain() -> RunDocument:
    """Real device, real cache, real time; CPU-bound and hardly different."""
    arms = {
        "baseline": arm("baseline", 2, 1000),
        "accelerated": arm("accelerated", 2, 1002),
    }
    raw = complete().model_dump()
    cpu = tuple({**each.model_dump(), "server_cpu": 0.97} for each in arms["accelerated"].repeats)
    bound = Arm.model_validate({"name": "accelerated", "repeats": cpu})
    return changed(
        complete(),
        machine=raw["machine"] | {"kind": "local"},
        storage=raw["storage"] | {"kind": "device", "expected": None},
        arms=(arms["baseline"].model_dump(), bound.model_dump()),
        factors={"tpcc": stats.factor(bound, arms["baseline"]).model_dump()},
    )
