"""A warm-up's plan: what is wanted, in the order of importance, against the room there is.

Pinned comes first, excluded never; then the targets as they were named. Each takes what is not
taken yet, until the cache is full. Nothing here asks a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from hotset.block import extents, filesystem, transfer
from hotset.block.devicemapper import device_size
from hotset.block.extents import Run, count, difference, first, intersection, union
from hotset.core.errors import Remedy, RequestError
from hotset.core.sql import DatabaseError, EngineName
from hotset.core.units import Blocks, Bytes
from hotset.databases import connect
from hotset.databases.base import Engine, Target, TargetError, TargetGoneError
from hotset.disk import lifecycle
from hotset.disk.flash_devices import AttachedDisk, Disk
from hotset.hitratio import attribution, heatstore
from hotset.tier import kinds, pins
from hotset.tier.base import Tier, TierKind

from . import snapshot, targets
from .snapshot import Snapshot, SnapshotError
from .targets import (
    MountedView,
    PlanTarget,
    check_file,
    parse,
    sizes,
)


@dataclass(frozen=True, slots=True)
class Row:
    """Target of a plan, in cache blocks.

    ``blocks`` are its own: neither excluded nor another target's before it. Of those, ``taken``
    will be cached, ``resident`` of the taken are so already, ``left_out`` have no room.
    """

    name: str
    pinned: bool
    extents: int
    blocks: Blocks
    taken: Blocks
    resident: Blocks
    is_asked: bool

    @property
    def left_out(self) -> Blocks:
        return Blocks(self.blocks - self.taken)

    @property
    def missing(self) -> Blocks:
        return Blocks(self.taken - self.resident)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of what to cache: ``runs``, in origin order; and where they come from."""

    rows: tuple[Row, ...]
    runs: list[Run]
    missing: list[Run]
    block: Bytes
    capacity: Blocks

    @property
    def bytes(self) -> Bytes:
        """Bytes to fetch."""
        return count(self.missing).bytes(self.block)

    @property
    def left_out(self) -> Bytes:
        """Requested bytes that have no room."""
        asked = (row for row in self.rows if row.is_asked)
        return Blocks(sum(row.left_out for row in asked)).bytes(self.block)

    def seconds(self, origin_mb_per_s: float) -> float:
        """Estimate the seconds to fetch at the origin's sequential rate, in 10^6 bytes a second."""
        return self.bytes / 1e6 / origin_mb_per_s


def build_plan(
    wishes: Iterable[PlanTarget],
    excluded: Sequence[Run],
    resident: Sequence[Run],
    block: Bytes,
    capacity: Blocks,
) -> Plan:
    """The plan for wishes in the order of importance; pinned ones come before the others.

    :param excluded: never taken, whoever wishes for it.
    :param resident: blocks that are cached now.
    """
    taken: list[Run] = []
    rows = []
    for wish in sorted(wishes, key=lambda wish: not wish.pinned):
        own, mine = list[Run](), list[Run]()
        for layer in wish.layers:
            new = difference(layer, union(excluded, taken, own))
            room = capacity - count(taken) - count(mine)
            own, mine = union(own, new), union(mine, first(new, room))
        taken = union(taken, mine)
        rows.append(
            Row(
                wish.name,
                wish.pinned,
                wish.extents,
                count(own),
                count(mine),
                count(intersection(mine, resident)),
                wish.is_asked,
            )
        )
    return Plan(tuple(rows), taken, difference(taken, resident), block, capacity)


def database_runs(
    tier: Tier,
    inspect: PurePosixPath,
    mount_point: PurePosixPath,
    folder: str,
    first: Sequence[str] = (),
    hottest: Iterable[Run] = (),
) -> list[Run]:
    """The origin's blocks that hold the files of a folder, as far as the cache has room; what is
    left of it takes free space, so that the files' growth hits as well.

    :param look: what :meth:`Tier.prepare` returned.
    :param first: folders in it whose files come before the others.
    :param hottest: blocks that come before all files, in that order.
    """
    machine, block = tier.machine, tier.spec.block
    capacity = fill_limit(tier.kind, tier.spec.cache.blocks(block))
    machine.run(["mkdir", "-p", str(mount_point)])
    kind = filesystem.kind_of(machine, inspect)
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(inspect), str(mount_point)])
    try:
        base = mount_point / folder
        size = device_size(machine, inspect)
        whole = [Run(Blocks(0), size.blocks(block))]
        kept = extents.intersection(extents.union(extents.first(hottest, capacity)), whole)
        for place in (*(base / name for name in first), base):
            pieces = extents.of_files(machine, extents.files_under(machine, place))
            if place == base:
                pieces += filesystem.own_extents(machine, inspect, kind)
            kept = extents.join_within(kept, extents.to_runs(pieces, block, size), capacity)
        free = filesystem.free_extents(machine, inspect, kind)
    finally:
        machine.run(["umount", str(mount_point)])
    return extents.with_room(
        kept, free, block, growth_limit(tier.kind, capacity, size.blocks(block))
    )


def fill_limit(kind: TierKind, capacity: Blocks) -> Blocks:
    """How much of a cache can be filled so that all of it stays."""
    return Blocks(int(capacity * kinds.kind_of_name(kind).fillable))


def growth_limit(kind: TierKind, capacity: Blocks, origin: Blocks) -> Blocks:
    """How full of files and free space a cache may be made.

    A full smq gives up blocks at every miss until a quarter is free (``queue_demotion``), and
    those could be the files'. Only where the whole origin fits can nothing miss.
    """
    grown = kinds.kind_of_name(kind).grown
    return capacity if grown and origin <= capacity else Blocks(int(capacity * grown))


_HEAT_LAYERS = 64
CANNOT_BE_LOOKED_UP = (RequestError, DatabaseError)
"""Errors of a target whose place cannot be looked up: no server, no mount, no active disk."""


@dataclass(frozen=True, slots=True)
class Request:
    """Parameters of a warm-up.

    :ivar without_gone: a target that is there no more is left out and told; one of them has to be.
    """

    machine: str
    targets: tuple[str, ...]
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    mount_point: PurePosixPath | None = None
    engine: EngineName = "postgres"
    dsn: str | None = None
    password: str | None = field(default=None, repr=False)
    without_gone: bool = False


@dataclass(slots=True)
class Planned:
    """A plan, and what is worth saying about it."""

    plan: Plan
    origin_mb_per_s: float
    notes: list[str] = field(default_factory=list)


def plan_with_estimate(
    attached: AttachedDisk, request: Request, origin_mb_per_s: float | None
) -> Planned:
    """Plan as :func:`plan_request`, with the rate that its seconds come from.

    :param origin_mb_per_s: None measures it, on the origin's first megabytes.
    """
    plan, notes = plan_request(attached, request)
    rate = origin_mb_per_s or transfer.sequential_rate(attached.machine, attached.disk.origin)
    return Planned(plan, rate, notes)


def plan_request(attached: AttachedDisk, request: Request) -> tuple[Plan, list[str]]:
    """The plan of a request against what is cached now, and what is worth saying about it.

    :raises TargetError: a target is not there.
    :raises TierRefusedError: the disk is not active.
    """
    tier = lifecycle.active(attached)
    kept = pins.read_preferences(attached.machine, attached.disk.name)
    notes: list[str] = []
    with looking_up(attached, request, notes) as maker:
        inspect = maker.inspect
        # What is pinned for this once stands against what is excluded for good, and the reverse.
        pinned = maker.prefer(kept.pinned, request.exclude, "pinned")
        gone = request.without_gone
        pinned += maker.name_targets(request.pin, gone, pinned=True)
        wishes = [*pinned, *maker.name_targets(request.targets, gone), inspect.own()]
        excluded = maker.prefer(kept.excluded, request.pin, "excluded")
        excluded += maker.name_targets(request.exclude, gone)
    plan = build_plan(
        wishes,
        union(*(layer for wish in excluded for layer in wish.layers)),
        tier.resident(),
        attached.disk.spec.block,
        fill_limit(tier.kind, tier.capacity),
    )
    return plan, notes


@contextmanager
def looking_up(attached: AttachedDisk, request: Request, notes: list[str]) -> Iterator[_Maker]:
    """Open the lookup that turns targets into blocks, for the length of a ``with`` block.

    :param notes: takes what is worth knowing beside.
    """
    machine, disk = attached.machine, attached.disk
    with (
        _server(request) as server,
        targets.inspect(machine, disk.device, disk.spec.block, request.mount_point) as inspect,
    ):
        yield _Maker(request.machine, disk, inspect, server, notes)


def take_snapshot(attached: AttachedDisk) -> Snapshot:
    """Record what is cached now, with the files it belongs to where the file system is mounted."""
    machine, disk, tier = attached.machine, attached.disk, attached.tier
    with targets.inspect(machine, disk.device, disk.spec.block, None) as inspect:
        files = attribution.files(machine, disk.device) if inspect.folder else []
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return snapshot.take(disk.name, at, inspect, tier.by_level(), files)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes wishes out of targets."""

    machine: str
    disk: Disk
    inspect: MountedView
    server: Callable[[], Engine]
    notes: list[str]

    def wish(self, target: Target, pinned: bool = False) -> PlanTarget:
        if target.kind == "heat":
            return self._heat(target, pinned)
        if target.kind == "snapshot":
            return self._snapshot(target, pinned)
        if target.kind == "region":
            runs = self.inspect.runs([self.inspect.region(target.text)])
            return PlanTarget(target.text, 1, (runs,), pinned)
        return self.inspect.wish(target.text, self._paths(target), pinned)

    def name_targets(
        self, texts: Sequence[str], without_gone: bool, pinned: bool = False
    ) -> list[PlanTarget]:
        """Look up the targets of this request only.

        :raises TargetGoneError: one is gone, or all are where some may be.
        """
        wishes, gone = list[PlanTarget](), None
        for text in texts:
            try:
                wishes.append(self.wish(parse(text), pinned))
            except TargetGoneError as error:
                if not without_gone:
                    raise
                gone = error
                self.notes.append(f"left out, as it is gone: {error}")
        if gone is not None and not wishes:
            raise gone
        return wishes

    def runs(self, target: Target) -> list[Run]:
        """All blocks that have some of it."""
        return union(*self.wish(target).layers)

    def whole_runs(self, target: Target) -> list[Run]:
        """The blocks that have nothing else in them: leaving them out harms no neighbour."""
        if target.kind in ("heat", "snapshot"):
            return self.runs(target)
        if target.kind == "region":
            return extents.whole_runs([self.inspect.region(target.text)], self.inspect.block)
        pieces = extents.of_files(self.inspect.machine, self.inspect.files(self._paths(target)))
        return extents.whole_runs(pieces, self.inspect.block)

    def _paths(self, target: Target) -> list[str]:
        if not target.of_database:
            return [target.name]
        paths = self.server().find(self.inspect.machine, target, self.inspect.folder)
        here, others = self.inspect.split(paths) if self.inspect.folder else (paths, [])
        if here and others:
            elsewhere = sizes(self.inspect.machine, others)
            self.notes.append(
                f"{target.text}: {Bytes(sum(elsewhere.values()))} of it lie on other file systems,"
                f" which this disk's cache does not serve: {', '.join(sorted(elsewhere))}"
            )
        return here or paths

    def is_server_here(self) -> bool:
        """True if the database server has files on the disk: of other disks it knows nothing."""
        folders = self.server().folders(self.inspect.machine, self.inspect.folder)
        return bool(self.inspect.split(folders)[0])

    def prefer(self, kept: Sequence[str], but: Sequence[str], what: str) -> list[PlanTarget]:
        """Look up what is pinned or excluded for good. A target that cannot be located now (a
        table while the server is down, a dropped file) is noted and left out."""
        wishes = []
        for text in kept:
            if text in but:
                continue
            try:
                wishes.append(self.wish(parse(text), pinned=what == "pinned"))
            except CANNOT_BE_LOOKED_UP as error:
                self.notes.append(f"{what}, but left out this time: {error}")
        return wishes

    def _heat(self, target: Target, pinned: bool) -> PlanTarget:
        ranked = heatstore.hottest(
            self.machine, self.disk.name, self.disk.identity, self.inspect.block
        )
        if not ranked:
            raise TargetError(
                "nothing was counted on this disk yet, so its heat is not known",
                Remedy("start counting", "heat start", {"disk": self.disk.name}),
                field="targets",
            )
        size = -(-len(ranked) // _HEAT_LAYERS)
        layers = tuple(
            union(run for run, _ in ranked[at : at + size]) for at in range(0, len(ranked), size)
        )
        return PlanTarget(target.text, sum(map(len, layers)), layers, pinned)

    def _snapshot(self, target: Target, pinned: bool) -> PlanTarget:
        try:
            saved = snapshot.parse(check_file(target).read_text())
            kept = snapshot.keep_allocated(saved, self.inspect)
        except SnapshotError as error:
            raise TargetError(f"{target.text}: {error}", field="targets") from None
        for name in kept.deleted:
            self.notes.append(f"{name} was deleted since the snapshot: its blocks are skipped")
        return PlanTarget(target.text, sum(map(len, kept.layers)), kept.layers, pinned)


@contextmanager
def _server(request: Request) -> Iterator[Callable[[], Engine]]:
    """Connects at the first call, and closes at the end; one that does not answer is not waited for
    again."""
    opened: list[Engine | DatabaseError] = []

    def server() -> Engine:
        if not opened:
            try:
                opened.append(_connect(request))
            except DatabaseError as error:
                opened.append(error)
        if isinstance(opened[0], DatabaseError):
            raise opened[0]
        return opened[0]

    try:
        yield server
    finally:
        for result in opened:
            if isinstance(result, DatabaseError):
                continue
            result.close()


def _connect(request: Request) -> Engine:
    named: Sequence[str] = [
        text for text in (*request.targets, *request.pin) if parse(text).of_database
    ]
    if request.dsn is None:
        raise TargetError(
            f"only the database server knows where {named[0] if named else 'a pinned table'} is:"
            " name the server",
            field="dsn",
        )
    return connect.database(request.engine, request.dsn, request.password).administer()
