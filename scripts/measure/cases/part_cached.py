"""The main run: TPC-C with a cache of half and of a quarter of the database, in sittings.

A sitting measures every arm once, on hotset's own engine (on this computer's kernel) and on the
kernel's dm-cache (User-Mode Linux, one CPU): twelve minutes a tier. Sittings lie hours or days
apart, each adds its runs to the folder, and the page is of all that are there. What a tier comes
to is held against its own arms and never against the other tier's, whose computer is another one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hotset.core import words
from hotset.reports.analysis import answer, stats
from hotset.reports.analysis.answer import ArmFigures
from hotset.reports.analysis.comparison import pool
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import RunDocument
from hotset.reports.render import html

from .. import programs
from ..page import table

EXPERIMENT = "experiments/part-cached.toml"
CACHES = ("480MiB", "240MiB")
KINDS = {
    "userspace": "hotset's own engine; the flash is a model",
    "dm-cache": (
        "the kernel's dm-cache under User-Mode Linux, which has one CPU and counts no heat: filled"
        " in the order of the disk; the flash is a file"
    ),
}
ORDERS = {"userspace": "heat", "dm-cache": "disk"}
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
    parser.add_argument("--picture", type=Path, help="of the first table's report, by chromium")


def measure(options: argparse.Namespace) -> None:
    """One sitting, unless the page alone is wanted; then the page."""
    options.into.mkdir(parents=True, exist_ok=True)
    for kind in () if options.page_only else options.kind or KINDS:
        for cache in CACHES:
            run = RunDocument.model_validate(_run(kind, cache))
            text = f"{run.model_dump_json(indent=1)}\n"
            (options.into / f"{run.run}-{kind}-{cache}.json").write_text(text)
    runs = read(options.into)
    text = page(runs)
    (options.into / "README.md").write_text(text)
    if options.picture is not None:
        _draw(next(pooled for _, pooled in tables(runs)), options.picture)
    print(text)


def _run(kind: str, cache: str) -> object:
    settings = (f"tier.kind={kind}", f"tier.cache={cache}", f"warmup.order={ORDERS[kind]}")
    options = [word for setting in settings for word in ("--set", setting)]
    return programs.hotset("experiment", "run", EXPERIMENT, *options, "--quiet")


def read(folder: Path) -> list[RunDocument]:
    """The runs of all sittings, the oldest first."""
    runs = [RunDocument.model_validate_json(file.read_text()) for file in folder.glob("*.json")]
    return sorted(runs, key=lambda run: run.started_at)


def page(runs: Sequence[RunDocument]) -> str:
    """The page of these runs, as Markdown."""
    return "\n\n".join(_paragraphs(runs)) + "\n"


def tables(runs: Sequence[RunDocument]) -> Iterator[tuple[str, RunDocument]]:
    """What each table is of, and its sittings as one run; the one that README names first."""
    for kind, what in KINDS.items():
        of_kind = [run for run in runs if run.tier is not None and run.tier.kind == kind]
        for cache in sorted({run.tier.cache_bytes for run in of_kind if run.tier}, reverse=True):
            same = [run for run in of_kind if run.tier and run.tier.cache_bytes == cache]
            yield what, pool.pool("part-cached", same, force=True)


def _draw(run: RunDocument, picture: Path) -> None:
    """Photograph the answer of the run's report."""
    with tempfile.TemporaryDirectory(prefix="hotset-picture-") as folder:
        report = Path(folder) / "report.html"
        report.write_text(html.render(run))
        options = ("--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1100,672")
        programs.run(["chromium", *options, f"--screenshot={picture}", report.as_uri()])


def _paragraphs(runs: Sequence[RunDocument]) -> Iterator[str]:
    yield "# TPC-C with a cache of half and of a quarter of the database"
    yield _when(runs)
    for what, pooled in tables(runs):
        yield from _tier(what, pooled)
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


def _tier(what: str, run: RunDocument) -> Iterator[str]:
    assert run.database is not None
    assert run.machine is not None
    assert run.tier is not None
    arms = answer.arms(run)
    share = words.percent(run.tier.cache_bytes / run.database.bytes, 0)
    yield f"## {what[0].upper()}{what[1:]}: cache of {share} of the database"
    yield table(_HEAD, [_row(run, arm) for arm in arms])
    yield (
        f"{words.size(run.tier.cache_bytes)} of {words.size(run.database.bytes)};"
        f" {words.plural(run.machine.cores, 'core')} of {run.machine.host.cpu};"
        f" {words.plural(len(arms[0].repeats), 'sitting')}."
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
