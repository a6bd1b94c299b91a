"""Measurements as runs of the archive: what each of the operations is kept as."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotset.core.errors import Interrupted

from ..base import fields
from ..base.context import Context
from ..base.registry import Cli, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from hotset.bench.kept.found import FoundDatabase
    from hotset.bench.kept.measurement import Kept, Subject
    from hotset.bench.sql.users import SqlWorkload
    from hotset.bench.thresholds import Verdict
    from hotset.reports.model.document import State
    from hotset.tpcc.record import RunOptions
    from hotset.tpch.record import PowerResult


_NOT_OF_THE_RUN = {"password", "output", "junit", "yes"}
"""What has no part in what is measured; the command leaves it out."""


def command(operation: str, request: Request) -> tuple[str, ...]:
    """What was called, with what differs from the defaults and without secrets."""
    given = request.model_dump(
        mode="json", exclude_defaults=True, exclude_none=True, exclude=_NOT_OF_THE_RUN
    )
    words = ["hotset", *operation.split()]
    known = type(request).model_fields
    for name, value in given.items():
        marks = next((one for one in known[name].metadata if isinstance(one, Cli)), Cli())
        option = f"--{name.replace('_', '-')}"
        if marks.argument:
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(option if value else marks.off or f"--no-{option[2:]}")
        else:
            each = value if isinstance(value, list) else [value]
            words += [word for one in each for word in (option, str(one))]
    return tuple(words)


def begin(keep: bool, subject: Subject, context: Context) -> Kept:
    """See `measurement.begin`; what cannot be kept is said at once, before hours of measuring."""
    from hotset.bench.kept import measurement

    kept = measurement.begin(keep, subject)
    if kept.fault is not None:
        context.report.warn(str(kept.fault))
    return kept


def fail(kept: Kept, error: BaseException) -> None:
    """It ended without a result: what it ended of stays what is told."""
    kept.fail(error)
    if kept.fault is not None:
        error.add_note(str(kept.fault))


def finish(kept: Kept, state: State, cause: str | None, context: Context) -> None:
    """It ended with a result, or a part of one."""
    kept.finish(state, cause)
    if kept.fault is not None:
        context.unwritten.append(kept.fault)
    elif kept.run is not None:
        context.report.say(f"kept as run {kept.run}")


@contextmanager
def failing(kept: Kept) -> Iterator[None]:
    """What ends the block without a result is in the record of the measurement."""
    try:
        yield
    except BaseException as error:
        fail(kept, error)
        raise


def keep_queries(
    kept: Kept,
    power: PowerResult,
    failure: Exception | None,
    verdicts: Sequence[Verdict],
    context: Context,
) -> None:
    """A power run as it ended.

    :param failure: of the run, whatever its thresholds came to.
    """
    from hotset.bench.kept import records

    if power.ended > power.started:
        kept.keep_queries(records.power_record(1, power, None, 0.0), power.scale, verdicts)
    state: State = "complete"
    if failure is not None:
        state = "interrupted" if isinstance(failure, Interrupted) else "failed"
    finish(kept, state, str(failure) if failure else None, context)


def of_tpch(request: Any, numbers: Sequence[int], found: FoundDatabase) -> Subject:  # noqa: ANN401 - tpch.Run
    """TPC-H; its scale is known once it ran."""
    from hotset.bench.kept.measurement import Subject

    settings: dict[str, JsonValue] = {
        "driver": request.driver,
        "queries": list(numbers),
        "seed": request.seed,
        "refresh": request.refresh,
        "timeout_s": request.timeout,
    }
    return Subject(
        of="tpch run",
        name="tpch",
        title=f"TPC-H on {_place(found)}",
        settings={"database": _database(found), "tpch": settings},
        command=command("tpch run", request),
        label=request.label,
        database=found.record(driver=request.driver),
    )


def of_tpcc(request: Any, options: RunOptions, found: FoundDatabase) -> Subject:  # noqa: ANN401 - tpcc.Run
    """TPC-C."""
    from hotset.bench.kept.measurement import Subject

    settings: dict[str, JsonValue] = {
        "driver": request.driver,
        "warehouses": options.warehouses,
        "items": options.items,
        "home_warehouses": request.home_warehouses,
        "think_time": request.think_time,
        **_windows(request, options.rampup_s),
    }
    return Subject(
        of="tpcc run",
        name="tpcc",
        title=f"TPC-C on {_place(found)}",
        settings={"database": _database(found), "tpcc": settings},
        command=command("tpcc run", request),
        label=request.label,
        timed="tpcc",
        database=found.record(
            warehouses=options.warehouses, users=_most_users(request), driver=request.driver
        ),
    )


def of_sql(request: Any, workload: SqlWorkload, found: FoundDatabase) -> Subject:  # noqa: ANN401 - sql.Run
    """SQL of one's own: another text of a script makes it another measurement."""
    from hotset.bench.kept.measurement import Subject
    from hotset.reports.model import setup

    settings: dict[str, JsonValue] = {
        "scripts": [f"{one.name}@{one.weight}" for one in workload.sources],
        "define": {name: str(value) for name, value in workload.defined.items()},
        "protocol": workload.protocol,
        **_windows(request, request.rampup),
    }
    scripts = tuple(
        setup.Script(name=one.name, weight=one.weight, text=one.text) for one in workload.sources
    )
    return Subject(
        of="sql run",
        name="sql",
        title=f"{', '.join(workload.kinds)} on {_place(found)}",
        settings={"database": _database(found), "sql": settings},
        command=command("sql run", request),
        scripts=scripts,
        label=request.label,
        timed="sql",
        database=found.record(users=_most_users(request)),
    )


def _most_users(request: Any) -> int:  # noqa: ANN401 - of either
    return fields.each_users(request.users)[-1]


def _windows(request: Any, rampup_s: float) -> dict[str, JsonValue]:  # noqa: ANN401 - of either
    """What windows of both have."""
    return {
        "users": request.users,
        "rampup_s": rampup_s,
        "duration_s": request.duration,
        "rate": request.rate,
        "find_rate": request.find_rate or [],
        "until_steady": request.until_steady,
        "fresh": request.fresh,
    }


def _database(found: FoundDatabase) -> dict[str, JsonValue]:
    return {"engine": found.engine, "server": found.server, "name": found.name}


def _place(found: FoundDatabase) -> str:
    return f"{found.name} at {found.server}"
