"""How a disk's tier was left: one line on the flash, which ``hotset-boot`` writes
(:mod:`.boot.program`).

``active`` is written before the tier can take its first write, ``clean`` or ``dirty`` after it was
taken down in good order, with what its origin looked like then. ``active`` on a
tier that is down means that it ended by a crash; ``ended``, that the computer went on then.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Literal, get_args

from hotset.block import label

from .flash_devices import AttachedDisk, Disk

Word = Literal["active", "ended", "dirty", "clean"]


def key(disk: Disk) -> str:
    """Tells a disk's record from one that an earlier disk left there."""
    return disk.identity or disk.name


def parse(disk: Disk, text: str | None) -> Word | None:
    """None if it is another disk's, or none."""
    words = (text or "").split(" ")
    if len(words) < 3 or words[0] != key(disk) or words[1] not in get_args(Word):
        return None
    word: Word = words[1]  # type: ignore[assignment]
    return word


def content(attached: AttachedDisk) -> str:
    """The UUID of what lay on the origin when the record was written; empty: not known.

    :raises CommandError: the flash cannot be read.
    """
    text = _record(attached)
    if parse(attached.disk, text) is None or text is None:
        return ""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(text.split(" ", 2)[2])["seen"]["content"])
    return ""


def read(attached: AttachedDisk) -> Word | None:
    """None: nothing was ever written, or not to the end; nobody knows then how it was left.

    :raises CommandError: the flash cannot be read.
    """
    return parse(attached.disk, _record(attached))


def _record(attached: AttachedDisk) -> str | None:
    return label.read_record(attached.machine, attached.flash.path, attached.disk.record)
