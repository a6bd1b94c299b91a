"""Plans, jobs and preferences as text: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from hotset.cachelayer.plans import Plan, Row
from hotset.cachelayer.preferences import Preferences
from hotset.cachelayer.tier import Warmup
from hotset.cachelayer.units import Blocks
from hotset.harness.warmups.jobs import Job
from hotset.harness.warmups.planning import Planned
from hotset.reports.tables import csv_text, records, text_table

SCHEMA_VERSION = 1
_COLUMNS = ("order", "target", "pinned", "extents", "bytes", "fits", "resident", "to_fetch",
            "left_out", "expected_s")  # fmt: skip
_HEADS = ("target", "extents", "size", "fits", "cached already", "to fetch", "left out", "expected")


def plan(planned: Planned, form: str) -> str:
    """A plan with its targets in order of importance, and their total."""
    rate = planned.origin_mb_per_s
    rows = [_figures(at, row, planned.plan, rate) for at, row in enumerate(planned.plan.rows, 1)]
    if form == "csv":
        return csv_text(_COLUMNS, rows)
    if form == "json":
        fields = {
            "schema_version": SCHEMA_VERSION,
            "targets": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
            "cache_bytes": int(planned.plan.capacity.bytes(planned.plan.block)),
            "to_fetch": int(planned.plan.bytes),
            "origin_mb_per_s": round(rate, 1),
            "expected_s": round(planned.plan.seconds(rate), 1),
            "notes": planned.notes,
        }
        return json.dumps(fields, indent=1)
    return _plan_table(planned)


def _plan_table(planned: Planned) -> str:
    whole, rate = planned.plan, planned.origin_mb_per_s
    lines = [
        _line(f"{at}. {row.name}{' (pinned)' * row.pinned}", [row], whole, rate)
        for at, row in enumerate(whole.rows, 1)
    ]
    last = (
        f"cache {whole.capacity.bytes(whole.block)} in blocks of {whole.block}; expected seconds"
        f" are bytes to fetch over the origin's sequential rate, {rate:.0f} MB/s"
    )
    total = _line("total", whole.rows, whole, rate)
    return "\n".join((text_table(_HEADS, [*lines, total]), "", last))


def _line(name: str, rows: Sequence[Row], whole: Plan, rate: float) -> tuple[str, ...]:
    """The rows' figures, summed up, as cells."""
    names = ("blocks", "taken", "resident", "missing", "left_out")
    sizes = [Blocks(sum(getattr(row, one) for row in rows)).bytes(whole.block) for one in names]
    extents = sum(row.extents for row in rows)
    missing = sizes[names.index("missing")]
    return (name, f"{extents:,}", *map(str, sizes), duration(missing / 1e6 / rate))


def _figures(at: int, row: Row, whole: Plan, rate: float) -> tuple[object, ...]:
    sizes = (row.blocks, row.taken, row.resident, row.missing, row.left_out)
    blocks, taken, resident, missing, left_out = (int(one.bytes(whole.block)) for one in sizes)
    return (at, row.name, row.pinned, row.extents, blocks, taken, resident, missing, left_out,
            round(missing / 1e6 / rate, 1))  # fmt: skip


def summary(whole: Plan) -> str:
    """A plan in one line."""
    left = sum(row.left_out for row in whole.rows)
    rest = f", {Blocks(left).bytes(whole.block)} have no room" if left else ""
    planned = Blocks(sum(row.taken for row in whole.rows)).bytes(whole.block)
    return f"{planned} planned, {whole.bytes} of it to fetch{rest}"


def duration(seconds: float) -> str:
    """
    >>> duration(4.25), duration(125), duration(7325)
    ('4.2 s', '2 m 05 s', '2 h 02 m')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} m"


def done(job: Job, warmed: Warmup, cached: Blocks, form: str) -> str:
    """What a job came to. ``cached``: how many of its blocks are cached now."""
    share = cached / (job.bytes // job.block) if job.bytes else 1.0
    if form == "json":
        fields = asdict(warmed) | {"mb_per_s": round(warmed.mb_per_s, 1), "job": job.id,
                                   "cached_share": share}  # fmt: skip
        return json.dumps({"schema_version": SCHEMA_VERSION, **fields}, indent=1)
    figures = [
        ("job", job.id),
        ("method", "on line" if warmed.method == "read" else "off line"),
        ("fetched", f"{warmed.bytes} in {warmed.seconds:.1f} s, {warmed.mb_per_s:.1f} MB/s"),
        ("origin", f"{warmed.origin_mb_per_s:.1f} MB/s sequentially"),
        ("in all", duration(warmed.total_seconds)),
        ("sampled", f"{warmed.sampled_blocks} blocks, {warmed.differing_blocks} differ"),
        ("cached now", f"{100 * share:.1f} % of {job.bytes}"),
    ]
    if form == "csv":
        return csv_text(("figure", "value"), figures)
    return text_table(("warm-up", ""), figures)


def jobs(found: Sequence[Job], form: str) -> str:
    """The jobs that are kept, without their blocks."""
    columns = ("job", "state", "machine", "disk", "method", "bytes", "targets", "said")
    rows = [
        (job.id, job.state, job.machine, job.disk, job.method, int(job.bytes),
         " ".join(job.targets), job.said)
        for job in found
    ]  # fmt: skip
    if form != "table":
        return records("jobs", SCHEMA_VERSION, columns, rows, form)
    lines = [
        f"{job.id}  {job.state}: {job.bytes} of {' '.join(job.targets)} on {job.disk}"
        f" ({job.machine})" + (f"\n  {job.said}" if job.said else "")
        for job in found
    ]
    return "\n".join(lines) or "no warm-up jobs"


def preferred(wanted: Preferences, form: str) -> str:
    """Pinned and excluded targets."""
    rows = [(text, "pinned") for text in wanted.pinned]
    rows += [(text, "excluded") for text in wanted.excluded]
    return records("preferences", SCHEMA_VERSION, ("target", "preference"), rows, form)
