"""A run as one HTML page that needs no network: figures, charts, tables, style and script inside.

The page forbids itself the network (Content-Security-Policy), and runs no script but its own two,
which it names by their hashes.
"""

from __future__ import annotations

import json
import re
import shlex
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

from hotset.core import words
from hotset.core.record import SCHEMA_VERSION

from ..analysis import (
    answer,
    caveats,
    headlines,
    kinds,
    predicted,
    prices,
    published,
    same_state,
    units,
)
from ..analysis import measured as of_measurement
from ..analysis.answer import ArmFigures
from ..analysis.comparison import policies
from ..model.base import ArmName
from ..model.document import POLICY_ARMS, RunDocument
from ..model.setup import Calibration
from ..model.windows import Counters
from . import charts, disk_pages

ROLES: dict[ArmName, tuple[str, str]] = {
    "baseline": ("Before", "slow storage alone"),
    "split-disks": ("Alternative", "files spread over several slow disks"),
    "in-memory": ("Alternative", "the whole database in memory"),
    "flash-volume": ("Alternative", "only log and temporary space on flash"),
    "accelerated": ("After", "flash cache in front"),
    **{name: ("Policy", f"flash cache with the policy {name}") for name in POLICY_ARMS},
    "all-flash": ("Ceiling", "everything on flash"),
    "measured": ("Measured", "the database as it was found"),
}


ALWAYS_SHOWN: tuple[ArmName, ...] = ("baseline", "accelerated", "all-flash")
# What the page's own script uses of the chart libraries.
LIBRARIES_TO_WINDOW = "window.vegaEmbed = vegaEmbed;"

_DRIVERS = {"hotset": "hotset's own", "hammerdb": "HammerDB"}
_ITEMS = {"nurand": "as TPC-C says (NURand)", "uniform": "uniformly, as HammerDB does"}

NO_BREAK_SPACE, WORD_JOINER = "\u00a0", "\u2060"


_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)


@dataclass(frozen=True, slots=True)
class Card:
    """One arm's big figure; `arm` is None where it was not measured."""

    name: ArmName
    role: str
    meaning: str
    arm: ArmFigures | None


def render(document: RunDocument) -> str:
    """The whole page."""
    if document.disks is not None:
        return render_disks(disk_pages.of_run(document, configuration(document)))
    template = _environment().get_template("report.html.j2")
    measured = {arm.name: arm for arm in answer.arms(document)}
    factor = document.factor()
    figures = charts.figures(document)
    return template.render(
        document=document,
        headlines=[_unbroken(said) for said in headlines.write_headlines(document)],
        conditions=answer.conditions(document),
        verdicts=answer.verdicts(document),
        factor=factor,
        no_interval=answer.repeats(document),
        ceiling_interval=factor and answer.ceiling_interval(factor),
        cards=_cards(document, measured),
        arms=list(measured.values()),
        here=of_measurement.hit_ratio(document),
        warmup_line=answer.warmup_line(document),
        hit_ratio_denominator=answer.HIT_RATIO_DENOMINATOR,
        gaps=answer.gaps(document),
        caveats=caveats.list_caveats(document),
        figures=figures,
        counters=_counters(list(measured.values())),
        transactions=_transactions(list(measured.values())),
        unit=units.find_unit(document),
        unit_columns=units.columns(document),
        unit_cells=partial(units.cells, document),
        tables=[*_policies(document), *_kinds(document), *_residents(document)],
        published=_published(document),
        published_notes=published.notes(document),
        predicted=_predicted(document),
        configuration=configuration(document),
        command=shlex.join(document.command),
        price_how=prices.HOW,
        spec_text=json.dumps(document.experiment.spec, indent=2, ensure_ascii=False),
        embedded=without_series(document).model_dump(mode="json"),
        schema_version=SCHEMA_VERSION,
        words=words,
        **_page_parts(figures),
    )


def render_disks(page: disk_pages.Page) -> str:
    """The page of a scenario on modelled disks."""
    return (
        _environment()
        .get_template("disks.html.j2")
        .render(page=page, embedded=page.document, conditions=(), **_page_parts(page.figures))
    )


def _page_parts(figures: Iterable[charts.Figure]) -> dict[str, object]:
    """What every page with charts has: their data, the style, the scripts and leave to run them."""
    libraries, own = _libraries(), _resource("report.js")
    return {
        "specs": {panel.key: panel.spec for figure in figures for panel in figure.panels},
        "style": _resource("report.css"),
        "libraries": libraries,
        "script": own,
        "policy": f"{_POLICY}; script-src {_hash(libraries)} {_hash(own)}",
    }


def _cards(document: RunDocument, measured: Mapping[ArmName, ArmFigures]) -> list[Card]:
    always = ALWAYS_SHOWN if document.measurement is None else ()
    return [
        Card(name, *role, measured.get(name))
        for name, role in ROLES.items()
        if name in measured or name in always
    ]


def _unbroken(text: str) -> str:
    """What stands in brackets up to a semicolon, and a number and its sign, stay on one line."""
    inside = re.sub(r"\(.*?[;)]", lambda found: found[0].replace(" ", NO_BREAK_SPACE), text)
    return inside.replace(" %", f"{NO_BREAK_SPACE}%").replace("–", f"–{WORD_JOINER}")


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


def _kinds(document: RunDocument) -> Iterator[charts.Table]:
    """Each kind of transaction, arm beside arm; of scripts of one's own each script."""
    if lines := kinds.rows(document):
        yield charts.Table(kinds.title(document), kinds.columns(document), tuple(lines))


def _residents(document: RunDocument) -> Iterator[charts.Table]:
    """Tables of a measured database that were in the cache."""
    if lines := of_measurement.residents(document):
        yield charts.Table(
            "Tables in the cache, after the measurement",
            of_measurement.RESIDENT_COLUMNS,
            tuple(lines),
        )


def _policies(document: RunDocument) -> Iterator[charts.Table]:
    """Cache policies that were arms."""
    if lines := policies.rows(document):
        yield charts.Table(policies.TITLE, policies.columns(document), tuple(lines))


def _published(document: RunDocument) -> charts.Table | None:
    """Published figures beside this run's, where the experiment names any."""
    lines = published.rows(document)
    if not lines or document.experiment.published is None:
        return None
    source = document.experiment.published.source
    return charts.Table(f"Compared with {source}", published.COLUMNS, tuple(lines))


def _predicted(document: RunDocument) -> charts.Table | None:
    """What an earlier run let predict, beside what this one measured."""
    found = document.predictions
    if found is None:
        return None
    return charts.Table(
        predicted.sentence(found), predicted.COLUMNS, tuple(predicted.rows(document))
    )


def _counted(value: int | None) -> str:
    """A counter; what the kind of tier does not count is no 0."""
    return "not counted" if value is None else f"{value:,}"


def _counters(arms: list[ArmFigures]) -> charts.Table:
    """The cached device's counters, bypassed I/O in its own column."""
    names = tuple(Counters.model_fields)
    rows = [
        (arm.name, str(each.repeat), *(_counted(getattr(each.counters, name)) for name in names))
        for arm in arms
        for each in arm.repeats
        if each.counters is not None
    ]
    columns = ("arm", "repeat", *(name.replace("_", " ") for name in names))
    return charts.Table("Counter differences in the window", columns, tuple(rows))


def _transactions(arms: list[ArmFigures]) -> charts.Table:
    rows = []
    for arm in arms:
        for each in arm.repeats:
            for name, kind in each.transactions.items():
                rows.append(
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
                )
    columns = (
        "arm",
        "repeat",
        "transaction",
        "committed",
        "rolled back",
        "retries",
        "failed",
        "p50 ms",
        "p95 ms",
        "p99 ms",
    )
    return charts.Table("Transactions by kind", columns, tuple(rows))


def configuration(document: RunDocument) -> list[tuple[str, list[tuple[str, str]]]]:
    """How it was measured: groups of (what, figure)."""
    of_database = [
        ("Database", _database(document)),
        ("Tier", of_measurement.facts(document) or _tier(document)),
        *([("Slow storage", _storage(document))] if document.measurement is None else []),
    ]
    groups = [
        *(of_database if document.disks is None else _tier_of_disk(document)),
        ("Machine", _machine(document)),
        ("Run", _run(document)),
        *([("Phases", _phases(document))] if document.phases else []),
    ]
    return [(name, rows or [("not recorded", words.ABSENT)]) for name, rows in groups]


def _tier_of_disk(document: RunDocument) -> list[tuple[str, list[tuple[str, str]]]]:
    """Of a measured disk; modelled ones have none."""
    return [("Tier", of_measurement.facts(document))] if document.measurement else []


def _database(document: RunDocument) -> list[tuple[str, str]]:
    database = document.database
    if database is None:
        return []
    return [
        ("engine", f"{database.engine} {database.version}"),
        ("size", words.size(database.bytes or None)),
        ("buffers", words.size(database.buffers_bytes or None)),
        *([("warehouses", f"{database.warehouses:,}")] if database.warehouses else []),
        *([("users", f"{database.users:,}")] if database.users else []),
        *([("driver", _DRIVERS[database.driver])] if database.warehouses else []),
        *(_drawn(document) if database.warehouses else []),
        *([("TPC-H scale", f"{database.tpch_scale:g}")] if database.tpch_scale else []),
    ]


def _drawn(document: RunDocument) -> list[tuple[str, str]]:
    """What TPC-C's figures may be compared with, of all windows."""
    windows = [one for arm in document.arms for one in (*arm.curve, *arm.repeats)]
    draws = {
        f"{_ITEMS[window.items]}: {words.percent(window.hottest_fifth, 0)} of stock's accesses on"
        " 20 % of its blocks"
        for window in windows
        if window.items is not None and window.hottest_fifth is not None
    }
    levels = {window.isolation for window in windows if window.isolation is not None}
    seeds = {window.seed for window in windows if window.seed is not None}
    return [
        ("items drawn", " and ".join(sorted(draws)) or "not known"),
        ("isolation", " and ".join(sorted(levels)) or "not known"),
        *([("seeds", _span(seeds))] if seeds else []),
    ]


def _span(numbers: set[int]) -> str:
    first, last = min(numbers), max(numbers)
    return str(first) if first == last else f"{len(numbers)} from {first} to {last}"


def _tier(document: RunDocument) -> list[tuple[str, str]]:
    tier = document.tier
    if tier is None:
        return []
    word = ", on modelled flash" if tier.emulated else ""
    rows = [
        ("kind", f"{tier.kind}{word}"),
        ("mode, policy", f"{tier.mode}, {tier.policy}"),
        ("cache", f"{words.size(tier.cache_bytes)} in blocks of {words.size(tier.block_bytes)}"),
        ("volume", words.size(tier.volume_bytes)),
        ("metadata", words.size(tier.metadata_bytes)),
    ]
    if tier.flash:
        rows.append(("flash", tier.flash))
    if document.database is not None and document.database.bytes:
        share = words.percent(tier.cache_bytes / document.database.bytes, 0)
        rows.append(("cache / database", share))
    return rows


def _storage(document: RunDocument) -> list[tuple[str, str]]:
    storage = document.storage
    if storage is None:
        return []
    rows = [
        ("kind", storage.kind),
        ("name", storage.name),
        ("description", storage.description),
        ("size", words.size(storage.size_bytes)),
    ]
    if storage.measured is not None:
        for name in Calibration.model_fields:
            got = getattr(storage.measured, name)
            wanted = getattr(storage.expected, name) if storage.expected else None
            if got is not None:
                label, unit = _label_and_unit(name)
                model = f" (model says {words.count(wanted)})" if wanted else ""
                rows.append((f"measured {label}", f"{words.count(got)} {unit}{model}"))
    return rows


def _label_and_unit(name: str) -> tuple[str, str]:
    """
    >>> _label_and_unit("seq_read_mb_per_s"), _label_and_unit("rand_read_iops")
    (('sequential read', 'MB/s'), ('random read', 'IOPS'))
    """
    for suffix, unit in (("_mb_per_s", "MB/s"), ("_iops", "IOPS"), ("_us", "µs")):
        if name.endswith(suffix):
            label = name.removesuffix(suffix).replace("_", " ")
            return label.replace("seq ", "sequential ").replace("rand ", "random "), unit
    raise ValueError(f"a calibration figure without a unit: {name}")


def _machine(document: RunDocument) -> list[tuple[str, str]]:
    machine = document.machine
    if machine is None:
        return []
    kind: str = machine.kind
    if machine.kind == "uml":
        kind = "User-Mode Linux: a real kernel at the host's CPU speed, one CPU, slow system calls"
    host = machine.host
    return [
        ("kind", kind),
        ("cores, memory", f"{machine.cores}, {words.size(machine.memory_bytes)}"),
        ("kernel", machine.kernel),
        ("host CPU", host.cpu),
        ("host cores, memory", f"{host.cores}, {words.size(host.memory_bytes)}"),
        ("host kernel", host.kernel),
    ]


def _run(document: RunDocument) -> list[tuple[str, str]]:
    rows = [
        ("id", document.run),
        ("started", f"{document.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("until now" if document.state == "running" else "took", words.duration(document.seconds)),
    ]
    arms = answer.arms(document)
    if arms:
        windows = sorted({(each.rampup_s, each.duration_s) for arm in arms for each in arm.repeats})
        said = [f"{ramp:g} s ramp-up, {length:g} s measured" for ramp, length in windows]
        rows.append(("windows", "; ".join(said)))
        rows.extend(_preparation(document))
        rows.append(("repeats", ", ".join(f"{arm.name} {len(arm.repeats)}" for arm in arms)))
    if document.hotset_version:
        rows.append(("hotset", document.hotset_version))
    return rows


def _preparation(document: RunDocument) -> list[tuple[str, str]]:
    """Nothing of runs that have it not on record."""
    if not any(repeat.preparation for arm in document.arms for repeat in arm.repeats):
        return []
    said = {True: "reads level", False: "reads not level", None: "not known whether level"}
    levels = same_state.levels(document)
    named = [f"{said[level]}: {', '.join(levels[level])}" for level in said if level in levels]
    return [("preparation", "; ".join(named))]


def _phases(document: RunDocument) -> list[tuple[str, str]]:
    return [(phase.name, _phase(phase.state, phase.seconds)) for phase in document.phases]


def _phase(state: str, seconds: float) -> str:
    return words.duration(seconds) if state == "done" else f"{state}, {words.duration(seconds)}"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("hotset.reports.render"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and their embedding, once for the page."""
    bundle: str = vl_convert.javascript_bundle(LIBRARIES_TO_WINDOW)
    if "</script" in bundle.lower() or "\r" in bundle:
        raise ValueError("the chart library cannot stand inside a page as it is")
    return bundle


@cache
def _resource(name: str) -> str:
    return (files("hotset.reports.render") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
