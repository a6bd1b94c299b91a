"""Units of what the JSON of a result holds, told by the ends of names, as everywhere in hotset."""

from __future__ import annotations

from typing import Any

_UNITS = {
    "_bytes": "bytes",
    "_mb_per_s": "MB/s",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "_ratio": "0-1",
    "_share": "0-1",
}
_WHOLE = {"bytes": "bytes", "seconds": "s", "iops": "requests/s", "share": "0-1"}


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
