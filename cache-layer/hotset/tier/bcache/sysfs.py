"""Records of bcache's output in sysfs and debugfs.

Attributes: drivers/md/bcache/sysfs.c and stats.c; keys of the cache: ``bch_extent_to_text`` in
drivers/md/bcache/extents.c, dumped by debug.c. An unknown word is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hotset.block.extents import Extent, merge
from hotset.core.units import SECTOR_BYTES, Blocks, Bytes, Sectors

from ..base import Counters, TierFailedError

STATES = frozenset(("no cache", "clean", "dirty", "inconsistent"))
"""``bch_cache_state`` as sysfs prints it (sysfs.c, ``SHOW(__bch_cached_dev)``)."""
WITHOUT_CACHE = frozenset(("no cache", "inconsistent"))
"""States in which the origin serves all requests, and bcache counts none."""
LAG_S = 14.0
"""bcache adds what it has counted up every 13.6 s (``accounting_delay``, stats.c)."""
_ADDED_BITS = 16
UNDER_WAY = 1 << 10
"""At most so many requests has bcache counted and the block layer not, as they have not ended."""
_UNITS = "kMGTPEZY"
_SIZE = re.compile(r"^(-?\d+)(?:\.(\d))?([kMGTPEZY]?)$")
_POINTER = r"(?:check dev|\d+:\d+ gen \d+)"
_KEY = re.compile(
    rf"^(\d+):(\d+) len (\d+) -> \[({_POINTER}(?:, {_POINTER})*)?\]( dirty)?( cs\d+ [0-9a-f]+)?$"
)

IN_ATTRIBUTES = """
name=$(readlink "/dev/mapper/$1") || exit 1
cd "/sys/block/${name##*/}/bcache" || exit 1
"""
"""Beginning of shell commands: goes to the attributes of a backing device; the argument is its
device-mapper name."""

STATUS_PROGRAM = (
    IN_ATTRIBUTES
    + """\
read -r reads _ < dev/stat || exit 1
printf '%s\\t' "$reads"
for file in stats_total/cache_hits stats_total/cache_misses stats_total/cache_bypass_hits \\
    stats_total/cache_bypass_misses dirty_data state io_errors; do
    read -r value < "$file" || exit 1
    # Of a cache that failed and was let go of, the kernel says what it was before.
    [ "$file" != state ] || [ -e cache ] || value='no cache'
    printf '%s\\t' "$value"
done
if [ -d cache/cache0 ]; then
    # The kernel goes through all buckets for it, with its lock held, which takes seconds of a large
    # cache: once a minute.
    kept=/run/hotset/$1.unused
    read -r up _ < /proc/uptime
    up=${up%.*} set=$(readlink cache) at= of= value=
    [ ! -r "$kept" ] || read -r at of value < "$kept"
    if [ "$of" != "$set" ] || [ $((up - at)) -ge 60 ]; then
        while IFS=: read -r key share; do
            if [ "$key" = Unused ]; then value=$share; fi
        done < cache/cache0/priority_stats
        { mkdir -p -m 700 /run/hotset && echo "$up $set $value" > "$kept.$$" &&
            mv "$kept.$$" "$kept"; } 2> /dev/null
    fi
    printf '%s\\n' "$value"
else
    printf '%s\\n' '100%'
fi
"""
)
"""Prints one line out of them."""


_COUNTS = ("reads", "hits", "misses", "bypass_hits", "bypass_misses")


@dataclass(frozen=True, slots=True)
class Line:
    """Output of :data:`STATUS_PROGRAM`. ``reads`` are requests that the accelerated device has
    served (Documentation/block/stat.rst), up to date; bcache's own counts of them are as of the
    last time it added them up (:data:`LAG_S`). ``dirty`` is rounded as the kernel prints it (but 0
    is 0); ``io_errors`` are requests that the origin has failed since bcache has it; ``unused`` is
    a share of the buckets, to 1 %, up to a minute old."""

    reads: int
    hits: int
    misses: int
    bypass_hits: int
    bypass_misses: int
    dirty: Bytes
    state: str
    io_errors: int
    unused: float

    def counters(self, block: Bytes, total: Blocks, bypass: bool) -> Counters:
        """Counters in the unit of a :class:`TierSpec`: requests, of which one that is cached in
        part is missed.

        What bcache adds at a time it adds in 32 bits, shifted by 16 (``scale_accounting``): of
        more than 65,535 the rest is lost. The block layer counts the same requests, so what was
        lost shows; it is hits, as an origin worth a cache does not serve 4,800 requests a second.

        :param bypass: whether long sequential reads go past the cache as they are to; else a read
            that went past it was hit or missed like any other.
        """
        hits, misses = self.hits, self.misses
        bypassed = self.bypass_hits + self.bypass_misses
        is_cached = self.state not in WITHOUT_CACHE
        if is_cached:
            unseen = self.reads - hits - misses - bypassed + UNDER_WAY
            hits += max(0, unseen >> _ADDED_BITS) << _ADDED_BITS
        if not bypass:
            hits, misses = hits + self.bypass_hits, misses + self.bypass_misses
        return Counters(
            read_hits=hits,
            read_misses=misses,
            write_hits=None,
            write_misses=None,
            promotions=None,
            demotions=None,
            dirty=Blocks(-(-self.dirty // block)),
            used=Blocks(round(total * (1 - self.unused))),
            total=total,
            bypassed=bypassed if bypass else None,
            stale=not is_cached,
        )


def parse_line(text: str) -> Line:
    """Read the line of :data:`STATUS_PROGRAM`.

    :raises TierFailedError: ``Fail``: bcache has let go of the device.
    :raises ValueError: an unknown or missing field; names the field and the line.

    >>> parse_line("11\\t7\\t3\\t0\\t1\\t12.5M\\tdirty\\t0\\t75%").dirty
    Bytes(13107200)
    """
    if text.strip() == "Fail":
        raise TierFailedError(
            "bcache has no such device any more: it was stopped by hand, or for errors of its"
            " flash or its origin"
        )
    words = [word.strip() for word in text.strip("\n").split("\t") if word.strip()]
    if len(words) != len(_COUNTS) + 4:
        raise ValueError(f"bcache: {len(words)} fields, not {len(_COUNTS) + 4}: {text!r}")
    counts = []
    for name, word in zip(_COUNTS, words, strict=False):
        if not (word.isascii() and word.isdigit()):
            raise ValueError(f"bcache: {name} is {word!r}, not a number: {text!r}")
        counts.append(int(word))
    dirty, state, io_errors, unused = words[len(_COUNTS) :]
    if state not in STATES:
        raise ValueError(f"bcache: unknown state {state!r}: {text!r}")
    if not re.fullmatch(r"\d+%", unused):
        raise ValueError(f"bcache: Unused is {unused!r}, not a percentage: {text!r}")
    if not (io_errors.isascii() and io_errors.isdigit()):
        raise ValueError(f"bcache: io_errors is {io_errors!r}, not a number: {text!r}")
    counted = dict(zip(_COUNTS, counts, strict=True))
    share = int(unused[:-1]) / 100
    return Line(
        **counted,
        dirty=parse_size(dirty),
        state=state,
        io_errors=int(io_errors),
        unused=share,
    )


def parse_size(text: str) -> Bytes:
    """A size as ``bch_hprint`` (util.c) writes it: one decimal, powers of 1024.

    >>> parse_size("4.0M"), parse_size("0.5k"), parse_size("0")
    (Bytes(4194304), Bytes(512), Bytes(0))
    """
    match = _SIZE.match(text.strip())
    if match is None or int(match[1]) < 0:
        raise ValueError(f"bcache: {text!r} is not a size")
    factor = 1024 ** (_UNITS.index(match[3]) + 1) if match[3] else 1
    # bch_hprint's decimal is a tenth, rounded down.
    return Bytes(int(match[1]) * factor + int(match[2] or 0) * factor // 10)


def parse_choice(text: str) -> str:
    """The chosen word of an attribute that lists all.

    >>> parse_choice("writethrough [writeback] writearound none")
    'writeback'
    """
    choices = re.findall(r"\[([^\]]*)\]", text)
    if len(choices) != 1:
        raise ValueError(f"bcache: no single choice in {text!r}")
    return str(choices[0])


@dataclass(frozen=True, slots=True)
class Key:
    """An extent that the cache set holds, in sectors of the BACKING device: bcache adds the data
    offset before it looks for a sector (``cached_dev_submit_bio``, request.c)."""

    inode: int
    start: int
    length: int
    dirty: bool


def parse_key(line: str) -> Key | None:
    """One line of the debugfs file; None for a key that points nowhere (its data was dropped).

    :raises ValueError: not a key; names the line.

    >>> parse_key("0:2048 len 16 -> [0:69120 gen 1] dirty")
    Key(inode=0, start=2048, length=16, dirty=True)
    """
    match = _KEY.match(line.strip())
    if match is None:
        raise ValueError(f"bcache: not a key: {line!r}")
    if not match[4]:
        return None
    return Key(int(match[1]), int(match[2]), int(match[3]), match[5] is not None)


def extents_of(keys: Iterable[Key], data_offset: Sectors) -> list[Extent]:
    """Keys merged into extents in order, in bytes of the accelerated device.

    :param data_offset: where the data begin on the backing device.

    >>> extents_of([Key(0, 2056, 8, False), Key(0, 2048, 8, True)], Sectors(2048))
    [Extent(start=Bytes(0), length=Bytes(8192))]
    """
    return merge(
        Extent(Bytes((key.start - data_offset) * SECTOR_BYTES), Bytes(key.length * SECTOR_BYTES))
        for key in keys
    )
