"""The workloads of an experiment file: users, rates and limits, TPC-C, SQL of one's own, TPC-H."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from hotset.bench import tpcc_metrics, window
from hotset.bench.sql import run as sql_runs
from hotset.bench.sql import sources
from hotset.bench.sql.sources import Source
from hotset.bench.sql.workload import Protocols
from hotset.bench.thresholds import Threshold, ThresholdFormError
from hotset.core.units import Bytes
from hotset.hammerdb.tpcc import whole_minutes
from hotset.load.record import HIGHEST_RATE_PER_S
from hotset.reports.model.setup import CheckedAfter
from hotset.tpcc.record import Items
from hotset.tpch import load as tpch

from . import sql_load


class Table(BaseModel):
    """A table of the file. A string below a key is its description in the generated reference
    (``docs/reference/experiment.md``) and in the JSON Schema that editors read."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]


def texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Every text of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts(part)


USERS_MAX = 10_000


def _each_users(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    """:raises ValueError: it is neither a number of users nor several that rise."""
    values = given if isinstance(given, list | tuple) else [given]
    numbers = [number for number in values if type(number) is int and 1 <= number <= USERS_MAX]
    rising = all(before < after for before, after in pairwise(numbers))
    if not values or len(numbers) != len(values) or not rising:
        raise ValueError(
            f"give a number from 1 to {USERS_MAX:,}, or several that rise, such as [1, 2, 4, 8]"
        )
    return tuple(numbers)


def _as_written(users: tuple[int, ...]) -> int | list[int]:
    return users[0] if len(users) == 1 else list(users)


_USERS_SCHEMA = {"type": "integer", "minimum": 1, "maximum": USERS_MAX}
EachUsers = Annotated[
    tuple[int, ...],
    BeforeValidator(_each_users),
    PlainSerializer(_as_written),
    WithJsonSchema(
        {"anyOf": [_USERS_SCHEMA, {"type": "array", "minItems": 1, "items": _USERS_SCHEMA}]}
    ),
]


def _each_text(given: Any) -> Any:  # noqa: ANN401 - whatever the file holds
    return (given,) if isinstance(given, str) else given


def _one_or_several(texts: tuple[str, ...]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else list(texts)


Limits = Annotated[
    tuple[str, ...],
    BeforeValidator(_each_text),
    PlainSerializer(_one_or_several),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _check_rate(text: str) -> str:
    """:raises ValueError: it is no rate, or none that can be kept to."""
    rate_per_s = window.rate_per_s(text)
    if rate_per_s is None or not 0 < rate_per_s <= HIGHEST_RATE_PER_S:
        raise ValueError(f"give a rate above 0 and up to {HIGHEST_RATE_PER_S:,}/s")
    return text


Rate = Annotated[str, AfterValidator(_check_rate)]


@dataclass(frozen=True, slots=True)
class Reading:
    """
    :ivar folder: of the experiment file.
    :ivar allow: raises where a file may not be read.
    """

    folder: Path = Path()
    allow: Callable[[Iterable[str]], None] = lambda _: None


def _reading(info: ValidationInfo) -> Reading:
    return info.context if isinstance(info.context, Reading) else Reading()


def _read_scripts(given: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - whatever the file holds
    """:raises ValueError: one is not there, or would run a program; names file and line."""
    if not isinstance(given, list | tuple) or not all(isinstance(text, str) for text in given):
        return given
    reading = _reading(info)
    reading.allow(str(reading.folder / sources.split(text)[0]) for text in given)
    return sources.sources(list(given), reading.folder)


def _as_given(scripts: tuple[Source, ...]) -> list[str]:
    return [f"{script.file}@{script.weight}" for script in scripts]


Scripts = Annotated[
    tuple[Source, ...],
    BeforeValidator(_read_scripts),
    PlainSerializer(_as_given),
    WithJsonSchema({"type": "array", "items": {"type": "string"}}),
]


def _read_load(given: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - whatever the file holds
    """:raises ValueError: nothing there can be loaded."""
    if not isinstance(given, str):
        return given
    reading = _reading(info)
    reading.allow([str(reading.folder / given)])
    return sql_load.find(given, reading.folder)


LoadStep = Annotated[
    sql_load.Load,
    BeforeValidator(_read_load),
    PlainSerializer(lambda load: load.given),
    WithJsonSchema({"type": "string"}),
]


class TimedTable(Table):
    """A workload of many users for a while. Times are seconds of this computer's clock."""

    users: EachUsers
    """Virtual users, each with a connection. Several numbers that rise, such as `[1, 2, 4, 8]`,
    give a curve: each arm is measured with each of them, and the factors are those of the most
    users."""
    rampup_s: NonNegativeFloat = 10
    """Seconds before the measured window."""
    duration_s: PositiveFloat = 30
    """Seconds of the measured window."""
    seed: int = 1
    """Seed of all random choices."""
    rate: Rate | None = None
    """Let transactions arrive at this rate, such as `"500/s"`, at random times, instead of users
    who never pause. Latency counts from when each was due; arms are then compared by it."""
    find_rate: Limits = ()
    """Search in each arm for the highest rate of transactions that meets these limits, such as
    `"p95<50ms"` or several of them. Each rate that is tried takes a ramp-up and a window; an arm
    takes about eight of them."""

    @property
    def most_users(self) -> int:
        """Users at the last point of a curve; everything but the curve is about these."""
        return self.users[-1]

    @property
    def rate_per_s(self) -> float | None:
        """`rate` in transactions per second."""
        return window.rate_per_s(self.rate)

    @model_validator(mode="after")
    def _one_sets_the_pace(self) -> Self:
        if self.rate and self.find_rate:
            raise ValueError("find_rate sets the rate itself: leave rate out")
        return self


class TpccTable(TimedTable):
    """The TPC-C workload. Times are seconds of this computer's clock."""

    warehouses: PositiveInt
    """Size of the database, about 105 MB per warehouse."""
    driver: Literal["hotset", "hammerdb"] = "hotset"
    """`hammerdb`: the release that `HAMMERDB_HOME` names builds the database and drives its users.
    Ramp-up and window are then whole minutes, and `seed` is not used."""
    items: Items = "nurand"
    """How items and customers are drawn. `nurand`: as TPC-C says, where some are asked for more
    often; `uniform`: as HammerDB draws them, with its mix of transactions. A cache smaller than the
    database has far more hits with `nurand`. HammerDB itself knows `uniform` alone."""
    think_time: bool = False
    """Have users keep the keying and think times of clause 5.2.5."""
    check: CheckedAfter = "load"
    """When the twelve consistency conditions are checked. `load`: after the load. `every-arm`:
    after each measured window, too. That reads the whole database once more; on slow storage it
    may take longer than the window."""

    @property
    def limits(self) -> list[Threshold]:
        """Limits of `find_rate`."""
        return tpcc_metrics.limits(self.find_rate)

    @model_validator(mode="before")
    @classmethod
    def _hammerdb_draws_in_one_way(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("driver") == "hammerdb":
            if given.get("items", "uniform") != "uniform":
                raise ValueError("HammerDB draws items uniformly: leave items or driver out")
            return {**given, "items": "uniform"}
        return given

    @model_validator(mode="after")
    def _search_is_possible(self) -> Self:
        for key in ("rate", "find_rate"):
            if getattr(self, key) and self.think_time:
                raise ValueError(f"{key} sets the pace itself: leave think_time out")
            if getattr(self, key) and self.driver == "hammerdb":
                raise ValueError(f"HammerDB's users keep to no rate: leave {key} or driver out")
        return self

    @model_validator(mode="after")
    def _times_suit_the_driver(self) -> Self:
        if self.driver == "hammerdb":
            whole_minutes("rampup_s", self.rampup_s, at_least=0)
            whole_minutes("duration_s", self.duration_s, at_least=1)
        return self

    @model_validator(mode="after")
    def _limits_are_of_what_is_measured(self) -> Self:
        _require_limits(self)
        return self


class SqlTable(TimedTable):
    """SQL of your own as the workload, in place of TPC-C. Files are named relative to the
    experiment file. Times are seconds of this computer's clock."""

    load: LoadStep
    """Source of the database: a folder of SQL files, run in the order of their names; one SQL
    file; or an archive of `pg_dump` (file or folder). It is loaded once."""
    size: Bytes
    """Size of the loaded database, tables and indexes; at least so much."""
    define: dict[str, int | float | str] = {}
    """Variables for all scripts, such as `{ scale = 10 }`."""
    scripts: Annotated[Scripts, Field(min_length=1)]
    """Scripts of pgbench, which runs them; each run of one is a transaction. `"checkout.sql@70"` is
    run 70 times while `"search.sql@30"` is run 30 times."""
    protocol: Protocols = "prepared"
    """`prepared`: statements are prepared once per connection; `simple`: sent as text."""
    max_errors: NonNegativeInt = 100
    """The run fails when more transactions fail in a window, ramp-up included, of a deadlock or a
    serialization failure. Any other error of a statement ends it at once."""

    @property
    def limits(self) -> list[Threshold]:
        """Limits of `find_rate`."""
        return sql_runs.limits(self.find_rate, [script.name for script in self.scripts])

    @model_validator(mode="after")
    def _limits_are_of_these_scripts(self) -> Self:
        _require_limits(self)
        return self


def _require_limits(table: TpccTable | SqlTable) -> None:
    """:raises ValueError: one of `find_rate` cannot be read or names what is not measured."""
    try:
        _ = table.limits
    except ThresholdFormError as error:
        raise ValueError(f"find_rate: {error}") from None


def _check_scale(scale: float) -> float:
    tpch.require_scale(scale)
    return scale


class TpchTable(Table):
    """The 22 TPC-H queries as a second workload. Without this table they are left out."""

    scale: Annotated[PositiveFloat, AfterValidator(_check_scale)]
    """The scale factor: 0.01, 0.02, or any from 0.03. 1 is about 1 GB of text."""
    timeout_s: PositiveFloat = 600
    """Seconds of this computer's clock that a query may take; it is then cancelled."""
    seed: int | None = None
    """Draws the queries' parameters. Without it they are the validation run's."""
