"""Kinds of transactions, arm beside arm: of SQL of one's own, each script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean

from hotset.core import words

from ..model.document import Arm, RunDocument
from ..model.windows import RESPONSE_LIMITS_S, Latency, Repeat, Transaction
from . import answer, units

_PERCENTILES = ("mean", *words.PERCENTILES, "max")


def title(document: RunDocument) -> str:
    """Heads the table."""
    return f"By {units.find_unit(document).kind}, means of the repeats; p95 factor: baseline / arm"


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    kind = units.find_unit(document).kind
    return (kind, "arm", "per s", "p50 ms", "p95 ms", "p99 ms", "p95 factor", "failed")


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row for each kind and arm; empty where there are no arms to compare."""
    arms = [arm for name in answer.ARM_ORDER if (arm := document.arm(name)) is not None]
    if document.measurement is not None:
        return []
    names = dict.fromkeys(
        name for arm in arms for repeat in arm.repeats for name in repeat.transactions
    )
    base = document.arm("baseline")
    return [_row(name, arm, base) for name in names for arm in arms]


def _row(kind: str, arm: Arm, base: Arm | None) -> tuple[str, ...]:
    latency = _latency(arm, kind)
    before = _latency(base, kind) if base is not None and base.name != arm.name else None
    slow, quick = (latency.p95 if latency else None for latency in (before, latency))
    failed = sum(
        count
        for repeat in arm.repeats
        if kind in repeat.transactions
        for count in repeat.transactions[kind].failed.values()
    )
    ratio = words.factor(slow / quick) if slow is not None and quick else ""
    return (
        show_kind(kind, arm.repeats[0]),
        arm.name,
        words.count(_per_second(arm, kind)),
        *words.latencies(latency),
        ratio or words.ABSENT,
        words.total(failed) if failed else "0",
    )


def _per_second(arm: Arm, kind: str) -> float:
    return fmean(
        repeat.transactions[kind].committed / repeat.duration_s
        if kind in repeat.transactions
        else 0.0
        for repeat in arm.repeats
    )


def _latency(arm: Arm, kind: str) -> Latency | None:
    """Over the repeats."""
    transactions = (repeat.transactions.get(kind) for repeat in arm.repeats)
    return answer.mean_latency(
        transaction.latency_ms if transaction else None for transaction in transactions
    )


def show_kind(kind: str, window: Repeat) -> str:
    """TPC-C's kinds as its specification writes them; a script as its file is called."""
    return kind if window.nopm is None else kind.replace("_", "-")


def _count_names(document: RunDocument) -> tuple[str, ...]:
    """Scripts of one's own are neither rolled back nor repeated."""
    ends = ("rolled back", "retries") if document.timed == "tpcc" else ()
    return ("committed", *ends, "failed")


def count_columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `count_rows`."""
    labels = answer.window_columns(document)
    return (*labels, units.find_unit(document).kind, "per s", *_count_names(document), "causes")


def count_rows(document: RunDocument) -> list[tuple[tuple[str, ...], bool]]:
    """Outcomes of each kind's transactions in each window; True: all kinds together."""
    names = _count_names(document)
    return [
        ((*labels, name, *_counts(kinds, window, names)), is_all)
        for labels, window in answer.label_windows(document)
        for name, kinds, is_all in _each_and_all(window)
    ]


def latency_columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `latency_rows`."""
    percentiles = (name.replace("_", ".") for name in _PERCENTILES)
    return (*answer.window_columns(document), units.find_unit(document).kind, *percentiles)


def latency_rows(document: RunDocument) -> list[tuple[tuple[str, ...], bool]]:
    """Percentiles of each kind in each window; True: all kinds together."""
    return [
        (
            (*labels, name, *_percentiles(window.latency_ms if is_all else kinds[0].latency_ms)),
            is_all,
        )
        for labels, window in answer.label_windows(document)
        for name, kinds, is_all in _each_and_all(window)
    ]


def _each_and_all(window: Repeat) -> Iterator[tuple[str, Sequence[Transaction], bool]]:
    for name, kind in window.transactions.items():
        yield show_kind(name, window), [kind], False
    if len(window.transactions) > 1:
        yield "all", [*window.transactions.values()], True


def _counts(kinds: Sequence[Transaction], window: Repeat, names: Sequence[str]) -> Iterator[str]:
    retries, failed = Counter[str](), Counter[str]()
    for kind in kinds:
        retries.update(kind.retry_causes)
        failed.update(kind.failed)
    causes = (("retries", retries), ("failed", failed)) if len(kinds) == 1 else ()
    totals = {
        "committed": sum(kind.committed for kind in kinds),
        "rolled back": sum(kind.rolled_back for kind in kinds),
        "retries": sum(kind.retries for kind in kinds),
        "failed": failed.total(),
    }
    yield words.count(totals["committed"] / window.duration_s)
    yield from (f"{totals[name]:,}" for name in names)
    yield "; ".join(
        f"{what}: {', '.join(f'{cause} {count:,}' for cause, count in counted.most_common())}"
        for what, counted in causes
        if counted
    )


def _percentiles(latency_ms: Latency | None) -> Iterator[str]:
    for name in _PERCENTILES:
        value = getattr(latency_ms, name, None)
        yield words.ABSENT if value is None else f"{value:,.2f}"


def response_times(document: RunDocument) -> list[str]:
    """Judge each arm by TPC-C's own limits; what was not measured is not known."""
    return [
        f"{answer.prefix(arm.name)}TPC-C's limits on response times: {_response_times(windows)}"
        for arm in document.arms
        if (windows := [window for window in (*arm.curve, *arm.repeats) if window.nopm is not None])
    ]


def _response_times(windows: Sequence[Repeat]) -> str:
    missed, unknown = list[str](), list[str]()
    for kind, limit_s in RESPONSE_LIMITS_S.items():
        latencies = [
            window.transactions[kind].latency_ms
            for window in windows
            if kind in window.transactions
        ]
        name, p90 = (
            show_kind(kind, windows[0]),
            [latency.p90 for latency in latencies if latency and latency.p90],
        )
        if len(p90) < len(windows):
            unknown.append(name)
        if p90 and max(p90) > limit_s * 1000:
            missed.append(
                f"missed, p90 of {name} is {max(p90) / 1000:,.2f} s, more than {limit_s} s"
            )
    if unknown:
        verb = "was" if len(unknown) == 1 else "were"
        missed.append(f"{words.enumerate_words(unknown)} {verb} not measured")
    return "; ".join(missed) or "kept, 90 % of each kind within 5 s, of stock-level within 20 s"


def describe_unfinished(document: RunDocument) -> list[str]:
    """Transactions that had not ended when the users were stopped."""
    return [
        f"{answer.prefix(labels[0])}not ended long after the window:"
        f" {words.plural(stuck.count, 'transaction')}, the oldest under way for"
        f" {stuck.oldest_s:.1f} s when the window closed"
        for labels, window in answer.label_windows(document)
        if (stuck := window.unfinished) is not None
    ]
