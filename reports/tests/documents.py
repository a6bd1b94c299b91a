"""A plausible run, whole and in pieces, for the tests. Every figure is seeded."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hotset.reports import caveats, stats
from hotset.reports.document import (
    Arm,
    ArmName,
    Calibration,
    Counters,
    Database,
    Experiment,
    Host,
    Latency,
    Machine,
    PowerArm,
    PowerRun,
    Query,
    Repeat,
    RunDocument,
    Second,
    Storage,
    Tier,
    Transaction,
    WarmUp,
    WarmUpRepeat,
)

GIB = 2**30
LEVELS: dict[ArmName, float] = {"baseline": 428, "accelerated": 4193, "all-flash": 4150}
SPEC: dict[str, Any] = {
    "experiment": {"name": "demo", "title": "A flash cache in front of six slow disks"},
    "storage": {"model": "nas-6x7200-raid0", "link_mbit_per_s": 1000},
    "tier": {"kind": "dm-cache", "mode": "writeback", "policy": "smq", "block": "64 KiB"},
    "tpcc": {"warehouses": 60, "users": 16, "repeats": 3, "duration_s": 120},
}


def repeat(
    arm: ArmName, number: int, nopm: float, duration_s: int = 120, noise: float = 0.15
) -> Repeat:
    random = np.random.default_rng((sum(map(ord, arm)), number))
    tiered = arm == "accelerated"
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
        )
        for second, rate in enumerate(rates)
    )
    spread = scale * (1 + 0.04 * (number - 2)) * (0.93 if arm == "all-flash" else 1)
    latency = Latency(p50=11.2 * spread, p95=41.3 * spread, p99=88.1 * spread)
    failed = 3 if slow and number == 2 else 0
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
        server_iowait=0.71 if slow else 0.08,
        rampup_s=30,
        duration_s=duration_s,
        counters=counters if tiered else None,
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
    )


def arm(name: ArmName, repeats: int = 3, nopm: float | None = None, duration_s: int = 120) -> Arm:
    level = LEVELS[name] if nopm is None else nopm
    drift = (0.98, 1.03, 1.0, 0.99, 1.01)
    return Arm(
        name=name,
        repeats=tuple(
            repeat(name, number + 1, level * drift[number], duration_s) for number in range(repeats)
        ),
    )


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


def complete(duration_s: int = 120) -> RunDocument:
    """A whole run in an emulated machine on modelled, time-scaled storage."""
    arms = {name: arm(name, duration_s=duration_s) for name in LEVELS}
    document = RunDocument(
        hotset_version="0.1.0",
        run="20261121-071500-demo",
        state="complete",
        started_at=datetime(2026, 11, 21, 7, 15, tzinfo=UTC),
        seconds=3125.4,
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
            kind="vm",
            accel="tcg",
            cores=2,
            memory_bytes=2 * GIB,
            kernel="6.12.48",
            cpu_slowdown=5.2,
            host=Host(cpu="Example CPU @ 2.90GHz", cores=2, memory_bytes=8 * GIB, kernel="6.8.0"),
        ),
        time_scale=5.2,
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
    return caveats.apply(document)


QUERY_SECONDS = {number: 0.05 * 1.35 ** (number * 7 % 22) for number in range(1, 23)}
SLOWER: dict[ArmName, float] = {"baseline": 14, "accelerated": 1.1, "all-flash": 1}


def power_run(arm: ArmName, number: int) -> PowerRun:
    """Queries that gain unequally: the higher their number, the less."""
    wobble = np.random.default_rng((sum(map(ord, arm)), number)).normal(1, 0.03, 22)
    counters = Counters(
        read_hits=96_000, read_misses=1_500, write_hits=80, write_misses=0, promotions=40,
        demotions=3, dirty_blocks=12, used_blocks=40, bypassed=0,
    )  # fmt: skip
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


def with_queries(duration_s: int = 120, repeats: int = 2) -> RunDocument:
    """A run of both workloads."""
    document = complete(duration_s)
    arms = tuple(
        PowerArm(name=name, repeats=tuple(power_run(name, n) for n in range(1, repeats + 1)))
        for name in SLOWER
    )
    base, fast, flash = arms
    factors = {**document.factors, "tpch": stats.power_factor(fast, base, flash)}
    return caveats.apply(changed(document, power_arms=arms, factors=factors))


def changed(document: RunDocument, **changes: object) -> RunDocument:
    """A copy, validated anew, whose caveats are derived again."""
    raw = document.model_dump() | {"warnings": ()} | changes
    return caveats.apply(RunDocument.model_validate(raw))


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
        time_scale=1.0,
        arms=(),
        warmup=None,
        factors={"tpcc": None},
    )


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
        machine=raw["machine"] | {"kind": "local", "accel": None, "cpu_slowdown": None},
        storage=raw["storage"] | {"kind": "device", "expected": None},
        time_scale=1.0,
        arms=(arms["baseline"].model_dump(), bound.model_dump()),
        factors={"tpcc": stats.factor(bound, arms["baseline"]).model_dump()},
    )
