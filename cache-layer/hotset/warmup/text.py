"""Plans and preferences as text: a table for people, JSON and CSV for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hotset.core.units import Blocks, Bytes
from hotset.databases.offers import Offer
from hotset.reports.model.words import duration, percent
from hotset.reports.render.plain import csv_text, listing, text_table
from hotset.tier.base import Warmup
from hotset.tier.pins import Preferences

from .division import Kept
from .plan_store import SavedPlan
from .planner import Plan, Row
from .planning import Planned

SCHEMA_VERSION = 1
_METHODS = {"offline": "off line", "read": "on line", "insert": "inserted, on line"}
_COLUMNS = (
    "order",
    "target",
    "pinned",
    "extents",
    "bytes",
    "fits",
    "resident",
    "to_fetch",
    "left_out",
    "expected_s",
)
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
        f"room for {whole.capacity.bytes(whole.block)} in blocks of {whole.block}; expected seconds"
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
    return (
        at,
        row.name,
        row.pinned,
        row.extents,
        blocks,
        taken,
        resident,
        missing,
        left_out,
        round(missing / 1e6 / rate, 1),
    )


def summary(whole: Plan) -> str:
    """A plan in one line."""
    left = sum(row.left_out for row in whole.rows)
    rest = f", {Blocks(left).bytes(whole.block)} do not fit" if left else ""
    planned = Blocks(sum(row.taken for row in whole.rows)).bytes(whole.block)
    return f"{planned} planned, {whole.bytes} of it to fetch{rest}"


def done(plan: SavedPlan, warmed: Warmup, cached: Blocks, form: str) -> str:
    """What a plan came to. ``cached``: how many of its blocks are cached now."""
    share = _cached_share(plan, cached)
    figures = [
        # Programs that read CSV know it by its first name.
        ("job" if form == "csv" else "plan", plan.id),
        ("method", _METHODS[warmed.method]),
        ("fetched", f"{warmed.bytes} in {warmed.seconds:.1f} s, {warmed.mb_per_s:.1f} MB/s"),
        ("origin", f"{warmed.origin_mb_per_s:.1f} MB/s sequentially"),
        ("in all", duration(warmed.total_seconds)),
        ("sampled", f"{warmed.sampled_blocks} blocks, {warmed.differing_blocks} differ"),
        ("cached now", f"{percent(share)} of {plan.bytes}"),
    ]
    if form == "csv":
        return csv_text(("figure", "value"), figures)
    return text_table(("warm-up", ""), figures)


def done_document(plan: SavedPlan, warmed: Warmup, cached: Blocks) -> dict[str, Any]:
    """As :func:`done`, for programs."""
    return {
        "schema_version": SCHEMA_VERSION,
        **asdict(warmed),
        "mb_per_s": round(warmed.mb_per_s, 1),
        "job": plan.id,
        "cached_share": _cached_share(plan, cached),
    }


def _cached_share(plan: SavedPlan, cached: Blocks) -> float:
    return cached / (plan.bytes // plan.block) if plan.bytes else 1.0


def render_saved(found: Sequence[SavedPlan], form: str) -> str:
    """The saved plans, without their blocks."""
    columns = ("job", "state", "machine", "disk", "method", "bytes", "targets", "said")
    rows = [
        (
            plan.id,
            plan.state,
            plan.machine,
            plan.disk,
            plan.method,
            int(plan.bytes),
            " ".join(plan.targets),
            plan.said,
        )
        for plan in found
    ]
    if form != "table":
        return listing("jobs", SCHEMA_VERSION, columns, rows, form)
    lines = [
        f"{plan.id}  {plan.state}: {plan.bytes} of {' '.join(plan.targets)} on {plan.disk}"
        f" ({plan.machine})" + (f"\n  {plan.said}" if plan.said else "")
        for plan in found
    ]
    return "\n".join(lines) or "no saved plans"


def render_offers(offers: Sequence[Offer], form: str) -> str:
    """What a server has that can be named."""
    if form != "table":
        rows = [(one.target, one.bytes) for one in offers]
        return listing("targets", SCHEMA_VERSION, ("target", "bytes"), rows, form)
    shown = [(one.target, "" if one.bytes is None else str(Bytes(one.bytes))) for one in offers]
    return text_table(("target", "size"), shown)


def render_preferences(wanted: Preferences, form: str, kept: Mapping[str, Kept]) -> str:
    """Pinned, excluded and shared targets.

    :param kept: what the cache has of each, where it tells.
    """
    rows: list[tuple[Any, ...]] = [(text, "pinned", None, None) for text in wanted.pinned]
    rows += [(text, "excluded", None, None) for text in wanted.excluded]
    rows += [(one.target, "shared", one.guarantee, one.limit) for one in wanted.shares]
    full = [(*row, *_sizes(kept.get(row[0]))) for row in rows]
    if form != "table":
        columns = ("target", "preference", "guarantee", "limit", "bytes", "cached_bytes")
        return listing("preferences", SCHEMA_VERSION, (*columns, "guaranteed_bytes"), full, form)
    heads = ("target", "preference", "guarantee", "limit", "size", "cached", "guaranteed")
    shown = [["" if value is None else str(value) for value in row] for row in full]
    return text_table(heads, shown) if shown else "nothing is pinned, excluded or shared"


def _sizes(kept: Kept | None) -> tuple[Bytes | None, Bytes | None, Bytes | None]:
    return (None, None, None) if kept is None else (kept.size, kept.cached, kept.guaranteed)
