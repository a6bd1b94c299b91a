"""A cmdlet for each operation: its name, its parameters and what they become in the request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, get_args, get_origin

from hotset.core import fields
from hotset.core.operation import Cli, FieldKind, Kind, Operation
from hotset.core.rights import Right
from hotset.operations import table

from .. import describe
from ..app import PLACED
from . import wording

ALIASES = {
    "tier status": "Get-HotsetDisk",
    "database memory": "Set-HotsetSqlMemory",
    "database place": "Move-HotsetTempdb",
}
"""Names that cmdlets had before."""
BY_HAND = frozenset(("report run",))
"""Their cmdlets, of :mod:`own`, do more than their operations: they open a browser."""
AGAIN = "report hit-ratio"
"""Its cmdlet, with -Wait, goes on with the next reading until Ctrl-C."""
NAMED = {"runs list": "runs show"}
"""Operations that list what another tells all of: their cmdlets take a name, and tell that one."""
STARTS = "warmup run"
"""Its cmdlet, Start-HotsetWarmup, returns the job and does not wait."""
SHOWS = {
    "database memory": "database show",
    "database place": "database show",
    "lab up": "lab status",
    "tier activate": "tier status",
    "tier create": "tier status",
    "tier import": "tier status",
    "tier repair": "tier status",
    "tier resize": "tier status",
    "tier set": "tier status",
    "tpcc build": "database show",
    "tpch build": "database show",
}
"""Operations whose cmdlets return what they made or changed: another operation tells it."""
_ON_REQUEST = frozenset(
    (
        *("database memory", "database place"),
        *("tier activate", "tier import", "tier repair", "tier resize", "tier set"),
    )
)
"""Operations that return it with -PassThru: they change what one has."""
_PLACES = {
    "report metrics": ("Get", "/metrics", ("machine",)),
    "report run": ("Get", "/api/v1/runs/{run}/report", ("run", "format")),
    "runs compare": ("Get", "/api/v1/runs/compare", ("run", "force")),
    "runs list": ("Get", "/api/v1/runs", ("limit",)),
    "runs rm": ("Delete", "/api/v1/runs/{run}", ("run",)),
    "runs show": ("Get", "/api/v1/runs/{run}", ("run",)),
    "runs trend": ("Get", "/api/v1/runs/{run}/trend", ("run", "metric")),
}
"""Operations that the API serves at a place of their own, and the fields it takes there."""
_TYPES = {
    "database counters": "DatabaseCounters",
    "demo": "RunDocument",
    "disk bench": "DiskSpeed",
    "disk calibrate": "DiskCalibration",
    "disk calibrate-all": "DiskFidelity",
    "disk fail": "DiskArray",
    "disk power-cut": "PowerCut",
    "disk replace": "DiskArray",
    "doctor": "HostCheck",
    "experiment run": "RunDocument",
    "runs compare": "Comparison",
    "runs show": "RunDocument",
    "sql run": "RunDocument",
    "tier scan": "Flash",
    "tier status": "Disk",
    "tpcc check": "TpccCondition",
    "tpcc run": "TpccRun",
    "tpch check": "TpchCheck",
    "tpch run": "RunDocument",
    "warmup restore": "WarmupRun",
    "warmup run": "WarmupRun",
    "whatif check": "PredictionCheck",
}
_WHOLE = frozenset(("whatif advise", "whatif check", "whatif mrc", "whatif simulate"))
"""Results that are one object, although their lists have entries. Of the others with a list its
entries are the objects; the other fields are on each of them."""
_NAMES = {
    "duration": "DurationSeconds",
    "interval": "IntervalSeconds",
    "queries": "Queries",
    "rampup": "RampupSeconds",
    "runs": "Run",
    "seconds": "Seconds",
    "targets": "Target",
    "timeout": "QueryTimeoutSeconds",
}
_KEYS = ("disk", "flash_name", "run", "file", "socket", "name", "flash", "dsn")
"""Fields bound from the pipeline: the first of these that an operation has."""
_READERS = ("Find", "Get", "Test")
"""Verbs of what looks only, whatever right it takes: there is nothing to be asked about."""
_TIMES = ("half_life", "since", "until", "until_steady")
"""Texts that are times, or spans of time."""
_NOT_KEYS = frozenset(
    (("tier create", "disk"), ("tier create", "flash"), ("warmup schedule add", "name"))
)
_LONG = 2**31


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of a cmdlet.

    :ivar name: without the dollar.
    :ivar type: PowerShell's name for it, without brackets.
    :ivar field: of the request; None where it is the cmdlet's own.
    :ivar sent: the expression that becomes the field's value.
    :ivar allowed: the values of a set.
    :ivar limits: the smallest and the largest, as PowerShell writes them.
    :ivar filled: given, it is not empty: a variable that was never set is not what it means by
        itself.
    :ivar key: taken from the pipeline, one request an item.
    :ivar gathered: taken from the pipeline, all in one request.
    :ivar aliases: other names of it.
    :ivar default: what it is where it is not given, as PowerShell writes it.
    """

    name: str
    type: str
    help: str
    field: str | None = None
    sent: str = ""
    mandatory: bool = False
    position: int | None = None
    allowed: tuple[str, ...] = ()
    limits: tuple[str, str] | None = None
    filled: bool = False
    key: bool = False
    gathered: bool = False
    aliases: tuple[str, ...] = ()
    default: str = ""


CONNECTION = Parameter(
    "Connection", "object[]", wording.CONNECTION, filled=True, aliases=("Server",)
)
INTERVAL = Parameter(
    "IntervalSeconds",
    "double",
    "Seconds between two readings.",
    limits=("0.1", "3600.0"),
    default="1",
)
_MORE = {
    "report hit-ratio": (Parameter("Wait", "switch", wording.WAIT), INTERVAL),
    "runs compare": (Parameter("Reference", "string", wording.REFERENCE, filled=True),),
    "runs list": (
        Parameter("Run", "object[]", wording.NAMED_RUN, filled=True, key=True, position=0),
    ),
}
"""Parameters that a cmdlet has beside its operation's."""
_SENT = {
    ("report hit-ratio", "mark"): "($Mark -or $Wait)",
    ("report hit-ratio", "since"): "$begin",
    ("runs compare", "run"): "(Get-HotsetRunOrder $from.ToArray() $Reference)",
}
"""Values that are more than a parameter."""


@dataclass(frozen=True, slots=True)
class Cmdlet:
    """An operation as a cmdlet.

    :ivar type: of its objects; empty: text.
    :ivar items: the list of the result that holds them.
    :ivar changes: it takes -WhatIf and -Confirm.
    :ivar asks: it asks before it does anything, unless told not to.
    :ivar dry_run: -WhatIf has the server tell what it would do.
    """

    operation: Operation
    name: str
    alias: str | None
    method: str
    path: str
    type: str
    items: str
    parameters: tuple[Parameter, ...]
    values: dict[str, str] = field(default_factory=dict)

    @property
    def job(self) -> bool:
        return self.operation.kind is Kind.JOB

    @property
    def changes(self) -> bool:
        return _changes(self.operation) and (self.job or self.asks)

    @property
    def asks(self) -> bool:
        """ConfirmImpact is High: it destroys data, stops a service or cuts power."""
        return self.operation.destroys or self.operation.stops

    @property
    def dry_run(self) -> bool:
        return "dry_run" in self.operation.fields

    @property
    def has_login(self) -> bool:
        return any(parameter.name == "Credential" for parameter in self.parameters)

    @property
    def by_hand(self) -> bool:
        return self.operation.name in BY_HAND

    @property
    def raw(self) -> bool:
        """The answer is text, not JSON."""
        return self.operation.name in ("report metrics", "report run")

    @property
    def returned(self) -> str:
        """The type of what it returns; empty: text."""
        name = SHOWS.get(self.operation.name, self.operation.name)
        return next(cmdlet.type for cmdlet in every() if cmdlet.operation.name == name)

    @property
    def shows(self) -> str:
        """The expression for the operation that tells what was made; empty: none does."""
        status = SHOWS.get(self.operation.name)
        if status is None:
            return ""
        on_request = f"$(if ($PassThru) {{ '{status}' }})"
        return on_request if self.operation.name in _ON_REQUEST else f"'{status}'"

    def first_where(self, **wanted: bool) -> Parameter | None:
        """The first parameter of which this is so."""
        return first_where(self.parameters, **wanted)


def first_where(parameters: Iterable[Parameter], **wanted: bool) -> Parameter | None:
    """The first parameter of which this is so."""
    (name,) = wanted
    return next((parameter for parameter in parameters if getattr(parameter, name)), None)


@cache
def every() -> tuple[Cmdlet, ...]:
    """All cmdlets that are operations, by name of the operation."""
    return tuple(_cmdlet(operation) for operation in table.every())


def pascal(name: str) -> str:
    """
    >>> pascal("hit_ratio")
    'HitRatio'
    """
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def schema(cmdlet: Cmdlet) -> dict[str, Any]:
    """The JSON Schema of the objects: of the list's entries, with the fields beside the list."""
    whole = describe.schema_of_result(cmdlet.operation.name)
    if not cmdlet.items:
        return whole
    beside = {
        name: about
        for name, about in whole["properties"].items()
        if name not in (cmdlet.items, "schema_version", "differences", "notes")
        and not {"array", "object"} & {about.get("type")}
        and "$ref" not in about
        and "anyOf" not in about
    }
    entries = whole["properties"][cmdlet.items]["items"]
    inner = resolve(entries, whole["$defs"])
    return {"properties": {**beside, **inner["properties"]}, "$defs": whole["$defs"]}


def resolve(about: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema in place of a reference to it."""
    if "$ref" in about:
        definition: dict[str, Any] = definitions[about["$ref"].rpartition("/")[2]]
        return definition
    return about


def _cmdlet(operation: Operation) -> Cmdlet:
    verb, noun = operation.powershell
    place = _PLACES.get(operation.name)
    assert (operation.name in PLACED) == (place is not None)
    method, path, taken = place or ("Post", f"/api/v1/{'/'.join(operation.words)}", None)
    own = _parameters(operation, taken)
    is_text = operation.is_text or operation.name == "report run"
    kind = "" if is_text else _TYPES.get(operation.name, noun.removeprefix("Hotset"))
    values = {
        parameter.field: _SENT.get((operation.name, parameter.field), parameter.sent)
        for parameter in own
        if parameter.field
    }
    if taken is None:
        values |= _confirmations(operation)
    return Cmdlet(
        operation,
        f"{verb}-{noun}",
        ALIASES.get(operation.name),
        method,
        path,
        f"Hotset.{kind}" if kind else "",
        "" if operation.name in _WHOLE else operation.result.csv_rows,
        (*own, *_MORE.get(operation.name, ()), *_common(operation)),
        values,
    )


def _confirmations(operation: Operation) -> dict[str, str]:
    """Return the values that carry the confirmation, which was asked for before."""
    sent = {}
    if operation.needs_yes and "yes" in operation.fields:
        sent["yes"] = "$go"
    if "dry_run" in operation.fields:
        sent["dry_run"] = "-not $go"
    return sent


def _parameters(operation: Operation, taken: tuple[str, ...] | None) -> list[Parameter]:
    made: list[Parameter] = []
    own = {
        name: about
        for name, about in operation.fields.items()
        if taken is None or name in taken or (name == "runs" and "run" in taken)
    }
    gathers = bool({"targets", "runs"} & set(own))
    keys = [key for key in _KEYS if key in own and (operation.name, key) not in _NOT_KEYS]
    key = keys[0] if keys and not gathers else None
    for name in own:
        if name in ("dry_run", "password") or (name == "yes" and operation.needs_yes):
            continue
        made.append(_parameter(operation, name, name == key))
        if name == "dsn" and "password" in own:
            made.append(
                Parameter(
                    "Credential",
                    "pscredential",
                    wording.CREDENTIAL,
                    "password",
                    "$login.Password",
                    aliases=("SqlCredential",),
                )
            )
    arguments = {name for name, about in own.items() if _marks(about).argument}
    positions = [
        parameter.name for parameter in made if parameter.gathered or parameter.field in arguments
    ]
    # The one that comes by the pipeline is also meant without its name, behind the others.
    needed = [
        parameter.name
        for parameter in made
        if parameter.mandatory and (parameter.key or parameter.type.startswith("string"))
    ]
    if not positions:
        positions = needed[:1]
    keys = [parameter.name for parameter in made if parameter.key]
    positions += [name for name in keys if name not in positions]
    return [_place(parameter, positions) for parameter in made]


def _place(parameter: Parameter, positions: list[str]) -> Parameter:
    return (
        replace(parameter, position=positions.index(parameter.name))
        if parameter.name in positions
        else parameter
    )


def _marks(about: Any) -> Cli:  # noqa: ANN401 - pydantic's field
    return next((mark for mark in about.metadata if isinstance(mark, Cli)), Cli())


def _parameter(operation: Operation, name: str, is_key: bool) -> Parameter:
    about = operation.fields[name]
    kind = FieldKind.from_field(about)
    shown = _NAMES.get(name, pascal(name))
    plain = Parameter(
        shown,
        "object[]" if is_key else "string[]" if kind.is_list else "string",
        wording.parameter(operation, name, about.description or ""),
        name,
        "$each" if is_key else f"${shown}",
        mandatory=(about.is_required() and name != "engine") or (is_key and _is_named(operation)),
        filled=True,
        key=is_key,
    )
    if name == "yes":
        return replace(plain, name="Force", type="switch", sent="$Force")
    if name == "queries" and kind.base is str:
        return replace(plain, type="int[]", sent="$Queries -join ','", limits=("1", "22"))
    if name == "users" and kind.base is str:
        return replace(plain, type="int[]", sent="$Users -join ','")
    if name in ("targets", "runs"):
        field_ = "run" if name == "runs" else name
        sent = f"${name}.ToArray()"
        return replace(plain, type="object[]", field=field_, sent=sent, gathered=True)
    return _of_several_types(operation, plain, kind)


def _of_several_types(operation: Operation, plain: Parameter, kind: FieldKind) -> Parameter:
    """A parameter that takes objects besides texts: databases, times, sizes."""
    name, shown, is_key = plain.field, plain.name, plain.key
    if name in ("dsn", "engine") and "password" in operation.fields:
        plain = replace(plain, sent=f"$login.{shown}")
    if name == "dsn":
        kept = plain.type if is_key else "object"
        sent = f"(ConvertTo-HotsetDsn $PSCmdlet ${shown})"
        sent = plain.sent if "password" in operation.fields else sent
        return replace(plain, type=kept, sent=sent, aliases=("SqlInstance",))
    if name in _TIMES and kind.base is str:
        return replace(
            plain, type="object", sent=f"(ConvertTo-HotsetTime $PSCmdlet {shown} ${shown})"
        )
    if any(getattr(mark, "func", None) in (fields.size, fields.rate) for mark in kind.metadata):
        many = "object[]" if kind.is_list else "object"
        return replace(plain, type=many, sent=f"(ConvertTo-HotsetSize $PSCmdlet {shown} ${shown})")
    return _typed_parameter(plain, kind, operation.fields[name or ""].default)


def _typed_parameter(plain: Parameter, kind: FieldKind, default: object) -> Parameter:
    """A parameter of text as one of the field's type."""
    if kind.base is bool and kind.optional:
        return replace(plain, type="Nullable[bool]")
    if kind.base is bool and default is True:
        return replace(plain, name=f"No{plain.name}", type="switch", sent=f"-not $No{plain.name}")
    if kind.base is bool:
        return replace(plain, type="switch")
    if kind.base in (int, float):
        return _number(plain, kind)
    if get_origin(kind.base) is Literal:
        allowed = get_args(kind.base)
        assert all(value == value.lower() for value in allowed)
        sent = plain.sent
        if sent == f"${plain.name}":
            sent = f"(ConvertTo-HotsetChoice {sent})"
        return replace(plain, allowed=allowed, sent=sent)
    return plain


def _changes(operation: Operation) -> bool:
    return operation.right is not Right.READ and operation.powershell[0] not in _READERS


def _is_named(operation: Operation) -> bool:
    """A caller that changes a tier names it, although there is but one: an undefined variable in a
    script would mean that one."""
    return operation.words[0] in ("tier", "heat") and _changes(operation)


def _number(plain: Parameter, kind: FieldKind) -> Parameter:
    low, high = kind.limit("ge"), kind.limit("le")
    if low is None:
        low = kind.limit("gt")
    base = "double" if kind.base is float else "long" if (high or 0) >= _LONG else "int"
    limits = tuple(_write_default(base, limit) for limit in (low, high) if limit is not None)
    wrapped = base if plain.mandatory else f"Nullable[{base}]"
    return replace(
        plain,
        type=f"{base}[]" if kind.is_list else wrapped,
        limits=(limits[0], limits[1]) if len(limits) == 2 else None,
    )


def _write_default(base: str, number: float) -> str:
    """A number as PowerShell reads it as of this type: both limits must be of one."""
    return {"double": f"{float(number)}", "long": f"{number}L", "int": f"{number}"}[base]


def _common(operation: Operation) -> list[Parameter]:
    own = [CONNECTION]
    if operation.kind is Kind.JOB and operation.name != STARTS:
        own.insert(0, Parameter("AsJob", "switch", wording.AS_JOB))
    if operation.name in _ON_REQUEST:
        own.insert(0, Parameter("PassThru", "switch", wording.WITH_RESULT))
    return own
