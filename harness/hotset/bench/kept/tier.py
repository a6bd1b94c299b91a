"""The accelerated disk on which a measured database lies, and what its cache holds.

Nothing here ends a measurement: what cannot be found out is unknown, and the reason is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents, filesystem
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.databases.base import Unavailable
from hotset.databases.product import SqlDatabase
from hotset.disk import flash_devices
from hotset.disk.flash_devices import AttachedDisk
from hotset.hitratio import attribution
from hotset.reports.model.measurement import Measurement, ObservedTier, Resident, TierMoment
from hotset.tier.disk_tier import DiskTier

from .found import machine_record
from .measurement import Kept

NOT_NAMED = "the database's server was not sampled"
_LARGEST = 24
_FAULTS = (HotsetError, OSError, RuntimeError, ValueError, LookupError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a database lies.

    :ivar disk: None: on no accelerated disk, or that is not known.
    :ivar unknown: why it is not known.
    """

    disk: AttachedDisk | None = None
    unknown: str = ""


@contextmanager
def observe(
    kept: Kept, machine: Machine | None, what: SqlDatabase | PurePosixPath
) -> Iterator[tuple[Machine | None, DiskTier | None]]:
    """The server and the tier of a database, whose state is kept as it is when the block begins and
    ends.

    :param machine: the database's server; None: it was not named. This computer is taken then, if
        the database lies on one of its accelerated disks.
    :param what: the database, or a file or device.
    """
    if machine is None:
        machine, place = _find_here(what)
    else:
        place = find_place(machine, what)
    kept.change(machine=machine_record(machine), measurement=_begin(kept, place))
    try:
        yield machine, _active(place)
    finally:
        kept.change(measurement=_end(kept, place, what))


def _find_here(what: SqlDatabase | PurePosixPath) -> tuple[Machine | None, Place]:
    """This computer, if a database is known to lie on one of its accelerated disks."""
    elsewhere = None, Place(unknown=NOT_NAMED)
    if isinstance(what, PurePosixPath) or not what.tells_its_files:
        return elsewhere
    here = Local()
    try:
        has_disks = bool(flash_devices.inventory(here).list_disks(here))
    except _FAULTS:
        return elsewhere
    place = find_place(here, what) if has_disks else Place()
    return (here, place) if place.disk is not None else elsewhere


def find_place(machine: Machine, what: SqlDatabase | PurePosixPath) -> Place:
    """On which of a machine's accelerated disks a database lies, or a file or device."""
    try:
        folders = [what] if isinstance(what, PurePosixPath) else _folders(machine, what)
        return _place(machine, folders)
    except _FAULTS as error:
        return Place(unknown=str(error))


def _folders(machine: Machine, database: SqlDatabase) -> list[PurePosixPath]:
    """Every folder with files of a database.

    :raises HotsetError: they are not on that machine.
    """
    with closing(database.administer()) as server:
        folders = server.own_folders(machine)
    if isinstance(folders, Unavailable):
        raise HotsetError(folders.unavailable)
    return [*map(PurePosixPath, folders)]


def _place(machine: Machine, folders: list[PurePosixPath]) -> Place:
    inventory = flash_devices.inventory(machine)
    disks = inventory.list_disks(machine)
    places = dict[str, AttachedDisk | None]()
    for folder in folders:
        if machine.run(["stat", str(folder)], check=False).rc:
            return Place(unknown=f"the database's files ({folder}) are not on that machine")
        below = _devices_below(machine, folder) if disks else set[str]()
        if below is None:
            return Place(unknown=f"the devices below {folder} are not told")
        on = (disk for disk in disks if disk.tier.is_active() and _number(disk) in below)
        places[str(folder)] = next(on, None)
    if len({attached.disk.name if attached else "" for attached in places.values()}) > 1:
        parts = (
            f"{path} on {attached.disk.name if attached else 'none'}"
            for path, attached in places.items()
        )
        return Place(unknown=f"of the accelerated disks it has {', '.join(parts)}")
    if inventory.problems:
        return Place(unknown=inventory.problems[0])
    return Place(next(iter(places.values()), None))


def _number(disk: AttachedDisk) -> str:
    return filesystem.device_number(disk.machine, disk.disk.device)


def _devices_below(machine: Machine, folder: PurePosixPath) -> set[str] | None:
    """The devices (``major:minor``) below a folder's file system, its own first; None: not told,
    as of btrfs, overlays and what only another process sees."""
    if folder.is_relative_to("/proc"):
        return None
    if machine.run(["test", "-b", str(folder)], check=False).rc == 0:
        return _with_those_below(machine, filesystem.device_number(machine, folder))
    real = PurePosixPath(machine.run(["readlink", "-f", str(folder)]).stdout.strip())
    mounts = [mount for mount in filesystem.mounts(machine) if real.is_relative_to(mount.folder)]
    # Of several mounts at one place the last is seen.
    mount = max(enumerate(mounts), key=lambda item: (len(item[1].folder.parts), item[0]))[1]
    if mount.device.startswith("0:"):
        return None
    return _with_those_below(machine, mount.device)


def _with_those_below(machine: Machine, device: str) -> set[str]:
    argv = ["lsblk", "--inverse", "--noheadings", "--raw", "--output", "MAJ:MIN"]
    result = machine.run([*argv, f"/dev/block/{device}"], check=False)
    return {device, *result.stdout.split()}


def _active(place: Place) -> DiskTier | None:
    return place.disk.tier if place.disk is not None else None


def _begin(kept: Kept, place: Place) -> Measurement:
    measurement = kept.measurement
    if place.disk is None:
        return measurement.model_copy(update={"tier_unknown": place.unknown})
    disk = place.disk.disk
    tier = ObservedTier(
        disk=disk.name,
        kind=disk.kind,
        mode=disk.spec.mode,
        policy=disk.spec.policy,
        block_bytes=int(disk.spec.block),
        cache_bytes=int(disk.spec.cache),
        before=_moment(place.disk),
    )
    return measurement.model_copy(update={"tier": tier, "tier_unknown": ""})


def _end(kept: Kept, place: Place, what: SqlDatabase | PurePosixPath) -> Measurement:
    measurement = kept.measurement
    if place.disk is None or measurement.tier is None:
        return measurement
    try:
        # A disk that is measured by itself has no tables.
        residents = () if isinstance(what, PurePosixPath) else _residents(place.disk, what)
        unknown = ""
    except _FAULTS as error:
        residents, unknown = (), str(error)
    after = {
        "after": _moment(place.disk),
        "residents": residents,
        "residents_unknown": unknown,
    }
    return measurement.model_copy(update={"tier": measurement.tier.model_copy(update=after)})


def _moment(disk: AttachedDisk) -> TierMoment | None:
    try:
        counters = disk.tier.report().counters
    except _FAULTS:
        return None
    if counters is None:
        return None
    block = disk.disk.spec.block
    return TierMoment(
        used_bytes=int(counters.used.bytes(block)), dirty_bytes=int(counters.dirty.bytes(block))
    )


def _residents(disk: AttachedDisk, database: SqlDatabase) -> tuple[Resident, ...]:
    """How much of each table and index is in the cache, the largest first.

    :raises HotsetError: the server, the file system or the tier does not tell.
    """
    with closing(database.administer()) as server:
        below = attribution.mount_point(disk.machine, disk.disk.device)
        label = server.labels("table", disk.machine, below)
    if isinstance(label, Unavailable):
        raise HotsetError(label.unavailable)
    files = attribution.files(disk.machine, disk.disk.device)
    cached = disk.tier.contents().cached
    residents = []
    for owner in attribution.group_by(files, label):
        held = extents.merge(owner.extents)
        size = extents.length(held)
        if size:
            share = extents.length(extents.common(held, cached)) / size
            residents.append(Resident(name=owner.name, bytes=int(size), cached=min(1.0, share)))
    return tuple(
        sorted(residents, key=lambda resident: (-resident.bytes, resident.name))[:_LARGEST]
    )
