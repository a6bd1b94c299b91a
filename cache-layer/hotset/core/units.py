"""Sizes as types, converted explicitly.

Every size in hotset is one of these three, so that a count of sectors can never be read as a
count of bytes. They are integers; arithmetic gives a plain ``int`` that has to be named again.
"""

from __future__ import annotations

import re
from typing import Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

SECTOR_BYTES = 512
"""The unit of every device-mapper table, whatever the disk's own sector size."""

_FACTORS = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "TB": 1000**4,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
    "TIB": 1024**4,
}
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B|B|)\s*$", re.IGNORECASE)
SIZE_PATTERN = r"^\s*[0-9]+(\.[0-9]+)?\s*([KMGTkmgt][Ii]?[Bb]|[Bb])?\s*$"
"""Sizes that `Bytes.parse` takes, for JSON Schema: its patterns know no flags."""


class Bytes(int):
    """A number of bytes.

    >>> Bytes.parse("64KiB")
    Bytes(65536)
    >>> [str(Bytes(size)) for size in (0, 64 * 1024, 1536 * 2**20, 905 * 2**20 // 9 * 8 + 1)]
    ['0 B', '64 KiB', '1.5 GiB', '804 MiB']
    """

    @classmethod
    def parse(cls, text: str | int) -> Self:
        """Read ``"64KiB"``, ``"1.5 GB"`` or a plain number of bytes.

        :raises ValueError: names the text and the forms that are taken.
        """
        if isinstance(text, int) and not isinstance(text, bool):
            value = text
        else:
            # A file may hold anything here: a float, a list, a truth value.
            match = _SIZE.match(text) if isinstance(text, str) else None
            if match is None:
                raise ValueError(
                    f"{text!r} is not a size: write a number of bytes or a number with"
                    " KiB, MiB, GiB, TiB (1024) or KB, MB, GB, TB (1000)"
                )
            value = round(float(match[1]) * _FACTORS[match[2].upper()])
        if value < 0:
            raise ValueError(f"{text!r} is negative: a size is at least 0")
        return cls(value)

    @property
    def sectors(self) -> Sectors:
        """:raises ValueError: not a whole number of sectors."""
        if self % SECTOR_BYTES:
            raise ValueError(f"{int(self)} bytes is not a whole number of {SECTOR_BYTES} B sectors")
        return Sectors(self // SECTOR_BYTES)

    def blocks(self, block: Bytes) -> Blocks:
        """Whole cache blocks that fit into this many bytes (rounded down)."""
        return Blocks(self // block)

    def align_up(self, unit: int) -> Bytes:
        return Bytes(-(-self // unit) * unit)

    def align_down(self, unit: int) -> Bytes:
        return Bytes(self // unit * unit)

    def __str__(self) -> str:
        value, unit = float(self), "B"
        for larger in ("KiB", "MiB", "GiB", "TiB"):
            if value < 1024:
                break
            value, unit = value / 1024, larger
        whole = value >= 100 or value == int(value)
        return f"{value:.0f} {unit}" if whole else f"{value:.1f} {unit}"

    def __repr__(self) -> str:
        return f"Bytes({int(self)})"

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            cls.parse,
            core_schema.is_instance_schema(cls),
            serialization=core_schema.plain_serializer_function_ser_schema(int),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": SIZE_PATTERN},
            ]
        }


class Sectors(int):
    """A number of 512-byte sectors, the unit of device-mapper tables."""

    @property
    def bytes(self) -> Bytes:
        return Bytes(self * SECTOR_BYTES)

    def __str__(self) -> str:
        return int.__repr__(self)

    def __repr__(self) -> str:
        return f"Sectors({int(self)})"


class Blocks(int):
    """A number (or index) of cache blocks; its size in bytes lies with the tier."""

    def bytes(self, block: Bytes) -> Bytes:
        return Bytes(self * block)

    def __str__(self) -> str:
        return int.__repr__(self)

    def __repr__(self) -> str:
        return f"Blocks({int(self)})"


def mb_per_s(size: Bytes, seconds: float) -> float:
    """Rate in 10^6 bytes a second, the unit storage is sold in."""
    return size / 1e6 / seconds if seconds > 0 else 0.0


_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d)")
_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}


def parse_span(text: str) -> float:
    """Seconds of a span of time.

    :raises ValueError: not one; shows the forms.

    >>> parse_span("90min"), parse_span("1.5 h")
    (5400.0, 5400.0)
    """
    span = _SPAN.fullmatch(text.strip())
    if span is None or float(span[1]) == 0:
        raise ValueError(f"{text!r} is not a span of time: write for instance 90s, 30min, 8h or 2d")
    return float(span[1]) * _SECONDS[span[2]]
