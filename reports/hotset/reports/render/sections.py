"""The page of a run: which sections it has, in which order, and what stands around them."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from hotset.core import words

from ..analysis import answer, caveats, headlines, kinds, measured, predicted, published
from ..analysis.comparison import policies
from ..model.document import RunDocument
from ..model.windows import Counters
from . import charts, configuration, disk_pages
from .page import Page, Section, Table


def page_of(document: RunDocument) -> Page:
    """All of it; what was not measured is left out."""
    if document.disks is not None:
        return disk_pages.of_run(document)
    made = (maker(document) for maker in _MAKERS)
    took = f"took {words.duration(document.seconds)}"
    return Page(
        title=document.experiment.title or document.experiment.name,
        about=(
            f"run {document.run}",
            f"{document.started_at:%Y-%m-%d %H:%M} UTC",
            *([took] if document.state != "running" else []),
        ),
        headlines=tuple(headlines.write_headlines(document)),
        sections=tuple(section for section in made if section is not None),
        document=without_series(document).model_dump(mode="json"),
        state="" if document.state == "complete" else answer.standing(document),
        verdicts=answer.verdicts(document),
        conditions=answer.conditions(document),
        gaps=answer.gaps(document),
        caveats=caveats.list_caveats(document),
        setup=tuple(configuration.groups(document)),
        command=shlex.join(document.command),
    )


def without_series(document: RunDocument) -> RunDocument:
    """The document as the page carries it: the charts hold the series, thinned."""
    arms = tuple(
        arm.model_copy(
            update={
                name: tuple(one.model_copy(update={"series": ()}) for one in getattr(arm, name))
                for name in ("repeats", "curve")
            }
        )
        for arm in document.arms
    )
    return document.model_copy(update={"arms": arms})


def _policies(document: RunDocument) -> Section | None:
    """Cache policies that were arms."""
    lines = tuple(policies.rows(document))
    return _of_table("policies", policies.TITLE, policies.columns(document), lines)


def _kinds(document: RunDocument) -> Section | None:
    """Each kind of transaction, arm beside arm; of scripts of one's own each script."""
    lines, columns = tuple(kinds.rows(document)), kinds.columns(document)
    is_own = document.timed == "sql"
    title = kinds.title(document)
    return _of_table("kinds", title, columns, lines, names=2, terminal=is_own)


def _published(document: RunDocument) -> Section | None:
    """Published figures beside this run's, where the experiment names any."""
    source = document.experiment.published.source if document.experiment.published else ""
    lines, notes = tuple(published.rows(document)), tuple(published.notes(document))
    return _of_table("published", f"Compared with {source}", published.COLUMNS, lines, notes)


def _predicted(document: RunDocument) -> Section | None:
    """What an earlier run let predict, beside what this one measured."""
    found = document.predictions
    notes = (predicted.sentence(found),) if found else ()
    lines = tuple(predicted.rows(document))
    return _of_table("predicted", "Predicted and measured", predicted.COLUMNS, lines, notes)


def _tier(document: RunDocument) -> Section | None:
    """What a measurement found its tier to be, and its tables that were in the cache."""
    facts = tuple(measured.facts(document))
    if not facts:
        return None
    residents = tuple(measured.residents(document))
    title = "Tables in the cache, after the measurement"
    in_cache = Table(title, measured.RESIDENT_COLUMNS, residents)
    tier = Table("The disk below the database", ("", "found"), facts, names=2)
    return Section("tier", "Tier", tables=(tier, *([in_cache] if residents else [])))


def _counters(document: RunDocument) -> Section | None:
    """The cached device's counters, bypassed I/O in its own column."""
    names = tuple(Counters.model_fields)
    rows = tuple(
        (arm.name, str(each.repeat), *(_counted(getattr(each.counters, name)) for name in names))
        for arm in answer.arms(document)
        for each in arm.repeats
        if each.counters is not None
    )
    columns = ("arm", "repeat", *(name.replace("_", " ") for name in names))
    title = "Counter differences in the window"
    return _of_table("counters", title, columns, rows, terminal=False)


def _counted(value: int | None) -> str:
    """A counter; what the kind of tier does not count is no 0."""
    return "not counted" if value is None else f"{value:,}"


def _transactions(document: RunDocument) -> Section | None:
    rows = tuple(
        (
            arm.name,
            str(each.repeat),
            name.replace("_", " "),
            f"{kind.committed:,}",
            f"{kind.rolled_back:,}",
            f"{kind.retries:,}",
            ", ".join(f"{cause} {n:,}" for cause, n in kind.failed.items()) or "0",
            *words.latencies(kind.latency_ms),
        )
        for arm in answer.arms(document)
        for each in arm.repeats
        for name, kind in each.transactions.items()
    )
    counts = ("committed", "rolled back", "retries", "failed")
    columns = ("arm", "repeat", "transaction", *counts, "p50 ms", "p95 ms", "p99 ms")
    title = "Transactions by kind"
    return _of_table("transactions", title, columns, rows, names=3, terminal=False)


def _of_table(
    key: str,
    title: str,
    columns: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    notes: tuple[str, ...] = (),
    *,
    names: int = 1,
    terminal: bool = True,
) -> Section | None:
    """A section that is a table; None where it has no rows."""
    if not rows:
        return None
    table = Table(title, columns, rows, names=names)
    return Section(key, title, notes, (table,), terminal="all" if terminal else "nothing")


_MAKERS: tuple[Callable[[RunDocument], Section | None], ...] = (
    charts.throughput,
    _policies,
    _kinds,
    charts.highest_rates,
    charts.over_users,
    charts.time_use_by_arm,
    charts.devices,
    charts.server_io_by_arm,
    charts.over_time,
    charts.latencies,
    charts.queries,
    charts.hits,
    _published,
    _predicted,
    charts.warmup,
    _tier,
    charts.price,
    _counters,
    _transactions,
)
"""In the order of the page."""
