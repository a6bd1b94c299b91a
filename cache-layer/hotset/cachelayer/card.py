"""The card: one flash device, cut into METADATA and CACHE for each accelerated disk and one VOLUME.

What was cut how is kept as JSON on the machine itself, so that every hotset that reaches the
machine finds it. The kernel's own state (which devices stand, what is dirty) is never kept there:
that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath

from pydantic import TypeAdapter, ValidationError

from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.choice import DatabaseKind
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.flash import PREFIX, RESERVED, UNIT, Part, Place, Slice, mapper_path, total
from hotset.cachelayer.machine import Machine, replace_text
from hotset.cachelayer.tier import TierKind, TierSpec
from hotset.cachelayer.units import Bytes

FOLDER = PurePosixPath("/etc/hotset/cards")
SCHEMA_VERSION = 1
"""History: 1 was the first."""

_FIRST_NAME = "main"


class CardError(ValueError):
    """What is asked for does not fit what the machine's cards say; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Disk:
    """An accelerated disk: its origin, how its tier behaves and which parts of the flash it has.

    ``identity`` is what the kernel knows its cache by (bcache: the cache set's UUID; else empty).
    ``made`` is False from before the first command of its creation until after the last, so that
    a creation that was cut short is known as such. ``clean`` says that the tier was taken down
    with nothing dirty.
    """

    name: str
    kind: TierKind
    database: DatabaseKind
    origin: PurePosixPath
    spec: TierSpec
    metadata: tuple[Part, ...]
    cache: tuple[Part, ...]
    identity: str = ""
    made: bool = True
    clean: bool = False

    @property
    def device(self) -> PurePosixPath:
        """The accelerated device: the same for every kind."""
        return mapper_path(f"{PREFIX}{self.name}")


@dataclass(frozen=True, slots=True)
class Card:
    """A flash device and what it was cut into. ``size`` is the device's."""

    name: str
    flash: PurePosixPath
    size: Bytes
    volume: tuple[Part, ...]
    disks: tuple[Disk, ...] = ()

    @property
    def volume_slice(self) -> Slice:
        """The VOLUME's device: ``hotset-volume``, with the card's name behind it for a second."""
        suffix = "" if self.name == _FIRST_NAME else f"-{self.name}"
        return Slice(f"{PREFIX}volume{suffix}", self.volume)

    def free(self) -> tuple[Part, ...]:
        """What nothing was cut from yet, in order, in whole units."""
        used = [*self.volume, *(part for disk in self.disks for part in disk.metadata + disk.cache)]
        return gaps(used, RESERVED, self.size.align_down(UNIT))

    def place(self, disk: Disk) -> Place:
        """Where a disk's tier lies."""
        return Place(
            disk.name, self.flash, disk.origin, disk.metadata, disk.cache, self.volume_slice
        )

    def with_disk(self, disk: Disk) -> Card:
        """The card with this disk, in the place of one of the same name."""
        names = [one.name for one in self.disks]
        if disk.name not in names:
            return replace(self, disks=(*self.disks, disk))
        return replace(
            self, disks=tuple(disk if one.name == disk.name else one for one in self.disks)
        )

    def without(self, name: str) -> Card:
        return replace(self, disks=tuple(one for one in self.disks if one.name != name))


_JSON = TypeAdapter(Card)


def gaps(used: Iterable[Part], start: Bytes, end: Bytes) -> tuple[Part, ...]:
    """What lies between the used parts.

    >>> gaps([Part(Bytes(4), Bytes(2)), Part(Bytes(1), Bytes(1))], Bytes(0), Bytes(8))
    (Part(start=Bytes(0), size=Bytes(1)), Part(start=Bytes(2), size=Bytes(2)), \
Part(start=Bytes(6), size=Bytes(2)))
    """
    found, at = [], start
    for part in sorted(used, key=lambda one: one.start):
        if part.start > at:
            found.append(Part(at, Bytes(part.start - at)))
        at = max(at, part.end)
    if end > at:
        found.append(Part(at, Bytes(end - at)))
    return tuple(found)


def take(free: Iterable[Part], size: Bytes, what: str) -> tuple[Part, ...]:
    """The first free parts that make up a size.

    :raises CardError: there is not as much; names what it was for, both sizes and the remedy.

    >>> take([Part(Bytes(0), Bytes(1)), Part(Bytes(2), Bytes(5))], Bytes(3), "CACHE")
    (Part(start=Bytes(0), size=Bytes(1)), Part(start=Bytes(2), size=Bytes(2)))
    """
    free = tuple(free)
    if total(free) < size:
        raise CardError(
            f"{what} of {size} does not fit: {total(free)} of the flash are free; ask for less,"
            " or make room with `hotset tier resize` or `hotset tier destroy`"
        )
    taken, left = [], int(size)
    for part in free:
        if left:
            taken.append(Part(part.start, Bytes(min(left, part.size))))
            left -= taken[-1].size
    return tuple(taken)


def names() -> Iterator[str]:
    """Names for cards: ``main``, ``card2``, ``card3`` …"""
    yield _FIRST_NAME
    yield from (f"card{number}" for number in count(2))


def path_of(name: str) -> PurePosixPath:
    """The file of a card on its machine."""
    return FOLDER / f"{name}.json"


def standing(machine: Machine) -> list[Card]:
    """The machine's cards, in the order of their names.

    :raises CardError: a file of theirs is no card; names it.
    """
    if machine.run(["test", "-d", str(FOLDER)], check=False).rc:
        return []
    names = machine.run(["ls", str(FOLDER)]).stdout.split()
    return [_read(machine, FOLDER / name) for name in sorted(names) if name.endswith(".json")]


def save(machine: Machine, card: Card) -> None:
    """Write a card's file, whole or not at all; a card without disks and volume has none."""
    path = path_of(card.name)
    if not card.disks and not card.volume:
        machine.run(["rm", "-f", str(path)])
        return
    text = _JSON.dump_json(card, indent=1).decode()
    replace_text(machine, f'{{"schema_version": {SCHEMA_VERSION},{text[1:]}\n', path, 0o600)
    machine.run(["sync", str(FOLDER)])


def pairs(machine: Machine) -> list[tuple[Card, Disk]]:
    """Every accelerated disk with its card."""
    return [(card, disk) for card in standing(machine) for disk in card.disks]


def find(machine: Machine, disk_name: str | None) -> tuple[Card, Disk]:
    """A disk and its card.

    :param disk_name: None takes the only one there is.
    :raises CardError: there is none of that name, or more than one to choose from; names them.
    """
    there = pairs(machine)
    listed = ", ".join(disk.name for _, disk in there)
    if not there:
        raise CardError(
            f"no disk is accelerated on {machine.kind}: `hotset tier create` makes a tier"
            " (--machine says where)"
        )
    if disk_name is None and len(there) > 1:
        raise CardError(f"several disks are accelerated, name one of them: {listed}")
    found = [pair for pair in there if disk_name in (None, pair[1].name)]
    if not found:
        raise CardError(f"DISK {disk_name!r} is not accelerated here; there is: {listed}")
    return found[0]


def find_card(machine: Machine, name: str | None) -> Card:
    """A card by its own name or by that of a disk on it.

    :param name: None takes the only one there is.
    :raises CardError: there is none of that name, or more than one to choose from; names them.
    """
    there = standing(machine)
    listed = ", ".join(card.name for card in there)
    if not there:
        raise CardError(f"there is no card on {machine.kind}: `hotset tier create` makes one"
                        " (--machine says where)")  # fmt: skip
    if name is None and len(there) > 1:
        raise CardError(f"there are several cards, name one of them: {listed}")
    found = [card for card in there if name in (None, card.name)] or [
        card for card in there if name in {disk.name for disk in card.disks}
    ]
    if not found:
        raise CardError(f"CARD {name!r} is neither a card nor a disk on one; there is: {listed}")
    return found[0]


KernelTier = DmCache | Bcache
"""The kinds that a card's disk may have. Beside the verbs of :class:`Tier` they are activated and
deactivated, they report, and they follow an origin that has grown."""


def tier_of(machine: Machine, disk_name: str | None) -> KernelTier:
    """The tier of a disk; raises as :func:`find` does."""
    card, disk = find(machine, disk_name)
    return built(machine, card, disk)


def built(machine: Machine, card: Card, disk: Disk) -> KernelTier:
    """The tier of a disk of a card."""
    if disk.kind == "bcache":
        return Bcache(machine, disk.spec, card.place(disk), disk.identity)
    return DmCache(machine, disk.spec, card.place(disk))


def _read(machine: Machine, path: PurePosixPath) -> Card:
    text = machine.run(["cat", str(path)]).stdout
    try:
        return parse(text)
    except ValueError as error:
        raise CardError(f"{path} on {machine.kind}: {error}") from None


def parse(text: str) -> Card:
    """A card out of its file's text.

    :raises CardError: not a card, or of another version of hotset; names the field.
    """
    import json

    try:
        fields = json.loads(text)
        version = fields.pop("schema_version")
    except (ValueError, AttributeError, KeyError):
        raise CardError("not the description of a card") from None
    if version != SCHEMA_VERSION:
        raise CardError(f"schema_version is {version!r}: this hotset reads {SCHEMA_VERSION}")
    try:
        return _JSON.validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        raise CardError(f"{field}: {first['msg']}, not {first['input']!r}") from None
