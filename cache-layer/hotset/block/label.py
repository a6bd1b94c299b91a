"""Ownership label in the first mebibyte of a flash device, which no slice reaches.

Plain text, so that ``dd | less`` shows it. The label is there twice, each with its checksum and
generation, written one after the other: whatever cuts a change short, one is valid and says
what the flash holds. Behind them each disk has a record of 4 KiB of how it was left, twice too,
which ``hotset-boot`` writes (``cache-layer/crates/boot/src/label.rs``).

libblkid finds nothing in this text and udev leaves the device alone.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

MAGIC = "HOTSET-LABEL"
VERSION = 1
_MAGICS_BEFORE_RELEASE = ("HOTSET-CARD-LABEL", "HOTSET-FLASH-LABEL")
"""With versions of their own. To write a label in its place loses the disks that it names."""
SIGNATURE = "hotset"
"""How a device with a label is called beside what libblkid knows."""
_RECORD_MAGIC = "HOTSET-DISK-RECORD"
_COPY = Bytes(64 * 1024)
_FIRST = Bytes(256 * 1024)
_RECORD = Bytes(4096)
_RECORDS_AT = (Bytes(512 * 1024), Bytes(768 * 1024))
RECORDS = 64
_READ_TIMEOUT_S = 20


class LabelError(HotsetError):
    """A label cannot be read or written; the message names the device and what to do."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label's contents: ``body`` is JSON, ``generation`` counts the changes."""

    generation: int
    body: str

    def render(self) -> str:
        """:raises LabelError: it does not fit its place."""
        digest = _digest(f"{VERSION} {self.generation} {self.body}")
        head = f"{MAGIC} {VERSION} {self.generation} {len(self.body.encode())} {digest}\n"
        text = head + self.body + "\n"
        # Whole sectors of any device, as direct I/O wants them.
        padded = text + " " * (-len(text.encode()) % 4096)
        if len(padded.encode()) > _COPY:
            raise LabelError(f"a flash device has no room for more disks ({len(text)} bytes)")
        return padded


def parse(text: str) -> Label | None:
    """A label out of one copy's text; None if it is none or torn.

    :raises LabelError: it is of another version, which cannot be read.
    """
    head, _, rest = text.partition("\n")
    words = head.split(" ")
    if words[0] == MAGIC and words[1:2] and words[1].isdigit() and int(words[1]) != VERSION:
        raise LabelError(
            f"its label is of version {words[1]}, and this hotset reads version {VERSION}: use the"
            " hotset that wrote it"
        )
    if len(words) != 5 or words[:2] != [MAGIC, str(VERSION)]:
        return None
    if not (words[2].isdigit() and words[3].isdigit()):
        return None
    body = rest.encode()[: int(words[3])].decode(errors="replace")
    label = Label(int(words[2]), body)
    same = _digest(f"{VERSION} {label.generation} {body}") == words[4]
    return label if same else None


def read(machine: Machine, device: PurePosixPath) -> Label | None:
    """The newest valid label of a device; None if it has none.

    :raises LabelError: there is one that cannot be read: of another version, or damaged.
    :raises CommandError: the device cannot be read.
    :raises CommandTimeoutError: it does not answer.
    """
    text = _both(machine, device)
    unwanted = (
        "It may hold writes that no origin has. If nothing on it is wanted any more:"
        f" dd {' '.join(_erasing(device))}"
    )
    try:
        valid = _copies(text)
    except LabelError as error:
        raise LabelError(f"{error}. {unwanted}") from None
    if MAGIC in text and not valid:
        raise LabelError(f"its label is damaged. {unwanted}")
    return max(valid, key=lambda label: label.generation, default=None)


def write(machine: Machine, device: PurePosixPath, label: Label) -> None:
    """Write both copies, the older first: a valid one is there at every moment."""
    known = _both(machine, device)
    first = parse(known)
    second = max((copy.generation for copy in _copies(known)[first is not None :]), default=-1)
    order = [_FIRST, Bytes(_FIRST + _COPY)]
    if first is not None and first.generation > second:
        order.reverse()
    text = label.render()
    for at in order:
        _write(machine, device, at, text)


def erase(machine: Machine, device: PurePosixPath) -> None:
    """No label any more: nothing of hotset's is left on the device."""
    machine.run(["dd", *_erasing(device), "oflag=direct", "conv=notrunc,fsync", "status=none"])


def _erasing(device: PurePosixPath) -> list[str]:
    """Words of ``dd``: zeros for labels and records."""
    size = _RECORDS_AT[-1] + RECORDS * _RECORD - _FIRST
    place = [f"bs={int(_COPY)}", f"seek={_FIRST // _COPY}", f"count={size // _COPY}"]
    return ["if=/dev/zero", f"of={device}", *place]


def read_record(machine: Machine, device: PurePosixPath, slot: int) -> str | None:
    """The text of a disk's record; None if there is none or it is torn."""
    copies = [_record(machine, device, at) for at in _places(slot)]
    return max((copy for copy in copies if copy is not None), key=_sequence, default=None)


def write_record(machine: Machine, device: PurePosixPath, slot: int, body: str) -> None:
    """Put back what :func:`read_record` has read."""
    text = f"{_RECORD_MAGIC} {body} {_digest(body)[:32]}\n"
    for at in _places(slot):
        _write(machine, device, at, text.ljust(_RECORD))


def _record(machine: Machine, device: PurePosixPath, at: Bytes) -> str | None:
    magic, _, rest = _read(machine, device, at, 1).partition("\n")[0].partition(" ")
    body, _, digest = rest.rpartition(" ")
    return body if magic == _RECORD_MAGIC and digest == _digest(body)[:32] else None


def _sequence(body: str) -> int:
    """0 of one that nobody here understands."""
    match = re.search(r'\{"sequence":(\d+)', body)
    return int(match[1]) if match else 0


def _places(slot: int) -> list[Bytes]:
    assert 0 <= slot < RECORDS, slot
    return [Bytes(at + slot * _RECORD) for at in _RECORDS_AT]


def _copies(text: str) -> list[Label]:
    if any(magic in text for magic in _MAGICS_BEFORE_RELEASE):
        raise LabelError(
            "its label was written by a hotset of before its first release, and this one does not"
            " read it: use the hotset that wrote it, which can also detach the disks for this one"
        )
    # Cut at the magic words, not by position: text that is not UTF-8 counts differently.
    copies = [parse(MAGIC + body) for body in text.split(MAGIC)[1:]]
    return [copy for copy in copies if copy is not None]


def _both(machine: Machine, device: PurePosixPath) -> str:
    """The text of both copies."""
    return _read(machine, device, _FIRST, 2 * _COPY // _RECORD)


def _read(machine: Machine, device: PurePosixPath, at: Bytes, count: int) -> str:
    place = [f"bs={int(_RECORD)}", f"skip={at // _RECORD}", f"count={count}"]
    argv = ["dd", f"if={device}", *place, "iflag=direct", "status=none"]
    return machine.run(argv, timeout_s=_READ_TIMEOUT_S).stdout


def _write(machine: Machine, device: PurePosixPath, at: Bytes, text: str) -> None:
    place = [f"bs={int(_RECORD)}", f"seek={at // _RECORD}"]
    ends = ["iflag=fullblock", "oflag=direct", "conv=notrunc,fsync", "status=none"]
    machine.run(["dd", f"of={device}", *place, *ends], stdin=text, timeout_s=_READ_TIMEOUT_S * 3)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
