"""The page of a run: which sections it has, in which order, and what is around them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

from hotset.core import words

from ..analysis import answer, caveats, headlines, kinds, measured, predicted, published
from ..analysis.comparison import highest, policies
from ..model.document import RunDocument
from ..model.windows import Condition, Counters
from . import charts, configuration, disk_pages
from .page import Page, Section, Table, of_table


def page_of(document: RunDocument) -> Page:
    """All of it; what was not measured is left out."""
    if document.disks is not None:
        return disk_pages.of_run(document)
    made = [section for maker in _MAKERS if (section := maker(document)) is not None]
    if document.measurement is not None:
        made = [_of_measurement(section, document) for section in made]
    took = f"took {words.duration(document.seconds)}"
    return Page(
        title=document.experiment.title or document.experiment.name,
        about=(
            f"run {document.run}",
            f"{document.started_at:%Y-%m-%d %H:%M} UTC",
            *([took] if document.state != "running" else []),
        ),
        headlines=tuple(headlines.write_headlines(document)),
        sections=tuple(made),
        document=without_series(document).model_dump(mode="json"),
        state="" if document.state == "complete" else answer.standing(document),
        judged=tuple(answer.judge(document)),
        verdicts=answer.verdicts(document),
        conditions=answer.conditions(document),
        gaps=answer.gaps(document),
        caveats=tuple(dict.fromkeys(caveats.list_caveats(document))),
        setup=tuple(configuration.groups(document)),
        command=shlex.join(document.command),
    )


def _of_measurement(section: Section, document: RunDocument) -> Section:
    """As what has no other arm or repeat is shown: without columns for them, and of a single window
    all of it."""
    is_alone = not any(arm.curve for arm in document.arms)
    shown = "all" if is_alone and section.key in _OF_ONE_WINDOW else section.terminal
    tables = tuple(_without_arms(table, section.title) for table in section.tables)
    return replace(section, tables=tables, terminal=shown)


_OF_ONE_WINDOW = ("time-use", "latencies", "transactions")


def _without_arms(table: Table, title: str) -> Table:
    left_out = sum(column in ("arm", "repeat") for column in table.columns[:2])
    return replace(
        table,
        caption=title if "repeat" in table.caption else table.caption,
        columns=table.columns[left_out:],
        rows=tuple(row[left_out:] for row in table.rows),
        names=max(table.names - left_out, 0),
    )


def without_series(document: RunDocument) -> RunDocument:
    """The document as the page carries it: the charts hold the series, thinned."""
    arms = tuple(
        arm.model_copy(
            update={
                name: tuple(
                    window.model_copy(update={"series": ()}) for window in getattr(arm, name)
                )
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


def _published_section(document: RunDocument) -> Section | None:
    """Published figures beside this run's, where the experiment names any."""
    source = document.experiment.published.source if document.experiment.published else ""
    lines, notes = tuple(published.rows(document)), tuple(published.notes(document))
    return _of_table("published", f"Compared with {source}", published.COLUMNS, lines, notes)


def _predicted_section(document: RunDocument) -> Section | None:
    """Predictions from an earlier run, beside the measured values."""
    predictions = document.predictions
    notes = (predicted.sentence(predictions),) if predictions else ()
    lines = tuple(predicted.rows(document))
    return _of_table("predicted", "Predicted and measured", predicted.COLUMNS, lines, notes)


def _tier(document: RunDocument) -> Section | None:
    """Tier of a measurement, and its tables that were in the cache."""
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
        (arm.name, str(each.repeat), *(_count(getattr(each.counters, name)) for name in names))
        for arm in answer.arms(document)
        for each in arm.repeats
        if each.counters is not None
    )
    columns = ("arm", "repeat", *(name.replace("_", " ") for name in names))
    title = "Counter differences in the window"
    return _of_table("counters", title, columns, rows, terminal=False)


def _count(value: int | None) -> str:
    """A counter; what the kind of tier does not count is no 0."""
    return "not counted" if value is None else f"{value:,}"


def _transactions(document: RunDocument) -> Section | None:
    """Transactions of every window by kind and outcome."""
    rows = kinds.count_rows(document)
    if not rows:
        return None
    title = "Transactions by kind"
    table = charts.kinds_table(document, title, kinds.count_columns(document), rows)
    notes = (*kinds.response_times(document), *kinds.describe_unfinished(document))
    return Section("transactions", title, notes, tables=(table,), terminal="nothing")


def _arrivals(document: RunDocument) -> Section | None:
    """Transactions due at a given rate, by outcome."""
    rows = tuple(
        (*labels, f"{arrived.rate_per_s:,.1f}", *(f"{n:,}" for n in counts))
        for labels, window in answer.label_windows(document)
        if (arrived := window.arrived) is not None
        for counts in [(arrived.due, arrived.late, arrived.skipped)]
    )
    columns = (*answer.window_columns(document), "requested per s", "due", "late", "skipped")
    title, is_alone = "Transactions that were due", document.measurement is not None
    return _of_table("arrivals", title, columns, rows, terminal=is_alone)


def _trials(document: RunDocument) -> Section | None:
    rows = tuple(highest.trial_rows(document))
    columns, notes = highest.TRIAL_COLUMNS, tuple(highest.sentences(document))
    is_alone = document.measurement is not None
    return _of_table("trials", "Rates that were tried", columns, rows, notes, terminal=is_alone)


def _conditions(document: RunDocument) -> Section | None:
    """After the last window that was checked, or after each that left the database inconsistent."""
    checked = answer.check(document)
    if not checked:
        return None
    broken = [check for check in checked if not all(condition.holds for condition in check[1])]
    tables = tuple(
        conditions_table(conditions, *([after] if len(checked) > 1 else []))
        for after, conditions in broken or checked[-1:]
    )
    return Section("conditions", _CONDITIONS, tables=tables, terminal="nothing")


_CONDITIONS = "TPC-C's consistency conditions"


def of_conditions(conditions: Sequence[Condition]) -> Page:
    """Section of a check of the conditions alone."""
    return of_table(conditions_table(conditions), judged=(answer.judge_conditions([conditions]),))


def conditions_table(conditions: Sequence[Condition], *after: str) -> Table:
    """A line for each.

    :param after: which window.
    """
    return Table(
        ": ".join((_CONDITIONS, *after)),
        ("condition (clause 3.3.2)", "violations", "such as"),
        tuple(
            (
                f"{condition.number:2} {condition.title}",
                f"{condition.violations:,}",
                ", ".join(map(str, condition.examples[0])) if condition.examples else "",
            )
            for condition in conditions
        ),
        sentences="such as",
    )


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
    _arrivals,
    charts.highest_rates,
    _trials,
    charts.over_users,
    charts.time_use_by_arm,
    charts.devices,
    charts.server_io_by_arm,
    charts.over_time,
    charts.latencies,
    charts.queries,
    charts.hits,
    _published_section,
    _predicted_section,
    charts.warmup,
    _tier,
    charts.price,
    _counters,
    _transactions,
    _conditions,
)
"""In the order of the page."""
