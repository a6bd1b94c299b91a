"""One experiment from its file to its record; ``run`` is the table of contents."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path, PurePosixPath

from hotset.cachelayer import flashdev
from hotset.cachelayer import lab as labs
from hotset.cachelayer.extents import Run
from hotset.cachelayer.hits import Window, busy
from hotset.cachelayer.lab import Lab, LabSpec
from hotset.cachelayer.local import Local
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import Warmup
from hotset.harness import by_table, calibrate, learning, real_disks, saved
from hotset.harness import workload as checks
from hotset.harness.archive import Archive
from hotset.harness.arms import ARMS, Placed, Workloads
from hotset.harness.journal import Journal, ThresholdMissedError
from hotset.harness.measure import measure, power_record, repeat_record, run_queries
from hotset.harness.progress import Reporter
from hotset.harness.site import Site, slow_disk
from hotset.harness.spec import Spec, WarmupTable
from hotset.reports import document
from hotset.reports.document import ArmName, RunDocument
from hotset.tpcc import consistency

_PROBE_SEED = 10_000
_PROBE_QUERIES = (6, 12)


def run(
    spec: Spec,
    archive: Archive,
    report: Reporter,
    resume: str | None = None,
    yes: bool = False,
    command: Sequence[str] = (),
) -> RunDocument:
    """Run an experiment and return its document.

    :param resume: id of a failed or interrupted run to go on with.
    :param yes: give up what lies on the real disks that the experiment names.
    :param command: what was called, to be kept with a new run.
    :raises DeviceRefusedError: one of those may not be written over.
    :raises ThresholdMissedError: the probe's hit ratio stayed below the asked one.
    """
    real_disks.take(Local(), spec, yes)
    if resume:
        journal = Journal.resume(archive, spec, resume)
    else:
        journal = Journal.begin(archive, spec, command)
    report.say(f"run {journal.document.run}")
    try:
        with ExitStack() as stack:
            with journal.phase("lab"):
                lab, image_path = _raise(stack, spec, report)
            with journal.phase("calibrate"):
                time_scale = _ground(lab, spec, journal, report)
            with journal.phase("database"):
                site = _site(lab, spec, image_path, time_scale, report)
                _describe(site, journal)
            hottest: dict[Workloads, tuple[Run, ...]] = {}
            for repeat, arm in order(spec):
                for workloads in spec.placements:
                    if all(journal.has(arm, repeat, workload) for workload in workloads):
                        continue
                    if arm == "accelerated":
                        site = _learned(site, journal, hottest, workloads)
                    with journal.phase(" ".join((arm, str(repeat), *_named(spec, workloads)))):
                        _measure_arm(site, journal, arm, repeat, workloads)
        journal.finish(spec)
    finally:
        journal.write_report()
    return journal.document


def order(spec: Spec) -> Iterator[tuple[int, ArmName]]:
    """Arms interleaved over the repeats, each second repeat backwards: slow drift of the
    computer falls on all arms alike.

    >>> from types import SimpleNamespace
    >>> list(order(SimpleNamespace(repeats=2, arms=("a", "b"))))
    [(1, 'a'), (1, 'b'), (2, 'b'), (2, 'a')]
    """
    for repeat in range(1, spec.repeats + 1):
        arms = spec.arms if repeat % 2 else spec.arms[::-1]
        for arm in arms:
            yield repeat, arm


def _raise(stack: ExitStack, spec: Spec, report: Reporter) -> tuple[Lab, Path]:
    """The lab, with the disk of the saved image (a new, empty one when there is none yet)."""
    image_path = saved.path_for(spec, labs.choose(spec.machine.kind, spec.tier.wanted))
    there = saved.cached(image_path) is not None
    disk = image_path if there else saved.new_file(image_path, spec.storage.size)
    wanted = LabSpec(
        machine=spec.machine.kind,
        cores=spec.machine.cores,
        memory=spec.machine.memory,
        flash=spec.flash.size,
        saved=disk,
        saved_readonly=there,
        tier=spec.tier.wanted,
        flash_model=spec.flash.model,
        flash_device=PurePosixPath(spec.flash.device) if spec.flash.device else None,
    )
    lab = stack.enter_context(labs.standing(wanted, f"experiment {spec.name}", report.say))
    return lab, image_path


def _ground(lab: Lab, spec: Spec, journal: Journal, report: Reporter) -> float:
    """Describe the machine; returns the time scale (kept from the first part of a resumed run)."""
    known = journal.document.machine
    slowdown = known.cpu_slowdown if known else calibrate.cpu_slowdown(lab)
    assert slowdown is not None
    if spec.time_scale != "auto":
        scale = spec.time_scale
    else:
        scale = journal.document.time_scale if known else round(max(1.0, slowdown), 2)
    if lab.accel is not None:
        report.say(f"the machine's CPU is {slowdown:.1f} times slower than this computer's")
    if scale != 1:
        report.say(f"storage is slowed {scale:g} times (time_scale = {spec.time_scale})")
    journal.change(machine=_machine(lab, slowdown), time_scale=scale)
    return scale


def _site(lab: Lab, spec: Spec, path: Path, time_scale: float, report: Reporter) -> Site:
    password = secrets.token_urlsafe(24)
    want = spec.storage
    storage = slow_disk(lab, want.device, want.model, want.size, time_scale)
    image = saved.cached(path) or saved.build(lab, spec, path, password, report)
    return Site(spec, spec.tier.resolved(), lab, storage, image, password, report)


def _learned(
    site: Site, journal: Journal, known: dict[Workloads, tuple[Run, ...]], workloads: Workloads
) -> Site:
    """The site with what these workloads' warm-up takes first, learned once."""
    if not learning.wanted(site.spec):
        return site
    if workloads not in known:
        with journal.phase(" ".join(("learn", *_named(site.spec, workloads)))):
            known[workloads] = learning.hottest(site, workloads)
    return replace(site, hottest=known[workloads])


def _named(spec: Spec, workloads: Workloads) -> Workloads:
    """The workloads of a placement, where there is a choice of them."""
    return workloads if len(spec.placements) > 1 else ()


def _measure_arm(
    site: Site, journal: Journal, arm: ArmName, repeat: int, workloads: Workloads
) -> None:
    """Place the databases, probe the cache where there is one, run the workloads, keep their
    records."""
    site.report.say(f"{arm}, repeat {repeat} of {site.spec.repeats}")
    others = min(1.0, busy(Local()))
    with ARMS[arm](site, workloads) as placed:
        if placed.warmed is not None:
            _probe(site, journal, placed, placed.warmed, repeat, workloads)
        for workload in workloads:
            if not journal.has(arm, repeat, workload):
                _RUNS[workload](site, journal, placed, arm, repeat, others)


def _run_tpcc(
    site: Site, journal: Journal, placed: Placed, arm: ArmName, repeat: int, others: float
) -> None:
    """:param others: share of this computer's CPU that was busy before the arm was set up."""
    want = site.spec.tpcc
    before = by_table.begin(placed)
    with site.report.task(f"TPC-C, {want.users} users, {want.warehouses} warehouses"):
        measured = measure(site, placed, want.rampup_s, want.duration_s, want.seed + repeat)
    parts = by_table.since(site, placed, "tpcc", before)
    if want.check == "every-arm":
        consistency.require(checks.check(placed.server.database("tpcc"), site.report))
    record = repeat_record(repeat, measured, site.tier.block, others, parts)
    journal.add_repeat(arm, record)
    site.report.say(
        f"{arm}: {record.nopm:,.0f} NOPM, {record.tpm:,.0f} TPM,"
        f" server CPU {record.server_cpu:.0%}{_hits(record)}, {record.failed} failed"
    )


def _run_tpch(
    site: Site, journal: Journal, placed: Placed, arm: ArmName, repeat: int, others: float
) -> None:
    want = site.spec.tpch
    assert want is not None
    with site.report.task(f"TPC-H, scale {want.scale:g}, 22 queries"):
        record = power_record(repeat, *run_queries(site, placed, want), others)
    journal.add_power_run(arm, record)
    more = "" if record.complete else " and more (a query did not come to its end)"
    site.report.say(
        f"{arm}: {len(record.queries)} queries in {record.total_s:.1f} s{more},"
        f" server CPU {record.server_cpu:.0%}{_hits(record)}"
    )


_RUNS = {"tpcc": _run_tpcc, "tpch": _run_tpch}


def _hits(record: document.Window) -> str:
    return f", hit ratio {record.hit_ratio:.1%}" if record.hit_ratio is not None else ""


def _probe(
    site: Site,
    journal: Journal,
    placed: Placed,
    warmed: Warmup,
    repeat: int,
    workloads: Workloads,
) -> None:
    """A short run whose hit ratio must reach the asked figure, or there is no measured run."""
    want = site.spec.warmup
    with site.report.task("probing the hit ratio"):
        window, seconds = _probed(site, placed, repeat, workloads)
    ratio = window.hits.ratio if window.hits else None
    journal.add_warmup(_warmup_record(warmed, ratio, seconds, want, repeat))
    site.report.say(
        f"warm-up {warmed.bytes} in {warmed.seconds:.1f} s, {warmed.mb_per_s:.1f} MB/s of the"
        f" origin's {warmed.origin_mb_per_s:.1f}; probe hit ratio {ratio or 0:.1%}"
    )
    if ratio is None or ratio < want.probe_hit_ratio:
        raise ThresholdMissedError(
            f"the probe after the warm-up hit {ratio or 0:.1%}, below warmup.probe_hit_ratio ="
            f" {want.probe_hit_ratio:.1%}: the cache is too small for the database, or the"
            f" warm-up method ({want.method}) did not fill it"
        )


def _probed(site: Site, placed: Placed, repeat: int, workloads: Workloads) -> tuple[Window, float]:
    """Some seconds of TPC-C, or where only TPC-H is placed two of its queries: one that scans and
    one that joins."""
    if "tpcc" in workloads:
        measured = measure(site, placed, 0, site.spec.warmup.probe_s, _PROBE_SEED + repeat)
        return measured.window, measured.result.window_end - measured.result.window_start
    assert site.spec.tpch is not None
    result, window = run_queries(site, placed, site.spec.tpch, _PROBE_QUERIES)
    return window, result.ended - result.started


def _warmup_record(
    warmed: Warmup, ratio: float | None, probe_s: float, want: WarmupTable, repeat: int
) -> document.WarmUpRepeat:
    return document.WarmUpRepeat(
        repeat=repeat,
        method=warmed.method,
        order=want.order,
        bytes=int(warmed.bytes),
        seconds=warmed.seconds,
        mb_per_s=warmed.mb_per_s,
        origin_mb_per_s=warmed.origin_mb_per_s,
        sampled_blocks=warmed.sampled_blocks,
        differing_blocks=warmed.differing_blocks,
        probe_hit_ratio=ratio,
        probe_hit_ratio_min=want.probe_hit_ratio,
        probe_seconds=probe_s,
    )


def _describe(site: Site, journal: Journal) -> None:
    """Tier, storage and database as they are set up, into the record."""
    spec, tier = site.spec, site.tier
    journal.change(
        tier=document.Tier(
            kind=site.lab.ground.tier_kind,
            mode=tier.mode,
            policy=tier.policy,
            block_bytes=int(tier.block),
            metadata_bytes=int(tier.metadata),
            cache_bytes=int(tier.cache),
            volume_bytes=int(tier.volume),
            emulated=site.lab.ground.tier_kind == "emulated",
            flash=site.lab.ground.flash_description,
        ),
        storage=_storage(site),
        database=_database(site, spec),
    )


def _storage(site: Site) -> document.Storage:
    want = site.spec.storage
    if want.device is not None:
        return document.Storage(
            kind="device",
            name=want.device,
            description=site.storage.description,
            size_bytes=int(want.size),
        )
    promise = flashdev.expected(Local(), want.model, ["--size", str(int(want.size))])
    depths = {one["queue_depth"]: one for one in promise["random_read_8k"]}
    return document.Storage(
        kind="modelled",
        name=promise["model"],
        description=(
            f"{site.storage.description}; 8 KiB random reads"
            f" {depths[1]['iops']:.0f} IOPS at queue depth 1, {depths[32]['iops']:.0f} at 32"
            " (before time scaling)"
        ),
        size_bytes=int(want.size),
        expected=document.Calibration(
            seq_read_mb_per_s=promise["sequential_read_mb_per_s"],
            seq_write_mb_per_s=promise["sequential_write_mb_per_s"],
        ),
    )


def _database(site: Site, spec: Spec) -> document.Database:
    return document.Database(
        engine=spec.database.engine,
        version=site.saved.version,
        bytes=int(site.saved.size(site.saved.databases)),
        buffers_bytes=max(int(site.buffers(workloads)) for workloads in spec.placements),
        direct_io=True,
        warehouses=spec.tpcc.warehouses,
        users=spec.tpcc.users,
        checked_after=spec.tpcc.check,
        tpch_scale=spec.tpch.scale if spec.tpch else None,
        tpch_bytes=int(site.saved.size(one for one in site.saved.databases if one == "tpch")),
    )


def _machine(lab: Lab, slowdown: float) -> document.Machine:
    local = Local()
    host = document.Host(
        cpu=_cpu_name(),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(local),
        kernel=platform.release(),
    )
    machine = lab.machine
    return document.Machine(
        kind=lab.kind,
        accel=lab.accel,
        cores=int(machine.run(["nproc"]).stdout),
        memory_bytes=_memory_bytes(machine),
        kernel=machine.run(["uname", "-r"]).stdout.strip(),
        cpu_slowdown=slowdown,
        host=host,
    )


def _memory_bytes(machine: Machine) -> int:
    """MemTotal of /proc/meminfo, which is in KiB (proc(5))."""
    text = machine.run(["cat", "/proc/meminfo"]).stdout
    return int(text.split("MemTotal:")[1].split()[0]) * 1024


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
