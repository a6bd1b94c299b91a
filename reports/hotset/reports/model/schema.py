"""The version of the JSON that hotset prints and keeps."""

from dataclasses import dataclass
from typing import Final

from hotset.core.record import Record

SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Versioned(Record):
    """A result whose JSON goes by this version."""

    schema_version: int = SCHEMA_VERSION
