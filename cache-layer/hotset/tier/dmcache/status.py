"""The text formats of dm-cache: the kernel's status line and what ``cache_dump`` prints.

Status lines follow Documentation/admin-guide/device-mapper/cache.rst of the kernel. They parse
into records and render back to the same line; an unknown word is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hotset.core.units import Blocks, Sectors

from ..base import Counters, TierFailedError


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

    @property
    def mode(self) -> str:
        """``writeback``, ``writethrough`` or ``passthrough``: one of the features."""
        return next((word for word in self.features if word in _WRITE_MODES), "-")

    def render(self) -> str:
        """The line as the kernel writes it (without start, length and target name)."""
        words: list[object] = [
            int(self.metadata_block_size),
            f"{self.metadata_used}/{self.metadata_total}",
            int(self.cache_block_size),
            f"{int(self.used)}/{int(self.total)}",
            self.read_hits,
            self.read_misses,
            self.write_hits,
            self.write_misses,
            self.demotions,
            self.promotions,
            int(self.dirty),
            len(self.features),
            *self.features,
            2 * len(self.core_args),
            *(word for pair in self.core_args for word in pair),
            self.policy,
            2 * len(self.policy_args),
            *(word for pair in self.policy_args for word in pair),
            self.metadata_mode,
            "needs_check" if self.needs_check else "-",
        ]
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
            # A flush has loaded a table, which shows what was written down before that.
            stale=self.policy == "cleaner",
        )


_WRITE_MODES = frozenset(("writeback", "writethrough", "passthrough"))
_FEATURES = _WRITE_MODES | {"metadata2", "no_discard_passdown"}
_CORE_ARGS = frozenset(("migration_threshold",))
_MODES = frozenset(("rw", "ro"))
_CHECKS = frozenset(("needs_check", "-"))
_FIXED_IN = (6, 5)


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


def stall_reasons(status: CacheStatus, release: str) -> list[str]:
    """Why this cache may write nothing back, on a kernel of that release, and what helps."""
    reasons = []
    if status.metadata_mode == "ro" or status.needs_check:
        reasons.append(
            "the cache's metadata is read-only: deactivate the disk, then activate it, which checks"
            " it"
        )
    if _is_before_fix(release):
        reasons.append(
            f"kernel {release} may write back only while the disk is idle (mended in Linux 6.5 and"
            " in the stable kernels of August 2023): stop the database or unmount for a while"
        )
    return reasons


def _is_before_fix(release: str) -> bool:
    """
    >>> _is_before_fix("6.1.0-18-amd64"), _is_before_fix("6.12.1"), _is_before_fix("odd")
    (True, False, False)
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) < _FIXED_IN
