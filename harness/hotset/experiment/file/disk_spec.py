"""An experiment on modelled disks alone: files that are read again, or arrays. No database."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hotset.bench.disks import raffle, reread
from hotset.bench.disks.arrays import Load
from hotset.bench.disks.search import SearchLoad
from hotset.block.flashdev import Model
from hotset.core.units import Bytes

from .workload_tables import Name, Table, texts

_SMALLEST_TEST_FILE = Bytes(64 * 1024**2)
_SMALLEST_FILE = Bytes(4096)


def _at_least(smallest: Bytes) -> AfterValidator:
    def check(size: Bytes) -> Bytes:
        if size < smallest:
            raise ValueError(f"too small: give {smallest} or more")
        return size

    return AfterValidator(check)


class RereadTable(Table):
    """Files are read again on each of these disks: first without the page cache, which would serve
    what is read again on any disk, then with it. Takes root."""

    models: Annotated[tuple[Model, ...], Field(json_schema_extra={"minItems": 1})] = reread.DISKS
    """The disks: names of built-in models (`hotset disk models` lists them), JSON files, or tables
    that describe one."""
    size: Annotated[Bytes, _at_least(_SMALLEST_FILE)] = Bytes(100_000_000)
    """Size of each of the ten files; small ones stay in a disk's own buffer."""
    passes: Annotated[int, Field(ge=1, le=1000)] = 2
    """Passes without the page cache; one with it follows."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed of the drawing order."""

    @model_validator(mode="after")
    def _each_disk_once(self) -> Self:
        names = [reread.name_of(model) for model in self.models]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"models = {names}: {twice} is named twice: name each disk once")
        if not names:
            raise ValueError("models = []: name a disk at least, or leave the key out")
        return self


class ArraysTable(Table):
    """The arrays of a published test: eight hard disks in RAID 5, and six SSDs in their place.
    Their values beside the published ones, a member that fails, and a power cut."""

    size: Annotated[Bytes, _at_least(_SMALLEST_TEST_FILE)] = Bytes(1024**3)
    """Size of the test file."""
    seconds: Annotated[float, Field(ge=0.5, le=3600)] = 5
    """Seconds of each run."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 5
    """How often each line is measured."""
    search: bool = False
    """Search forum posts on each array, too, while new ones come in. Takes root."""
    posts: Annotated[int, Field(ge=1000, le=10**8)] = 500_000
    """Posts in the index that is searched."""
    memory: Bytes = Bytes(128 * 1024**2)
    """Memory of the search, with what it keeps of the index."""
    search_seconds: Annotated[float, Field(ge=1, le=3600)] = 20
    """Seconds of the search on each array."""

    @property
    def load(self) -> Load:
        search = SearchLoad(self.posts, self.memory, self.search_seconds) if self.search else None
        return Load(self.size, self.seconds, self.repeats, search)


class DiskSpec(Table):
    """One experiment on modelled disks: it has one of the tables [reread] and [arrays]."""

    name: Name
    """Becomes part of the run's id: lower-case letters, digits and dashes."""
    title: str = ""
    """Title of the report."""
    reread: RereadTable | None = None
    """Files that are read again."""
    arrays: ArraysTable | None = None
    """Arrays of a published test."""

    @property
    def scenario(self) -> Literal["reread", "arrays"]:
        return "arrays" if self.reread is None else "reread"

    @property
    def disk_bytes(self) -> int:
        """The most that the files on a disk take on this computer."""
        return max(
            len(raffle.WEIGHTS) * int(self.reread.size) if self.reread else 0,
            int(self.arrays.size) if self.arrays else 0,
        )

    @property
    def files(self) -> list[str]:
        """All that may be the path of a file."""
        models = self.reread.models if self.reread else ()
        return [text for text in texts(models) if "/" in text or text.endswith(".json")]

    @model_validator(mode="after")
    def _has_one_scenario(self) -> Self:
        if (self.reread is None) == (self.arrays is None):
            raise ValueError(
                "[reread] and [arrays] are one experiment each: keep one of the two tables"
            )
        return self
