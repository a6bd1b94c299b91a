"""dm-cache: Linux's device-mapper cache target as a tier.

Table and status lines follow Documentation/admin-guide/device-mapper/cache.rst of the kernel.
Status lines parse into records and render back to the same line; an unknown word is an error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer import offline
from hotset.cachelayer.extents import Run, runs_of
from hotset.cachelayer.flash import PREFIX, Slice, device_size, mapper_path, remove, split
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import (
    Counters,
    Progress,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
)
from hotset.cachelayer.units import Blocks, Bytes, Sectors

COUNTER_BITS = 32
BLOCK_STEP = Bytes(32 * 1024)
BLOCK_MAX = Bytes(1024**3)
_METADATA_BASE = 4 * 1024**2
_METADATA_PER_BLOCK = 44
_METADATA_MAX = 16 * 1024**3
DATA, METADATA, CACHE, VOLUME = (f"{PREFIX}{part}" for part in ("data", "meta", "cache", "volume"))
_FLUSH_POLL_S = 0.5
_METADATA_COPY = PurePosixPath("/run/hotset/metadata")
_MAPPED = re.compile(r'<mapping cache_block="\d+" origin_block="(\d+)"')


def metadata_bytes(cache: Bytes, block: Bytes) -> Bytes:
    """Room for the metadata: 4 MiB and 44 bytes a block (as LVM reckons; the kernel needs 28)."""
    needed = _METADATA_BASE + cache // block * _METADATA_PER_BLOCK
    return Bytes(min(needed, _METADATA_MAX)).align_up(1024**2)


def check_block(block: Bytes) -> Bytes:
    """:raises ValueError: not a block size the kernel takes."""
    if not BLOCK_STEP <= block <= BLOCK_MAX or block % BLOCK_STEP:
        raise ValueError(
            f"{int(block)} bytes: dm-cache takes a multiple of 32 KiB from 32 KiB to 1 GiB"
            " (64KiB suits OLTP)"
        )
    return block


@dataclass(frozen=True, slots=True)
class CacheStatus:
    """The status line of a working cache target, field by field (sizes in sectors or blocks)."""

    metadata_block_size: Sectors
    metadata_used: int
    metadata_total: int
    cache_block_size: Sectors
    used: Blocks
    total: Blocks
    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    demotions: int
    promotions: int
    dirty: Blocks
    features: tuple[str, ...]
    core_args: tuple[tuple[str, str], ...]
    policy: str
    policy_args: tuple[tuple[str, str], ...]
    metadata_mode: str
    needs_check: bool

    def render(self) -> str:
        """The line as the kernel writes it (without start, length and target name)."""
        words: list[object] = [
            int(self.metadata_block_size), f"{self.metadata_used}/{self.metadata_total}",
            int(self.cache_block_size), f"{int(self.used)}/{int(self.total)}",
            self.read_hits, self.read_misses, self.write_hits, self.write_misses,
            self.demotions, self.promotions, int(self.dirty),
            len(self.features), *self.features,
            2 * len(self.core_args), *(word for pair in self.core_args for word in pair),
            self.policy,
            2 * len(self.policy_args), *(word for pair in self.policy_args for word in pair),
            self.metadata_mode, "needs_check" if self.needs_check else "-",
        ]  # fmt: skip
        return " ".join(str(word) for word in words)

    def counters(self) -> Counters:
        return Counters(
            read_hits=self.read_hits,
            read_misses=self.read_misses,
            write_hits=self.write_hits,
            write_misses=self.write_misses,
            promotions=self.promotions,
            demotions=self.demotions,
            dirty=self.dirty,
            used=self.used,
            total=self.total,
        )


_FEATURES = frozenset(
    ("writeback", "writethrough", "passthrough", "metadata2", "no_discard_passdown")
)
_CORE_ARGS = frozenset(("migration_threshold",))
_MODES = frozenset(("rw", "ro"))
_CHECKS = frozenset(("needs_check", "-"))


class _Words:
    """The words of a status line, taken one by one under the name of their field."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._words = line.split()[::-1]

    def word(self, field: str) -> str:
        if not self._words:
            raise ValueError(f"dm-cache status ends before {field}: {self._line!r}")
        return self._words.pop()

    def number(self, field: str) -> int:
        word = self.word(field)
        if not (word.isascii() and word.isdigit()):
            raise ValueError(f"dm-cache status: {field} is {word!r}, not a number: {self._line!r}")
        return int(word)

    def fraction(self, field: str) -> tuple[int, int]:
        word = self.word(field)
        used, slash, total = word.partition("/")
        if not (slash and used.isdigit() and total.isdigit()):
            raise ValueError(f"dm-cache status: {field} is {word!r}, not n/m: {self._line!r}")
        return int(used), int(total)

    def choice(self, field: str, allowed: frozenset[str]) -> str:
        word = self.word(field)
        if word not in allowed:
            raise ValueError(f"dm-cache status: unknown {field} {word!r}: {self._line!r}")
        return word

    def pairs(self, field: str, allowed: frozenset[str] | None) -> tuple[tuple[str, str], ...]:
        count = self.number(f"number of {field}s")
        if count % 2:
            raise ValueError(f"dm-cache status: {count} {field}s are no pairs: {self._line!r}")
        return tuple(
            (self.word(field) if allowed is None else self.choice(field, allowed), self.word(field))
            for _ in range(count // 2)
        )

    def end(self) -> None:
        if self._words:
            raise ValueError(f"dm-cache status: unknown field {self._words[-1]!r}: {self._line!r}")


def parse_status(line: str) -> CacheStatus:
    """Read the parameters of a cache target's status line.

    :raises TierFailedError: the kernel says ``Fail`` or ``Error`` instead of numbers.
    :raises ValueError: an unknown or missing field; names the field and the line.

    >>> parse_status("8 27/2048 128 5/16 1 2 3 4 0 5 0 1 writeback 2 migration_threshold 2048"
    ...              " smq 0 rw -").read_misses
    2
    """
    if line.strip() in ("Fail", "Error"):
        raise TierFailedError(
            f"the cache target is in state {line.strip()}: its figures are gone; see the kernel's"
            " log, check the metadata with cache_check before it is used again"
        )
    words = _Words(line)
    metadata_block = Sectors(words.number("metadata block size"))
    metadata_used, metadata_total = words.fraction("metadata blocks")
    cache_block = Sectors(words.number("cache block size"))
    used, total = words.fraction("cache blocks")
    status = CacheStatus(
        metadata_block_size=metadata_block,
        metadata_used=metadata_used,
        metadata_total=metadata_total,
        cache_block_size=cache_block,
        used=Blocks(used),
        total=Blocks(total),
        # Evaluated in the order written, which is the order of the words.
        read_hits=words.number("read hits"),
        read_misses=words.number("read misses"),
        write_hits=words.number("write hits"),
        write_misses=words.number("write misses"),
        demotions=words.number("demotions"),
        promotions=words.number("promotions"),
        dirty=Blocks(words.number("dirty")),
        features=tuple(
            words.choice("feature", _FEATURES) for _ in range(words.number("number of features"))
        ),
        core_args=words.pairs("core argument", _CORE_ARGS),
        policy=words.word("policy"),
        policy_args=words.pairs("policy argument", None),
        metadata_mode=words.choice("metadata mode", _MODES),
        needs_check=words.choice("needs_check", _CHECKS) == "needs_check",
    )
    words.end()
    return status


def parse_dmsetup_status(text: str) -> CacheStatus:
    """Read one line of ``dmsetup status``: ``start length cache <parameters>``.

    Raises as :func:`parse_status` does; a bare ``Fail`` is what the sampler prints when the
    device could not be asked at all.
    """
    if text.strip() == "Fail":
        return parse_status(text)
    head = text.strip().split(maxsplit=3)
    if len(head) < 4 or head[2] != "cache":
        raise ValueError(f"not the status of a cache target: {text.strip()!r}")
    return parse_status(head[3])


def parse_mappings(xml: str) -> list[Run]:
    """The origin's blocks that ``cache_dump`` names, as runs in origin order.

    >>> parse_mappings('<mapping cache_block="0" origin_block="8" dirty="false"/>'
    ...                '<mapping cache_block="1" origin_block="7" dirty="true"/>')
    [Run(start=Blocks(7), count=Blocks(2))]
    """
    return runs_of(int(block) for block in _MAPPED.findall(xml))


def table(spec: TierSpec, origin: PurePosixPath, origin_size: Bytes) -> str:
    """The device-mapper table of the accelerated device."""
    features = f"2 metadata2 {spec.mode}"
    devices = f"{mapper_path(METADATA)} {mapper_path(CACHE)} {origin}"
    block = int(spec.block.sectors)
    return f"0 {int(origin_size.sectors)} cache {devices} {block} {features} {spec.policy} 0"


class DmCache:
    """The kernel's dm-cache over an origin, on any machine that has it."""

    kind: TierKind = "dm-cache"
    counter_bits = COUNTER_BITS

    def __init__(
        self, machine: Machine, spec: TierSpec, flash: PurePosixPath, origin: PurePosixPath
    ) -> None:
        self.machine = machine
        self.spec = spec
        self.flash = flash
        self.origin = origin

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""
        return mapper_path(DATA)

    @property
    def volume(self) -> PurePosixPath:
        return mapper_path(VOLUME)

    @property
    def cache(self) -> PurePosixPath:
        """The CACHE slice's own device: only a fill writes to it."""
        return mapper_path(CACHE)

    @property
    def metadata(self) -> PurePosixPath:
        """The METADATA slice's own device."""
        return mapper_path(METADATA)

    @property
    def capacity(self) -> Blocks:
        return self.spec.cache.blocks(self.spec.block)

    def prepare(self) -> PurePosixPath:
        """Cut the flash into METADATA | CACHE | VOLUME, the cache empty; returns the origin."""
        spec = self.spec
        slices = (Slice(METADATA, spec.metadata), Slice(CACHE, spec.cache),
                  Slice(VOLUME, spec.volume))  # fmt: skip
        split(self.machine, self.flash, slices)
        # An all-zero superblock makes the kernel format an empty cache; old metadata must never
        # be used over an origin that was written since.
        self.machine.run(["dd", "if=/dev/zero", f"of={self.metadata}", "bs=1M", "count=1",
                          "oflag=direct", "status=none"])  # fmt: skip
        return self.origin

    def create(self) -> PurePosixPath:
        if self._stands():
            return self.path
        size = device_size(self.machine, self.origin)
        self.machine.run(["dmsetup", "create", DATA], stdin=table(self.spec, self.origin, size))
        return self.path

    def warm(
        self, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
    ) -> Warmup:
        return offline.fill(self, runs, samples, on_progress)

    def status_argv(self) -> list[str]:
        return ["dmsetup", "status", DATA]

    def parse(self, line: str) -> Counters:
        return parse_dmsetup_status(line).counters()

    def status(self) -> CacheStatus:
        return parse_dmsetup_status(self.machine.run(self.status_argv()).stdout)

    def counters(self) -> Counters:
        return self.status().counters()

    def resident(self) -> list[Run]:
        return offline.look(self).runs()

    def flush(self, progress: Callable[[Blocks], None] = lambda _: None) -> int:
        """Write every dirty block back under the ``cleaner`` policy.

        The policy stays ``cleaner`` afterwards: this is the step before the tier is removed.
        """
        first = dirty = int(self.status().dirty)
        if first == 0:
            return 0
        size = device_size(self.machine, self.origin)
        clean = TierSpec(self.spec.mode, "cleaner", self.spec.block, self.spec.metadata,
                         self.spec.cache, self.spec.volume)  # fmt: skip
        self.machine.run(["dmsetup", "suspend", DATA])
        self.machine.run(["dmsetup", "reload", DATA], stdin=table(clean, self.origin, size))
        self.machine.run(["dmsetup", "resume", DATA])
        while dirty:
            time.sleep(_FLUSH_POLL_S)
            dirty = int(self.status().dirty)
            progress(Blocks(dirty))
        return first

    def destroy(self) -> None:
        if self._stands():
            self.flush()
        self.discard()

    def discard(self) -> None:
        """Remove the tier without writing back: for an origin that is restored anyway."""
        remove(self.machine, (DATA, VOLUME, CACHE, METADATA))

    def _stands(self) -> bool:
        """Whether the accelerated device is there, no matter who made it."""
        return DATA in self.machine.run(["dmsetup", "ls"]).stdout.split()
