"""Measurements as runs of the archive: what each of the operations is kept as."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotset.core import fields
from hotset.core.errors import Interrupted, RequestError
from hotset.core.operation import Cli, Context, Request
from hotset.core.units import Bytes
from hotset.disk import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from hotset.databases.product import SqlDatabase
    from hotset.reports.model.document import State
    from hotset.reports.model.measurement import Measured
    from hotset.reports.model.windows import PowerRun, ThroughputRun, Verdict
    from hotset.tpcc.record import RunOptions

    from ..kept.found import FoundDatabase
    from ..kept.measurement import Kept, Subject
    from ..server.sampled import ServerUse, Watch
    from ..sql.workload import SqlWorkload


LIMIT_VARIABLE, _LIMIT = "HOTSET_ARCHIVE_LIMIT", "10GB"
_COUNTING_S = 2.0
_NOT_OF_THE_RUN = {"password", "output", "junit", "yes"}
"""Fields that do not affect the measurement; the command leaves them out."""


def command(operation: str, request: Request) -> tuple[str, ...]:
    """Return the command as called: values that differ from the defaults, without secrets."""
    given = request.model_dump(
        mode="json", exclude_defaults=True, exclude_none=True, exclude=_NOT_OF_THE_RUN
    )
    words = ["hotset", *operation.split()]
    known = type(request).model_fields
    for name, value in given.items():
        marks = next((mark for mark in known[name].metadata if isinstance(mark, Cli)), Cli())
        option = f"--{name.replace('_', '-')}"
        if marks.argument:
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(option if value else marks.off or f"--no-{option[2:]}")
        else:
            each = value if isinstance(value, list) else [value]
            words += [word for value in each for word in (option, str(value))]
    return tuple(words)


def begin(keep: bool, subject: Subject, context: Context) -> Kept:
    """See `measurement.begin`; what cannot be kept is said at once, before hours of measuring."""
    from ..kept import measurement

    if keep:
        size_limit()
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
        context.faults.append(kept.fault)
    elif kept.run is not None:
        context.report.say(f"kept as run {kept.run}")
        _warn_of_size(kept, context)


def size_limit() -> Bytes:
    """Above which the archive is called large.

    :raises RequestError: the environment says something else than a size.
    """
    given = os.environ.get(LIMIT_VARIABLE, "") or _LIMIT
    try:
        return Bytes.parse(given)
    except ValueError as error:
        raise RequestError(f"{LIMIT_VARIABLE}={given}: {error}; the default is {_LIMIT}") from None


def _warn_of_size(kept: Kept, context: Context) -> None:
    """Note that an archive is large; deleting runs is left to the user."""
    if kept.archive is None:
        return
    size, limit = kept.archive.size(_COUNTING_S), size_limit()
    how = "hotset deletes no run by itself: see them with `runs list`, delete one with `runs rm`"
    if size is None:
        runs = f"{kept.archive.count():,} runs"
        context.note(f"how large the archive of runs is takes long to count ({runs}). {how}")
    elif size > limit:
        has = f"the archive of runs has {Bytes(size)}, more than {limit} ({LIMIT_VARIABLE})"
        context.note(f"{has}. {how}")


@contextmanager
def failing(kept: Kept) -> Iterator[None]:
    """Record an error that ends the block without a result, and raise it again."""
    try:
        yield
    except BaseException as error:
        fail(kept, error)
        raise


@contextmanager
def watching(
    kept: Kept, sample: str | None, database: SqlDatabase, context: Context
) -> Iterator[Watch]:
    """The server and the tier of the database, where the server is named or is found here."""
    from ..kept import tier
    from ..server import sampled as server

    with (
        places.maybe_machine(sample) as named,
        tier.observe(kept, named, database) as (machine, disk_tier),
        server.watch_server(machine, context.report.say, disk_tier) as watch,
    ):
        yield watch


def keep_queries(
    kept: Kept,
    power: PowerRun,
    throughput: ThroughputRun | None,
    use: ServerUse | None,
    failure: Exception | None,
    verdicts: Sequence[Verdict],
    context: Context,
) -> None:
    """A power run as it ended, and the throughput run after it.

    :param use: of the server during the power run.
    :param failure: of the run, whether or not its thresholds are met.
    """
    from ..server.sampled import window_fields

    update = window_fields(use.window) if use else {}
    kept.keep_queries(power.model_copy(update=update), throughput, verdicts)
    state: State = "complete"
    if failure is not None:
        state = "interrupted" if isinstance(failure, Interrupted) else "failed"
    finish(kept, state, str(failure) if failure else None, context)


def _subject(
    of: Measured,
    request: Any,  # noqa: ANN401 - of the operation
    title: str,
    settings: dict[str, JsonValue],
    **more: Any,  # noqa: ANN401 - fields of the subject
) -> Subject:
    """Build the subject of an operation's measurement; its first word names the runs."""
    from ..kept.measurement import Subject

    return Subject(
        of=of,
        name=of.partition(" ")[0],
        title=title,
        settings=settings,
        command=command(of, request),
        label=request.label,
        **more,
    )


def of_tpch(request: Any, numbers: Sequence[int], database: FoundDatabase) -> Subject:  # noqa: ANN401 - tpch.Run
    """TPC-H; its scale is known once it ran."""
    settings: dict[str, JsonValue] = {
        "driver": request.driver,
        "queries": list(numbers),
        "seed": request.seed,
        "refresh": request.refresh,
        "timeout_s": request.timeout,
    }
    return _subject(
        "tpch run",
        request,
        f"TPC-H on {_place(database)}",
        {"database": _database(database), "tpch": settings},
        database=database.record(driver=request.driver),
    )


def of_disk(request: Any) -> Subject:  # noqa: ANN401 - disk.Bench
    """A file, a device or a model."""
    target = request.target or request.model
    settings: dict[str, JsonValue] = {
        "target": request.target,
        "model": request.model,
        "size": request.size,
        "seconds": request.seconds,
        "read_only": request.read_only,
    }
    return _subject("disk bench", request, f"Disk benchmark of {target}", {"disk": settings})


def of_tpcc(request: Any, options: RunOptions, database: FoundDatabase) -> Subject:  # noqa: ANN401 - tpcc.Run
    """TPC-C."""
    settings: dict[str, JsonValue] = {
        "driver": request.driver,
        "warehouses": options.warehouses,
        "items": options.items,
        "home_warehouses": request.home_warehouses,
        "think_time": request.think_time,
        **_windows(request, options.rampup_s),
    }
    return _subject(
        "tpcc run",
        request,
        f"TPC-C on {_place(database)}",
        {"database": _database(database), "tpcc": settings},
        timed="tpcc",
        database=database.record(
            warehouses=options.warehouses, users=_most_users(request), driver=request.driver
        ),
    )


def of_sql(request: Any, workload: SqlWorkload, database: FoundDatabase) -> Subject:  # noqa: ANN401 - sql.Run
    """SQL of one's own: another text of a script makes it another measurement."""
    from hotset.reports.model import setup

    settings: dict[str, JsonValue] = {
        "scripts": [f"{source.name}@{source.weight}" for source in workload.sources],
        "define": {name: str(value) for name, value in workload.defined.items()},
        "protocol": workload.protocol,
        **_windows(request, request.rampup),
    }
    scripts = tuple(
        setup.Script(name=source.name, weight=source.weight, text=source.text)
        for source in workload.sources
    )
    return _subject(
        "sql run",
        request,
        f"{', '.join(workload.kinds)} on {_place(database)}",
        {"database": _database(database), "sql": settings},
        scripts=scripts,
        timed="sql",
        database=database.record(users=_most_users(request)),
    )


def _most_users(request: Any) -> int:  # noqa: ANN401 - of either
    return fields.each_users(request.users)[-1]


def _windows(request: Any, rampup_s: float) -> dict[str, JsonValue]:  # noqa: ANN401 - of either
    """Return the settings of windows that both kinds of run have."""
    return {
        "users": request.users,
        "rampup_s": rampup_s,
        "duration_s": request.duration,
        "rate": request.rate,
        "find_rate": request.find_rate or [],
        "until_steady": request.until_steady,
        "fresh": request.fresh,
    }


def _database(database: FoundDatabase) -> dict[str, JsonValue]:
    return {"engine": database.engine, "server": database.server, "name": database.name}


def _place(database: FoundDatabase) -> str:
    return f"{database.name} at {database.server}"
