"""TPC-C by HammerDB: build a database, run it, and tell it as hotset's own driver does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hotset.core.sql import Aborted, NotLoadedError
from hotset.databases.product import SqlDatabase
from hotset.load import served, steady
from hotset.load.record import NotServed
from hotset.load.served import shortfall
from hotset.reports.model.windows import (
    DUE_LEAST,
    Latency,
    Repeat,
    Second,
    ServerErrors,
    ServerRate,
    Transaction,
)
from hotset.tpcc.driver import isolation
from hotset.tpcc.record import RunOptions
from hotset.tpcc.schema import DISTRICTS, FIRST_ORDER
from hotset.tpcc.transactions import hottest_fifth

from . import script, settings, tables
from .batch import Batch, Observer, Outcome, execute
from .build import BuildResult, loaders
from .build import build as build_schema
from .jobs import Timing
from .process.failures import HammerdbFailed, HammerdbRefused
from .process.output import Line, WindowEdge
from .process.watch import result_of
from .release import Release, find
from .server import Edge, Reading, Server

_KINDS = {
    "new_order": "NEWORD",
    "payment": "PAYMENT",
    "order_status": "OSTAT",
    "delivery": "DELIVERY",
    "stock_level": "SLEV",
}
"""Our names and those of HammerDB's client procedures, in capitals in its time profile."""
_COUNT_S = 10.0
"""How long a count of orders may be late."""
_BUILD_STALL_S = 900.0


def build(
    connection: SqlDatabase,
    warehouses: int,
    folder: Path,
    *,
    users: int | None = None,
    stall_s: float = _BUILD_STALL_S,
    observe: Observer = lambda _: None,
    release: Release | None = None,
) -> BuildResult:
    """Create HammerDB's TPC-C schema in an existing, empty database, and count its rows.

    :param folder: for script, output and record; new or empty.
    :param users: parallel loaders; by default one per CPU, at most one per warehouse.
    :raises HammerdbFailed: the build did not end well; the database holds a part of it.
    :raises HammerdbRefused: an option that HammerDB cannot take.
    :raises PrerequisiteMissingError: no HammerDB (see `release.find`).
    """
    if warehouses < 1:
        raise HammerdbRefused(f"warehouses must be at least 1, not {warehouses}")
    batch = Batch(release or find(), connection, folder, stall_s, observe)
    schema = settings.Tpcc(warehouses, build_users=min(loaders(users), warehouses))
    return build_schema(batch, schema)


def run(
    connection: SqlDatabase,
    options: RunOptions,
    folder: Path,
    *,
    observe: Observer = lambda _: None,
    release: Release | None = None,
) -> Repeat:
    """Run TPC-C against a database that HammerDB built; see Repeat for what it can tell.

    HammerDB has no seed: `options.seed` is not used. It runs on all warehouses there are.

    :param folder: for script, output and record; new or empty.
    :raises HammerdbFailed: there is no result that could be trusted.
    :raises NotServed: the server did not do what was due.
    :raises HammerdbRefused: an option that HammerDB cannot take, such as half a minute.
    :raises PrerequisiteMissingError: no HammerDB (see `release.find`).
    """
    dictionary = settings.dictionary(connection, translate(options))
    batch = Batch(release or find(), connection, folder, options.stall_s, observe)
    _check_warehouses(connection, options.warehouses)
    before = _server_errors(connection)
    text = script.write_timed_run(connection.hammerdb, options.users, dictionary)
    with Server(connection) as server:
        watched = replace(batch, observe=_beside(server, observe))
        outcome = execute(watched, dictionary, text, users=options.users + 1)
        edges = server.edges(_COUNT_S)
    _require_able(server)
    result = _result(options, outcome, _between(before, _server_errors(connection)))
    result = result.model_copy(update={"isolation": isolation(connection)})
    orders = list[int]()
    if edges is not None:
        orders = _orders(server)
        result = result.model_copy(update=_counted(options, result, server, edges, orders))
    if cause := shortfall(result, _ended(options.users, result, server, orders)):
        raise NotServed(cause, result)
    return result


def translate(options: RunOptions) -> settings.Tpcc:
    """A run as HammerDB has it.

    :raises HammerdbRefused: an option that HammerDB cannot take, such as half a minute.
    """
    return settings.Tpcc(
        options.warehouses,
        rampup_min=whole_minutes("rampup_s", options.rampup_s, at_least=0),
        duration_min=whole_minutes("duration_s", options.duration_s, at_least=1),
        all_warehouses=options.all_warehouses,
        think_time=options.think_time,
    )


def whole_minutes(name: str, seconds: float, at_least: int) -> int:
    """HammerDB's clock ticks in minutes.

    :raises HammerdbRefused: `seconds` is no whole number of them, or less than `at_least`.
    """
    minutes = round(seconds / 60)
    if minutes * 60 != seconds or minutes < at_least:
        nearest = max(at_least, minutes) * 60
        raise HammerdbRefused(
            f"{name} {seconds:g}: HammerDB takes whole minutes, at least {at_least}:"
            f" give {nearest}, or use hotset's own driver"
        )
    return minutes


def _beside(server: Server, observe: Observer) -> Observer:
    """Have the server read when HammerDB's window opens and closes, and end a run that it cannot
    serve any more."""
    edges: dict[str, Edge] = {"measure": "opens", "done": "closes"}

    def see(line: Line) -> None:
        if isinstance(line, WindowEdge) and line.phase in edges:
            server.ask(edges[line.phase])
        _require_able(server)
        observe(line)

    return see


def _require_able(server: Server) -> None:
    """
    :raises HammerdbFailed: the server is in a state that does not pass by itself.
    """
    if server.unable:
        raise HammerdbFailed(f"the server cannot go on: {server.unable}")


def _orders(server: Server) -> list[int]:
    """The orders of each second, where chance alone leaves none without."""
    each = server.each_second() or []
    return each if sum(each) >= DUE_LEAST * len(each) else []


def _counted(
    options: RunOptions,
    result: Repeat,
    server: Server,
    edges: tuple[Reading, Reading],
    orders: Sequence[int],
) -> dict[str, Any]:
    """Counts that the server made meanwhile."""
    first, last = edges
    assert first.orders is not None
    assert last.orders is not None
    transactions = result.tpm / result.rate if result.rate else 0.0
    return {
        "nopm_by_district": (last.orders - first.orders) / (last.at - first.at) * 60,
        "orders_before": first.orders - options.warehouses * DISTRICTS * FIRST_ORDER,
        "unfinished": server.unfinished(),
        "steadiness": (steady.judge_rate(orders),) if len(orders) >= steady.LEAST_S else (),
        "series": tuple(
            Second(second=number, nopm=count * 60, tpm=count * 60 * transactions)
            for number, count in enumerate(orders)
        ),
    }


def _ended(asked: int, result: Repeat, server: Server, orders: Sequence[int]) -> list[str]:
    """List what did not go on to the end: HammerDB counts errors and drops their causes."""
    faults = [served.ended("new_order", orders)]
    idle = result.idle_seconds
    if result.failed and idle and idle[-1] == len(orders) - 1:
        faults.append(
            f"{result.failed:,} failed, and in the last second of the window none got through"
        )
    users = server.users()
    if result.failed and users is not None and users < asked:
        faults.append(f"{asked - users} of {asked} users had lost their sessions")
    return [fault for fault in faults if fault]


def _check_warehouses(connection: SqlDatabase, warehouses: int) -> None:
    try:
        ((count,),) = tables.read(connection, "warehouses")
    except Aborted as error:
        raise NotLoadedError(f"no TPC-C tables here ({error}): load the database first") from None
    if int(str(count)) != warehouses:
        raise HammerdbRefused(
            f"warehouses {warehouses}: the database has {count}, and HammerDB always runs on all"
            f" of them: ask for {count}"
        )


def _server_errors(connection: SqlDatabase) -> ServerErrors | None:
    """The server's counters; None where it has none (a compatible server may lack the view)."""
    try:
        ((deadlocks, errors),) = tables.read(connection, "server_errors")
    except Aborted:
        return None
    return ServerErrors(deadlocks=int(str(deadlocks or 0)), errors=int(str(errors or 0)))


def _between(before: ServerErrors | None, after: ServerErrors | None) -> ServerErrors | None:
    if before is None or after is None:
        return None
    return ServerErrors(
        deadlocks=after.deadlocks - before.deadlocks, errors=after.errors - before.errors
    )


def _result(options: RunOptions, outcome: Outcome, errors: ServerErrors | None) -> Repeat:
    result = result_of(outcome.lines)
    timings = {kind: _timing(outcome, name) for kind, name in _KINDS.items()}
    calls = {kind: timing.calls for kind, timing in timings.items()}
    if calls["new_order"] == 0:
        raise HammerdbFailed("no new-order ended: HammerDB's time profile holds none")
    if not {"measure", "done"} <= outcome.edges.keys():
        raise HammerdbFailed("HammerDB did not say when its window opened and closed")
    # The profile counts from the first call of the ramp-up; by its mix the window is worked out.
    scale = result.nopm * options.duration_s / 60 / calls["new_order"]
    opened = outcome.edges["measure"]
    return Repeat(
        users=options.users,
        rampup_s=options.rampup_s,
        items="uniform",
        hottest_fifth=hottest_fifth("uniform"),
        opened_at=datetime.fromtimestamp(opened, UTC),
        duration_s=outcome.edges["done"] - opened,
        nopm=float(result.nopm),
        tpm=result.nopm * sum(calls.values()) / calls["new_order"],
        transactions={
            kind: Transaction(committed=round(timing.calls * scale), latency_ms=_latency(timing))
            for kind, timing in timings.items()
        },
        latency_ms=_overall(list(timings.values())),
        failed=outcome.failed,
        retries=0,
        server_tpm=float(result.tpm),
        server_series=tuple(
            ServerRate(at=count.at, tpm=count.value) for count in outcome.record.counts
        ),
        server_errors=errors,
    )


def _timing(outcome: Outcome, procedure: str) -> Timing:
    """The profile of one procedure; one that was never called is absent from it."""
    none = Timing(procedure, 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return outcome.record.timings.get(procedure, none)


def _latency(timing: Timing) -> Latency | None:
    if timing.calls == 0:
        return None
    return Latency(
        mean=timing.mean,
        p50=timing.p50,
        p95=timing.p95,
        p99=timing.p99,
        max=timing.max,
    )


def _overall(timings: list[Timing]) -> Latency:
    """Combine all types: mean and maximum; percentiles cannot be combined from percentiles."""
    calls = sum(timing.calls for timing in timings)
    mean = sum(timing.mean * timing.calls for timing in timings) / calls
    return Latency(mean=mean, max=max(timing.max for timing in timings))
