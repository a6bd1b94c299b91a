"""What the JSON of a result holds, as a model: its fields, their types and their units.

A record is described by what makes the JSON: the dataclass whose fields it has, and what is beside
them. Units are told by the ends of names, as everywhere in hotset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

_UNITS = {
    "_bytes": "bytes",
    "_mb_per_s": "MB/s",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "_ratio": "0-1",
    "_share": "0-1",
}
_made_before: dict[str, type[BaseModel]] = {}
"""One model a name: the API's description refers to each by it."""
_WHOLE = {"bytes": "bytes", "seconds": "s", "iops": "requests/s", "share": "0-1"}


def record_of(
    name: str,
    /,
    *parts: type,
    optional: Mapping[str, Any] | None = None,
    **others: Any,  # noqa: ANN401 - types
) -> type[BaseModel]:
    """The record of a whole result, which has a ``schema_version``; see :func:`part`.

    :param optional: types of fields that may be missing.
    """
    return _made(name, parts, {"schema_version": int, **others}, optional or {})


def part(name: str, /, *parts: type, **others: Any) -> Any:  # noqa: ANN401 - types
    """The record of a JSON object.

    :param name: in the API's description, such as ``TierStatus``.
    :param parts: dataclasses whose fields it has.
    :param others: types of its other fields, or of fields that are written in another way.
    """
    return _made(name, parts, others, {})


def several(name: str, /, *parts: type, **others: Any) -> Any:  # noqa: ANN401 - types
    """A list of them."""
    return list.__class_getitem__(part(name, *parts, **others))


def thresholds() -> Any:  # noqa: ANN401 - a type
    """Verdicts on thresholds."""
    return several("ThresholdVerdict", threshold=str, measured=float | None, met=bool)


def warnings() -> Any:  # noqa: ANN401 - a type
    """What makes the values of a run doubtful."""
    return several("RunWarning", code=str, text=str)


def _made(
    name: str, parts: tuple[type, ...], others: Mapping[str, Any], optional: Mapping[str, Any]
) -> type[BaseModel]:
    if name not in _made_before:
        found: dict[str, Any] = {}
        for one in parts:
            hints = get_type_hints(one, include_extras=True)
            found |= {field.name: (hints[field.name], ...) for field in fields(one)}
        found |= {field: (kind, ...) for field, kind in others.items()}
        found |= {field: (kind, None) for field, kind in optional.items()}
        config = ConfigDict(extra="forbid")
        _made_before[name] = create_model(name, __config__=config, **found)
    return _made_before[name]


def unit_of(name: str) -> str | None:
    """
    >>> unit_of("dirty_bytes"), unit_of("read_mb_per_s"), unit_of("hit_ratio"), unit_of("disk")
    ('bytes', 'MB/s', '0-1', None)
    """
    if name in _WHOLE:
        return _WHOLE[name]
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)


def add_units(found: dict[str, Any]) -> None:
    """An ``x-unit`` on each field of a JSON Schema whose name tells it."""
    for name, about in found.get("properties", {}).items():
        unit = unit_of(name)
        if unit is not None:
            about["x-unit"] = unit
