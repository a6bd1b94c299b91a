"""The main run: TPC-C with a cache of half and of a quarter of the database, in sittings.

A sitting measures every arm once, on hotset's own engine (on this computer's kernel) and on the
kernel's dm-cache (User-Mode Linux, one CPU): twelve minutes a tier. Sittings lie hours or days
apart, each adds its runs to the folder, and the page is of all that are there. What a tier comes
to is held against its own arms and never against the other tier's, whose computer is another one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from hotset.core import words
from hotset.reports.analysis import answer, stats
from hotset.reports.analysis.answer import ArmFigures
from hotset.reports.analysis.comparison import pool
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument

from ..page import table
from ..programs import hotset

EXPERIMENT = "experiments/part-cached.toml"
CACHES = ("480MiB", "240MiB")
KINDS = {
    "userspace": "hotset's own engine; the flash is a model",
    "dm-cache": "the kernel's dm-cache under User-Mode Linux, one CPU; the flash is a file",
}
_HEAD = (
    "arm",
    "hit ratio",
    "NOPM",
    "of each sitting",
    "times the baseline (95 %)",
    "of all-flash",
    "CPU busy",
    "CPU ms a transaction",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, default=Path("reports/published/part-cached"))
    parser.add_argument("--kind", action="append", choices=tuple(KINDS), help="default: both")
    parser.add_argument("--page-only", action="store_true", help="of the runs that are there")


def measure(options: argparse.Namespace) -> None:
    """One sitting, unless the page alone is wanted; then the page."""
    options.into.mkdir(parents=True, exist_ok=True)
    for kind in () if options.page_only else options.kind or KINDS:
        for cache in CACHES:
            run = RunDocument.model_validate(_run(kind, cache))
            text = f"{run.model_dump_json(indent=1)}\n"
            (options.into / f"{run.run}-{kind}-{cache}.json").write_text(text)
    text = page(read(options.into))
    (options.into / "README.md").write_text(text)
    print(text)


def _run(kind: str, cache: str) -> object:
    settings = (f"tier.kind={kind}", f"tier.cache={cache}")
    options = [word for setting in settings for word in ("--set", setting)]
    return hotset("experiment", "run", EXPERIMENT, *options, "--quiet")


def read(folder: Path) -> list[RunDocument]:
    """The runs of all sittings, the oldest first."""
    runs = [RunDocument.model_validate_json(file.read_text()) for file in folder.glob("*.json")]
    return sorted(runs, key=lambda run: run.started_at)


def page(runs: Sequence[RunDocument]) -> str:
    """The page of these runs, as Markdown."""
    return "\n\n".join(_paragraphs(runs)) + "\n"


def _paragraphs(runs: Sequence[RunDocument]) -> Iterator[str]:
    yield "# TPC-C with a cache of half and of a quarter of the database"
    yield _when(runs)
    for kind, what in KINDS.items():
        of_kind = [run for run in runs if run.tier is not None and run.tier.kind == kind]
        for cache in sorted({run.tier.cache_bytes for run in of_kind if run.tier}, reverse=True):
            same = [run for run in of_kind if run.tier and run.tier.cache_bytes == cache]
            yield from _tier(what, cache, same)
    yield (
        "Ratios are of arms on the same tier and the same days; an interval is between sittings,"
        " and there is none with fewer than three. CPU is the server's, all of its cores. Again:"
        f" `scripts/bench.sh part-cached` ({EXPERIMENT}); every figure is of the documents beside"
        " this page."
    )


def _when(runs: Sequence[RunDocument]) -> str:
    times = sorted({f"{run.started_at:%d %B %Y, %H:%M}" for run in runs})
    days = len({run.started_at.date() for run in runs})
    warning = " **All of them are of one day: what differs between days is not in the intervals.**"
    return f"Runs began on {'; '.join(times)} (UTC).{warning if days == 1 else ''}"


def _tier(what: str, cache: int, runs: Sequence[RunDocument]) -> Iterator[str]:
    pooled = pool.pool("part-cached", runs, force=True)
    assert pooled.database is not None
    assert pooled.machine is not None
    share = words.percent(cache / pooled.database.bytes, 0)
    yield f"## {what[0].upper()}{what[1:]}: cache of {share} of the database"
    yield table(_HEAD, [_row(pooled, arm) for arm in answer.arms(pooled)])
    yield (
        f"{words.size(cache)} of {words.size(pooled.database.bytes)}; {pooled.machine.cores} cores"
        f" of {pooled.machine.host.cpu}; {words.plural(len(runs), 'sitting')}."
    )


def _row(run: RunDocument, arm: ArmFigures) -> tuple[str, ...]:
    cpu_ms = answer.cpu_ms(run, arm)
    return (
        arm.name,
        words.percent(arm.hit_ratio),
        f"{arm.rate:,.0f}",
        ", ".join(f"{repeat.rate:,.0f}" for repeat in arm.repeats),
        _times(run, arm, "baseline"),
        _times(run, arm, "all-flash"),
        words.percent(arm.server_cpu, 0),
        words.ABSENT if cpu_ms is None else f"{cpu_ms:.2f}",
    )


def _times(run: RunDocument, of: ArmFigures, reference: ArmName) -> str:
    arm, other = run.arm(of.name), run.arm(reference)
    if arm is None or other is None or arm.name == reference:
        return words.ABSENT
    return stats.write_interval(stats.ratio_with_interval(arm, other))
