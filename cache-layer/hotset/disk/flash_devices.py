"""The flash devices of a machine, each cut into METADATA and CACHE of its disks and one VOLUME.

How a device is cut is kept as JSON in its own label, with a copy on the machine's root disk. The
kernel's own state (which devices are active, what is dirty) is never kept there: that is asked for.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Annotated, Literal, TypeVar

from pydantic import PlainSerializer, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from hotset.block import devicemapper, loop, programs
from hotset.block import label as labels
from hotset.block.devicemapper import PREFIX, RESERVED, UNIT, Part, Place, Slice, total
from hotset.block.label import Label, LabelError
from hotset.core.errors import Remedy, RequestError
from hotset.core.machines.base import (
    CommandError,
    CommandTimeoutError,
    Machine,
    PrerequisiteMissingError,
)
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import TierKind, TierSpec
from hotset.tier.choice import DatabaseKind
from hotset.tier.disk_tier import DiskTier
from hotset.tier.kind import MadeBy

from .identity import owner
from .identity.origin import OriginId

T = TypeVar("T")
FOLDER = PurePosixPath("/etc/hotset/flash")
"""Copies of the labels, for those who look without the device; rebuilt by ``tier import``."""
SCHEMA_VERSION = 1

_OF_ANOTHER = (
    "use the version of hotset that wrote it, which can also detach the disks for this one. Nothing"
    " was changed"
)
_FIRST_NAME = "main"


class FlashError(RequestError):
    """The request does not fit the machine's flash devices; the message names the remedy."""


class NotSetUpError(FlashError):
    """There is no such flash device or disk."""

    http_status = 404


Phase = Literal["creating", "ready", "detaching"]


def _kind_of(name: object) -> TierKind:
    kind = next((kind for kind in kinds.names() if kind == name), None)
    if kind is None:
        *others, last = (repr(kind) for kind in kinds.names())
        raise PydanticCustomError(
            "kind", "Input should be {names}", {"names": f"{', '.join(others)} or {last}"}
        )
    return kind


KnownKind = Annotated[TierKind, PlainValidator(_kind_of), PlainSerializer(str)]
"""One of :data:`kinds.KINDS`, as a label has it."""


@dataclass(frozen=True, slots=True)
class Disk:
    """An accelerated disk: its origin, how its tier behaves and which parts of the flash it has.

    ``identity`` names it for good; bcache's cache set has it for its UUID.
    ``phase`` is ``creating`` from before the first command of its creation until after the last,
    and ``detaching`` from when all of it is on the origin until nothing of it is left. ``record``
    is the number of its record on the flash (:mod:`.state`). ``origin_id``: None for a disk made
    before labels existed, until its next change. ``reserve``: whether other hosts are kept from
    writing to the origin (:mod:`.reservation`).
    """

    name: str
    kind: KnownKind
    database: DatabaseKind
    origin: PurePosixPath
    spec: TierSpec
    metadata: tuple[Part, ...]
    cache: tuple[Part, ...]
    identity: str = ""
    phase: Phase = "ready"
    record: int = 0
    origin_id: OriginId | None = None
    reserve: bool = True

    @property
    def is_complete(self) -> bool:
        """True if its creation has ended."""
        return self.phase != "creating"

    @property
    def device(self) -> PurePosixPath:
        """The accelerated device."""
        return device_of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class FlashDevice:
    """A flash device and how it is cut, as its label has it.

    ``uuid`` names it for good, ``host`` and ``hardware`` the machine it belongs to
    (:mod:`.owner`), ``host_name`` is what people call that. All are empty for one that has no
    label yet, ``hardware`` also where the firmware does not tell.
    ``devices``: what its volume is made by, and which kinds of tier it may have: the kernel's, or
    those in user space. ``new``: its first disk is still being created; cut short, nothing of
    hotset's stays on it.
    """

    name: str
    path: PurePosixPath
    size: Bytes
    volume: tuple[Part, ...]
    disks: tuple[Disk, ...] = ()
    uuid: str = ""
    host: str = ""
    host_name: str = ""
    generation: int = 0
    devices: MadeBy = "mapper"
    new: bool = False
    hardware: str = ""

    @property
    def volume_slice(self) -> Slice:
        """The VOLUME's device: ``/dev/mapper/hotset-volume`` or ``/dev/hotset/volume``, with the
        flash device's name behind it for a second."""
        suffix = "" if self.name == _FIRST_NAME else f"-{self.name}"
        if self.devices == "loop":
            return Slice(f"volume{suffix}", self.volume, loop.FOLDER)
        return Slice(f"{PREFIX}volume{suffix}", self.volume)

    def free(self) -> tuple[Part, ...]:
        """Parts that nothing was cut from yet, in order, in whole units."""
        used = [*self.volume, *(part for disk in self.disks for part in disk.metadata + disk.cache)]
        return gaps(used, RESERVED, self.size.align_down(UNIT))

    def free_record(self) -> int:
        """The number of a record that no disk has.

        :raises FlashError: the flash has no more room for disks.
        """
        taken = {disk.record for disk in self.disks}
        free = next((number for number in range(labels.RECORDS) if number not in taken), None)
        if free is None:
            raise FlashError(
                f"{self.path} has {labels.RECORDS} disks: no more fit one flash device"
            )
        return free

    def place(self, disk: Disk) -> Place:
        """Where a disk's tier lies."""
        return Place(
            disk.name, self.path, disk.origin, disk.metadata, disk.cache, self.volume_slice
        )

    def with_disk(self, disk: Disk) -> FlashDevice:
        """The device with this disk, in the place of one of the same name."""
        names = [known.name for known in self.disks]
        if disk.name not in names:
            return replace(self, disks=(*self.disks, disk))
        return replace(
            self, disks=tuple(disk if known.name == disk.name else known for known in self.disks)
        )

    def without(self, name: str) -> FlashDevice:
        return replace(self, disks=tuple(disk for disk in self.disks if disk.name != name))


@dataclass(frozen=True, slots=True)
class AttachedDisk:
    """A disk with the two things that all work on it needs besides: the machine, and the flash
    device that holds its cache.

    *Attached* is bcache's word for an origin that is coupled to its cache: it is from ``tier
    create`` until ``tier detach``, whether its devices are active or not. ``machine`` runs the
    commands: under a lock, or as a dry run. ``disk`` is one of the flash's by its name; where a
    change is not on record yet, it differs from the flash's own record of it.
    """

    machine: Machine
    flash: FlashDevice
    disk: Disk

    @property
    def place(self) -> Place:
        """Where its tier lies."""
        return self.flash.place(self.disk)

    @property
    def tier(self) -> DiskTier:
        """Its tier, a new object each time: what one remembers, such as whether it was dirty when
        it went down, no other does."""
        disk = self.disk
        return kinds.kind_of_name(disk.kind).tier(
            self.machine, disk.spec, self.place, disk.identity
        )

    def with_disk(self, disk: Disk) -> AttachedDisk:
        """With another record of the disk, which its flash has as well; nothing is written."""
        return replace(self, flash=self.flash.with_disk(disk), disk=disk)

    def save(self) -> AttachedDisk:
        """Write its flash (:func:`save`); returns it with the flash as that is then."""
        return replace(self, flash=save(self.machine, self.flash))


_JSON = TypeAdapter(FlashDevice)


def device_of(kind: TierKind, disk: str) -> PurePosixPath:
    """The accelerated device of a disk's name."""
    return kinds.kind_of_name(kind).device(disk)


def volume_is_active(machine: Machine, flash: FlashDevice) -> bool:
    """True if the flash's volume is active."""
    volume = flash.volume_slice
    if flash.devices == "loop":
        return any(
            loop.is_attached(machine, volume.path, flash.path, part.start) for part in volume.parts
        )
    return volume.name in devicemapper.active_names(machine)


def remove_volume(machine: Machine, flash: FlashDevice) -> None:
    """Remove the volume's device; what is on it stays on the flash.

    :raises InUseError: it is in use. (A loop device would let itself be detached all the same.)
    """
    programs.require_unused(machine, flash.volume_slice.path)
    if flash.devices == "loop":
        for part in flash.volume_slice.parts:
            loop.detach(machine, flash.volume_slice.path, flash.path, part.start)
    else:
        devicemapper.remove(machine, [flash.volume_slice.name])


def gaps(used: Iterable[Part], start: Bytes, end: Bytes) -> tuple[Part, ...]:
    """List the gaps between the used parts.

    >>> gaps([Part(Bytes(4), Bytes(2)), Part(Bytes(1), Bytes(1))], Bytes(0), Bytes(8))
    (Part(start=Bytes(0), size=Bytes(1)), Part(start=Bytes(2), size=Bytes(2)), \
Part(start=Bytes(6), size=Bytes(2)))
    """
    gaps, at = [], start
    for part in sorted(used, key=lambda part: part.start):
        if part.start > at:
            gaps.append(Part(at, Bytes(part.start - at)))
        at = max(at, part.end)
    if end > at:
        gaps.append(Part(at, Bytes(end - at)))
    return tuple(gaps)


def take(
    free: Iterable[Part], size: Bytes, what: str, field: str | None = None
) -> tuple[Part, ...]:
    """The first free parts that make up a size.

    :param field: the request's field that asks for it.
    :raises FlashError: there is not as much; names what it was for, both sizes and the remedy.

    >>> take([Part(Bytes(0), Bytes(1)), Part(Bytes(2), Bytes(5))], Bytes(3), "CACHE")
    (Part(start=Bytes(0), size=Bytes(1)), Part(start=Bytes(2), size=Bytes(2)))
    """
    free = tuple(free)
    if total(free) < size:
        raise FlashError(
            f"{what} of {size} does not fit: {total(free)} of the flash is free; ask for less, or"
            " make room",
            Remedy("make another disk's cache smaller", "tier resize"),
            Remedy("give another disk back", "tier detach", {"disk": "DISK"}),
            field=field,
        )
    taken, left = [], int(size)
    for part in free:
        if left:
            taken.append(Part(part.start, Bytes(min(left, part.size))))
            left -= taken[-1].size
    return tuple(taken)


def names() -> Iterator[str]:
    """Names for flash devices: ``main``, ``flash2``, ``flash3`` …"""
    yield _FIRST_NAME
    yield from (f"flash{number}" for number in count(2))


def new_name(machine: Machine) -> str:
    """A name that no flash device has, nor one whose copy cannot be read."""
    listed = machine.run(["ls", str(FOLDER)], check=False).stdout.split()
    return next(name for name in names() if f"{name}.json" not in listed)


def path_of(name: str) -> PurePosixPath:
    """The file of a flash device's copy on its machine."""
    return FOLDER / f"{name}.json"


@dataclass(frozen=True, slots=True)
class Inventory:
    """A machine's flash devices in the order of their names, and what is wrong with some, in
    words."""

    flash_devices: tuple[FlashDevice, ...]
    problems: tuple[str, ...] = ()

    def list_disks(self, machine: Machine) -> list[AttachedDisk]:
        """Every accelerated disk, on the machine whose flash devices these are."""
        return [
            AttachedDisk(machine, flash, disk)
            for flash in self.flash_devices
            for disk in flash.disks
        ]

    def without(self, disk: Disk) -> Inventory:
        """Return the inventory without a disk, and without its flash device if nothing else is on
        it."""
        left = (flash.without(disk.name) for flash in self.flash_devices)
        return replace(
            self, flash_devices=tuple(flash for flash in left if flash.disks or flash.volume)
        )


def need_root(machine: Machine) -> None:
    """:raises PrerequisiteMissingError: hotset is not root there; says what works all the same."""
    if machine.run(["id", "-u"]).stdout.strip() not in ("0", ""):
        raise PrerequisiteMissingError(
            "only root can inspect and change accelerated disks, and hotset is not root on this"
            f" machine ({machine.kind}): use sudo, or ssh as root. What needs no root: the lab,"
            " experiments, TPC-C and TPC-H on a database, what-if"
        )


def inventory(machine: Machine) -> Inventory:
    """Every flash device that this machine knows, as its label has it, where that can be read.

    One that cannot be read hinders no other: it is named among the problems.

    :raises PrerequisiteMissingError: there are some, and hotset is not root, to whom they, device
        mapper and engines would not answer: a disk in use would look like a failed one.
    """
    kept, unread = _copies(machine)
    if kept or unread:
        need_root(machine)
    readable, problems = list[FlashDevice](), [f"{path} on {machine.kind}" for path in unread]
    for path, text in kept:
        try:
            flash = parse(text)
        except FlashError as error:
            problems.append(f"{path} on {machine.kind}: {error}")
            continue
        newest, problem = _as_labelled(machine, flash)
        readable.append(newest)
        problems += [problem] if problem else []
    return Inventory(tuple(readable), tuple(problems))


def _copies(machine: Machine) -> tuple[list[tuple[PurePosixPath, str]], list[str]]:
    """The files in :data:`FOLDER` with their texts, all read by one command; and what hindered
    that for others, in the machine's words."""
    files = ["find", str(FOLDER), "-maxdepth", "1", "-name", "*.json"]
    result = machine.run([*files, "-exec", "tail", "-v", "-n", "+1", "{}", "+"], check=False)
    _, *pieces = re.split(r"^==> (.*) <==\n", result.stdout, flags=re.MULTILINE)
    copies = zip(map(PurePosixPath, pieces[::2]), pieces[1::2], strict=True)
    # What is not there is no flash device: the folder, or a file that went meanwhile.
    gone = "No such file or directory"
    return sorted(copies), [line for line in result.stderr.splitlines() if gone not in line]


def list_all(machine: Machine) -> list[FlashDevice]:
    """The machine's flash devices, in the order of their names."""
    return list(inventory(machine).flash_devices)


def read_flash(machine: Machine, device: PurePosixPath) -> FlashDevice | None:
    """A flash device as its label describes it; None if it has no label.

    :raises FlashError: the label is damaged, of another version of hotset, or describes none.
    :raises CommandError: the device cannot be read.
    """
    try:
        label = labels.read(machine, device)
        if label is None:
            return None
        return replace(parse(label.body), generation=label.generation)
    except (FlashError, LabelError) as error:
        raise FlashError(f"the label of {device}: {error}") from None


def _as_labelled(machine: Machine, flash: FlashDevice) -> tuple[FlashDevice, str | None]:
    """A flash device as its label has it, and what is wrong with that, in words."""
    try:
        current = read_flash(machine, flash.path)
    except (CommandError, CommandTimeoutError):
        return flash, None  # whoever looks at the device finds that out
    except FlashError as error:
        return flash, str(error)
    if not flash.uuid and current is None:
        return flash, None  # it is about to get one
    problem = None
    if current is None:
        problem = "has lost its label: it was overwritten, or is another device"
    elif flash.uuid and current.uuid != flash.uuid:
        problem = f"is another flash device now ({current.name} of {current.host_name})"
    if problem or current is None:
        return flash, (
            f"flash device {flash.name}: {flash.path} {problem}. Nothing on it is to be trusted; a"
            " scan for labels finds the right one"
        )
    # The copy is newer if the disks changed while the device did not answer, and nobody took it.
    is_taken = (current.host, current.hardware) != (flash.host, flash.hardware)
    is_newer = is_taken or current.generation >= flash.generation
    return (replace(current, name=flash.name, path=flash.path) if is_newer else flash), None


def is_ours(machine: Machine, flash: FlashDevice) -> bool:
    """True if a flash device belongs to this machine, and to no clone of it. Where the firmware
    did not tell, that is not known: it counts as the machine's, which its next activation or change
    says.
    """
    if flash.host and flash.host != owner.host_id(machine):
        return False
    return flash.hardware in ("", owner.hardware_id(machine))


def owner_in_words(machine: Machine, flash: FlashDevice) -> str:
    """Whose a flash device is that is not this machine's."""
    if flash.host != owner.host_id(machine):
        return f"{flash.host_name} by its label"
    return (
        f"{flash.host_name} by its label, as it was on other hardware: this machine is a clone of"
        " it, or has another mainboard or hypervisor now"
    )


def require_ours(machine: Machine, flash: FlashDevice) -> FlashDevice:
    """See that it is that flash device and this machine's, before anything changes; returns it as
    its label has it, or as it is if it is newer.

    :raises FlashError: it is not; says how to take it over.
    """
    newest, problem = _as_labelled(machine, flash)
    if problem:
        raise FlashError(problem, Remedy("see all labels", "tier scan"))
    if not is_ours(machine, newest):
        raise FlashError(
            f"flash device {flash.name}: {flash.path} belongs to {owner_in_words(machine, newest)};"
            " used by two servers, its data is destroyed",
            Remedy(
                "make it this server's, once no other uses it",
                "tier import",
                {"flash": str(flash.path), "take_over": True},
            ),
        )
    return newest


def save(machine: Machine, flash: FlashDevice, *, take_over: bool = False) -> FlashDevice:
    """Write a flash device's label and its copy in /etc/hotset; returns it as it is then.

    One without disks and volume has neither.

    :param take_over: the label may name another machine until now.
    :raises FlashError: it is another device, or belongs to another machine.
    """
    path = path_of(flash.name)
    known: Label | FlashDevice | None
    known = labels.read(machine, flash.path) if take_over else require_ours(machine, flash)
    if not flash.disks and not flash.volume:
        labels.erase(machine, flash.path)
        forget(machine, flash)
        return flash
    flash = replace(
        flash,
        uuid=flash.uuid or str(uuid.uuid4()),
        host=owner.settle(machine),
        host_name=owner.host_name(machine),
        hardware=owner.hardware_id(machine),
        generation=max(flash.generation, known.generation if known else 0) + 1,
    )
    text = render(flash)
    labels.write(machine, flash.path, Label(flash.generation, text))
    machine.replace(f"{text}\n", path, 0o600)
    return flash


def forget(machine: Machine, flash: FlashDevice) -> None:
    """Remove this machine's copy of a label; the flash device stays as it is."""
    machine.run(["rm", "-f", str(path_of(flash.name))])


def save_without_flash(machine: Machine, flash: FlashDevice) -> FlashDevice:
    """Write only the copy: the device is gone or does not answer."""
    if not flash.disks:
        forget(machine, flash)
        return flash
    # Newer than the label, should the device come back.
    flash = replace(flash, generation=flash.generation + 1)
    machine.replace(f"{render(flash)}\n", path_of(flash.name), 0o600)
    return flash


def render(flash: FlashDevice) -> str:
    """A flash device as JSON, as :func:`parse` reads it."""
    return f'{{"schema_version": {SCHEMA_VERSION},{_JSON.dump_json(flash).decode()[1:]}'


def of_each(disks: Sequence[AttachedDisk], look: Callable[[AttachedDisk], T]) -> list[T]:
    """Inspect all disks in parallel, results in their order: a disk whose engine does not
    answer keeps no other waiting. Fewer at a time than sessions that a server's ssh allows."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(look, disks))


def list_disks(machine: Machine) -> list[AttachedDisk]:
    """Every accelerated disk of the machine."""
    return inventory(machine).list_disks(machine)


def find(machine: Machine, disk_name: str | None) -> AttachedDisk:
    """An accelerated disk by its name.

    :param disk_name: None takes the only one there is.
    :raises FlashError: there is none of that name, or more than one to choose from; names them.
    """
    known = inventory(machine)
    disks = known.list_disks(machine)
    listed, troubles = ", ".join(attached.disk.name for attached in disks), _troubles(known)
    if not disks:
        raise NotSetUpError(
            f"disk {disk_name!r} is not accelerated: no disk is, on this machine ({machine.kind})"
            if disk_name
            else f"no disk is accelerated on this machine ({machine.kind}){troubles}",
            Remedy("accelerate one", "tier create"),
            field="disk",
        )
    if disk_name is None and len(disks) > 1:
        first = Remedy("name one", parameters={"disk": disks[0].disk.name})
        raise FlashError(f"several disks are accelerated: {listed}", first, field="disk")
    matching = [attached for attached in disks if disk_name in (None, attached.disk.name)]
    if not matching:
        raise NotSetUpError(
            f"disk {disk_name!r} is not accelerated here; accelerated: {listed}{troubles}",
            field="disk",
        )
    return matching[0]


def find_flash(machine: Machine, name: str) -> FlashDevice:
    """A flash device by its own name or by that of a disk on it.

    :raises FlashError: there is none of that name; names those that there are.
    """
    known = inventory(machine)
    listed = ", ".join(flash.name for flash in known.flash_devices)
    troubles = _troubles(known)
    if not listed:
        raise NotSetUpError(
            f"no flash device is set up on this machine ({machine.kind}){troubles}",
            Remedy("set one up", "tier create"),
            field="flash_name",
        )
    matching = [flash for flash in known.flash_devices if name == flash.name] or [
        flash for flash in known.flash_devices if name in {disk.name for disk in flash.disks}
    ]
    if not matching:
        raise NotSetUpError(
            f"{name!r} is neither a flash device nor a disk on one; there are: {listed}{troubles}",
            field="flash_name",
        )
    return matching[0]


def _troubles(known: Inventory) -> str:
    return "".join(f"; {problem}" for problem in known.problems)


def parse(text: str) -> FlashDevice:
    """A flash device out of its label's text.

    :raises FlashError: it describes none, or is of another version of hotset; names the field.
    """
    try:
        fields = json.loads(text)
        version = fields.pop("schema_version")
    except (ValueError, AttributeError, KeyError):
        raise FlashError("it does not describe a flash device") from None
    if version != SCHEMA_VERSION:
        raise FlashError(
            f"schema_version is {version!r}: this hotset reads {SCHEMA_VERSION}; {_OF_ANOTHER}"
        )
    try:
        flash = _JSON.validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(step) for step in first["loc"])
        raise FlashError(f"{field}: {first['msg']}, not {first['input']!r}") from None
    # With the next change of the label they would be gone.
    for field in _more(fields, _JSON.dump_python(flash, mode="json")):
        raise FlashError(f"{field} is not known to this hotset: {_OF_ANOTHER}")
    return flash


def _more(given: object, known: object, place: str = "") -> Iterator[str]:
    """The fields, by their path, that one JSON has and the other has not."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, value in given.items():
            if name not in known:
                yield f"{place}{name}"
            else:
                yield from _more(value, known[name], f"{place}{name}.")
    elif isinstance(given, list) and isinstance(known, list):
        for number, (part, other) in enumerate(zip(given, known, strict=True)):
            yield from _more(part, other, f"{place}{number}.")
