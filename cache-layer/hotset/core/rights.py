"""Rights that operations require of their callers, and markers of a request's fields."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any


class Right(StrEnum):
    """Each includes those before it."""

    METRICS = "metrics"
    """Fetch the counters at ``/metrics``, for a scraper: nothing else."""
    READ = "read"
    """See what there is: changes nothing."""
    OPERATE = "operate"
    """Benchmarks, warm-ups, experiments on the lab: loses no data."""
    ADMIN = "admin"
    """Everything, including what may erase data or changes how a server is set up."""

    def includes(self, needed: Right) -> bool:
        """
        >>> Right.OPERATE.includes(Right.READ), Right.OPERATE.includes(Right.ADMIN)
        (True, False)
        """
        order = list(Right)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Needs:
    """Marks a field of a request that takes a right of its own where it is set."""

    right: Right

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's own
        schema: dict[str, Any] = handler(core)
        return {**schema, "x-hotset-right": self.right.value}


class Names(Enum):
    """Kind of thing that a field's text names."""

    NOTHING = auto()
    """An expression: a rate, a time, a threshold. It may hold slashes, and nobody opens it."""
    WORD = auto()
    """A thing of hotset's own, such as a disk, a run, a job: no path."""
    FILE = auto()
    """A file or folder that is read, or a socket."""
    SCRIPT = auto()
    """A file of SQL that is read, with its weight behind an ``@``."""
    OUTPUT = auto()
    """A file or folder that is written."""
    MODEL = auto()
    """A model of the library, or a file that describes one."""
    DEVICE = auto()
    """A block device."""
    ON_DISK = auto()
    """Files on an accelerated disk, of which no more is read than where they lie; those elsewhere
    are refused once the disk is looked at. ``snapshot:FILE`` is a file."""
    SETTINGS = auto()
    """``key=value`` of an experiment."""
    MACHINE = auto()
    DATABASE = auto()


@dataclass(frozen=True, slots=True)
class Makes:
    """Marks a size: so many files of it are made on this computer."""

    files: int = 1
