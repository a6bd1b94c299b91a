"""Result of a measurement of a database as it was, and what of its server is known."""

from __future__ import annotations

from collections.abc import Iterator

from hotset.core import words

from ..model.base import ArmName
from ..model.document import RunDocument
from ..model.measurement import ObservedTier
from . import answer, power, units
from .comparison import curve

ARM: ArmName = "measured"
RESIDENT_COLUMNS = ("table or index", "bytes", "in the cache")


def value(document: RunDocument) -> tuple[float | None, str | None]:
    """The figure that it is about, and its unit; None: nothing was measured."""
    arm, queried = document.arm(ARM), document.power_arm(ARM)
    if document.disks is not None:
        first = next(iter(document.disks.bench), None)
        return (first.median.mb_per_s, "MB/s") if first else (None, None)
    if arm is not None:
        return answer.figures(arm).rate, units.UNITS[arm.workload].short
    if queried is not None:
        return power.figures(queried).total_s, "s"
    return None, None


def hit_ratio(document: RunDocument) -> float | None:
    """Over its windows; None: not known."""
    arm, queried = document.arm(ARM), document.power_arm(ARM)
    if arm is not None:
        return answer.figures(arm).hit_ratio
    return None if queried is None else power.figures(queried).hit_ratio


def headline(document: RunDocument) -> str:
    """The answer in one sentence."""
    arm, queried = document.arm(ARM), document.power_arm(ARM)
    if arm is None and queried is None:
        return "" if any(arm.rates for arm in document.arms) else "Nothing was measured."
    if arm is None:
        assert queried is not None
        figures = power.figures(queried)
        which = words.plural(len(queried.repeats[0].queries), "TPC-H query", "TPC-H queries")
        unfinished = "" if figures.complete else ", and not all of them ended"
        took = f"{words.duration(figures.total_s)}{_spread(len(figures.repeats))}"
        return f"{which} took {took}{unfinished}."
    result, window, unit = answer.figures(arm), arm.repeats[-1], units.UNITS[arm.workload]
    who = f" with {words.plural(window.users, 'user')}" if window.users else ""
    latency = f", p95 {words.milliseconds(result.latency_ms.p95)} ms" if result.latency_ms else ""
    note = answer.qualify(arm.repeats)
    counted = window.nopm_by_district
    by = "" if counted is None else f" ({words.count(counted)} by the server's count)"
    return (
        f"{unit.workload[:1].upper()}{unit.workload[1:]}{who}"
        f"{', partial' if window.partial else ''}: {words.count(result.rate)} {unit.short}"
        f"{by}{_spread(len(result.repeats))} in {window.duration_s:.1f} s{latency}"
        f"{f'; {note}' if note else ''}."
    )


def _spread(repeats: int) -> str:
    return f", mean of {repeats} runs" if repeats > 1 else ""


def figures(document: RunDocument) -> dict[str, str]:
    """The values that one asks for first; of a curve, each number of users'."""
    unit = units.find_unit(document).short
    points = [arm_point.point for arm_point in curve.read_curves(document).get(ARM, ())]
    if points:
        return {
            **curve.figures(points, unit),
            **{words.plural(point.users, "user"): f"{point.rate:,.0f} {unit}" for point in points},
        }
    arm, queried = document.arm(ARM), document.power_arm(ARM)
    if queried is not None:
        run = queried.repeats[-1]
        return {words.plural(len(run.queries), "query", "queries"): f"{run.total_s:.1f} s"}
    if arm is None:
        return {}
    figures = answer.figures(arm)
    p95 = figures.latency_ms.p95 if figures.latency_ms else None
    return {
        unit: f"{figures.rate:,.1f}" if document.timed == "sql" else f"{figures.rate:,.0f}",
        "TPM": f"{figures.tpm:,.0f}",
        "p95": "no commit" if p95 is None else f"{p95:.1f} ms",
        "failed": f"{figures.failed:,}",
    }


def facts(document: RunDocument) -> list[tuple[str, str]]:
    """List the facts of the tier: (what, value)."""
    measurement = document.measurement
    if measurement is None:
        return []
    label = [("label", measurement.label)] if measurement.label else []
    if measurement.tier is None:
        why = (
            f"not known: {measurement.tier_unknown}"
            if measurement.tier_unknown
            else "none: not accelerated"
        )
        return [*label, ("tier", why)]
    return [*label, *_of_tier(measurement.tier)]


def _of_tier(tier: ObservedTier) -> Iterator[tuple[str, str]]:
    yield "disk", tier.disk
    yield "kind", tier.kind
    yield "mode, policy", f"{tier.mode}, {tier.policy}"
    size, block = words.size(tier.cache_bytes), words.size(tier.block_bytes)
    yield "cache", f"{size} in blocks of {block}"
    for name, moment in (("before", tier.before), ("after", tier.after)):
        if moment is None:
            yield f"cache {name}", "not known"
        else:
            used, dirty = words.size(moment.used_bytes), words.size(moment.dirty_bytes)
            yield f"cache {name}", f"{used} used, {dirty} dirty"
    if tier.residents_unknown:
        yield "tables in the cache", f"not known: {tier.residents_unknown}"


def residents(document: RunDocument) -> list[tuple[str, ...]]:
    """A row for each table or index; of `RESIDENT_COLUMNS`."""
    tier = document.measurement.tier if document.measurement else None
    return [
        (resident.name, words.size(resident.bytes), words.part_of_all(resident.cached))
        for resident in (tier.residents if tier else ())
    ]
