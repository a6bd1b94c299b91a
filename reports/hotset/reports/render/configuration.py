"""How a run was measured: its database, tier, storage and machine, as groups of (what, figure)."""

from __future__ import annotations

from hotset.core import words

from ..analysis import answer, measured, same_state
from ..model.document import RunDocument
from ..model.setup import Calibration
from .page import Group

_DRIVERS = {"hotset": "hotset's own", "hammerdb": "HammerDB"}
_RAMP_UP = "with those of the ramp-up"
_ITEMS = {"nurand": "as TPC-C says (NURand)", "uniform": "uniformly, as HammerDB does"}


def groups(document: RunDocument) -> list[Group]:
    """Groups of the set-up that the document knows of; one without figures says so."""
    of_database = [
        ("Database", _database(document)),
        *([("Workload", _workload(document))] if document.arms else []),
        *(
            [("Tier", _tier(document)), ("Slow storage", _storage(document))]
            if document.measurement is None
            else []
        ),
    ]
    groups = [
        *(of_database if document.disks is None else _tier_of_disk(document)),
        *([("Machine", _machine(document))] if document.measurement is None else []),
        ("Run", _run(document)),
        *([("Phases", _phases(document))] if document.phases else []),
    ]
    return [(name, rows or [("not recorded", words.ABSENT)]) for name, rows in groups]


def _tier_of_disk(document: RunDocument) -> list[tuple[str, list[tuple[str, str]]]]:
    """Tier of a measured disk; modelled ones have none."""
    return [("Tier", measured.facts(document))] if document.measurement else []


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
        *([("TPC-H scale", f"{database.tpch_scale:g}")] if database.tpch_scale else []),
    ]


def _workload(document: RunDocument) -> list[tuple[str, str]]:
    """Workload of all windows: only the same workload can be compared."""
    windows = [window for arm in document.arms for window in (*arm.curve, *arm.repeats)]
    draws = {
        f"{_ITEMS[window.items]}: {words.percent(window.hottest_fifth, 0)} of stock's accesses on"
        " 20 % of its blocks"
        for window in windows
        if window.items is not None and window.hottest_fifth is not None
    }
    levels = {window.isolation for window in windows if window.isolation is not None}
    seeds = {window.seed for window in windows if window.seed is not None}
    ages = {window.orders_before for window in windows if window.orders_before is not None}
    of_tpcc = [
        ("items drawn", " and ".join(sorted(draws)) or "not known"),
        ("isolation", " and ".join(sorted(levels)) or "not known"),
    ]
    settings = windows[0].settings if windows else None
    return [
        *(of_tpcc if document.timed == "tpcc" else []),
        *([("settings", ", ".join(f"{a} {b}" for a, b in settings.items()))] if settings else []),
        *([("checkpoint", "none before the windows")] if settings else []),
        *([("seeds", _span(seeds))] if seeds else []),
        *([("age", f"{_span(ages, ',')} orders since the load, {_RAMP_UP}")] if ages else []),
    ]


def _span(numbers: set[int], form: str = "") -> str:
    first, last = f"{min(numbers):{form}}", f"{max(numbers):{form}}"
    return first if len(numbers) == 1 else f"{len(numbers)} from {first} to {last}"


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
        lengths = [f"{ramp:g} s ramp-up, {length:g} s measured" for ramp, length in windows]
        rows.append(("windows", "; ".join(lengths)))
        rows.extend(_preparation(document))
        if document.measurement is None:
            rows.append(("repeats", ", ".join(f"{arm.name} {len(arm.repeats)}" for arm in arms)))
    if document.hotset_version:
        commit = f", commit {document.hotset_commit[:12]}" if document.hotset_commit else ""
        rows.append(("hotset", f"{document.hotset_version}{commit}"))
    return rows


def _preparation(document: RunDocument) -> list[tuple[str, str]]:
    """Nothing of runs that have it not on record."""
    if not any(repeat.preparation for arm in document.arms for repeat in arm.repeats):
        return []
    texts = {True: "reads level", False: "reads not level", None: "not known whether level"}
    levels = same_state.levels(document)
    named = [f"{texts[level]}: {', '.join(levels[level])}" for level in texts if level in levels]
    return [("preparation", "; ".join(named))]


def _phases(document: RunDocument) -> list[tuple[str, str]]:
    return [(phase.name, _phase(phase.state, phase.seconds)) for phase in document.phases]


def _phase(state: str, seconds: float) -> str:
    return words.duration(seconds) if state == "done" else f"{state}, {words.duration(seconds)}"
