"""From targets to a plan: pinned first, excluded never, what the file system needs last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from hotset.block import extents, transfer
from hotset.block.extents import Run, union
from hotset.core.errors import Remedy, RequestError
from hotset.core.sql import DatabaseError
from hotset.core.units import Bytes
from hotset.databases import connect
from hotset.databases.connect import EngineName
from hotset.databases.postgres.client import PostgresDatabase
from hotset.disk import lifecycle
from hotset.disk.cache_device import AttachedDisk, Disk
from hotset.hitratio import attribution, heatstore
from hotset.tier import pins

from . import planner, snapshot
from . import resolve as targets
from .database_blocks import fill_limit
from .planner import Plan, PlanTarget
from .resolve import MountedView, TargetError, TargetGoneError, sizes
from .snapshot import Snapshot, SnapshotError
from .targets import Server, Target, check_file, parse

_HEAT_LAYERS = 64
CANNOT_BE_LOOKED_UP = (RequestError, DatabaseError)
"""What it is that nobody says where a target lies: no server, no mount, no active disk."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asked a warm-up for.

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
    """As :func:`plan_request`, with the rate that its seconds come from.

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
        pinned = maker.preferred(kept.pinned, request.exclude, "pinned")
        gone = request.without_gone
        pinned += maker.named(request.pin, gone, pinned=True)
        wishes = [*pinned, *maker.named(request.targets, gone), inspect.own()]
        excluded = maker.preferred(kept.excluded, request.pin, "excluded")
        excluded += maker.named(request.exclude, gone)
    plan = planner.build_plan(
        wishes,
        union(*(layer for wish in excluded for layer in wish.layers)),
        tier.resident(),
        attached.disk.spec.block,
        fill_limit(tier.kind, tier.capacity),
    )
    return plan, notes


@contextmanager
def looking_up(attached: AttachedDisk, request: Request, notes: list[str]) -> Iterator[_Maker]:
    """What turns targets into blocks, for the length of a ``with`` block.

    :param notes: takes what is worth knowing beside.
    """
    machine, disk = attached.machine, attached.disk
    with (
        _server(request) as server,
        targets.inspect(machine, disk.device, disk.spec.block, request.mount_point) as inspect,
    ):
        yield _Maker(request.machine, disk, inspect, server, notes)


def take_snapshot(attached: AttachedDisk) -> Snapshot:
    """What is cached now, with the files it belongs to where the file system is mounted."""
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
    server: Callable[[], Server]
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

    def named(
        self, texts: Sequence[str], without_gone: bool, pinned: bool = False
    ) -> list[PlanTarget]:
        """What is asked for this once.

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
        found = extents.of_files(self.inspect.machine, self.inspect.files(self._paths(target)))
        return extents.whole_runs(found, self.inspect.block)

    def _paths(self, target: Target) -> list[str]:
        if not target.of_database:
            return [target.name]
        paths = self.server().paths(self.inspect.machine, target, self.inspect.folder)
        here, others = self.inspect.split(paths) if self.inspect.folder else (paths, [])
        if here and others:
            elsewhere = sizes(self.inspect.machine, others)
            self.notes.append(
                f"{target.text}: {Bytes(sum(elsewhere.values()))} of it lie on other file systems,"
                f" which this disk's cache does not serve: {', '.join(sorted(elsewhere))}"
            )
        return here or paths

    def is_server_here(self) -> bool:
        """Whether the database server has files on the disk: of another it knows nothing."""
        folders = self.server().folders(self.inspect.machine, self.inspect.folder)
        return bool(self.inspect.split(folders)[0])

    def preferred(self, kept: Sequence[str], but: Sequence[str], what: str) -> list[PlanTarget]:
        """What is pinned or excluded for good. One that cannot be looked up now (a table while the
        server is down, a file that was dropped) is left out and told, so that the rest is done."""
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
def _server(request: Request) -> Iterator[Callable[[], Server]]:
    """Connects at the first call, and closes at the end; one that does not answer is not waited for
    again."""
    opened: list[Server | DatabaseError] = []

    def server() -> Server:
        if not opened:
            try:
                opened.append(_connected(request))
            except DatabaseError as error:
                opened.append(error)
        if isinstance(opened[0], DatabaseError):
            raise opened[0]
        return opened[0]

    try:
        yield server
    finally:
        for one in opened:
            if isinstance(one, DatabaseError):
                continue
            with closing(one.engine):
                if one.connection is not None:
                    one.connection.close()


def _connected(request: Request) -> Server:
    named: Sequence[str] = [
        text for text in (*request.targets, *request.pin) if parse(text).of_database
    ]
    if request.dsn is None:
        raise TargetError(
            f"only the database server knows where {named[0] if named else 'a pinned table'} is:"
            " name the server",
            field="dsn",
        )
    database = connect.database(request.engine, request.dsn, request.password)
    engine = connect.engine(database)
    session = database.session() if isinstance(database, PostgresDatabase) else None
    return Server(engine, session, database.dbname)
